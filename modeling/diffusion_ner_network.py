"""The network of DiffusionNER (Shen et al., 2023): from noisy spans to boundaries and types."""

import torch
from torch import nn
from transformers import initialization as init

from .diffusion_ner_process import sinusoid

POINTER_CELLS = 2**24  # numbers that a boundary pointer holds at once


def mean_of_spans(words: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Mean over the words left … right of each of `spans (B, K, 2)`, from running sums of `words (B, T, d)`."""
    sums = nn.functional.pad(words.float().cumsum(1), (0, 0, 1, 0))  # (B, T + 1, d)
    left, right = spans.unbind(-1)
    row = torch.arange(len(words), device=words.device).unsqueeze(1)
    return ((sums[row, right + 1] - sums[row, left]) / (right - left + 1).unsqueeze(-1)).to(words.dtype)


class SpanLayer(nn.Module):
    """Spans look at each other, then at the sentence, then through an FFN; each with a residual and a layer norm.

    Either look can be left out, with its norm (Table 4 of the paper).
    """

    def __init__(
        self,
        d: int,
        heads: int,
        ffn_size: int,
        dropout: float,
        self_attention: bool = True,
        cross_attention: bool = True,
    ):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d, heads, dropout, batch_first=True) if self_attention else None
        self.cross_attention = nn.MultiheadAttention(d, heads, dropout, batch_first=True) if cross_attention else None
        self.self_norm = nn.LayerNorm(d) if self_attention else None
        self.cross_norm = nn.LayerNorm(d) if cross_attention else None
        self.ffn_norm = nn.LayerNorm(d)
        self.ffn = nn.Sequential(nn.Linear(d, ffn_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(ffn_size, d))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, slots: torch.Tensor, words: torch.Tensor, padding: torch.Tensor
    ) -> torch.Tensor:
        """x `(B, K, d)`, the slots' embeddings `(K, d)`, words `(B, T, d)`, padding `(B, T)` true outside the text."""
        if self.self_attention is not None and self.self_norm is not None:
            query = x + slots
            x = self.self_norm(x + self.dropout(self.self_attention(query, query, x, need_weights=False)[0]))
        if self.cross_attention is not None and self.cross_norm is not None:
            seen = self.cross_attention(x + slots, words, words, key_padding_mask=padding, need_weights=False)[0]
            x = self.cross_norm(x + self.dropout(seen))
        return self.ffn_norm(x + self.dropout(self.ffn(x)))


class BoundaryPointer(nn.Module):
    """How well word i serves as a boundary of span k: w · relu(A h_i + B x_k)."""

    def __init__(self, d: int):
        super().__init__()
        self.words, self.spans = nn.Linear(d, d), nn.Linear(d, d)
        self.score = nn.Linear(d, 1)

    def initialise(self) -> None:
        init.constant_(self.score.bias, -3.0)  # one word in twenty is a boundary, to start with

    def forward(self, words: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """`(B, T, d)` and `(B, K, d)` → `(B, K, T)`, some spans at a time so that (B, K, T, d) never is."""
        words, x = self.words(words).unsqueeze(1), self.spans(x).unsqueeze(2)
        step = max(1, POINTER_CELLS // words.numel())
        return torch.cat([self.score((words + some).relu()).squeeze(-1) for some in x.split(step, dim=1)], dim=1)


class SpanDenoiser(nn.Module):
    """f_θ of the paper without its sentence encoder: span vectors → span encoder → + time → boundaries and types.

    Args:
        d: of words and spans.
        classes: types and none.
        representation: of a noisy span, `"boundary"` or `"mean"`.
        layers, heads, ffn_size: of the span encoder.
        dropout: everywhere.
        self_attention, cross_attention: whether spans look at each other, and at the sentence.
        time_embedding: what is added for the time, its `"sinusoid"` or an `"mlp"` of it.
    """

    def __init__(
        self,
        d: int,
        classes: int,
        representation: str,
        layers: int,
        heads: int,
        ffn_size: int,
        dropout: float,
        self_attention: bool = True,
        cross_attention: bool = True,
        time_embedding: str = "mlp",
    ):
        super().__init__()
        self.start: nn.Linear | None = None
        self.end: nn.Linear | None = None
        self.join: nn.Linear | None = None
        if representation == "boundary":
            self.start, self.end, self.join = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(2 * d, d)
        self.dropout = nn.Dropout(dropout)
        self.slot_mlp: nn.Module = nn.Identity()
        if self_attention or cross_attention:  # nobody else asks which slot a span has
            self.slot_mlp = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))
        looks = self_attention, cross_attention
        self.layers = nn.ModuleList([SpanLayer(d, heads, ffn_size, dropout, *looks) for _ in range(layers)])
        self.time_mlp: nn.Module = nn.Identity()
        if time_embedding == "mlp":
            self.time_mlp = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))
        self.left, self.right = BoundaryPointer(d), BoundaryPointer(d)
        self.classifier = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, classes))

    def forward(
        self, words: torch.Tensor, mask: torch.Tensor, spans: torch.Tensor, times: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        Args:
            words: `(B, T, d)`, H_S.
            mask: `(B, T)` words that exist.
            spans: `(B, K, 2)` left and right of the noisy spans, inclusive.
            times: `(B,)`, how noisy they are.

        Returns:
            Logits of the types `(B, K, classes)`, of the left and of the right boundary `(B, K, T)`.
        """
        d = words.size(-1)
        slots = self.slot_mlp(sinusoid(torch.arange(spans.size(1), device=words.device), d).to(words.dtype))  # (K, d)
        time = self.time_mlp(sinusoid(times, d).to(words.dtype)).unsqueeze(1)  # (B, 1, d)
        padding = ~mask
        padding[:, 0] = False  # attention needs something to look at, even in an empty text
        x = self.represent(words, spans)
        for layer in self.layers:
            x = layer(x, slots, words, padding)
        x = x + time
        outside = ~mask.unsqueeze(1)
        left, right = (pointer(words, x) for pointer in (self.left, self.right))
        lowest = torch.finfo(left.dtype).min  # of the logits: under autocast the words may be of another type
        return self.classifier(x), left.masked_fill(outside, lowest), right.masked_fill(outside, lowest)

    def initialise(self) -> None:
        """Xavier: BERT's N(0, 0.02²), which the authors keep, lets little through a small network at first."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                init.xavier_uniform_(module.weight)
                init.zeros_(module.bias)

    def represent(self, words: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        """The vectors `(B, K, d)` of noisy spans."""
        if self.start is None or self.end is None or self.join is None:
            return mean_of_spans(words, spans)
        row = torch.arange(len(words), device=words.device).unsqueeze(1)
        start = self.dropout(self.start(words))[row, spans[..., 0]]
        end = self.dropout(self.end(words))[row, spans[..., 1]]
        return self.dropout(self.join(torch.cat([start, end], dim=-1)))
