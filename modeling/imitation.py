"""Learning from teachers: their probabilities on the span grid as soft targets (Hinton et al., 2015). Pure functions.

Of a text only the cells are kept in which teachers see something; any other span that they looked at is surely none.
So what teachers say of a corpus is small on disk, and on the grid of a batch it takes O(T·K), as the logits do.
"""

from typing import NamedTuple

import torch
from torch.nn import functional as F

from .spans import span_mask

UNSURE = -1.0  # in place of probabilities: this span takes no part


class Teaching(NamedTuple):
    """What teachers say of a text."""

    cells: torch.Tensor  # (N, 2 + m): start, size, probability of each label (or `UNSURE`)
    longest: int  # the most words of spans that they looked at

    def within(self, start: int, end: int) -> torch.Tensor:
        """`(n + 1, 2 + m)`: the cells of a window, counted from its start, and a row of -1, the padding of batches:
        so that an empty list has a width, too."""
        first, size = self.cells[:, 0], self.cells[:, 1]
        inside = self.cells[(first >= start) & (first + size <= end)]
        shift = torch.zeros(self.cells.size(1))
        shift[0] = start
        return torch.cat([inside - shift, torch.full((1, self.cells.size(1)), -1.0)])


def teacher_grid(
    cells: torch.Tensor, longest: torch.Tensor, num_words: torch.Tensor, length: int, max_span: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`(B, T, K, m)` probabilities of the labels, and `(B, T, K)`: the spans of which teachers say something sure.

    Args:
        cells: `(B, C, 2 + m)` as in [`Teaching`], padded with -1. Those that are not on the grid are left out.
        longest: `(B,)`; of longer spans teachers say nothing. 0 for a text that they have not seen.
    """
    (start, size), given = cells[..., :2].long().unbind(-1), cells[..., 2:].float()
    on_grid = (start >= 0) & (size >= 1) & (size <= max_span) & (start + size <= length)
    place = torch.where(on_grid, start * max_span + size - 1, length * max_span)  # the others share a cell behind it
    grid = given.new_zeros(len(cells), length * max_span + 1, given.size(-1))
    grid = grid.scatter_(1, place.unsqueeze(-1).expand_as(given), given)[:, :-1].unflatten(1, (length, max_span))
    unsure = (grid < 0).any(-1)
    sizes = torch.arange(1, max_span + 1, device=cells.device)
    taught = span_mask(num_words, length, max_span) & (sizes <= longest.view(-1, 1, 1)) & ~unsure
    return grid.masked_fill(unsure.unsqueeze(-1), 0.0), taught


def soften(probabilities: torch.Tensor, temperature: float) -> torch.Tensor:
    """softmax(log p / T) over the last dimension: of softmax(z) it is softmax(z / T)."""
    powers = probabilities ** (1 / temperature)
    return powers / powers.sum(-1, keepdim=True)


def with_none(labels: torch.Tensor) -> torch.Tensor:
    """`(..., m)` → `(..., m + 1)`: what labels leave of 1 goes to none, in front; more than 1 is shared among them."""
    total = labels.sum(-1, keepdim=True)
    return torch.cat([(1 - total).clamp(min=0), labels / total.clamp(min=1)], dim=-1)


def imitation_loss(
    logits: torch.Tensor,
    probabilities: torch.Tensor,
    taught: torch.Tensor,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> torch.Tensor:
    """T² · KL(teacher ‖ student), both softened by T, summed over the spans where `taught` is true.

    At T = 1 this is the classification loss of a teacher that is sure, and it is 0 if both say the same. T² makes up
    for gradients that shrink with 1/T². With `multi_label` it is the sum over labels, each yes or no.

    Args:
        logits: `(..., m + 1)`, class 0 = none; `(..., m)` with `multi_label`.
        probabilities: `(..., m)` of the labels.
        taught: `(...)`.
    """
    # What a student cannot say at all (a span of too many sub-words) it is not asked for.
    taught = taught & (logits > torch.finfo(logits.dtype).min).all(-1)
    scaled = logits.float() / temperature
    if multi_label:
        labels = probabilities.clamp(0, 1)
        target = soften(torch.stack([labels, 1 - labels], dim=-1), temperature)  # (..., m, 2)
        student = torch.stack([F.logsigmoid(scaled), F.logsigmoid(-scaled)], dim=-1)
        apart = F.kl_div(student, target, reduction="none").sum((-2, -1))
    else:
        target = soften(with_none(probabilities), temperature)
        apart = F.kl_div(scaled.log_softmax(-1), target, reduction="none").sum(-1)
    return temperature**2 * torch.where(taught, apart, 0.0).sum()
