"""A BiLSTM over the lines of a span list, started as in Zhu et al. (2023)."""

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from transformers import initialization as init

from .spans import SpanList


class BiLstm(nn.Module):
    """Dropout, then one bidirectional LSTM layer along spans of equal size, from left to right (words are of size 1).

    Args:
        in_features: d.
        hidden_size: of both directions together.
        dropout: on the input.
    """

    def __init__(self, in_features: int, hidden_size: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(in_features, hidden_size // 2, bidirectional=True)

    def forward(self, vectors: torch.Tensor, spans: SpanList) -> torch.Tensor:
        """`(N, d)` → `(N, hidden)`; a span list is in the order in which an LSTM reads packed sequences."""
        vectors, steps = self.dropout(vectors), spans.batch_sizes
        if len(vectors) > 0:
            return self.lstm(PackedSequence(vectors, steps))[0].data
        # An LSTM cannot read nothing. It reads one blank step, which is dropped: parameters get a gradient of zero.
        blank = PackedSequence(nn.functional.pad(vectors, (0, 0, 0, 1)), torch.ones(1, dtype=torch.long))
        return self.lstm(blank)[0].data[:0]

    def initialise(self) -> None:
        initialise_lstm(self.lstm)


def initialise_lstm(lstm: nn.LSTM) -> None:
    """Xavier for each gate by its activation; biases 0, but for the forget gate 1 (twice): it starts open."""
    gains = [nn.init.calculate_gain(gate) for gate in ("sigmoid", "sigmoid", "tanh", "sigmoid")]  # i, f, g, o
    for name, parameter in lstm.named_parameters():
        if getattr(parameter, "_is_hf_initialized", False):
            continue  # loaded from a checkpoint; slices of it would not carry the flag
        gates = parameter.chunk(4)
        if "weight" in name:
            for gate, gain in zip(gates, gains, strict=True):
                init.xavier_uniform_(gate, gain=gain)
        else:
            init.zeros_(parameter)
            init.ones_(gates[1])
