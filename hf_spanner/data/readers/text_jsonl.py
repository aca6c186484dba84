"""JSON with a text and character offsets, and doccano's export, which is one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..chars import WHOLE_TEXTS, TextOptions
from ..records import text_sentences
from ..schema import ReadReport, Sentence
from .files import identifier, json_records


def read_jsonl_chars(
    path: str | Path, report: ReadReport, text: TextOptions = WHOLE_TEXTS, *, text_key: str = "text"
) -> Iterator[Sentence]:
    """One text a line, or a JSON list of them:
    `{"text", "entities"|"spans"|"label": [{"start", "end", "label"} or [start, end, label]]}`.

    Args:
        text_key: the field that holds the text.
    """
    return _read(path, report, (text_key,), text)


def read_doccano(path: str | Path, report: ReadReport, text: TextOptions = WHOLE_TEXTS) -> Iterator[Sentence]:
    """doccano's export: `{"text"|"data", "label": [[start, end, label]]}` or, with relations,
    `{"text", "entities": [{"start_offset", "end_offset", "label"}], "relations"}`."""
    return _read(path, report, ("text", "data"), text)


def _read(
    path: str | Path, report: ReadReport, text_keys: tuple[str, ...], options: TextOptions
) -> Iterator[Sentence]:
    path = Path(path)
    for number, (where, record) in enumerate(json_records(path)):
        id = identifier(record, path, number, where)
        yield from text_sentences(record, report, where, id, options, text_keys)
