"""Opening files so that a byte order mark, a broken line, gzip or a missing file never surprises a reader."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from ..records import name_of
from ..schema import short

GZIP = b"\x1f\x8b"  # the first bytes of what gzip wrote
CHUNK = 1 << 16
_SPACE = " \t\r\n"  # white space of JSON


def check_rereadable(path: Path) -> None:
    """Refuse what cannot be read again and again from its beginning, such as a pipe."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is neither a file nor a folder: its content cannot be read twice; save it first.")


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file, unpacked if it was packed by gzip, whatever it is called."""
    with open(path, "rb") as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                yield cast("IO[bytes]", unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: the gzip file is cut short or damaged ({error}); copy it again.") from error


def fields(line: str) -> list[str]:
    """What stands between blanks and tabs. A no-break space is part of a word: `str.split` would cut there."""
    return [field for field in re.split(f"[{_SPACE}]+", line) if field]


def plain_name(path: Path) -> Path:
    """The path as if the file were not packed: `train.jsonl` for `train.jsonl.gz`."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of every line; only `\\n` ends one, and a byte order mark is left out."""
    for number, line in whole_lines(path):
        yield number, line.removesuffix("\n").removesuffix("\r")


def whole_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The same, each with its end as it stands in the file."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            yield number, _decode(line, f"{path}:{number}")


def field_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file of fields: a line break of another system inside one would hide what follows it."""
    for number, line in text_lines(path):
        if "\r" in line:
            raise ValueError(
                f"{path}:{number}: there is a carriage return inside the line {short(line)}; convert the "
                "line breaks of the file to \\n first."
            )
        yield number, line


def read_text(path: Path) -> str:
    """The whole text, without a byte order mark and with every character that stands in the file (`\\r` too)."""
    with open_bytes(path) as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        number = content.count(b"\n", 0, error.start) + 1
        return _decode(content[line_start:], f"{path}:{number}")


def _decode(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where} is not UTF-8 (byte {error.start} of the line); convert the file to UTF-8 first."
        ) from error


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", object) for every line that is not blank."""
    for number, line in text_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            try:
                record = parse_json(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{where}: {complaint(error)}: {line[:60]!r}. Expected one JSON object a line."
                ) from error
            yield where, as_object(record, where)


def parse_json(text: str) -> Any:
    """`json.loads`, but no object may have a field twice."""
    value, end = _decode_json(text, len(text) - len(text.lstrip(_SPACE)))
    if text[end:].strip(_SPACE):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, object) for every object of a file: of one JSON list ("file:line[index]") or of lines ("file:line")."""
    with open_bytes(path) as file:
        head = file.read(CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    if not head.startswith(b"["):
        yield from json_lines(path)
        return
    for index, (line, record) in enumerate(_list_items(path)):
        where = f"{path}:{line}[{index}]"
        yield where, as_object(record, where)


def _list_items(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, item) of a JSON list, one item in memory at a time."""
    with open_bytes(path) as file:
        text = _Window(file, path)
        text.expect("[")
        if text.skip_space() == "]":
            text.expect("]")
        else:
            while True:
                text.skip_space()
                yield text.line, text.item()
                if text.skip_space() != ",":
                    break
                text.expect(",")
            text.expect("]")
        if text.skip_space():
            text.refuse("there is something after the end of the list")


class _Window:
    """The part of a JSON file that is looked at: it grows until it holds a whole item and forgets what was read."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.text, self.position, self.line, self.ended = "", 0, 1, False

    def grow(self) -> None:
        size = max(CHUNK, len(self.text) - self.position)  # twice as much each time: an item may be long
        content = self.file.read(size)
        self.ended = not content
        try:
            more = self.decoder.decode(content, final=self.ended)
        except UnicodeDecodeError as error:
            line = self.line + self.text.count("\n", self.position) + content.count(b"\n", 0, error.start)
            raise ValueError(f"{self.path}:{line} is not UTF-8; convert the file to UTF-8 first.") from error
        self.text, self.position = self.text[self.position :] + more, 0

    def advance(self, position: int) -> None:
        self.line += self.text.count("\n", self.position, position)
        self.position = position

    def skip_space(self) -> str:
        """The next character that is no white space, "" at the end of the file."""
        while True:
            rest = self.text[self.position : self.position + CHUNK]
            self.advance(self.position + len(rest) - len(rest.lstrip(_SPACE)))
            if self.position < len(self.text):
                return self.text[self.position]
            if self.ended:
                return ""
            self.grow()

    def expect(self, character: str) -> None:
        if (found := self.skip_space()) != character:
            self.refuse(f"found {found!r} where {character!r} was expected" if found else "the list does not end")
        self.position += 1

    def item(self) -> Any:
        while True:
            try:
                value, end = _decode_json(self.text, self.position)
            except json.JSONDecodeError as error:
                if not self.ended:
                    self.grow()
                    continue
                self.line += self.text.count("\n", self.position, error.pos)
                self.refuse(f"broken JSON ({error.msg}) at {self.text[error.pos :][:60]!r}", error)
            except (ValueError, RecursionError) as error:
                self.refuse(complaint(error), error)
            self.advance(end)
            return value

    def refuse(self, complaint: str, error: Exception | None = None) -> NoReturn:
        raise ValueError(f"{self.path}:{self.line}: {complaint}. Expected one JSON list of objects.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, if no name occurs twice: Python would keep the last and forget what the others hold."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the field {short(twice)} twice")
    return result


_decode_json = json.JSONDecoder(object_pairs_hook=_unique).raw_decode


def complaint(error: Exception) -> str:
    """What is wrong with a text that `parse_json` refuses."""
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON at column {error.colno} ({error.msg})"
    if isinstance(error, RecursionError):
        return "broken JSON, lists or objects nested too deeply"
    return f"broken JSON, {error}"


def identifier(record: dict[str, Any], path: Path, number: int, where: str, key: str = "id") -> str:
    """The record's own id as a string, or the file's name and the record's place in it."""
    value = name_of(record, key, where)
    return f"{plain_name(path).stem}.{number}" if value is None else value


def as_object(record: Any, where: str) -> dict[str, Any]:
    """The record, if it is a JSON object; anything else is an error."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: holds a JSON {type(record).__name__}, expected an object with named fields.")
    return record
