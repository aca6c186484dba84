"""JSON by words: JSON Lines (this package's own form and its cousins) and SpERT's JSON list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..records import word_sentence
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
    """SpERT's JSON: `[{"tokens", "entities": [{"type", "start", "end"}], "relations", "orig_id"}]`."""
    path = Path(path)
    for number, (where, record) in enumerate(json_records(path)):
        key = "orig_id" if "orig_id" in record else "id"
        yield word_sentence(record, report, where, identifier(record, path, number, where, key))
