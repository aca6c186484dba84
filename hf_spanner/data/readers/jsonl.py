"""JSON by words: JSON Lines (this package's own form and its cousins) and SpERT's JSON list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import name_of, word_sentence
from ..schema import ReadReport, Sentence
from .files import identifier, json_records


def read_jsonl(path: str | Path, report: ReadReport, *, end_inclusive: bool = False) -> Iterator[Sentence]:
    """One sentence a line, or a JSON list of them: `{"tokens": [...], "entities": [{"start", "end", "label"}]}`.

    `words` may stand for `tokens`; `ner` or `spans` for `entities`; `[start, end, label]` for an entity; `type` for
    `label`; and `ner_tags` or `tags` with one tag a word (BIO and its relatives) for all the entities. An entity
    may have a `mention` (name, nominal, ...), and a sentence `pos`, `labels`, `flat` and `corpus` (see `Sentence`).

    Args:
        end_inclusive: the file's ends name the last word instead of the word after it.
    """
    path = Path(path)
    for number, (where, record) in enumerate(json_records(path)):
        yield word_sentence(record, report, where, identifier(record, path, number, where), end_inclusive)


def read_spert(path: str | Path, report: ReadReport) -> Iterator[Sentence]:
    """SpERT's JSON: `[{"tokens", "entities": [{"type", "start", "end"}], "relations", "orig_id"}]`.

    And that of Locate and Label and DiffusionNER, which adds `pos`, the sentence before (`ltokens`) and the one after
    (`rtokens`), and the document (`org_id`): sentences of a document stand in order here, so that `doc_id` gives a
    model the same context. Where `org_id` lacks, those that name each other as neighbours are one document.
    """
    path = Path(path)
    document = _Documents(report)
    for number, (where, record) in enumerate(json_records(path)):
        key = "orig_id" if "orig_id" in record else "id"
        doc_id = document.of(record, where)
        record = record if doc_id is None or "doc_id" in record else {**record, "doc_id": doc_id}
        yield word_sentence(record, report, where, identifier(record, path, number, where, key))


class _Documents:
    """The documents of sentences that carry their context with them."""

    def __init__(self, report: ReadReport) -> None:
        self.report = report
        self.before: tuple[Any, Any] = (None, None)  # words and following words of the sentence before
        self.doc_id: str | None = None
        self.number = -1

    def of(self, record: dict[str, Any], where: str) -> str | None:
        """The name of a record's document; None if it does not say."""
        named = name_of(record, "org_id", where)
        if "ltokens" not in record and "rtokens" not in record:
            return named
        left, words, right = (record.get(key) or [] for key in ("ltokens", "tokens", "rtokens"))
        goes_on = bool(left) and self.before == (left, words)
        if not goes_on:
            self.number += 1
        if left and not goes_on:
            self.report.ignore("context (ltokens) that is not the sentence before", where)
        if self.before[1] and not goes_on:
            self.report.ignore("context (rtokens) that is not the sentence after", where)
        self.before = (words, right)
        return named if named is not None else str(self.number)
