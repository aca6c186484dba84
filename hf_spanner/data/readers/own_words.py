"""Formats that bring a text and its words and sentences along: how these become sentences, or are cut anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..chars import SPLIT_SENTENCES, CharSpan, Splitter, TextOptions, document_to_sentences
from ..schema import ReadReport, Sentence

OWN = "own"  # as the document has them


@dataclass
class OwnText:
    """A text with its own words and sentences, in characters."""

    text: str
    words: Sequence[tuple[int, int]]
    starts: Sequence[int] | None  # where its sentences begin; None if nobody said
    spans: Iterable[CharSpan]


def own_sentences(
    document: OwnText,
    report: ReadReport,
    splitter: Splitter | None,
    split_sentences: str,
    on_misaligned: str,
    *,
    id: str,
    doc_id: str | None,
    where: str,
    further: Mapping[str, Any] | None = None,
) -> Iterator[Sentence]:
    """The sentences of a document, by its own words unless a splitter is named.

    A document without sentences of its own is one sentence, unless it is said that its lines are.
    """
    own = split_sentences == OWN
    if not own and split_sentences not in SPLIT_SENTENCES:
        raise ValueError(
            f"split_sentences={split_sentences!r} is unknown; choose one of {', '.join((OWN, *SPLIT_SENTENCES))}."
        )
    options = TextOptions(splitter or "compound", on_misaligned, "none" if own else split_sentences)
    yield from document_to_sentences(
        document.text,
        document.spans,
        report,
        options,
        id=id,
        doc_id=doc_id,
        where=where,
        further=further,
        words=document.words if splitter is None else None,
        starts=document.starts if own else None,
    )
