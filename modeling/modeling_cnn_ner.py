"""CNN-NER (Yan et al., 2022): a convolution over the biaffine grid, so that a span is judged beside its neighbours."""

import torch
from torch import nn

from .graphs import at_most
from .losses import Gold, grid_loss, reduce_loss
from .modeling_biaffine_ner import BiaffineNerConfig, BiaffineScorer, WordLstm
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .spans import span_mask


class CnnNerConfig(BiaffineNerConfig):
    """The biaffine model's settings, and of the convolution over its grid:

    Args:
        grid_size: r, the features of a span.
        grid_layers: how many convolutions, each with a residual connection.
        kernel_size: of a convolution, in starts and in sizes.

    The paper convolves the square of starts and ends. The grid here has starts and sizes, so that a span's neighbours
    are those that begin, or are longer, by one word: cost and memory are O(T·K) and not O(T²).
    """

    model_type = "cnn_ner"

    grid_size: int = 64
    grid_layers: int = 2
    kernel_size: int = 3
    lstm_size: int = 0
    boundary_smoothing: float = 0.0

    def _check(self) -> None:
        super()._check()
        self.check_range("grid_size", "grid_layers", least=1)
        self.check_choice("span_unit", ("word",))
        if self.kernel_size < 1 or self.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size={self.kernel_size} must be odd: a span stands in the middle.")


class GridConvolution(nn.Module):
    """x + Conv(GELU(LayerNorm(x))) on the grid; cells that are no spans are zero and stay it."""

    def __init__(self, size: int, kernel_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.conv = nn.Conv2d(size, size, kernel_size, padding=kernel_size // 2)

    def forward(self, grid: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """`(B, T, K, r)` → `(B, T, K, r)`; `mask` is `(B, T, K, 1)`."""
        hidden = nn.functional.gelu(self.norm(grid)) * mask
        return grid + self.conv(hidden.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) * mask


class CnnNerForNestedNer(NestedNerPreTrainedModel):
    """Words → biaffine features R of all spans → convolutions R' → Linear(GELU(R + R'))."""

    config: CnnNerConfig
    config_class = CnnNerConfig

    def __init__(self, config: CnnNerConfig):
        super().__init__(config)
        self.lstm = WordLstm(config) if config.lstm_size else None
        self.scorer = BiaffineScorer(config, config.lstm_size or config.hidden_size, config.grid_size)
        self.layers = nn.ModuleList(
            GridConvolution(config.grid_size, config.kernel_size) for _ in range(config.grid_layers)
        )
        self.output = nn.Linear(config.grid_size, config.num_classes)
        self.post_init()

    @property
    def output_layer(self) -> nn.Linear:
        return self.output

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        words = states.words if self.lstm is None else self.lstm(states.words, states.lengths)
        max_span = at_most(self.config.max_span_length, words.size(1))
        mask = span_mask(states.num_words, words.size(1), max_span).unsqueeze(-1).to(words.dtype)
        features = grid = self.scorer(words, max_span) * mask  # (B, T, K, r)
        for layer in self.layers:
            grid = layer(grid, mask)
        z = nn.functional.gelu(features + grid)
        logits: torch.Tensor = self.output(z)
        output = NestedNerOutput(logits=logits)
        if states.output_span_representations:
            output.span_representations = z
        if gold is not None:
            total, count = grid_loss(logits, states.num_words, gold, self.config)
            output.losses = {"spans": reduce_loss(total, count, len(words), self.config.loss_reduction)}
        return output
