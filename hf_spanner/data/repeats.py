"""Sentences and documents that stand in the data more than once: inside a split, and in two splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from .examples import Example, Row, whole


@dataclass
class Shared:
    """What stands in two splits: sentences of `second` with the words of a sentence of `first`, and documents."""

    first: str
    second: str
    sentences: int = 0
    annotated: int = 0  # of these, sentences with an entity
    of_annotated: int = 0  # all sentences of `second` with an entity
    documents: list[str] = field(default_factory=list)  # ids that stand in both
    of_documents: int = 0  # all documents of `second`
    examples: list[Example] = field(default_factory=list)  # sentences of `second`, the longest first


@dataclass
class Conflict:
    """Sentences of the same words, annotated differently; an example of each annotation."""

    sentences: int
    annotations: list[Example]


@dataclass
class Repeats:
    """Sentences with the same words as one before them. An empty sentence repeats nothing."""

    repeated: dict[str, int]  # by split: sentences that stand in it before
    conflicts: int  # groups of sentences with the same words and different annotations, in all of the data
    examples: list[Conflict]
    shared: list[Shared]  # every pair of splits


def find_repeats(splits: Mapping[str, Sequence[Row]], examples: int) -> Repeats:
    """Count and show what stands in the data more than once; linear in the words."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    repeated = dict.fromkeys(splits, 0)
    for split, rows in splits.items():
        seen: set[tuple[str, ...]] = set()
        for row in rows:
            if row.words:
                repeated[split] += row.words in seen
                seen.add(row.words)
                groups.setdefault(row.words, []).append(row)
    conflicts = [found for rows in groups.values() if (found := _conflict(rows))]
    conflicts.sort(key=lambda conflict: -len(conflict.annotations[0].tokens))
    stands_in = {words: {row.split for row in rows} for words, rows in groups.items()}
    shared = [_shared(first, second, splits, stands_in, examples) for first, second in combinations(splits, 2)]
    return Repeats(repeated, len(conflicts), conflicts[:examples], shared)


def _conflict(rows: Sequence[Row]) -> Conflict | None:
    annotations = {frozenset(row.entities): row for row in reversed(rows)} if len(rows) > 1 else {}
    if len(annotations) < 2:
        return None
    return Conflict(len(rows), [whole(row) for row in reversed(annotations.values())])


def _shared(
    first: str,
    second: str,
    splits: Mapping[str, Sequence[Row]],
    stands_in: Mapping[tuple[str, ...], set[str]],
    examples: int,
) -> Shared:
    rows = [row for row in splits[second] if row.words and first in stands_in[row.words]]
    documents = [{row.doc_id: None for row in splits[name] if row.doc_id is not None} for name in (first, second)]
    longest = sorted({row.words: row for row in rows}.values(), key=lambda row: (not row.entities, -len(row.words)))
    return Shared(
        first,
        second,
        len(rows),
        sum(bool(row.entities) for row in rows),
        sum(bool(row.entities) for row in splits[second]),
        [str(name) for name in documents[1] if name in documents[0]],
        len(documents[1]),
        [whole(row) for row in longest[:examples]],
    )
