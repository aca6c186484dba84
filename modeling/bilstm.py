"""LSTMs over the lines of a span list, started as in Zhu et al. (2023), and linear in their length to train."""

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from transformers import initialization as init

from .graphs import in_graph
from .graphs import run_lstm as run_lstm_in_graph
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
        vectors = self.dropout(vectors)
        if vectors.size(0) > 0:
            return run_lstm(self.lstm, vectors, spans.batch_sizes)
        # An LSTM cannot read nothing. It reads one blank step, which is dropped: parameters get a gradient of zero.
        return run_lstm(self.lstm, nn.functional.pad(vectors, (0, 0, 0, 1)), torch.ones(1, dtype=torch.long))[:0]

    def initialise(self) -> None:
        initialise_lstm(self.lstm)


def run_lstm(lstm: nn.LSTM, vectors: torch.Tensor, batch_sizes: torch.Tensor) -> torch.Tensor:
    """The states `(N, hidden)` of a bidirectional LSTM at packed `vectors (N, d)`, of which each step has so many.

    To train on a CPU, torch's own takes one step's rows after another out of all N, and the gradient of each such
    slice is as large as the whole: time and memory traffic are quadratic in the steps. Here the rows are split once,
    and the gradient of that is one concatenation. The numbers are the same.
    """
    if in_graph():
        return run_lstm_in_graph(lstm, vectors, batch_sizes)
    if vectors.device.type != "cpu" or not torch.is_grad_enabled():
        return lstm(PackedSequence(vectors, batch_sizes))[0].data
    sizes = batch_sizes.tolist()
    for layer in range(lstm.num_layers):
        directions = [
            _run_direction(lstm, f"l{layer}", vectors, sizes),
            _run_direction(lstm, f"l{layer}_reverse", vectors, sizes),
        ]
        vectors = torch.cat(directions, dim=-1)
        if layer + 1 < lstm.num_layers:
            vectors = nn.functional.dropout(vectors, lstm.dropout, lstm.training)
    return vectors


def _run_direction(lstm: nn.LSTM, name: str, vectors: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """One layer in one direction: `(N, d)` → `(N, h)`. Lines end on the way; backwards, they begin on the way."""
    w_in, w_state, b_in, b_state = (
        getattr(lstm, f"{part}_{name}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    steps = list(nn.functional.linear(vectors, w_in, b_in).split(sizes))
    backwards = name.endswith("_reverse")
    if backwards:
        steps.reverse()
    state = vectors.new_zeros(len(steps[0]), lstm.hidden_size, dtype=steps[0].dtype)
    cell, states = state.float(), []
    for inputs in steps:
        more = len(inputs) - len(state)
        if more > 0:
            state, cell = (nn.functional.pad(x, (0, 0, 0, more)) for x in (state, cell))
        elif more < 0:
            state, cell = state[: len(inputs)], cell[: len(inputs)]
        gates = nn.functional.linear(state, w_state, b_state) + inputs
        let_in, keep, new, let_out = gates.chunk(4, dim=-1)
        cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
        state = (let_out.sigmoid() * cell.tanh()).to(inputs.dtype)
        states.append(state)
    return torch.cat(states[::-1] if backwards else states)


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
