"""Shallow aggregation of the words in a span (Zhu et al., 2023, Appendix A), for all spans of ≤ K words: O(T·K·d)."""

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init

from .spans import running_max, shift_left

AGGREGATIONS = ("max", "mean", "multiplicative", "additive")


def running_mean(x: torch.Tensor, max_span: int) -> Iterator[torch.Tensor]:
    """Yield, for span sizes 1..K, the mean of `x (B, T, d)` over every span of that size: K tensors `(B, T, d)`.

    Sums are kept in single precision, whatever the type of `x`.
    """
    total = x.float()
    yield x
    for size in range(2, max_span + 1):
        total = total + shift_left(x, size - 1)
        yield (total / size).to(x.dtype)


def running_attention(x: torch.Tensor, scores: torch.Tensor, max_span: int) -> Iterator[torch.Tensor]:
    """Yield, for span sizes 1..K, the mean of `x (B, T, d)` under softmax(scores) over every span of that size.

    The softmax grows by one word at a time and is rescaled whenever its maximum moves, so nothing overflows.
    It is kept in single precision, whatever the type of `x`. `scores` is `(B, T, 1)`.
    """
    scores = scores.float()
    highest, weight, total = scores, torch.ones_like(scores), x.float()
    yield x
    for size in range(2, max_span + 1):
        score, word = shift_left(scores, size - 1), shift_left(x, size - 1)
        before, highest = highest, torch.maximum(highest, score)
        old, new = (before - highest).exp(), (score - highest).exp()
        weight, total = weight * old + new, total * old + word * new
        yield (total / weight).to(x.dtype)


class Aggregation(nn.Module):
    """Span vectors from word vectors H: max, mean, or an attention whose weights depend on the words alone.

    - `"multiplicative"`: softmax(uᵀ tanh(W Hᵀ)) H
    - `"additive"`: softmax(uᵀ tanh(W (H ⊕ v)ᵀ)) H

    W carries a bias, as in the authors' code.
    """

    def __init__(self, how: str, dim: int):
        super().__init__()
        if how not in AGGREGATIONS:
            raise ValueError(f"aggregation={how!r} is unknown: choose one of {list(AGGREGATIONS)}.")
        self.how = how
        if how in ("multiplicative", "additive"):
            self.projection = nn.Linear(dim if how == "multiplicative" else 2 * dim, dim)  # W
            self.u = nn.Parameter(torch.empty(dim))
        if how == "additive":
            self.v = nn.Parameter(torch.empty(dim))

    def forward(self, x: torch.Tensor, max_span: int) -> Iterator[torch.Tensor]:
        """Yield the vectors `(B, T, d)` of the spans of 1, 2, .. K words that start at each word of `x (B, T, d)`."""
        if self.how == "max":
            return running_max(x, max_span)
        if self.how == "mean":
            return running_mean(x, max_span)
        return running_attention(x, self.scores(x), max_span)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """`(B, T, 1)`"""
        if self.how == "multiplicative":
            projected = self.projection(x)
        else:  # W (h ⊕ v) = W_h h + W_v v
            of_words, of_v = self.projection.weight.split(x.size(-1), dim=1)
            projected = F.linear(x, of_words) + F.linear(self.v, of_v, self.projection.bias)
        return projected.tanh() @ self.u.unsqueeze(1)

    def initialise(self) -> None:
        if self.how in ("multiplicative", "additive"):
            init.xavier_uniform_(self.projection.weight, gain=nn.init.calculate_gain("tanh"))
            init.zeros_(self.projection.bias)
            for vector in self.parameters(recurse=False):
                bound = math.sqrt(3 / len(vector))
                init.uniform_(vector, -bound, bound)
