"""JSON Lines with a text and character offsets, and doccano's export, which is one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..chars import CharSpan, Splitter, document_to_sentences
from ..schema import ReadReport, Sentence
from .files import document, identifier, json_lines
from .jsonl import pick_key

ENTITY_KEYS = ("entities", "spans", "label", "labels")


def read_jsonl_chars(
    path: str | Path,
    report: ReadReport,
    *,
    text_key: str = "text",
    splitter: Splitter = "compound",
    on_misaligned: str = "expand",
    split_sentences: str = "none",
) -> Iterator[Sentence]:
    """One text a line: `{"text", "entities"|"spans"|"label": [{"start", "end", "label"} or [start, end, label]]}`.

    Args:
        text_key: the field that holds the text.
        splitter: how the text is cut into words.
        on_misaligned: what to do with a boundary inside a word: "expand" (counted), "drop" (counted) or "error".
        split_sentences: "none" keeps a text whole, "newline" makes a sentence of every line.
    """
    yield from _read(path, report, (text_key,), splitter, on_misaligned, split_sentences)


def read_doccano(
    path: str | Path,
    report: ReadReport,
    *,
    splitter: Splitter = "compound",
    on_misaligned: str = "expand",
    split_sentences: str = "none",
) -> Iterator[Sentence]:
    """doccano's JSONL export: `{"text"|"data", "label": [[start, end, label]]}` or, with relations,
    `{"text", "entities": [{"start_offset", "end_offset", "label"}], "relations"}`. Options as for "jsonl-chars"."""
    yield from _read(path, report, ("text", "data"), splitter, on_misaligned, split_sentences)


def _read(
    path: str | Path,
    report: ReadReport,
    text_keys: tuple[str, ...],
    splitter: Splitter,
    on_misaligned: str,
    split_sentences: str,
) -> Iterator[Sentence]:
    path = Path(path)
    for number, (where, record) in enumerate(json_lines(path)):
        text = record[pick_key(record, text_keys, where)]
        if not isinstance(text, str):
            raise ValueError(f"{where}: the text is {text!r}, expected a string.")
        entities = record[pick_key(record, ENTITY_KEYS, where, " (write [] for none)")]
        if not isinstance(entities, list):
            raise ValueError(f"{where}: the entities are {entities!r}, expected a list; write [] for none.")
        report.ignore("relation", count=len(record.get("relations") or []))
        id = identifier(record, path, number)
        yield from document_to_sentences(
            text,
            [_char_span(entity, where) for entity in entities],
            report,
            id=id,
            doc_id=document(record) or (id if split_sentences == "newline" else None),
            splitter=splitter,
            on_misaligned=on_misaligned,
            split_sentences=split_sentences,
            where=where,
        )


def _char_span(entity: Any, where: str) -> CharSpan:
    if isinstance(entity, list) and len(entity) == 3:
        return tuple(entity)
    if isinstance(entity, dict):
        start = entity.get("start", entity.get("start_offset"))
        end = entity.get("end", entity.get("end_offset"))
        label = entity.get("label", entity.get("type"))
        if start is not None and end is not None and label is not None:
            return start, end, label
    raise ValueError(
        f"{where}: entity {entity!r} has to be [start, end, label] or an object with 'start', 'end' and 'label'."
    )
