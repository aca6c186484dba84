"""DyGIE's JSON (SciERC): one document an object, entities counted in words of the document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import name_of
from ..schema import ReadReport, Sentence, short
from .files import json_records, plain_name

_OTHER = ("relations", "clusters", "events", "coref")


def read_dygie(path: str | Path, report: ReadReport) -> Iterator[Sentence]:
    """`{"doc_key", "sentences": [[word, ...]], "ner": [[[start, end, label], ...]]}`, a list for each sentence; words
    are counted through the document and `end` is the last one of the entity."""
    path = Path(path)
    for number, (where, record) in enumerate(json_records(path)):
        doc_id = name_of(record, "doc_key", where) or f"{plain_name(path).stem}.{number}"
        sentences, layers = _list(record, "sentences", where), _list(record, "ner", where)
        if len(layers) != len(sentences):
            raise ValueError(
                f"{where}: {len(layers)} lists under 'ner' for {len(sentences)} sentences; expected one each."
            )
        for key in _OTHER:
            values = record.get(key)
            report.ignore(f"list under {key!r}", where, len(values) if isinstance(values, list) else 0)
        first = 0
        for index, (tokens, layer) in enumerate(zip(sentences, layers, strict=True)):
            if not isinstance(tokens, list) or not isinstance(layer, list):
                raise ValueError(
                    f"{where}: {short(tokens)} with {short(layer)}; expected a list of words and one of entities."
                )
            entities = [_entity(value, first, len(tokens), report, where) for value in layer]
            kept = [entity for entity in entities if entity is not None]
            yield report.keep(f"{doc_id}.{index}", doc_id, tokens, kept, where)
            first += len(tokens)


def _list(record: dict[str, Any], key: str, where: str) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{where}: {key!r} is {short(value)}, expected a list with a list for each sentence.")
    return value


def _entity(value: Any, first: int, length: int, report: ReadReport, where: str) -> dict[str, Any] | None:
    """The entity in words of its sentence; None (and counted) where it leaves it."""
    if not isinstance(value, list) or len(value) < 3 or type(value[0]) is not int or type(value[1]) is not int:
        raise ValueError(f"{where}: entity {short(value)} has to be [start, end, label], with whole numbers.")
    start, end = value[0] - first, value[1] + 1 - first
    if not 0 <= start < end <= length:
        report.lose(
            "entity that is not inside its sentence", f"{where}: {short(value)}, words {first} to {first + length - 1}"
        )
        return None
    return {"start": start, "end": end, "label": value[2]}
