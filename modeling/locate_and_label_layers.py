"""What filter, regressor and classifier of Locate and Label are made of: spans read off the words, and scored."""

import torch
from torch import nn

from .locate_and_label_spans import Spans
from .spans import max_in_table, max_table

BLOCK = 2048  # spans scored at once where no gradient is needed


class SpanReader:
    """Reads spans off the words `(B, T, d)` of a batch: pooled words, and where the boundary words are."""

    def __init__(self, words: torch.Tensor, num_words: torch.Tensor):
        self.words, self.num_words, self.length = words.flatten(0, 1), num_words, words.size(1)  # (B * T, d)
        self._longest, self._grid = 0, words
        self._table: torch.Tensor  # made by the first `pooled`

    def inner(self, spans: Spans) -> tuple[torch.Tensor, torch.Tensor]:
        """The first and the last word, as indices of `words`."""
        return spans.row * self.length + spans.start, spans.row * self.length + spans.end - 1

    def outer(self, spans: Spans) -> tuple[torch.Tensor, torch.Tensor]:
        """The words before and after; at an edge of the sentence, the edge itself."""
        before = (spans.start - 1).clamp(min=0)
        after = torch.minimum(spans.end, self.num_words[spans.row] - 1)
        return spans.row * self.length + before, spans.row * self.length + after

    def pooled(self, spans: Spans, longest: int | None = None) -> torch.Tensor:
        """`(N, d)`, the element-wise maximum of the words; where it is not known, the `longest` span is asked for."""
        longest = spans.longest() if longest is None else longest
        if longest > self._longest:  # seeds are short; a moved span may be as long as the sentence
            self._table, self._longest = max_table(self._grid, longest), longest
        return max_in_table(self._table, *spans)


class SpanMlp(nn.Module):
    """W2·GELU(W1 [h^p; h_left; h_right] + b1) + b2 of spans, by their inner or their outer boundary words.

    A linear map of a concatenation is the sum of the maps of its parts: each word is mapped once, not once a span.
    """

    def __init__(self, size: int, out_features: int, dropout: float, boundary: str):
        super().__init__()
        self.boundary = boundary
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(3 * size, size)
        self.output = nn.Linear(size, out_features)

    def forward(self, reader: SpanReader, spans: Spans, longest: int | None = None) -> torch.Tensor:
        """`(N, out)`; `longest` is the length of the longest span, if the host knows it."""
        # Contiguous, so that the result does not depend (in the last bit) on where in memory the matrix was loaded to.
        w_pooled, w_left, w_right = (w.contiguous() for w in self.hidden.weight.chunk(3, dim=1))
        as_left = self.dropout(reader.words) @ w_left.T + self.hidden.bias  # (B * T, d)
        as_right = self.dropout(reader.words) @ w_right.T

        def score(spans: Spans) -> torch.Tensor:
            left, right = getattr(reader, self.boundary)(spans)
            hidden = self.dropout(reader.pooled(spans, longest)) @ w_pooled.T
            hidden = hidden + as_left.index_select(0, left) + as_right.index_select(0, right)
            return self.output(nn.functional.gelu(hidden))

        if torch.is_grad_enabled():
            return score(spans)
        # So that memory does not grow with the number of spans.
        blocks = torch.arange(len(spans.row), device=spans.row.device).split(BLOCK)
        return torch.cat([score(spans.at(block)) for block in blocks])
