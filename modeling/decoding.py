"""From scores to entities: candidates, thresholds and what to do where they overlap. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch

OVERLAPS = ("flat", "nested", "any")


class Entity(NamedTuple):
    """A labelled span of words `[start, end)` and how sure the model is of it."""

    start: int
    end: int
    label: str
    score: float = 1.0


def best_first(entity: Entity) -> tuple:
    """The order in which entities are considered: highest score first, ties by start, end, label."""
    return (-entity.score, entity.start, entity.end, entity.label)


def in_text_order(entity: Entity) -> tuple:
    """The order in which entities are shown: by start, the longest first, then label."""
    return (entity.start, -entity.end, entity.label)


def check_overlap(overlap: str) -> str:
    if overlap not in OVERLAPS:
        raise ValueError(f"Unknown overlap policy {overlap!r}: choose 'flat', 'nested' or 'any'.")
    return overlap


def resolve_overlaps(entities: Iterable[Entity], overlap: str) -> list[Entity]:
    """Keep the best entities that may stand together, greedily, and return them in text order.

    - `"flat"`: no two entities share a word.
    - `"nested"`: one may lie inside the other, or have the same span under another label; crossing is not allowed.
    - `"any"`: everything may stand.

    The better score wins; ties are broken by start, end, label. The same span and label counts once in any case.
    """
    check_overlap(overlap)
    kept: list[Entity] = []
    seen: set[tuple] = set()
    for entity in sorted(entities, key=best_first):
        key = entity[:3]
        if key in seen:
            continue
        if overlap != "any" and any(_clash(entity, other, overlap) for other in kept):
            continue
        seen.add(key)
        kept.append(entity)
    return sorted(kept, key=in_text_order)


def best_labels(entities: Iterable[Entity]) -> list[Entity]:
    """Of entities with the same span the best one."""
    best: dict[tuple[int, int], Entity] = {}
    for entity in sorted(entities, key=best_first):
        best.setdefault((entity.start, entity.end), entity)
    return list(best.values())


def _clash(a: Entity, b: Entity, overlap: str) -> bool:
    if a.end <= b.start or b.end <= a.start:
        return False
    contained = (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end)
    return overlap == "flat" or not contained


def nesting(entities: list[Entity]) -> list[tuple[int, int | None]]:
    """For entities in text order: how deep each lies (0 = outermost) and the index of its nearest parent.

    The parent is the shortest entity before it in text order that contains its span.
    """
    result: list[tuple[int, int | None]] = []
    for index, entity in enumerate(entities):
        around = [j for j in range(index) if entities[j].end >= entity.end]
        parent = min(around, key=lambda j: (entities[j].end - entities[j].start, -j), default=None)
        result.append((0, None) if parent is None else (result[parent][0] + 1, parent))
    return result


def thresholds_of(threshold: float | Mapping[str, float] | None, labels: list[str]) -> list[float | None]:
    """One threshold for each label: from one number for all, or a mapping that names some of the labels."""
    if threshold is None or isinstance(threshold, (int, float)):
        values = [threshold] * len(labels)
    elif isinstance(threshold, Mapping):
        if unknown := sorted(set(threshold) - set(labels)):
            raise ValueError(f"Threshold given for unknown label {unknown[0]!r}: the model knows {labels}.")
        values = [threshold.get(label) for label in labels]
    else:
        raise TypeError(f"threshold must be a number or a mapping from label to number, not {threshold!r}.")
    for value in values:
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"A threshold is a probability between 0 and 1, not {value!r}.")
    return values


def span_candidates(
    logits: torch.Tensor,
    mask: torch.Tensor,
    labels: list[str],
    thresholds: list[float | None],
    multi_label: bool = False,
) -> list[list[Entity]]:
    """Entities from the logits of the span grid, before overlaps are resolved.

    With one label a span (softmax over none and the labels) a span's candidate is its best label. It is kept if it
    beats none, or, where a threshold is set for the label, if its probability reaches the threshold. With
    `multi_label` (one sigmoid a label) every label that reaches its threshold (0.5 if unset) is kept.

    Args:
        logits: `(B, T, K, m + 1)`, class 0 = none (`(B, T, K, m)` with `multi_label`).
        mask: `(B, T, K)` spans inside the text.
    """
    limits = torch.tensor([-1.0 if t is None else t for t in thresholds], device=logits.device)
    if multi_label:
        scores = logits.float().sigmoid()  # (B, T, K, m)
        keep = (scores >= torch.where(limits < 0, 0.5, limits)) & mask.unsqueeze(-1)
        row, start, size, label = keep.nonzero(as_tuple=True)
        scores = scores[row, start, size, label]
    else:
        probabilities = logits.float().softmax(-1)
        none = probabilities[..., 0]
        best, best_label = probabilities[..., 1:].max(-1)
        limit = limits[best_label]
        keep = torch.where(limit < 0, best > none, best >= limit) & mask
        row, start, size = keep.nonzero(as_tuple=True)
        scores, label = best[row, start, size], best_label[row, start, size]
    result: list[list[Entity]] = [[] for _ in range(logits.size(0))]
    columns = (row.tolist(), start.tolist(), (start + size + 1).tolist(), label.tolist(), scores.tolist())
    for i, first, last, name, score in zip(*columns, strict=True):
        result[i].append(Entity(first, last, labels[name], score))
    return result


def entities_to_tensor(batch: list[list[Entity]], label2id: Mapping[str, int]) -> torch.Tensor:
    """`(B, P, 4)` = start, end, label id, score, padded with -1: the form in which the Trainer gathers predictions."""
    width = max((len(entities) for entities in batch), default=0)
    rows = torch.full((len(batch), max(width, 1), 4), -1.0, dtype=torch.float64)
    for i, entities in enumerate(batch):
        for j, (start, end, label, score) in enumerate(entities):
            rows[i, j] = torch.tensor([start, end, label2id[label], score], dtype=torch.float64)
    return rows


def tensor_to_entities(rows: torch.Tensor, id2label: Mapping[int, str]) -> list[list[Entity]]:
    """The inverse of [`entities_to_tensor`]; rows that start with a negative number are padding."""
    return [
        [Entity(int(s), int(e), id2label[int(label)], float(p)) for s, e, label, p in row if s >= 0]
        for row in rows.tolist()
    ]
