"""The biaffine model (Yu et al., 2020), the strong baseline of DSpERT: a span from its first and its last word."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init

from .bilstm import BiLstm
from .configuration_nested_ner import NestedNerConfig, Reach
from .graphs import at_most, band, is_exporting
from .losses import Gold, grid_loss, reduce_loss
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .span_units import SPAN_UNITS, gold_in_subwords, in_subwords, on_words
from .spans import at_ends, fill_cells, list_spans


class BiaffineNerConfig(NestedNerConfig):
    """The biaffine model with the paper's settings.

    Args:
        max_span_length: None, as in the paper, for spans of any length: O(T²) for a sentence of T words. A number K
            costs O(T·K), and entities of more than K words are out of reach.
        span_unit: `"word"`, or `"subword"` as in the authors' code: spans, sizes (and `max_span_length`) then count in
            sub-words, and predictions that begin or end inside a word are dropped.
        affine_size: of the start and the end vectors.
        lstm_size: of both directions of the BiLSTM over words together; 0 for none.
        size_embedding_dim, size_embedding_rows: of w_k; sizes past the last row share it. (The authors take the 97.5%
            quantile of gold lengths as the number of rows.)
        dropout: before the start and end maps (and before the tagging head of a bundled model).
        affine_dropout: on what is scored: start, end and size vectors.
        lstm_dropout: before the BiLSTM.
    """

    model_type = "biaffine_ner"

    max_span_length: int | None = None
    span_unit: str = "word"
    affine_size: int = 150
    lstm_size: int = 400
    size_embedding_dim: int = 25
    size_embedding_rows: int = 25
    boundary_smoothing: float = 0.1
    loss_reduction: str = "sentence"
    encoder_dropout: float | None = 0.2
    dropout: float = 0.4
    affine_dropout: float = 0.2
    lstm_dropout: float = 0.5

    def _check(self) -> None:
        super()._check()
        self.check_choice("span_unit", SPAN_UNITS)
        if self.lstm_size % 2:
            raise ValueError(f"lstm_size={self.lstm_size} must be even: one half for each direction.")

    def reach(self) -> Reach:
        return Reach(longest=self.max_span_length, unit=self.span_unit)


def bilinear_band(left: torch.Tensor, right: torch.Tensor, max_span: int) -> torch.Tensor:
    """`left[i]ᵀ right[j]` for all i ≤ j < i + K, `(B, T, K, C)`, from `left (B, T, C, a)` and `right (B, T, a)`.

    K starts at a time meet the 2K - 1 words that their spans can end at, so that the work is done by matrix products,
    and memory stays O(T·K).
    """
    if is_exporting():
        return band(left, right, max_span)
    length, window = left.size(1), 2 * max_span - 1
    blocks = math.ceil(length / max_span)
    left = F.pad(left, (0, 0, 0, 0, 0, blocks * max_span - length)).unflatten(1, (blocks, max_span))  # (B, n, K, C, a)
    right = F.pad(right, (0, 0, 0, blocks * max_span + max_span - 1 - length)).unfold(
        1, window, max_span
    )  # (B, n, a, 2K - 1)
    scores = (left.flatten(2, 3) @ right).unflatten(2, left.shape[2:4])  # (B, n, K, C, 2K - 1)
    offset = torch.arange(max_span, device=left.device)
    ends = (offset.unsqueeze(1) + offset).unsqueeze(1).expand(*scores.shape[:4], -1)  # of start i: i .. i + K - 1
    return scores.gather(4, ends).transpose(3, 4).flatten(1, 2)[:, :length]


class BiaffineScorer(nn.Module):
    """score_c(i, j) = s_iᵀ U_c e_j + W_c (s_i ⊕ e_j ⊕ w_{j-i}) + b_c, with s = ReLU(A_s h) and e = ReLU(A_e h)."""

    def __init__(self, config: BiaffineNerConfig, in_features: int, classes: int):
        super().__init__()
        size = config.affine_size
        self.start = nn.Linear(in_features, size)
        self.end = nn.Linear(in_features, size)
        self.sizes = nn.Embedding(config.size_embedding_rows, config.size_embedding_dim)
        self.U = nn.Parameter(torch.empty(classes, size, size))
        self.W = nn.Parameter(torch.empty(classes, 2 * size + config.size_embedding_dim))
        self.b = nn.Parameter(torch.empty(classes))
        self.input_dropout = nn.Dropout(config.dropout)
        self.dropout = nn.Dropout(config.affine_dropout)

    def forward(self, words: torch.Tensor, max_span: int) -> torch.Tensor:
        """The grid's scores `(B, T, K, classes)` from words `(B, T, h)`."""
        s = self.start(self.input_dropout(words)).relu()  # (B, T, a)
        e = self.end(self.input_dropout(words)).relu()
        size = torch.arange(max_span, device=words.device).clamp(max=self.sizes.num_embeddings - 1)
        of_start, of_end, of_size = self.W.split([s.size(-1), e.size(-1), self.sizes.embedding_dim], dim=1)
        drop = self.dropout
        linear = F.linear(drop(s), of_start).unsqueeze(2)  # (B, T, 1, C)
        linear = (
            linear + at_ends(F.linear(drop(e), of_end), max_span) + F.linear(drop(self.sizes(size)), of_size, self.b)
        )
        # One product of matrices, which ONNX Runtime has a faster operator for than for `einsum`.
        left = (drop(s) @ self.U.transpose(0, 1).flatten(1)).unflatten(2, (len(self.U), -1))  # (B, T, C, a)
        return bilinear_band(left, drop(e), max_span) + linear

    def initialise(self) -> None:
        for affine in (self.start, self.end):
            init.kaiming_uniform_(affine.weight, nonlinearity="relu")
            init.zeros_(affine.bias)
        bound = math.sqrt(3 / self.sizes.embedding_dim)
        init.uniform_(self.sizes.weight, -bound, bound)
        init.orthogonal_(self.U)
        init.orthogonal_(self.W)
        init.zeros_(self.b)


class WordLstm(BiLstm):
    """The BiLSTM along the words of sentences, `(B, T, d)` → `(B, T, lstm_size)`."""

    def __init__(self, config: BiaffineNerConfig):
        super().__init__(config.hidden_size, config.lstm_size, config.lstm_dropout)

    def forward(self, words: torch.Tensor, num_words: Sequence[int]) -> torch.Tensor:  # type: ignore[override]
        ones = list_spans(num_words, words.size(1), 1, 1, words.device)
        read = super().forward(words.flatten(0, 1).index_select(0, ones.cell), ones)
        return fill_cells(read, ones.cell, *words.shape[:2])


class BiaffineNerForNestedNer(NestedNerPreTrainedModel):
    """Words → BiLSTM → start and end vectors → biaffine scores of all spans.

    The loss is summed over all spans of a sentence and averaged over sentences, as DSpERT's.
    """

    config: BiaffineNerConfig
    config_class = BiaffineNerConfig

    def __init__(self, config: BiaffineNerConfig):
        super().__init__(config)
        self.lstm = WordLstm(config) if config.lstm_size else None
        self.scorer = BiaffineScorer(config, config.lstm_size or config.hidden_size, config.num_classes)
        self.post_init()

    @property
    def output_bias(self) -> torch.Tensor:
        return self.scorer.b

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        in_words = self.config.span_unit == "word"
        units = states if in_words else in_subwords(states)
        words = units.words if self.lstm is None else self.lstm(units.words, units.lengths)
        batch, length, _ = words.shape
        logits = self.scorer(words, at_most(self.config.max_span_length, length))
        output = NestedNerOutput(logits=logits)
        if gold is not None:
            gold = gold if in_words else gold_in_subwords(gold, states)
            total, count = grid_loss(logits, units.num_words, gold, self.config)
            output.losses = {"spans": reduce_loss(total, count, batch, self.config.loss_reduction)}
        if not in_words:
            on_words(output, states, self.config.max_span_length, has_none=not self.config.multi_label)
        return output
