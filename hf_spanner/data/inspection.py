"""Look at the data first: what is in it, and what will be in the way of a model that learns from it.

>>> from hf_spanner.data import load_nested_ner
>>> from hf_spanner.data.inspection import headlines, inspect
>>> inspection = inspect(load_nested_ner("my_corpus/"))  # doctest: +SKIP
>>> print("\\n".join(headlines(inspection)))  # doctest: +SKIP
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..harmless import harmless
from .boundaries import Boundaries, check_boundaries
from .consistency import Consistency, find_inconsistencies
from .describe import Statistics, statistics
from .examples import Example, Row, example, read_rows, whole
from .repeats import Repeats, Shared, find_repeats
from .schema import ReadReport

if TYPE_CHECKING:
    from .describe import Sentences

CAPS = (5, 8, 10, 16, 20, 30)  # of spans, in words
PERCENTILES = (50, 90, 95, 97.5, 99)
MOST_HEADLINES = 3
FEW_ENTITIES, FEW_EXAMPLES = 500, 20  # in training, and of a label there
LARGE_DOCUMENT = 200  # sentences in the mean, of a test split: hardly a document


@dataclass
class Part:
    """What a split, or all of the data, holds."""

    statistics: Statistics
    documents: int  # different ids of documents
    lengths: dict[int, int]  # entities by their number of words, from the shortest on
    sentence_lengths: dict[int, int]  # sentences by their number of words
    without_entity: int
    longest_entity: Example | None
    longest_sentence: Example | None

    @property
    def empty(self) -> int:
        """Sentences without a word."""
        return self.sentence_lengths.get(0, 0)

    def beyond(self, cap: int) -> int:
        """Entities of more than `cap` words."""
        return sum(count for length, count in self.lengths.items() if length > cap)

    def as_dict(self) -> dict[str, Any]:
        counts = self.statistics
        return {
            **asdict(counts),
            "labels": dict(counts.labels.most_common()),
            "entities": counts.entities,
            "overlap": counts.overlap,
            "documents": self.documents,
            "empty_sentences": self.empty,
            "sentences_without_entity": self.without_entity,
            "entity_lengths": {str(length): count for length, count in self.lengths.items()},
            "entity_length_percentiles": {f"{p:g}": percentile(self.lengths, p) for p in PERCENTILES},
            "sentence_length_percentiles": {f"{p:g}": percentile(self.sentence_lengths, p) for p in PERCENTILES},
            "longest_entity": self.longest_entity and asdict(self.longest_entity),
            "longest_sentence": self.longest_sentence and asdict(self.longest_sentence),
        }


@dataclass
class Finding:
    """Something that somebody who trains on the data should know, in one sentence."""

    kind: str
    severity: float  # about the share of the entities, or of a score, that is at stake
    text: str


@dataclass
class Inspection:
    """What [`inspect`] found. `json.dumps(inspection.as_dict())` is all of it."""

    total: Part
    splits: dict[str, Part]
    max_span_length: int | None
    reach: dict[int, dict[str, int]]  # by span cap: entities that are longer, by split
    cap_for_99: int | None  # the smallest cap that reaches 99 % of the entities; None if there are none
    unlearnable: dict[str, dict[str, int]]  # by split: labels that train lacks, with their entities
    unmeasured: dict[str, list[str]]  # by split: labels of train that it lacks
    repeats: Repeats
    consistency: Consistency
    boundaries: Boundaries
    findings: list[Finding] = field(default_factory=list)  # the gravest first

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON holds it."""
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "total": self.total.as_dict(),
            "splits": {split: part.as_dict() for split, part in self.splits.items()},
            "max_span_length": self.max_span_length,
            "out_of_reach": {str(cap): counts for cap, counts in self.reach.items()},
            "cap_for_99_percent": self.cap_for_99,
            "labels_that_train_lacks": self.unlearnable,
            "labels_that_only_train_has": self.unmeasured,
            "repeats": asdict(self.repeats),
            "consistency": asdict(self.consistency),
            "boundaries": asdict(self.boundaries),
            "overlap": self.total.statistics.overlap,
        }


def inspect(
    data: Sentences,
    max_span_length: int | None = 10,
    word_splitter: str = "compound",
    reports: Mapping[str, ReadReport] | None = None,
    examples: int = 50,
) -> Inspection:
    """Look at annotated data: all splits by name, or one of them.

    Args:
        data: as `load_nested_ner` returns it, or lists of sentences.
        max_span_length: the model's; None if it has no cap.
        word_splitter: the model's: how it will cut raw text.
        reports: what reading each split cost (see `load_with_reports`), if the data was text.
        examples: the most that are kept of anything.
    """
    if max_span_length is not None and max_span_length < 1:
        raise ValueError(f"max_span_length={max_span_length} must be a number of words, at least 1.")
    splits = read_rows(data)
    rows = [row for part in splits.values() for row in part]
    parts = {split: _part(part) for split, part in splits.items()}
    total = _part(rows)
    caps = sorted({*CAPS, *([max_span_length] if max_span_length else [])})
    labels = {split: part.statistics.labels for split, part in parts.items()}
    others = {split: found for split, found in labels.items() if split != "train" and "train" in labels}
    result = Inspection(
        total,
        parts,
        max_span_length,
        {cap: {split: part.beyond(cap) for split, part in parts.items()} for cap in caps},
        percentile(total.lengths, 99),
        {
            split: {name: n for name, n in found.items() if name not in labels["train"]}
            for split, found in others.items()
        },
        {split: [name for name in labels["train"] if name not in found] for split, found in others.items()},
        find_repeats(splits, examples),
        find_inconsistencies(rows, examples),
        check_boundaries(rows, word_splitter, reports, examples),
    )
    result.findings = sorted(_findings(result), key=lambda finding: -finding.severity)
    for finding in result.findings:
        finding.text = harmless(finding.text)  # it speaks of labels and words
    return result


def headlines(inspection: Inspection, said: Collection[str] = ()) -> list[str]:
    """The sentences, at most three and of different kinds, that matter most to somebody who is about to train.

    Findings of the kinds that are `said` already are left out.
    """
    gravest: dict[str, str] = {}
    for finding in inspection.findings:  # the gravest first
        if finding.kind not in said:
            gravest.setdefault(finding.kind, finding.text)
    return list(gravest.values())[:MOST_HEADLINES]


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """The smallest value that at least `share` percent do not exceed; None if there are no values.

    >>> percentile({1: 98, 7: 1, 9: 1}, 99)
    7
    """
    values = sorted(value for value, count in counts.items() if count)
    if not values:
        return None
    up_to = list(accumulate(counts[value] for value in values))
    return values[bisect_left([100 * count for count in up_to], share * up_to[-1])]


def _part(rows: Sequence[Row]) -> Part:
    sentences = ({"tokens": row.words, "entities": [e._asdict() for e in row.entities]} for row in rows)
    spans = [(row, entity) for row in rows for entity in row.entities]
    longest = max(spans, key=lambda place: place[1].end - place[1].start, default=None)
    return Part(
        statistics(sentences),
        len({row.doc_id for row in rows if row.doc_id is not None}),
        _sorted(Counter(entity.end - entity.start for _, entity in spans)),
        _sorted(Counter(len(row.words) for row in rows)),
        sum(not row.entities for row in rows),
        longest and example(longest[0], longest[1].start, longest[1].end),
        whole(max(rows, key=lambda row: len(row.words))) if rows else None,
    )


def _sorted(counts: Mapping[int, int]) -> dict[int, int]:
    return dict(sorted(counts.items()))


# ------------------------------------------------------------------------------------------------- figures → sentences


def _findings(inspection: Inspection) -> Iterator[Finding]:
    """Everything worth a sentence, in no order."""
    yield from _empty(inspection)
    if inspection.total.statistics.entities:
        for shared in inspection.repeats.shared:
            yield from _leakage(shared)
            yield from _documents(shared, inspection)
        yield from _labels(inspection)
        yield from _reach(inspection)
        yield from _consistency(inspection)
        yield from _boundaries(inspection.boundaries)


def _empty(inspection: Inspection) -> Iterator[Finding]:
    total = inspection.total
    if not total.statistics.sentences:
        yield Finding("no data", 1, "There is no sentence in the data: name another file or folder.")
    elif not total.statistics.entities:
        sentences = _several(total.statistics.sentences, "sentence")
        yield Finding("no entities", 1, f"There is no entity in {sentences}: is this the annotated file?")
    else:
        for split, part in inspection.splits.items():
            if not part.statistics.entities:
                text = f"There is no entity in {split}: nothing can be learnt or measured on it."
                yield Finding("no entities", 0.9, text)
    if total.empty:
        count = _of(total.empty, total.statistics.sentences, "sentence")
        text = f"{count} {_is(total.empty)} empty: check how the file was cut into sentences."
        yield Finding("empty sentences", total.empty / total.statistics.sentences, text)


def _leakage(shared: Shared) -> Iterator[Finding]:
    weight = 1.0 if shared.first == "train" else 0.25  # of two splits that nothing is learnt from
    share = shared.annotated / max(shared.of_annotated, 1)
    if share >= 0.005:
        name = f"annotated sentence{'s' * (shared.of_annotated != 1)} of {shared.second}"
        count = _of(shared.annotated, shared.of_annotated, name, name)
        text = (
            f"{count} {_is(shared.annotated, 'stands', 'stand')} in {shared.first} too: scores on {shared.second} "
            f"will flatter; remove them from {shared.first}."
        )
        yield Finding("leakage", weight * share, text)


def _documents(shared: Shared, inspection: Inspection) -> Iterator[Finding]:
    if not shared.documents:
        return
    number, weight = len(shared.documents), 0.5 if shared.first == "train" else 0.1
    second = inspection.splits[shared.second]
    if second.statistics.sentences > LARGE_DOCUMENT * second.documents or all(map(str.isdigit, shared.documents)):
        weight /= 20  # sources rather than documents, or counted anew in each split
    count = _of(number, shared.of_documents, f"document of {shared.second}", f"documents of {shared.second}")
    text = (
        f"{count} {_is(number, 'has', 'have')} sentences in {shared.first} too, such as {shared.documents[0]!r}: "
        "split by document, unless the ids mean something else."
    )
    yield Finding("documents in two splits", weight * number / shared.of_documents, text)


def _labels(inspection: Inspection) -> Iterator[Finding]:
    for split, labels in inspection.unlearnable.items():
        if labels:
            entities = inspection.splits[split].statistics.entities
            count = _of(sum(labels.values()), entities, f"entity of {split}", f"entities of {split}")
            text = f"{count} {_is(sum(labels.values()), 'has', 'have')} a label that train lacks: {_list(labels)}."
            yield Finding("labels that train lacks", max(sum(labels.values()) / entities, 0.02), text)
    for split, names in inspection.unmeasured.items():
        if names and inspection.splits[split].statistics.entities:
            found = _is(len(names), "that is", "those are")
            text = f"{split} has no {_list(names)}: it cannot tell how well {found} found."
            share = len(names) / len(inspection.splits["train"].statistics.labels)
            yield Finding(f"labels that {split} lacks", 0.1 * share, text)
    train = inspection.splits.get("train", inspection.total).statistics
    if 0 < train.entities < FEW_ENTITIES:
        text = (
            f"There are only {_several(train.entities, 'entity', 'entities')} to learn from: scores will vary a lot "
            "from seed to seed; annotate more, or start from a model that was trained on similar data."
        )
        yield Finding("little data", 0.3 * (1 - train.entities / FEW_ENTITIES), text)
    elif rare := {name: count for name, count in reversed(train.labels.most_common()) if count < FEW_EXAMPLES}:
        text = (
            f"{_is(len(rare), 'One label has', f'{len(rare)} labels have')} fewer than {FEW_EXAMPLES} examples to "
            f"learn from: {_list(rare)}; annotate more, or join {_is(len(rare), 'it', 'them')} with others."
        )
        yield Finding("rare labels", 0.1 * len(rare) / len(train.labels), text)


def _reach(inspection: Inspection) -> Iterator[Finding]:
    cap, entities = inspection.max_span_length, inspection.total.statistics.entities
    if cap is None:
        return
    beyond = inspection.total.beyond(cap)
    if beyond / entities >= 0.002:
        text = (
            f"{_of(beyond, entities, 'entity', 'entities')} {_is(beyond)} longer than max_span_length={cap} words and "
            "cannot be found"
        )
        if inspection.cap_for_99 and inspection.cap_for_99 > cap:
            text += f"; max_span_length={inspection.cap_for_99} reaches 99%"
        yield Finding("out of reach", beyond / entities, f"{text}.")


def _consistency(inspection: Inspection) -> Iterator[Finding]:
    found, entities = inspection.consistency, inspection.total.statistics.entities
    if found.missing / entities >= 0.005:
        first = found.missed[0]
        text = (
            f"{_several(found.missing, 'mention')} may have been overlooked ({found.missing / entities:.1%} of the "
            f"entities): the same words are mostly annotated, such as {first.text!r}, "
            f"{first.annotated:,} of {first.annotated + first.missing:,} times."
        )
        yield Finding("overlooked mentions", found.missing / (entities + found.missing), text)
    if found.relabelled / entities >= 0.01:
        first = found.disagreements[0]
        text = (
            f"{_of(found.relabelled, entities, 'entity', 'entities')} {_is(found.relabelled, 'has', 'have')} another "
            f"label than the same words mostly have, such as {first.text!r}: {_list(first.labels)}."
        )
        yield Finding("labels that disagree", 0.5 * found.relabelled / entities, text)
    if conflicts := inspection.repeats.conflicts:
        text = (
            f"{_several(conflicts, 'sentence')} {_is(conflicts, 'stands', 'stand')} in the data with two different "
            "annotations of the same words: choose one."
        )
        yield Finding("two annotations", conflicts / inspection.total.statistics.sentences, text)


def _boundaries(found: Boundaries) -> Iterator[Finding]:
    about = "About " if found.estimated else ""
    if found.spoilt / found.entities >= 0.005:
        count = _of(found.spoilt, found.entities, "entity", "entities")
        verb = _is(found.spoilt, "begins or ends", "begin or end")
        text = f"{about}{count} {verb} inside a word as {found.splitter!r} cuts raw text"
        if found.examples:
            text += f", such as {found.examples[0]}"
        best = min(found.spoilt_by, key=found.spoilt_by.__getitem__, default=found.splitter)
        if best != found.splitter and found.spoilt_by[best] < found.spoilt / 2:
            text += f"; word_splitter={best!r} spoils {found.spoilt_by[best]:,}"
        yield Finding("spoilt boundaries", found.spoilt / found.entities, f"{text}.")
    if found.recut / found.entities >= 0.02:
        text = (
            f"{_of(found.recut, found.entities, 'entity', 'entities')} {_is(found.recut, 'has', 'have')} words that "
            f"{found.splitter!r} cuts further in raw text: train with --resplit True to learn on what will come."
        )
        yield Finding("other words", 0.3 * found.recut / found.entities, text)


def _several(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _of(count: int, total: int, one: str, many: str = "") -> str:
    """ "12 of 340 sentences (3.5%)" """
    return f"{count:,} of {_several(total, one, many)} ({count / max(total, 1):.1%})"


def _is(count: int, one: str = "is", many: str = "are") -> str:
    return one if count == 1 else many


def _list(names: Mapping[str, int] | Iterable[str], most: int = 5) -> str:
    """The first names, with their counts if they have any."""
    shown = [f"{name} {names[name]:,}" for name in names] if isinstance(names, Mapping) else list(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
