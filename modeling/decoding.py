"""From scores to entities: candidates, thresholds and what to do where they overlap. Pure functions.

Nothing here needs torch: exported models are read with it, and without torch (`hf_spanner.onnx`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

OVERLAPS = ("flat", "nested", "any")
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}  # the prefixes of tags, in the order of their ids
SENTENCE_ENDS = (".", "!", "?", ":", ";", "“", '"')


class Entity(NamedTuple):
    """A labelled span of words `[start, end)` and how sure the model is of it."""

    start: int
    end: int
    label: str
    score: float = 1.0
    mention: str | None = None  # name, nominal, pronoun, ...: of a model that tells them apart


def with_mention(label: str, mention: str | None) -> str:
    """What a model calls a label's mentions of one kind: `person:nominal`; the label itself if it has no kinds."""
    return label if mention is None else f"{label}:{mention}"


def label_among(labels: Collection[str], type: str, mention: str | None) -> str:
    """Which of a model's labels an entity has: that of its kind of mention, or, of a type without kinds, the type."""
    name = with_mention(type, mention)
    return name if name in labels else type


def split_mention(name: str, mentions: Sequence[str] | None) -> tuple[str, str | None]:
    """Label and kind of mention from what a model calls them; a label without kinds has the first of `mentions`.

    >>> split_mention("person:nominal", ["name", "nominal"]), split_mention("protein", ["name", "nominal"])
    (('person', 'nominal'), ('protein', 'name'))
    """
    if not mentions:
        return name, None
    label, _, kind = name.rpartition(":")
    return (label, kind) if label and kind in mentions else (name, mentions[0])


def with_kind(entity: Entity, mentions: Sequence[str]) -> Entity:
    """An entity by type and kind of mention, of one that is called by its label."""
    label, mention = split_mention(entity.label, mentions)
    return entity._replace(label=label, mention=mention)


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
    ranked: dict[tuple, Entity] = {}  # the best of each span and label, best first
    for entity in sorted(entities, key=best_first):
        ranked.setdefault(entity[:3], entity)
    kept: Collection[Entity] = ranked.values()
    if overlap != "any":
        kept = _without_overlaps(kept) if overlap == "flat" else _without_crossings(kept)
    return sorted(kept, key=in_text_order)


def _without_overlaps(ranked: Iterable[Entity]) -> list[Entity]:
    """Those that share no word with one kept before them, in O(n log n)."""
    kept: list[Entity] = []
    starts: list[int] = []  # what is kept lies side by side, so both are sorted
    ends: list[int] = []
    for entity in ranked:
        place = bisect_left(starts, entity.end)  # of those that start before its end the last one ends last
        if place == 0 or ends[place - 1] <= entity.start:
            kept.append(entity)
            starts.insert(place, entity.start)
            ends.insert(place, entity.end)
    return kept


def _without_crossings(ranked: Collection[Entity]) -> list[Entity]:
    """Those that cross none kept before them, in O(n log n).

    [s, e) and [a, b) cross if a < s < b < e or s < a < e < b. So some kept span crosses [s, e) if and only if of those
    with s strictly inside the first end lies before e, or of those with e strictly inside the last start lies after s.
    Both are minima over what was kept around a place: a segment tree, written by ranges and read from leaf to root.
    """
    places = sorted({place for entity in ranked for place in entity[:2]})
    rank = {place: index for index, place in enumerate(places)}
    size = len(places)
    first_end, last_start = [size] * (2 * size), [-1] * (2 * size)
    kept = []
    for entity in ranked:
        start, end = rank[entity.start], rank[entity.end]
        node = start + size
        while node and first_end[node] >= end:
            node //= 2
        if node:
            continue
        node = end + size
        while node and last_start[node] <= start:
            node //= 2
        if node:
            continue
        kept.append(entity)
        left, right = start + 1 + size, end + size  # the places strictly inside
        while left < right:
            if left % 2:
                first_end[left], last_start[left] = min(first_end[left], end), max(last_start[left], start)
                left += 1
            if right % 2:
                right -= 1
                first_end[right], last_start[right] = min(first_end[right], end), max(last_start[right], start)
            left, right = left // 2, right // 2
    return kept


class Trim(NamedTuple):
    """Words that entities do not begin or end with where kinds of mention without them are looked for (names)."""

    mentions: Sequence[str]  # these kinds
    before: Sequence[str] = ()  # "the", as it is written; where a sentence begins in capitals, too
    after: Sequence[str] = ()  # "'s", one word or cut in two

    def applies(self, mentions: Collection[str] | None) -> bool:
        """Whether these kinds alone are looked for; of a noun phrase the article is part."""
        return mentions is not None and set(mentions) <= set(self.mentions)

    def __call__(self, entities: Iterable[Entity], words: Sequence[str]) -> list[Entity]:
        """The entities without these words, in text order; of those that become the same the best is kept."""
        return resolve_overlaps((self._cut(entity, words) for entity in entities), "any")

    def _cut(self, entity: Entity, words: Sequence[str]) -> Entity:
        start, end = entity.start, entity.end
        while end - start > 1:
            word, opens = words[start], start == 0 or words[start - 1] in SENTENCE_ENDS
            if word in self.before or opens and word.lower() in self.before:
                start += 1
            elif words[end - 1] in self.after:
                end -= 1
            elif end - start > 2 and "".join(words[end - 2 : end]) in self.after:
                end -= 2
            else:
                break
        return entity._replace(start=start, end=end)


def best_labels(entities: Iterable[Entity]) -> list[Entity]:
    """Of entities with the same span the best one."""
    best: dict[tuple[int, int], Entity] = {}
    for entity in sorted(entities, key=best_first):
        best.setdefault((entity.start, entity.end), entity)
    return list(best.values())


def nesting(entities: list[Entity]) -> list[tuple[int, int | None]]:
    """For entities in text order: how deep each lies (0 = outermost) and the index of its nearest parent.

    The parent is the shortest entity before it in text order that contains its span.
    """
    # One that comes before contains it if it does not end before it: the shortest of those is a minimum over ends, the
    # latest first, which a Fenwick tree holds. O(n log n).
    ends = sorted({entity.end for entity in entities}, reverse=True)
    rank = {end: index for index, end in enumerate(ends, start=1)}
    shortest: list[tuple[int, int] | None] = [None] * (len(ends) + 1)  # (length, -index)
    result: list[tuple[int, int | None]] = []
    for index, entity in enumerate(entities):
        place, around = rank[entity.end], []
        while place:
            if (best := shortest[place]) is not None:
                around.append(best)
            place -= place & -place
        parent = -min(around)[1] if around else None
        result.append((0, None) if parent is None else (result[parent][0] + 1, parent))
        own, place = (entity.end - entity.start, -index), rank[entity.end]
        while place <= len(ends):
            best = shortest[place]
            if best is None or own < best:
                shortest[place] = own
            place += place & -place
    return result


class Calibration:
    """Scores as shares of right answers: a rising line from (0, 0) to (1, 1) through `points` (score, share)."""

    def __init__(self, points: Iterable[Sequence[float]]):
        try:
            inner = [(float(score), float(share)) for score, share in points]
        except (TypeError, ValueError):  # no pairs of numbers
            inner = [(1.0, 0.0)]  # that do not rise
        self.line = sorted({(0.0, 0.0), *inner, (1.0, 1.0)})
        self.turned = [(share, score) for score, share in self.line]
        if not all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(self.line)):
            raise ValueError(f"calibration={points!r} must rise from 0 to 1, as `hf-spanner tune-threshold` makes it.")

    def __call__(self, score: float) -> float:
        """The share of right answers among those with a score."""
        return interpolate(self.line, score)

    def inverse(self, share: float) -> float:
        """The score that stands for a share."""
        return interpolate(self.turned, share)


def interpolate(line: Sequence[tuple[float, float]], x: float) -> float:
    """The height of a line through points at `x`."""
    right = min(max(bisect_right(line, (x, math.inf)), 1), len(line) - 1)
    (x0, y0), (x1, y1) = line[right - 1], line[right]
    share = (x - x0) / (x1 - x0)
    return (1 - share) * y0 + share * y1  # exact at both ends


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
        if value is not None and not (isinstance(value, Real) and 0 <= value <= 1):
            raise ValueError(f"A threshold is a probability between 0 and 1, not {value!r}.")
    return values


def span_candidates(
    logits: Any,
    mask: Any,
    labels: list[str],
    thresholds: list[float | None],
    multi_label: bool = False,
    types: Sequence[int] | None = None,
) -> list[list[Entity]]:
    """Entities from the logits of the span grid, before overlaps are resolved; tensors of torch or arrays of numpy.

    With one label a span (softmax over none and the labels) a span's candidate is its best label. It is kept if it
    beats none, or, where a threshold is set for the label, if its probability reaches the threshold. With
    `multi_label` (one sigmoid a label) every label that reaches its threshold (0.5 if unset) is kept.

    Args:
        logits: `(B, T, K, m + 1)`, class 0 = none (`(B, T, K, m)` with `multi_label`).
        mask: `(B, T, K)` spans inside the text.
        types: of each label a number, the same for those that are kinds of one: their probabilities are added, for a
            span is as surely a person if it may be a name or a nominal. The best kind is the candidate's label.
    """
    xp, logits = library_of(logits), logits.float() if hasattr(logits, "float") else logits
    if multi_label:
        chosen = [0.5 if limit is None else limit for limit in thresholds]
        row, start, size, label = xp.where((logits >= _log_odds(min(chosen))) & mask[..., None])
        scores = 1 / (1 + xp.exp(-xp.clip(logits[row, start, size, label], -80, 80)))  # no overflow
        keep = scores >= _array(chosen, logits)[label]
    else:
        # Few spans are anything: the others are left out by two of their logits, before probabilities are computed.
        # Of n labels whose probabilities are added none is less than an n-th of the sum.
        shift = 0.0 if types is None else math.log(max(map(types.count, types)))
        least = min(0.0 if limit is None else _log_odds(limit) for limit in set(thresholds)) - shift - 0.01
        row, start, size = xp.where((xp.amax(logits[..., 1:], -1) - logits[..., 0] >= least) & mask)
        probabilities = softmax(logits[row, start, size])  # (N, m + 1)
        none, kinds = probabilities[:, 0], probabilities[:, 1:]
        if types is None:
            scores, label = xp.amax(kinds, -1), kinds.argmax(-1)
        else:
            of = _array(types, logits)
            belongs = _array([[float(kind == number) for number in range(max(types) + 1)] for kind in types], logits)
            together = kinds @ belongs
            scores, best_type = xp.amax(together, -1), together.argmax(-1)
            label = xp.where(of == best_type[:, None], kinds, -1.0).argmax(-1)
        limits = _array([-1.0 if limit is None else limit for limit in thresholds], logits)[label]
        keep = xp.where(limits < 0, scores > none, scores >= limits)
    row, start, size, label, scores = (x[keep].tolist() for x in (row, start, size, label, scores))
    result: list[list[Entity]] = [[] for _ in range(len(logits))]
    for i, first, more, name, score in zip(row, start, size, label, scores, strict=True):
        result[i].append(Entity(first, first + more + 1, labels[name], score))
    return result


def library_of(array: Any) -> Any:
    """The library that an array belongs to, torch or numpy: what is written with the words of both needs neither."""
    return import_module(type(array).__module__.partition(".")[0])


def softmax(logits: Any) -> Any:
    """Probabilities along the last axis."""
    xp = library_of(logits)
    powers = xp.exp(logits - xp.amax(logits, -1)[..., None])
    return powers / powers.sum(-1)[..., None]


def _array(values: Sequence[float] | Sequence[Sequence[float]], like: Any) -> Any:
    if hasattr(like, "new_tensor"):
        return like.new_tensor(values)
    return library_of(like).array(values, like.dtype)


def _log_odds(probability: float) -> float:
    """What a logit is at least (but for rounding) where a probability is reached; of none and one a bound for all."""
    if probability <= 0:
        return -math.inf
    return math.log(probability) - math.log(max(1 - probability, 1e-7)) - 0.01


def tag_candidates(
    tags: Sequence[Sequence[int]],
    scores: Sequence[Sequence[float]],
    labels: list[str],
    thresholds: list[float | None],
    scheme: str = "BIO",
) -> list[list[Entity]]:
    """Entities of sentences' tags; where a threshold is set for a label, those whose score reaches it."""
    limits = {label: limit or 0.0 for label, limit in zip(labels, thresholds, strict=True)}
    found = [tag_entities(t, s, labels, scheme) for t, s in zip(tags, scores, strict=True)]
    return [[entity for entity in row if entity.score >= limits[entity.label]] for row in found]


def tag_entities(tags: Sequence[int], scores: Sequence[float], labels: list[str], scheme: str = "BIO") -> list[Entity]:
    """Entities of one sentence's tags; tolerant: I-X after O or after another type opens a new entity, and one that
    lacks its E ends where it ends.

    An entity's score is the mean of its words' scores.
    """
    prefixes = SCHEMES[scheme]
    entities: list[Entity] = []
    start: int | None = None
    open_label: int | None = None
    ended = False  # by the tag before
    for i, tag in enumerate([*tags, 0]):
        label = (tag - 1) // len(prefixes) if tag > 0 else None
        prefix = prefixes[(tag - 1) % len(prefixes)] if tag > 0 else "O"
        if start is not None and open_label is not None and (label != open_label or prefix in "BS" or ended):
            score = sum(scores[start:i]) / (i - start)
            entities.append(Entity(start, i, labels[open_label], score))
            start = None
        if label is not None and start is None:
            start, open_label = i, label
        ended = prefix in "ES"
    return entities


def entities_to_tensor(batch: list[list[Entity]], label2id: Mapping[str, int]) -> torch.Tensor:
    """`(B, P, 4)` = start, end, label id, score, padded with -1: the form in which the Trainer gathers predictions."""
    import torch

    width = max((len(entities) for entities in batch), default=0)
    rows = torch.full((len(batch), max(width, 1), 4), -1.0, dtype=torch.float64)
    for i, entities in enumerate(batch):
        for j, (start, end, label, score, mention) in enumerate(entities):
            id = label2id[label_among(label2id, label, mention)]
            rows[i, j] = torch.tensor([start, end, id, score], dtype=torch.float64)
    return rows


def tensor_to_entities(
    rows: torch.Tensor, id2label: Mapping[int, str], mentions: Sequence[str] | None = None
) -> list[list[Entity]]:
    """The inverse of [`entities_to_tensor`]; rows that start with a negative number are padding."""
    result = []
    for row in rows.tolist():
        found = [
            (int(s), int(e), *split_mention(id2label[int(label)], mentions), p) for s, e, label, p in row if s >= 0
        ]
        result.append([Entity(start, end, label, score, mention) for start, end, label, mention, score in found])
    return result
