"""What a dataset is like: how much it holds, how deep it nests, and which overlap policy suits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ..modeling.decoding import with_mention

if TYPE_CHECKING:
    import datasets

    Records: TypeAlias = datasets.Dataset | Iterable[Mapping[str, Any]]
    Sentences: TypeAlias = Records | datasets.DatasetDict | Mapping[str, Records]  # or splits by name


@dataclass
class Statistics:
    """Counts over sentences. An entity is nested if its span lies strictly inside that of another in its sentence."""

    sentences: int = 0
    words: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    nested: int = 0
    max_depth: int = 0  # spans in the longest chain of spans, each strictly inside the one before
    longest: int = 0  # words of the longest entity
    same_span_pairs: int = 0  # pairs of entities with one span and two labels
    crossing_pairs: int = 0  # pairs of entities that overlap, neither inside the other
    in_nesting: int = (
        0  # entities strictly inside another, or with another strictly inside (Locate and Label, Table 5)
    )
    sentences_with_nesting: int = 0

    @property
    def entities(self) -> int:
        return self.labels.total()

    @property
    def mean_length(self) -> float:
        """Words of a sentence, in the mean."""
        return self.words / max(self.sentences, 1)

    @property
    def nesting_percentage(self) -> float:
        """Of 100 entities, those inside another or with another inside."""
        return 100 * self.in_nesting / max(self.entities, 1)

    @property
    def overlap(self) -> str:
        """The narrowest overlap policy under which every entity can be predicted: "flat", "nested" or "any"."""
        if self.crossing_pairs:
            return "any"
        return "nested" if self.nested or self.same_span_pairs else "flat"

    def __str__(self) -> str:
        labels = ", ".join(f"{label} {count:,}" for label, count in self.labels.most_common())
        return (
            f"{self.sentences:,} sentences, {self.words:,} words, {self.entities:,} entities"
            f" ({labels or 'no label'})\n"
            f"  sentences of {self.mean_length:.2f} words in the mean, {self.sentences_with_nesting:,} with nesting; "
            f"entities inside another or around one {self.in_nesting:,} ({self.nesting_percentage:.2f} %)\n"
            f"  nested {self.nested:,}, depth up to {self.max_depth}, longest {self.longest} words, "
            f"same span with two labels {self.same_span_pairs:,}, crossing pairs {self.crossing_pairs:,}; "
            f"overlap={self.overlap!r}"
        )


def statistics(dataset: Sentences) -> Statistics:
    """Count a list of sentences, one split, or all splits of a `DatasetDict` together."""
    result = Statistics()
    for sentence in read_sentences(dataset):
        result.sentences += 1
        result.words += len(sentence["tokens"])
        if entities := sentence["entities"]:
            result.labels.update(entity["label"] for entity in entities)
            _count_spans([(entity["start"], entity["end"]) for entity in entities], result)
    return result


def suggest_overlap(dataset: Sentences) -> str:
    """ "flat" if no two entities of a sentence overlap, "any" if some pair crosses, else "nested"."""
    return statistics(dataset).overlap


def label_names(dataset: Sentences, mentions: bool = False) -> list[str]:
    """All labels that occur, sorted: the `labels` of a model for this data. With `mentions` each kind of mention of a
    label is a label of its own, `person:nominal`."""
    names = {
        with_mention(entity["label"], entity.get("mention") if mentions else None)
        for sentence in read_sentences(dataset)
        for entity in sentence["entities"]
    }
    return sorted(names)


def mention_kinds(dataset: Sentences) -> list[str]:
    """The kinds of mention that occur, sorted: name stands before nominal and pronoun, NAM before NOM and PRO."""
    kinds = {e.get("mention") for sentence in read_sentences(dataset) for e in sentence["entities"]}
    return sorted(kind for kind in kinds if kind is not None)


def _count_spans(spans: list[tuple[int, int]], result: Statistics) -> None:
    spans.sort(key=lambda span: (span[0], -span[1]))  # whoever contains a span stands before it
    depth: dict[tuple[int, int], int] = {}
    nesting: set[tuple[int, int]] = set()  # inside another, or around one
    for index, (start, end) in enumerate(spans):
        result.longest = max(result.longest, end - start)
        deepest = 0
        for other in spans[:index]:
            if other == (start, end):
                result.same_span_pairs += 1
            elif end <= other[1]:
                deepest = max(deepest, depth[other])
                nesting |= {other, (start, end)}
            elif start < other[1]:
                result.crossing_pairs += 1
        result.nested += deepest > 0
        depth[start, end] = deepest + 1
        result.max_depth = max(result.max_depth, deepest + 1)
    result.in_nesting += sum(span in nesting for span in spans)
    result.sentences_with_nesting += bool(nesting)


def read_sentences(dataset: Any) -> Iterator[Mapping[str, Any]]:
    """Every sentence of a list, a split or all splits: `tokens`, `entities` with the names of their labels, and `id`
    and `doc_id` if it has them."""
    if isinstance(dataset, dict):
        for split in dataset.values():
            yield from read_sentences(split)
    elif hasattr(dataset, "features"):
        label = dataset.features["entities"].feature["label"]
        names = getattr(label, "names", None)
        columns = [name for name in ("id", "doc_id", "tokens", "entities") if name in dataset.column_names]
        for batch in dataset.select_columns(columns).with_format(None).iter(1000):
            for values in zip(*(batch[name] for name in columns), strict=True):
                sentence = dict(zip(columns, values, strict=True))
                if names:
                    sentence["entities"] = [{**e, "label": names[e["label"]]} for e in sentence["entities"]]
                yield sentence
    else:
        yield from dataset
