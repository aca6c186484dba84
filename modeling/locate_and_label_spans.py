"""What a two-stage detector is made of (Shen et al., 2021): seeds, IoU, pairing, sampling, shifting, losses, Soft-NMS.

Spans are sparse lists: nothing is stored for spans that nobody looks at. Pure functions, no parameters.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from .decoding import Entity, best_first


class Spans(NamedTuple):
    """N spans `[start, end)` of a batch, sorted by sentence."""

    row: torch.Tensor  # (N,) the sentence
    start: torch.Tensor  # (N,)
    end: torch.Tensor  # (N,)

    def at(self, index: torch.Tensor) -> "Spans":
        """Those at `index`, numbers or a mask."""
        return Spans(*(field[index] for field in self))

    def to(self, device: torch.device) -> "Spans":
        return Spans(*(field.to(device) for field in self))

    def longest(self) -> int:
        """Words of the longest, at least 1."""
        return int((self.end - self.start).max()) if len(self.row) else 1

    def per_sentence(self, batch: int) -> torch.Tensor:
        """How many there are in each sentence, `(B,)`."""
        return self.row.new_zeros(batch).index_add_(0, self.row, torch.ones_like(self.row))


def distinct(spans: Spans) -> Spans:
    """Each span once, sorted by sentence, start, end."""
    if len(spans.row) == 0:
        return spans
    width = spans.end.max() + 1
    keys = torch.unique((spans.row * width + spans.start) * width + spans.end)
    return Spans(keys // width**2, keys // width % width, keys % width)


# --------------------------------------------------------------------------------------------------------- proposing


def seed_spans(num_words: torch.Tensor, sizes: Sequence[int]) -> Spans:
    """Spans of the given sizes from every word of every sentence on, cut off at its end, each once.

    So a sentence shorter than every size has seeds too. `num_words` is `(B,)`.
    """
    length = int(num_words.max()) if len(num_words) else 0
    start = torch.arange(length, device=num_words.device).view(1, -1, 1)
    size = torch.tensor(sorted(sizes), device=num_words.device)
    limit = num_words.view(-1, 1, 1)
    end = torch.minimum(start + size, limit)  # (B, T, sizes)
    new = torch.ones_like(end, dtype=torch.bool)
    new[..., 1:] = end[..., 1:] > end[..., :-1]
    row, start, column = (new & (start < limit)).nonzero(as_tuple=True)
    return Spans(row, start, end[row, start, column])


def gold_spans(entities: torch.Tensor) -> Spans:
    """The spans of `entities (B, E, 3)`, padded with -1, each once."""
    row, column = (entities[..., 0] >= 0).nonzero(as_tuple=True)
    return distinct(Spans(row, entities[row, column, 0], entities[row, column, 1]))


def join(a: Spans, b: Spans) -> Spans:
    """The spans of both lists, each once."""
    return distinct(Spans(*(torch.cat(pair) for pair in zip(a, b, strict=True))))


# ----------------------------------------------------------------------------------------------------------- pairing


def iou(start: torch.Tensor, end: torch.Tensor, other_start: torch.Tensor, other_end: torch.Tensor) -> torch.Tensor:
    """Words in both spans / words in either: 1 for equal spans, 0 for spans that share no word."""
    both = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    return both / (end - start + other_end - other_start - both)


class Pairing(NamedTuple):
    """What each of N spans has to do with the gold entities of its sentence."""

    iou: torch.Tensor  # (N,) with the nearest entity, 0 if there is none
    start: torch.Tensor  # (N,) of that entity; of the span itself if there is none
    end: torch.Tensor  # (N,)
    labels: torch.Tensor  # (N, m) bool: the labels of that entity's span


def pair(spans: Spans, entities: torch.Tensor, num_labels: int) -> Pairing:
    """Pair each span with the entity of `entities (B, E, 3)` (padded with -1) that it overlaps most; ties: the first.

    An entity's span may carry several labels.
    """
    start, end, label = entities[spans.row].unbind(-1)  # (N, E)
    overlap = iou(spans.start.unsqueeze(1), spans.end.unsqueeze(1), start, end).masked_fill(start < 0, 0.0)
    best, index = overlap.max(1)
    index, found = index.unsqueeze(1), best > 0
    start_of = torch.where(found, start.gather(1, index).squeeze(1), spans.start)
    end_of = torch.where(found, end.gather(1, index).squeeze(1), spans.end)
    same = (start == start_of.unsqueeze(1)) & (end == end_of.unsqueeze(1)) & found.unsqueeze(1)
    labels = torch.zeros(len(best), num_labels + 1, dtype=torch.bool, device=best.device)
    labels.scatter_(1, torch.where(same, label, num_labels), True)  # the last column takes what is of no use
    return Pairing(best, start_of, end_of, labels[:, :num_labels])


def soft_weights(overlap: torch.Tensor, alpha: float, eta: float) -> torch.Tensor:
    """Eq. 11: IoU^η from α on, (1 - IoU)^η below. 1 for what matches exactly or not at all; all 1 with η = 0."""
    return torch.where(overlap >= alpha, overlap, 1 - overlap) ** eta


def sample_examples(positive: torch.Tensor, row: torch.Tensor, batch: int, ratio: float, extra: int) -> torch.Tensor:
    """Which of N spans to learn from, `(N,)` bool: the positive ones and, of each sentence, some others at random.

    Args:
        positive: `(N,)` bool.
        row: `(N,)` their sentences, of which there are `batch`.
        ratio: others for each positive span of a sentence.
        extra: others besides, so that sentences without entities teach something too.
    """
    quota = ratio * torch.bincount(row[positive], minlength=batch) + extra  # (B,)
    others = (~positive).nonzero().squeeze(1)
    others = others[torch.randperm(len(others), device=others.device)]
    others = others[row[others].argsort(stable=True)]  # sentence by sentence, at random within each
    counts = torch.bincount(row[others], minlength=batch)
    rank = torch.arange(len(others), device=others.device) - (counts.cumsum(0) - counts)[row[others]]
    chosen = positive.clone()
    chosen[others[rank < quota[row[others]]]] = True
    return chosen


# ------------------------------------------------------------------------------------------------ shifting and losses


def shift(spans: Spans, offsets: torch.Tensor, num_words: torch.Tensor) -> Spans:
    """Eq. 6-7: move both boundaries by `offsets (N, 2)`, rounded, and no further than the sentence goes.

    What would be turned inside out keeps the word at its new start.
    """
    steps = torch.nan_to_num(offsets.detach().float()).add(0.5).floor()
    far = 1 + num_words.max() if len(num_words) else num_words.new_ones(())
    left, right = steps.clamp(-far, far).long().unbind(-1)
    limit = num_words[spans.row]
    start = torch.minimum((spans.start + left).clamp(min=0), limit - 1)
    end = torch.maximum(torch.minimum(spans.end + right, limit), start + 1)
    return Spans(spans.row, start, end)


def boundary_loss(offsets: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Eq. 14: smooth L1 of the left and the right offset, `(N, 2)` each → `(N,)`."""
    return nn.functional.smooth_l1_loss(offsets, targets, reduction="none").sum(-1)


def overlap_loss(
    start: torch.Tensor, end: torch.Tensor, gold_start: torch.Tensor, gold_end: torch.Tensor
) -> torch.Tensor:
    """Eq. 15: 1 - what two spans share / what they cover together, gaps included, `(N,)`.

    The boundaries are real numbers, before rounding and clamping. What spans share is negative where they are apart
    or inside out, so that the gradient pulls even these together.
    """
    shared = torch.minimum(end, gold_end) - torch.maximum(start, gold_start)
    return 1 - shared / (torch.maximum(end, gold_end) - torch.minimum(start, gold_start))


def focal_loss(logits: torch.Tensor, targets: torch.Tensor, gamma: float) -> torch.Tensor:
    """-(1 - p)^γ log p of the right class, `(N,)`, from logits `(N, C)` and class numbers; γ = 0: cross entropy.

    Logits `(N,)` are those of a sigmoid.
    """
    if logits.ndim == 1:
        logits = torch.stack([torch.zeros_like(logits), logits], dim=-1)
    log_p = logits.log_softmax(-1).gather(1, targets.long().unsqueeze(1)).squeeze(1)
    return -((1 - log_p.exp()).clamp(min=1e-6) ** gamma) * log_p


# ---------------------------------------------------------------------------------------------------------- decoding


def soft_nms(entities: Iterable[Entity], decay: float, threshold: float) -> list[Entity]:
    """Algorithm 1: take the best entity, multiply the scores of those near it by u = `decay`, and so on; best first.

    Near is an IoU of at least k = `threshold`. Two labels on one span are not rivals. The order is that of the scores
    as they are when an entity's turn comes; u = 1 changes nothing.
    """
    entities = sorted(entities, key=best_first)
    if decay == 1 or len(entities) < 2:
        return entities
    start, end = torch.tensor([entity[:2] for entity in entities]).unbind(-1)
    overlap = iou(start.unsqueeze(1), end.unsqueeze(1), start, end)
    rivals = ((overlap >= threshold) & (overlap < 1)).tolist()
    heap = [(best_first(entity), i) for i, entity in enumerate(entities)]
    done = [False] * len(entities)
    result = []
    while heap:
        key, best = heapq.heappop(heap)
        if key != best_first(entities[best]):  # its score has fallen since: it waits for its new turn
            heapq.heappush(heap, (best_first(entities[best]), best))
            continue
        done[best] = True
        result.append(entities[best])
        for j, near in enumerate(rivals[best]):
            if near and not done[j]:
                entities[j] = entities[j]._replace(score=entities[j].score * decay)
    return result
