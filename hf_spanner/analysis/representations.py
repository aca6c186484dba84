"""How a model represents spans: Tables 4 and 5 and Figure 4 of DSpERT, for every approach that has such vectors.

The paper does not say what a *neighbouring* span is, nor how pairs are averaged. Here neighbours of an entity are all
other spans whose start and whose end are each at most five words from its own; the overlap of two spans is the share
of their words that both have (intersection over union); cosines are averaged over all pairs of two classes first and
over pairs of classes then, so that a large class does not drown the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..modeling.reading import Reader
from ..modeling.spans import span_mask

REACH = 5
OVERLAPS = ("none", "weak", "strong")  # α = 0, 0 < α ≤ 0.5, 0.5 < α < 1


@dataclass
class Representations:
    """Pre-logit vectors z of the gold entities, and what was gathered about the spans around them."""

    labels: list[str]
    z: np.ndarray  # (N, d)
    gold: np.ndarray  # (N,) the index of the label
    neighbour_cosine: np.ndarray  # (3,) summed cosines of entities and neighbours, by OVERLAPS
    neighbour_count: np.ndarray  # (3,)
    negative_sum: np.ndarray  # (d,) sum of the unit vectors of all spans that are no entity
    negative_count: int
    weight: np.ndarray  # (classes, d) of the output layer
    has_none: bool  # whether its first row is that of "none"
    out_of_reach: int = 0  # gold entities longer than the span cap (in its unit), which have no representation


def span_representations(
    model, tokenizer, sentences: Iterable[Mapping], batch_size: int = 16, reach: int = REACH, progress: bool = False
) -> Representations:
    """Run the model over annotated sentences and gather the representations of their spans.

    Entities with labels that the model does not know are left out. An entity in two windows of a long text counts
    once; a span without an entity may count twice.
    """
    labels = model.config.labels
    if model.output_layer is None:
        raise ValueError(
            f"A {model.config.model_type} model has no span representations: choose an approach that has, such as "
            "dspert or span_ner."
        )
    known = [{**s, "entities": [e for e in s["entities"] if e["label"] in labels]} for s in sentences]
    reader = Reader(model, tokenizer)
    readings = reader.cut_sentences(known, gold=True)
    z: dict[tuple, np.ndarray] = {}
    cosine, count = np.zeros(3), np.zeros(3, dtype=int)
    negative_sum: Any = 0.0  # then (d,)
    negative_count = 0
    for places, output in reader.run(readings, batch_size, progress, output_span_representations=True):
        grid = output.span_representations.float().cpu()  # (B, T, K, d)
        unit = torch.nn.functional.normalize(grid, dim=-1)
        num_words = output.num_words.cpu()
        has_vector = ~grid[..., 0].isnan()  # (B, T, K); spans of words may be out of reach in sub-words
        negative = span_mask(num_words, grid.size(1), grid.size(2)) & has_vector
        for row, (sentence, window) in enumerate(places):
            shift = readings[sentence].windows[window].start
            for start, end, label in readings[sentence].items[window]["entities"]:
                if end - start > grid.size(2) or not has_vector[row, start, end - start - 1]:
                    continue
                negative[row, start, end - start - 1] = False
                key = (sentence, start + shift, end + shift, label)
                if key in z:
                    continue
                z[key] = grid[row, start, end - start - 1].numpy().copy()
                at_spans, overlaps = neighbours(start, end, int(num_words[row]), grid.size(2), reach)
                there = has_vector[row, at_spans[:, 0], at_spans[:, 1]].numpy()
                at_spans, overlaps = at_spans[there], overlaps[there]
                similar = unit[row, at_spans[:, 0], at_spans[:, 1]] @ unit[row, start, end - start - 1]
                cosine += np.bincount(overlaps, similar.numpy(), minlength=3)
                count += np.bincount(overlaps, minlength=3)
        negative_sum = negative_sum + unit[negative].double().sum(0).numpy()
        negative_count += int(negative.sum())
    if not z:
        raise ValueError("There is no gold entity that the model can represent: nothing can be analysed.")
    total = len({(i, e["start"], e["end"], e["label"]) for i, s in enumerate(known) for e in s["entities"]})
    return Representations(
        labels=labels,
        z=np.stack(list(z.values())),
        gold=np.array([label for *_, label in z]),
        neighbour_cosine=cosine,
        neighbour_count=count,
        negative_sum=negative_sum,
        negative_count=negative_count,
        weight=model.output_layer.weight.detach().float().cpu().numpy(),
        has_none=not model.config.multi_label,
        out_of_reach=total - len(z),
    )


def neighbours(start: int, end: int, num_words: int, max_span: int, reach: int = REACH):
    """The neighbours of a span as cells `(n, 2)` of the grid, and the index in OVERLAPS of their overlap, `(n,)`."""
    near = np.arange(-reach, reach + 1)
    starts, ends = (offsets.ravel() for offsets in np.meshgrid(start + near, end + near, indexing="ij"))
    size = ends - starts
    there = (starts >= 0) & (ends <= num_words) & (size >= 1) & (size <= max_span)
    there &= (starts != start) | (ends != end)
    starts, ends, size = starts[there], ends[there], size[there]
    shared = (np.minimum(ends, end) - np.maximum(starts, start)).clip(0)
    ratio = shared / (size + (end - start) - shared)
    return np.stack([starts, size - 1], axis=1), np.where(ratio == 0, 0, np.where(ratio <= 0.5, 1, 2))


def describe_representations(representations: Representations) -> dict[str, Any]:
    """The figures of Tables 4 and 5 of DSpERT, and the entities on their first two principal components.

    Returns:
        `overlap` (Table 4): mean cosine of entities and neighbours that overlap by none, weak (≤ 0.5) or strong.
        `norm`, `within`, `between`, `to_negatives` (Table 5): mean l2 norm of z, mean cosine of two entities of one
        class, of two classes, and of entities and all other spans. `weight_norm`, `weight_cosine`,
        `weight_cosine_between`, `weight_cosine_to_none`: mean norm of the rows of W, and mean absolute cosine of all
        pairs, of those of two labels, and of labels and none. `pca`: points, labels and shares of the variance. None
        where there is no such pair.
    """
    r = representations
    unit = r.z / np.linalg.norm(r.z, axis=1, keepdims=True).clip(1e-12)
    classes = [unit[r.gold == i].astype(np.float64) for i in range(len(r.labels))]
    sums = [members.sum(0) for members in classes]
    # Σ over pairs u·v = |Σu|² less each vector with itself: no pair is left out, and none is computed.
    within = [
        (s @ s - (members**2).sum()) / (len(members) * (len(members) - 1))
        for members, s in zip(classes, sums, strict=True)
        if len(members) > 1
    ]
    there = [(s / len(members)) for members, s in zip(classes, sums, strict=True) if len(members)]
    between = [a @ b for i, a in enumerate(there) for b in there[:i]]
    negative = r.negative_sum / max(r.negative_count, 1)
    rows = r.weight / np.linalg.norm(r.weight, axis=1, keepdims=True).clip(1e-12)
    cosines = np.abs(rows @ rows.T)
    pairs = [(i, j) for i in range(len(rows)) for j in range(i)]
    of_none = [(i, j) for i, j in pairs if r.has_none and j == 0]
    of_labels = [pair for pair in pairs if pair not in of_none]
    mean, axes, shares = principal_axes(r.z)
    return {
        "entities": len(r.z),
        "out_of_reach": r.out_of_reach,
        "overlap": {
            name: {"cosine": float(r.neighbour_cosine[i] / n) if n else None, "pairs": int(n)}
            for i, (name, n) in enumerate(zip(OVERLAPS, r.neighbour_count, strict=True))
        },
        "norm": float(np.linalg.norm(r.z, axis=1).mean()),
        "within": _mean(within),
        "between": _mean(between),
        "to_negatives": _mean([s @ negative for s in there]) if r.negative_count else None,
        "weight_norm": float(np.linalg.norm(r.weight, axis=1).mean()),
        "weight_cosine": _mean([cosines[pair] for pair in pairs]),
        "weight_cosine_between": _mean([cosines[pair] for pair in of_labels]),
        "weight_cosine_to_none": _mean([cosines[pair] for pair in of_none]),
        "pca": {
            "points": np.round((r.z - mean) @ axes, 4).tolist(),
            "labels": [r.labels[i] for i in r.gold],
            "shares": shares.tolist(),
        },
    }


def _mean(values: list) -> float | None:
    return float(np.mean(values)) if values else None


def principal_axes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean `(d,)`, the first two principal axes `(d, 2)` of points `(N, d)`, and their shares of the variance.

    The points on the axes are `(x - mean) @ axes`. An axis has no sign of its own: its largest entry is made positive.
    """
    x = np.asarray(x, dtype=np.float64)
    mean = x.mean(0)
    covariance = (x - mean).T @ (x - mean) / max(len(x) - 1, 1)
    values, vectors = np.linalg.eigh(covariance)  # the largest last
    axes = vectors[:, ::-1][:, :2]
    if axes.shape[1] < 2:  # points on a line
        axes = np.pad(axes, ((0, 0), (0, 1)))
    axes = axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1, 1)
    shares = np.append(values[::-1], 0.0)[:2].clip(0) / max(values.sum(), 1e-12)
    return mean, axes, shares
