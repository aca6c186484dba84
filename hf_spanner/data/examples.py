"""Annotated sentences as an inspection goes through them, and places in them that it shows to people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .describe import read_sentences
from .schema import Entity

if TYPE_CHECKING:
    from .describe import Sentences

ORDER = ("train", "validation", "test")
AROUND = 8  # words of context on each side


class Span(NamedTuple):
    """An entity `[start, end)` in words."""

    start: int
    end: int
    label: str


class Row(NamedTuple):
    """A sentence, with the split that it is from."""

    split: str
    id: str
    doc_id: str | None
    words: tuple[str, ...]
    entities: list[Span]

    def text(self, start: int, end: int) -> str:
        return " ".join(self.words[start:end])


@dataclass(frozen=True)
class Example:
    """A span with the words around it and the entities annotated among these."""

    split: str
    id: str
    tokens: list[str]
    start: int
    end: int
    entities: list[Entity]
    cut_before: bool = False  # the sentence begins further left
    cut_after: bool = False

    @property
    def text(self) -> str:
        """The span's own words."""
        return " ".join(self.tokens[self.start : self.end])


def read_rows(data: Sentences) -> dict[str, list[Row]]:
    """The sentences of every split, train first; what has no splits is one, "train", as in `load_nested_ner`."""
    if not isinstance(data, Mapping):
        return {"train": list(_rows("train", data))}
    names = sorted(data, key=lambda split: ORDER.index(str(split)) if str(split) in ORDER else len(ORDER))
    return {str(split): list(_rows(str(split), data[split])) for split in names}


def _rows(split: str, sentences: Any) -> Iterator[Row]:
    for number, sentence in enumerate(read_sentences(sentences)):
        id = sentence.get("id")
        entities = [Span(e["start"], e["end"], e["label"]) for e in sentence["entities"]]
        yield Row(
            split, str(number) if id is None else id, sentence.get("doc_id"), tuple(sentence["tokens"]), entities
        )


def example(row: Row, start: int, end: int, around: int = AROUND) -> Example:
    """The span of a sentence as an example; entities that reach beyond the context are left out."""
    first, last = max(start - around, 0), min(end + around, len(row.words))
    inside = [
        Entity(start=e.start - first, end=e.end - first, label=e.label)
        for e in row.entities
        if first <= e.start and e.end <= last
    ]
    words = list(row.words[first:last])
    return Example(row.split, row.id, words, start - first, end - first, inside, first > 0, last < len(row.words))


def whole(row: Row) -> Example:
    """The sentence itself as an example."""
    return example(row, 0, len(row.words))
