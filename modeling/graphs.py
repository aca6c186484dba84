"""How parts of a model are computed while its graph is written down, where nothing may hang on data.

The graph must fit batches of every shape: it has no lists whose length the texts decide, and no spans are left out
because a text is short. Numbers are those of torch; cells of a grid that are no span hold anything.
"""

import torch
from torch import nn
from torch.nn import functional as F


def is_exporting() -> bool:
    """Whether a graph is being written for ONNX Runtime (`hf-spanner export`), which lacks some operators."""
    return torch.onnx.is_in_onnx_export()


def in_graph() -> bool:
    """Whether any graph is being written: for ONNX Runtime, or by `torch.export`."""
    return is_exporting() or torch.compiler.is_exporting()


def refuse_graph(approach: str, why: str) -> None:
    """For approaches whose network hangs on what it finds on the way."""
    if in_graph():
        raise ValueError(
            f"{approach} cannot be one graph: {why}. `hf-spanner export` makes one of its encoder, which is "
            "nearly all of its work."
        )


def at_most(max_span: int | None, length: int) -> int:
    """The span sizes of a grid over `length` words: no more than there are words, but in a graph, which is for all."""
    if is_exporting():
        return length if max_span is None else max_span
    return min(max_span or length, length)


def shifted(x: torch.Tensor, by: int, fill: float = 0.0) -> torch.Tensor:
    """`y[:, i] = x[:, i + by]`, `fill` past the end, for any number of words; `x` is `(B, T, ...)`."""
    end = [0, 0] * (x.ndim - 2)
    return F.pad(x, (*end, 0, by), value=fill)[:, by : by + x.size(1)]


def windows(x: torch.Tensor, size: int, step: int, count: int) -> torch.Tensor:
    """`(B, N, d)` → `(B, count, size, d)`: what begins at 0, step, 2·step, ..."""
    first = torch.arange(count, device=x.device).unsqueeze(1) * step
    index = first + torch.arange(size, device=x.device)
    return x.index_select(1, index.flatten()).unflatten(1, (count, size))


def band(left: torch.Tensor, right: torch.Tensor, max_span: int) -> torch.Tensor:
    """`bilinear_band` of the biaffine model: `left (B, T, C, a)`, `right (B, T, a)` → `(B, T, K, C)`."""
    length, window = left.size(1), 2 * max_span - 1
    blocks = (length + max_span - 1) // max_span if isinstance(max_span, int) else 1  # K is a number, or T
    left = F.pad(left, (0, 0, 0, 0, 0, blocks * max_span - length)).unflatten(1, (blocks, max_span))
    right = F.pad(right, (0, 0, 0, blocks * max_span + max_span - 1 - length))
    ends = windows(right, window, max_span, blocks)  # (B, n, 2K - 1, a)
    scores = left.transpose(2, 3).flatten(2, 3) @ ends.transpose(2, 3)  # (B, n, C·K, 2K - 1)
    # Row i is wanted from column i on: as rows of 2K numbers, each begins one further to the left than the one before.
    flat = scores.unflatten(2, (left.size(3), max_span)).flatten(3)  # (B, n, C, K·(2K - 1))
    turned = F.pad(flat, (0, max_span)).unflatten(3, (max_span, window + 1))[..., :max_span]  # (B, n, C, K, K)
    return turned.permute(0, 1, 3, 4, 2).flatten(1, 2)[:, :length]


def pooled(states: torch.Tensor, rows: torch.Tensor, count: int, how: str) -> torch.Tensor:
    """`states (N, d)` gathered into `count` rows, and zero where there is none: `"sum"`, `"mean"` or `"amax"`."""
    index = rows.unsqueeze(1).expand(-1, states.size(1))
    if how == "amax":
        lowest = torch.finfo(states.dtype).min
        best = states.new_full((count, states.size(1)), lowest).scatter_reduce(0, index, states, "amax")
        return torch.where(best == lowest, 0.0, best)
    total = states.new_zeros(count, states.size(1)).scatter_reduce(0, index, states, "sum")
    if how == "mean":
        number = states.new_zeros(count).scatter_reduce(0, rows, torch.ones_like(states[:, 0]), "sum")
        total = total / number.clamp(min=1).unsqueeze(1)
    return total


def run_lstm(lstm: nn.LSTM, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The states of a bidirectional LSTM, as it reads, along lines that all have the same number of places.

    Args:
        vectors: `(places · lines, d)`.
        lengths: `(lines,)` how many places of a line are read; at the others the states are zero.
    """
    lines = lengths.size(0)
    states, lengths = vectors.unflatten(0, (-1, lines)), lengths.clamp(min=1)
    for layer in range(lstm.num_layers):
        run_layer = _onnx_layer if is_exporting() else _torch_layer
        states = run_layer(lstm, layer, states, lengths)
    return states.flatten(0, 1)


def _torch_layer(lstm: nn.LSTM, layer: int, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """`(places, lines, d)` → `(places, lines, h)`. Backwards, a line is turned around within its own length."""
    place = torch.arange(states.size(0), device=states.device).unsqueeze(1)
    is_read = (place < lengths).unsqueeze(2)  # (places, lines, 1)
    turned = torch.where(place < lengths, lengths - 1 - place, place).unsqueeze(2)
    directions = []
    for name in (f"l{layer}", f"l{layer}_reverse"):
        weights = [getattr(lstm, f"{part}_{name}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        backwards = name.endswith("_reverse")
        start = states.new_zeros(1, states.size(1), lstm.hidden_size)
        read = states.gather(0, turned.expand_as(states)) if backwards else states
        read = torch.lstm(read, (start, start), weights, True, 1, 0.0, False, False, False)[0]
        directions.append(read.gather(0, turned.expand_as(read)) if backwards else read)
    return torch.cat(directions, dim=-1) * is_read


def _onnx_layer(lstm: nn.LSTM, layer: int, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The same in the one operator that ONNX has for both directions."""
    from torch.onnx.ops import symbolic

    names = (f"l{layer}", f"l{layer}_reverse")
    w_in, w_state = (
        torch.stack([_onnx_gates(getattr(lstm, f"{part}_{name}")) for name in names])
        for part in ("weight_ih", "weight_hh")
    )
    bias = torch.stack(
        [
            torch.cat([_onnx_gates(getattr(lstm, f"{part}_{name}")) for part in ("bias_ih", "bias_hh")])
            for name in names
        ]
    )
    read = symbolic(
        "LSTM",
        [states, w_in, w_state, bias, lengths.to(torch.int32)],
        {"hidden_size": lstm.hidden_size, "direction": "bidirectional"},
        dtype=states.dtype,
        shape=(states.size(0), 2, states.size(1), lstm.hidden_size),
    )
    return read.transpose(1, 2).flatten(2)


def _onnx_gates(x: torch.Tensor) -> torch.Tensor:
    """torch has input, forget, cell, output; ONNX has input, output, forget, cell."""
    let_in, keep, new, let_out = x.chunk(4)
    return torch.cat([let_in, let_out, keep, new])
