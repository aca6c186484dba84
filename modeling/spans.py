"""Span maths on the grid of all spans of at most K words, in O(T·K) memory.

The grid has one cell `(i, k)` for the span that starts at word `i` and has `k + 1` words, i.e. `[i, i + k + 1)`.
Everything about spans (logits, targets, masks) is a tensor `(B, T, K, ...)` in this layout.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from .graphs import in_graph, is_exporting, shifted, windows


def span_mask(num_words: torch.Tensor, length: int, max_span: int) -> torch.Tensor:
    """`(B, T, K)`: which cells of the grid are spans inside their sentence. `num_words` is `(B,)`."""
    starts = torch.arange(length, device=num_words.device).view(1, -1, 1)
    sizes = torch.arange(1, max_span + 1, device=num_words.device).view(1, 1, -1)
    return starts + sizes <= num_words.view(-1, 1, 1)


def cuts(entities: torch.Tensor, length: int) -> torch.Tensor:
    """`(B, T + 1)`: which places between words lie inside an entity. `entities` is `(B, E, 3)`, padded with -1.

    A span that overlaps an entity without containing it, i.e. lies inside it or crosses it, begins or ends at such a
    place; no other span does.
    """
    start, end = entities[..., 0], entities[..., 1]
    real = (start >= 0) & (end <= length)
    steps = torch.zeros(len(entities), length + 2, dtype=torch.long, device=entities.device)
    steps.scatter_add_(1, torch.where(real, start + 1, 0), real.long())
    steps.scatter_add_(1, torch.where(real, end, 0), -real.long())
    return steps[:, :-1].cumsum(1) > 0


def cut_spans(entities: torch.Tensor, length: int, max_span: int) -> torch.Tensor:
    """`(B, T, K)`: the spans inside or across an entity, the entities themselves not among them."""
    inside = cuts(entities, length)
    starts = torch.arange(length, device=entities.device).view(-1, 1)
    ends = (starts + torch.arange(1, max_span + 1, device=entities.device)).clamp(max=length)
    return inside[:, :-1].unsqueeze(2) | inside[:, ends]


def inner_labels(entities: torch.Tensor, length: int, max_span: int, num_labels: int) -> torch.Tensor:
    """`(B, T, K, m)`: the labels of the entities that a span lies inside of, itself not among them."""
    start, end, label = entities[:, :, None, None].unbind(-1)  # (B, E, 1, 1)
    first = torch.arange(length, device=entities.device).view(1, 1, -1, 1)
    last = first + torch.arange(1, max_span + 1, device=entities.device)  # (1, 1, T, K), exclusive
    inside = (start >= 0) & (first >= start) & (last <= end) & (last - first < end - start)  # (B, E, T, K)
    of = label.view(*entities.shape[:2], 1) == torch.arange(num_labels, device=entities.device)  # (B, E, m)
    return torch.einsum("betk,bem->btkm", inside.float(), of.float()) > 0


class SpanList(NamedTuple):
    """The spans of some sizes that lie inside their sentences, as one flat list: nothing is computed for the others.

    Spans of one size in one sentence, from left to right, are a *line*. The list goes through the lines in step: first
    the spans at position 0 of every line, longest line first, then those at position 1 of the lines that go on, and so
    forth. That is torch's order of packed sequences, so that an LSTM can run along the lines without any copying.
    """

    row: torch.Tensor  # (N,) the sentence
    start: torch.Tensor  # (N,)
    size: torch.Tensor  # (N,) words
    cell: torch.Tensor  # (N,) the index in a flattened (B, T, sizes) grid
    batch_sizes: torch.Tensor  # (steps,) on the CPU: how many lines reach each position


def list_spans(
    num_words: Sequence[int] | torch.Tensor,
    length: int,
    smallest: int,
    largest: int,
    device: torch.device | None = None,
) -> SpanList:
    """All spans of `smallest` to `largest` words in sentences of `num_words` words, padded to `length`.

    How many there are hangs on the lengths, so the list is made on the host and sent to the `device` when it is done.
    """
    if in_graph():
        return _every_cell(torch.as_tensor(num_words), length, smallest, largest)
    num_words, count = torch.as_tensor(num_words, device="cpu"), largest - smallest + 1
    sizes = torch.arange(smallest, largest + 1)
    lengths = (num_words.unsqueeze(1) - sizes + 1).clamp(min=0).flatten()  # (B * sizes,) spans in each line
    longest_first = lengths.argsort(descending=True, stable=True)
    goes_on = torch.arange(int(lengths.max())).unsqueeze(1) < lengths[longest_first]  # (steps, lines)
    start, line = goes_on.nonzero(as_tuple=True)
    line = longest_first[line]
    row, size = line // count, smallest + line % count
    cell = (row * length + start) * count + size - smallest
    return SpanList(row.to(device), start.to(device), size.to(device), cell.to(device), goes_on.sum(1))


def _every_cell(num_words: torch.Tensor, length: int, smallest: int, largest: int) -> SpanList:
    """What `list_spans` lists in a graph: every line has a place for each word, and `batch_sizes` is how many of a
    line's places are spans, `(B * sizes,)`."""
    count, batch = largest - smallest + 1, num_words.size(0)
    sizes = torch.arange(smallest, largest + 1, device=num_words.device)
    lengths = (num_words.unsqueeze(1) - sizes + 1).clamp(min=0).flatten()
    start = torch.arange(length, device=num_words.device).unsqueeze(1).expand(-1, batch * count).flatten()
    row = torch.arange(batch, device=num_words.device).view(1, -1, 1).expand(length, -1, count).flatten()
    size = sizes.expand(length, batch, -1).flatten()
    return SpanList(row, start, size, (row * length + start) * count + size - smallest, lengths)


def fill_cells(values: torch.Tensor, cells: torch.Tensor, *shape: int) -> torch.Tensor:
    """`(N, c)` values at `cells (N,)` of a flattened grid → the grid `(*shape, c)`, zero elsewhere."""
    return values.new_zeros(math.prod(shape), values.size(1)).index_copy_(0, cells, values).unflatten(0, shape)


def shift_left(x: torch.Tensor, by: int) -> torch.Tensor:
    """`y[:, i] = x[:, i + by]`, zero past the end; `x` is `(B, T, ...)`."""
    if by == 0:
        return x
    if is_exporting():
        return shifted(x, by)
    by = min(by, x.size(1))
    return torch.cat([x[:, by:], x.new_zeros(x.size(0), by, *x.shape[2:])], dim=1)


def at_ends(x: torch.Tensor, max_span: int) -> torch.Tensor:
    """`(B, T, c)` → `(B, T, K, c)`: the value at the last word of every span of the grid, zero outside the text.

    A view on one padded copy: nothing of size K is allocated until it is used.
    """
    padded = nn.functional.pad(x, (0, 0, 0, max_span - 1))  # (B, T + K - 1, c)
    if is_exporting():
        return windows(padded, max_span, 1, x.size(1))
    return padded.unfold(1, max_span, 1).transpose(2, 3)


def running_max(x: torch.Tensor, max_span: int):
    """Yield, for span sizes 1..K, the element-wise maximum over every span of that size: K tensors `(B, T, d)`.

    Each is made from the one before by a single maximum. Cells that reach past the text hold the maximum of what is
    inside.
    """
    pooled = x
    yield pooled
    for size in range(2, max_span + 1):
        by = size - 1
        if is_exporting():
            pooled = torch.maximum(pooled, shifted(x, by, torch.finfo(x.dtype).min))
        elif by < x.size(1):
            pooled = torch.cat([torch.maximum(pooled[:, :-by], x[:, by:]), pooled[:, -by:]], dim=1)
        yield pooled


def max_table(x: torch.Tensor, longest: int) -> torch.Tensor:
    """`(B, T, d)` → `(B, J, T, d)`: at level j the element-wise maximum over the 2**j words from each word on.

    `longest` is the size of the longest span that will be read off.
    """
    levels = [x]
    while 2 ** len(levels) <= min(longest, x.size(1)):
        half = 2 ** (len(levels) - 1)
        below = levels[-1]
        levels.append(torch.cat([torch.maximum(below[:, :-half], below[:, half:]), below[:, -half:]], dim=1))
    return torch.stack(levels, dim=1)


def max_in_table(table: torch.Tensor, row: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Element-wise maximum over the spans `[start, end)` of sentences `row`, `(N,)` each, from two reads: `(N, d)`."""
    _, depth, length, dim = table.shape
    level = torch.log2((end - start).clamp(min=1).float()).floor().long()
    line, flat = (row * depth + level) * length, table.reshape(-1, dim)
    return torch.maximum(flat.index_select(0, line + start), flat.index_select(0, line + end - 2**level))


def max_of_spans(x: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Element-wise maximum over arbitrary spans `[start, end)` by a sparse table: O(T·log T) memory, two reads each.

    Args:
        x: `(B, T, d)`.
        starts, ends: `(B, N)` with `0 <= start < end <= T`.

    Returns:
        `(B, N, d)`
    """
    row = torch.arange(x.size(0), device=x.device).unsqueeze(1).expand_as(starts)
    pooled = max_in_table(max_table(x, x.size(1)), row.flatten(), starts.flatten(), ends.flatten())
    return pooled.unflatten(0, starts.shape)


def span_targets(entities: torch.Tensor, length: int, max_span: int, num_labels: int) -> torch.Tensor:
    """`(B, T, K, m)` bool: which labels each span of the grid carries. Entities longer than K are not on the grid.

    `entities` is `(B, E, 3)` = start, end, label id, padded with -1. A span may carry several labels.
    """
    start, end, label = entities.unbind(-1)
    on_grid = (start >= 0) & (end - start <= max_span) & (end <= length)
    cells = grid_cells(start, end - start, label, on_grid, length, max_span, num_labels)
    targets = torch.zeros(len(entities), length * max_span * num_labels + 1, dtype=torch.bool, device=entities.device)
    return targets.scatter_(1, cells, True)[:, :-1].unflatten(1, (length, max_span, num_labels))


def grid_cells(
    start: torch.Tensor,
    size: torch.Tensor,
    label: torch.Tensor,
    on_grid: torch.Tensor,
    length: int,
    max_span: int,
    num_labels: int,
) -> torch.Tensor:
    """Where labelled spans `(B, E)` lie in a flattened `(T, K, m)`; what is not `on_grid` goes to one cell behind it.

    So that the number of those that are is never asked for: on a GPU the host would have to wait for the answer.
    """
    return torch.where(on_grid, (start * max_span + size - 1) * num_labels + label, length * max_span * num_labels)


def first_labels(targets: torch.Tensor) -> torch.Tensor:
    """`(..., m)` label flags → `(...)` class indices with 0 for none; of several labels the lowest id is taken."""
    return torch.where(targets.any(-1), targets.long().argmax(-1) + 1, 0)


def sample_negatives(negatives: torch.Tensor, at_most: int) -> torch.Tensor:
    """Keep at most `at_most` true cells of `(B, N)` in every row, drawn uniformly without replacement."""
    if negatives.size(1) <= at_most:
        return negatives
    keys = torch.rand(negatives.shape, device=negatives.device).masked_fill(~negatives, -1.0)
    drawn = torch.zeros_like(negatives).scatter_(1, keys.topk(at_most, dim=1).indices, True)
    return drawn & negatives
