"""Opening files so that a byte order mark, a broken line or a missing file never surprises a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """The whole text, without a byte order mark and with every character that stands in the file (`\\r` too)."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); convert it to UTF-8 first.") from error


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", object) for every line that is not blank."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{where}: broken JSON at column {error.colno} ({error.msg}): {line[:60]!r}. "
                    "Expected one JSON object a line."
                ) from error
            yield where, as_object(record, where)


def json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file[index]", object) for every item of a file that holds one JSON list."""
    text = read_text(path)
    try:
        records = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}:{error.lineno}: broken JSON at column {error.colno} ({error.msg}). "
            "Expected one JSON list of objects."
        ) from error
    if not isinstance(records, list):
        raise ValueError(f"{path} holds a JSON {type(records).__name__}, expected a list of objects.")
    for index, record in enumerate(records):
        where = f"{path}[{index}]"
        yield where, as_object(record, where)


def first_record(path: Path) -> tuple[bool, dict[str, Any]]:
    """(whether the file is one JSON list, its first object or {}), to guess what kind of JSON a file holds."""
    text = read_text(path).lstrip()
    is_list = text.startswith("[")
    if not text.lstrip("[ \r\n\t").strip("] \r\n\t"):
        return is_list, {}
    try:
        record, _ = json.JSONDecoder().raw_decode(text[1:].lstrip() if is_list else text)
    except json.JSONDecodeError:
        return is_list, {}
    return is_list, record if isinstance(record, dict) else {}


def identifier(record: dict[str, Any], path: Path, number: int, key: str = "id") -> str:
    """The record's own id as a string, or the file's name and the record's place in it."""
    value = record.get(key)
    return f"{path.stem}.{number}" if value is None else str(value)


def document(record: dict[str, Any]) -> str | None:
    """The record's `doc_id` as a string, None if nobody knows."""
    value = record.get("doc_id")
    return None if value is None else str(value)


def as_object(record: Any, where: str) -> dict[str, Any]:
    """The record, if it is a JSON object; anything else is an error."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: holds a JSON {type(record).__name__}, expected an object with named fields.")
    return record
