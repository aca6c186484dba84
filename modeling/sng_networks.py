"""Networks that score a span from the vectors of its own words: for all spans of the grid, or for given spans."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from transformers.modeling_layers import GradientCheckpointingLayer

from .graphs import is_exporting, shifted
from .spans import shift_left


@dataclass
class GivenSpans:
    """Spans of any length, their words laid out as torch's LSTM wants them: step by step, the longest span first."""

    order: torch.Tensor  # (N,) the spans by length, longest first
    step: torch.Tensor  # (M,) for each of the M words of all spans: its place in its span,
    span: torch.Tensor  # (M,) and its span's place in `order`
    sizes: torch.Tensor  # (N,) words of each span, in `order`
    words: PackedSequence  # of data (M, d)

    @classmethod
    def of(cls, words: torch.Tensor, row: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> "GivenSpans":
        """Cut the spans `[start, end)` of sentences `row`, all `(N,)`, out of words `(B, T, d)`."""
        sizes, order = (end - start).sort(descending=True, stable=True)
        inside = torch.arange(int(sizes[0]), device=words.device).unsqueeze(1) < sizes  # (L, N)
        step, span = inside.nonzero(as_tuple=True)
        data = words[row[order][span], start[order][span] + step]  # (M, d): never an (N, L, d) of mostly padding
        return cls(order, step, span, sizes, PackedSequence(data, inside.sum(1).cpu()))

    def sum(self, x: torch.Tensor) -> torch.Tensor:
        """Sum `(M, c)` over the words of each span, `(N, c)`, the spans as they were given."""
        total = x.new_zeros(len(self.order), x.size(1)).index_add(0, self.span, x)
        return torch.empty_like(total).index_copy(0, self.order, total)


class BagOfVectors(GradientCheckpointingLayer):
    """The baseline: Linear(mean of the span's word vectors). `config` is that of SNG."""

    def __init__(self, config: Any, classes: int):
        super().__init__()
        self.output = nn.Linear(config.vector_dim, classes)

    def forward(self, words: torch.Tensor, max_span: int) -> torch.Tensor:
        """Logits of the grid, `(B, T, K, c)`, from words `(B, T, d)`. The map of a mean is the mean of the maps."""
        scores = words @ self.output.weight.T  # (B, T, c)
        total: Any = 0
        logits: list[torch.Tensor] = []
        for size in range(1, max_span + 1):
            total = total + shift_left(scores, size - 1)
            logits.append(total / size)
        return torch.stack(logits, dim=2) + self.output.bias

    def score(self, given: GivenSpans) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(N, c)` of given spans, and the weight `(M,)` of each word in them."""
        weights = 1 / given.sizes[given.span].to(given.words.data.dtype)
        return self.output(given.sum(weights.unsqueeze(1) * given.words.data)), weights


class BiLstmAttention(GradientCheckpointingLayer):
    """The paper's network: a BiLSTM over the span's words alone, and attention to its outputs by its last states.

    The forward state at a word depends only on it and on where the span starts, the backward state only on it and on
    where the span ends. So all spans of at most K words cost K steps of the forward LSTM from every start and K of the
    backward LSTM from every end; each span's attention is then made of products of states that are already there.
    """

    def __init__(self, config: Any, classes: int):
        super().__init__()
        self.lstm = nn.LSTM(config.vector_dim, config.lstm_size, bidirectional=True)
        self.output = nn.Linear(2 * config.lstm_size, classes)

    def forward(self, words: torch.Tensor, max_span: int) -> torch.Tensor:
        """Logits of the grid, `(B, T, K, c)`, from words `(B, T, d)`."""
        ahead = self._states(words, max_span)  # (B, T, K, h): [i, n] starts at i and has read n words more
        back = self._states(words.flip(1), max_span, "_reverse").flip(1)  # (B, T, K, h): [j, n] ends at j, likewise
        # For the span (i, k) with last word j = i + k, the score of its word m is
        # ahead[i, m] · ahead[i, k] + back[j, k - m] · back[j, k].
        k = torch.arange(max_span, device=words.device)
        turn = (k.unsqueeze(1) - k) % max_span  # (K, K): m ↔ k - m, counting words from the start ↔ from the end
        turn = turn.expand(*words.shape[:2], -1, -1)
        back_scores = (back @ back.transpose(2, 3)).gather(3, turn)  # (B, T, K, K), by the last word
        scores = ahead @ ahead.transpose(2, 3) + by_start(back_scores)
        weights = scores.masked_fill(k > k.unsqueeze(1), -torch.inf).softmax(-1)
        # The map of a weighted sum is the weighted sum of the maps: c columns in place of 2h.
        w_ahead, w_back = self.output.weight.chunk(2, dim=1)
        from_ends = by_end(weights).gather(3, turn) @ (back @ w_back.T)  # (B, T, K, c), by the last word
        return weights @ (ahead @ w_ahead.T) + by_start(from_ends) + self.output.bias

    def _states(self, words: torch.Tensor, max_span: int, direction: str = "") -> torch.Tensor:
        """Hidden states `(B, T, K, h)` of one direction, from a zero state at every word on, over K words."""
        w_in, w_state, b_in, b_state = (
            getattr(self.lstm, f"{name}_l0{direction}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        inputs = words @ w_in.T + (b_in + b_state)  # (B, T, 4h), once for all spans
        length = words.size(1)
        state = cell = words.new_zeros(words.size(0), length, self.lstm.hidden_size)
        states = []
        for step in range(max_span):  # Eq. 6-11; starts from which no word is left drop out
            left = length if is_exporting() else length - step
            ahead = shifted(inputs, step) if is_exporting() else inputs[:, step:]
            let_in, keep, new, let_out = (ahead + state[:, :left] @ w_state.T).chunk(4, dim=-1)
            cell = keep.sigmoid() * cell[:, :left] + let_in.sigmoid() * new.tanh()
            state = let_out.sigmoid() * cell.tanh()
            states.append(nn.functional.pad(state, (0, 0, 0, length - left)))
        return torch.stack(states, dim=2)

    def score(self, given: GivenSpans) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(N, c)` of given spans, and the attention `(M,)` to each word in them."""
        states, (last, _) = self.lstm(given.words)
        query = torch.cat([last[0], last[1]], dim=-1)  # (N, 2h), in given.order
        products = (states.data * query[given.span]).sum(-1)  # (M,)
        scores = products.new_full((len(states.batch_sizes), len(given.order)), -torch.inf)  # (L, N)
        weights = scores.index_put((given.step, given.span), products).softmax(0)[given.step, given.span]
        return self.output(given.sum(weights.unsqueeze(1) * states.data)), weights


SPAN_NETWORKS: dict[str, type[BiLstmAttention] | type[BagOfVectors]] = {
    "bilstm_attention": BiLstmAttention,
    "bag": BagOfVectors,
}


def by_start(x: torch.Tensor) -> torch.Tensor:
    """`y[:, i, k] = x[:, i + k, k]`: from spans filed under their last word to the grid, `(B, T, K, ...)`."""
    return torch.stack([shift_left(x[:, :, k], k) for k in range(x.size(2))], dim=2)


def by_end(x: torch.Tensor) -> torch.Tensor:
    """`y[:, j, k] = x[:, j - k, k]`: the inverse of [`by_start`]."""
    return by_start(x.flip(1)).flip(1)
