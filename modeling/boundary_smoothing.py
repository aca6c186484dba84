"""Boundary smoothing (Zhu and Li, 2022; Zhu et al., 2023): an entity shares some of its label with spans near it."""

import torch

from .spans import grid_cells


def smooth_targets(
    entities: torch.Tensor,
    num_words: torch.Tensor,
    length: int,
    max_span: int,
    num_labels: int,
    epsilon: float,
    size: int = 1,
    keep_long: bool = True,
    normalise: bool = True,
) -> torch.Tensor:
    """Soft targets on the span grid: every class distribution sums to 1, class 0 is none.

    An entity keeps 1 - ε of its label. At each distance d = 1..D (|Δstart| + |Δend|) lie 4d spans, and each of them
    gets ε / (D·4d). What would fall on no span of the sentence returns to the entity. Shares of several entities add
    up; a span that has more than 1 of a label is cut to 1, and one whose labels sum to more than 1 is scaled to 1 (two
    gold labels on one span: a half each).

    Shares are given on the sentence's full square and then cut to the grid, so that what falls on spans of K + 1 words
    is lost, and an entity of more than K words still leaves crumbs of ε / (D·4d) on the shorter spans beside it.

    ```python
    >>> entities = torch.tensor([[[2, 4, 0]]])  # words 2 and 3 carry label 0
    >>> targets = smooth_targets(entities, torch.tensor([6]), 6, 4, num_labels=1, epsilon=0.1)
    >>> targets[0, 2, 1], targets[0, 1, 2]  # the entity itself, and [1, 4)
    (tensor([0.1000, 0.9000]), tensor([0.9750, 0.0250]))
    ```

    Args:
        entities: `(B, E, 3)` gold start, end (exclusive), label id, padded with -1.
        num_words: `(B,)` words of each sentence.
        length, max_span: T and K of the grid.
        num_labels: m.
        epsilon: ε, the share that an entity gives away.
        size: D, how far it is spread.
        keep_long: whether entities of more than K words leave their crumbs (the paper's) or nothing.
        normalise: whether labels of one span exclude each other. False for one sigmoid a label: two labels may then
            both be 1.

    Returns:
        `(B, T, K, m + 1)`
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"boundary_smoothing={epsilon} must be at least 0 and less than 1.")
    if size < 1:
        raise ValueError(f"smoothing_size={size} must be at least 1.")
    device = entities.device
    offsets = torch.tensor(_offsets(size), device=device)  # (O, 2)
    share = epsilon / (size * 4 * offsets.abs().sum(1))  # (O,)

    start, end, label = entities.unsqueeze(2).unbind(-1)  # (B, E, 1)
    words = num_words.view(-1, 1, 1)
    inside = (start >= 0) & (start < end) & (end <= words) & (keep_long | (end - start <= max_span))

    near_start, near_end = start + offsets[:, 0], end + offsets[:, 1]  # (B, E, O)
    legal = (near_start >= 0) & (near_start < near_end) & (near_end <= words)
    kept = 1 - epsilon + (share * ~legal).sum(2, keepdim=True)  # (B, E, 1)

    starts = torch.cat([start, near_start], dim=2)  # (B, E, 1 + O): the entity and its neighbours
    sizes = torch.cat([end, near_end], dim=2) - starts
    values = torch.cat([kept, share.expand_as(legal)], dim=2)
    on_grid = inside & torch.cat([torch.ones_like(inside), legal], dim=2) & (sizes <= max_span)
    cells = grid_cells(starts, sizes, label, on_grid, length, max_span, num_labels)

    targets = torch.zeros(len(entities), length * max_span * num_labels + 1, device=device)
    targets = targets.scatter_add_(1, cells.flatten(1), values.flatten(1))[:, :-1]
    targets = targets.unflatten(1, (length, max_span, num_labels)).clamp(max=1)
    total = targets.sum(-1, keepdim=True)
    if normalise:
        targets = targets / total.clamp(min=1)
    return torch.cat([1 - total.clamp(max=1), targets], dim=-1)


def _offsets(size: int) -> list[tuple[int, int]]:
    """All (Δstart, Δend) with 1 ≤ |Δstart| + |Δend| ≤ size: 4d of them at each distance d."""
    reach = range(-size, size + 1)
    return [(a, b) for a in reach for b in reach if 1 <= abs(a) + abs(b) <= size]
