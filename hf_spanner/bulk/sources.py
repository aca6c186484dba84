"""What bulk prediction reads: lines and rows of files of any size, one by one, the bad ones with a reason."""

from __future__ import annotations

import base64
import codecs
import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..data.readers.files import complaint, open_bytes, parse_json, plain_name
from ..data.schema import first_line
from ..harmless import OBEYED

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}
ROWS = 1000  # of a table in memory at a time
LONGEST_CELL = 1 << 26  # characters; a quote that is not closed would swallow the rest of the file


class Unreadable(ValueError):
    """Why a line or row is set aside."""


class Record(NamedTuple):
    """A line or row as it stands in its file; what it holds is looked at later, by whoever predicts."""

    file: str
    number: int  # of the line or row, from 1
    content: bytes | dict[str, Any] | None  # a line of text or JSON; a row of a table
    kind: str
    fault: str | None = None  # why there is no row
    told: bool = False  # whether a text says where it stood: it has no other columns, and there are several files

    @property
    def raw(self) -> bytes:
        """What it is known by."""
        return self.content if isinstance(self.content, bytes) else as_json(self.content).encode()

    def row(self) -> dict[str, Any]:
        """Its columns by name; a line of plain text is one, `text`. Raises `Unreadable`."""
        if self.fault is not None:
            raise Unreadable(self.fault)
        if isinstance(self.content, dict):
            return self.content
        assert self.content is not None
        try:
            line = self.content.decode()
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-8: byte {error.start} is 0x{self.content[error.start]:02x}") from None
        if self.kind in ("txt", "file"):
            place = {"file": self.file, "line": self.number} if self.kind == "txt" else {"file": self.file}
            return {**place, "text": line} if self.told else {"text": line}
        try:
            row = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise Unreadable(complaint(error)) from None
        if not isinstance(row, dict):
            raise Unreadable(f"a JSON {type(row).__name__}, expected an object with named fields")
        return row


class Source:
    """Records of one or several files, or of a data set, in order.

    Attributes:
        name: what was asked for.
        total: bytes or rows of all of it; None if nobody knows.
        done: how many of them have been read so far.
        schema: the columns, if the source knows them beforehand.
    """

    def __init__(
        self, name: str, records: Callable[[Source], Iterator[Record]], total: int | None, schema: pa.Schema | None
    ) -> None:
        self.name, self.records, self.total, self.schema = name, records, total, schema
        self.done = 0

    def __iter__(self) -> Iterator[Record]:
        self.done = 0
        return self.records(self)


def open_source(name: str, kind: str | None = None, split: str = "train") -> Source:
    """A file, a folder of files, a folder of `save_to_disk`, or a data set on the Hub.

    Args:
        kind: what a file is, whatever it is called: a value of `ENDINGS`; or "file", for .txt files that are each a
            text.
        split: of a data set.
    """
    path = Path(name)
    if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file() or not path.exists():
        return _data_set(name, split)
    files = [path] if path.is_file() else _files_of(path)
    kinds = [kind or _kind(file) for file in files]
    if kind == "file" and (other := [file for file in files if _kind(file) != "txt"]):
        raise ValueError(f"{other[0]} is no .txt file: --whole-files is for these.")

    def records(source: Source) -> Iterator[Record]:
        for file, kind in zip(files, kinds, strict=True):
            shown = file.name if path.is_file() else str(file.relative_to(path))
            if kind == "parquet":
                yield from _parquet_rows(file, shown, source, by_rows=all_parquet)
            else:
                yield from _lines_of(file, shown, kind, source, path.is_dir())

    all_parquet = set(kinds) == {"parquet"}
    schemas = [_schema_of(file) for file in files] if all_parquet else []
    if all_parquet:
        return Source(
            name, records, sum(rows for rows, _ in schemas), _joined([schema for _, schema in schemas], name)
        )
    return Source(name, records, sum(file.stat().st_size for file in files), None)


def stream_source(file: BinaryIO, name: str) -> Source:
    """The lines of a stream, each a text."""
    return Source(name, lambda source: _records_of_lines(file, name, "txt"), None, None)


def texts_source(texts: Sequence[str]) -> Source:
    """Texts in memory."""
    return Source(
        "texts", lambda source: (Record("", i, {"text": t}, "txt") for i, t in enumerate(texts, 1)), None, None
    )


def _files_of(folder: Path) -> list[Path]:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and plain_name(file).suffix.lower() in ENDINGS
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if not files:
        raise FileNotFoundError(f"{folder} holds no file that ends in {', '.join(ENDINGS)} (or these with .gz).")
    return files


def _kind(file: Path) -> str:
    if (kind := ENDINGS.get(plain_name(file).suffix.lower())) is None:
        raise ValueError(
            f"{file} ends in none of {', '.join(ENDINGS)} (or these with .gz): give it the ending of what it is."
        )
    return kind


# --------------------------------------------------------------------------------------------------------------- lines


def _lines_of(path: Path, shown: str, kind: str, source: Source, several: bool) -> Iterator[Record]:
    """The records of a file; with `several` a text is told by its file, and a line by its number."""
    before, size = source.done, path.stat().st_size
    with open_bytes(path) as file:
        packed = file.fileobj if isinstance(file, gzip.GzipFile) else None
        if kind == "file":
            records = iter([Record(shown, 1, file.read().removeprefix(codecs.BOM_UTF8), kind)])
        else:
            records = _csv_rows(file, shown) if kind == "csv" else _records_of_lines(file, shown, kind)
        for record in records:
            record = record._replace(told=several)
            source.done = before + (packed or file).tell()
            yield record
    source.done = before + size


def _lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line with its end); a byte order mark is left out."""
    for number, line in enumerate(file, start=1):
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _records_of_lines(file: Iterable[bytes], shown: str, kind: str) -> Iterator[Record]:
    """A record a line; blank lines are texts, and between objects of JSON nothing."""
    for number, line in _lines(file):
        if kind == "txt" or line.strip():
            yield Record(shown, number, line.removesuffix(b"\n").removesuffix(b"\r"), kind)


def _csv_rows(file: Iterable[bytes], shown: str) -> Iterator[Record]:
    """The rows below the headings. Bytes that are not UTF-8 stand in them as half a surrogate pair each."""
    lines = (line.decode("utf-8", "surrogateescape") for _, line in _lines(file))
    first = next(lines, "")
    delimiter = max(",;\t", key=first.count)
    csv.field_size_limit(LONGEST_CELL)

    def all_lines() -> Iterator[str]:
        yield first
        yield from lines

    reader = csv.reader(all_lines(), delimiter=delimiter, strict=True)
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise ValueError(f"{shown}: the headings in its first line are none of a CSV file ({error}).") from None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shown}: the heading {twice!r} stands twice in the first line; rename one.")
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Record(shown, number, None, "csv", f"no row of a CSV file ({error})")
            continue
        if cells is None:
            return
        row = dict(zip(names, cells))
        fault = None
        if not any(cells):
            continue
        if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
            fault = "not UTF-8"
        elif len(cells) != len(names):
            fault = f"{len(cells)} cells, expected {len(names)} as in the first line"
        yield Record(shown, number, row, "csv", fault)


# -------------------------------------------------------------------------------------------------------------- tables


def _schema_of(file: Path) -> tuple[int, pa.Schema]:
    """How many rows a parquet file has, and its columns."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            return table.metadata.num_rows, table.schema_arrow.remove_metadata()
    except Exception as error:  # Arrow fails in a dozen ways; the user needs one sentence
        raise ValueError(f"{file} is damaged or no parquet file ({first_line(error)}); write it again.") from error


def _joined(schemas: list[pa.Schema], name: str) -> pa.Schema:
    import pyarrow as pa

    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"The files of {name} have other columns each ({first_line(error)}): read them apart."
        ) from None


def _parquet_rows(file: Path, shown: str, source: Source, by_rows: bool) -> Iterator[Record]:
    import pyarrow.parquet as pq

    before, number = source.done, 0
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(ROWS):
            for row in batch.to_pylist():
                number += 1
                source.done = before + number if by_rows else before
                yield Record(shown, number, row, "parquet")
    source.done = before + (number if by_rows else file.stat().st_size)


def _data_set(name: str, split: str) -> Source:
    """A data set on the Hub, read as it comes, or one that `save_to_disk` wrote."""
    import datasets

    data: Any
    path = Path(name)
    if not path.exists() and (path.suffix or name.count("/") > 1 or name.startswith((".", "/", "~"))):
        raise FileNotFoundError(f"There is no file or folder {name!r} to read.")
    try:
        if path.exists():
            data = datasets.load_from_disk(name)
            data = data[split] if isinstance(data, dict) else data
        else:
            data = datasets.load_dataset(name, split=split, streaming=True)
    except Exception as error:  # the Hub fails in a dozen ways; the user needs one sentence
        raise ValueError(
            f"{name!r} is no file, and its split {split!r} could not be loaded as a data set ({first_line(error)}): "
            "check the spelling, --split, the network and your access."
        ) from error
    info = getattr(data, "info", None)
    total = (
        len(data) if path.exists() else getattr((getattr(info, "splits", None) or {}).get(split), "num_examples", None)
    )
    schema = data.features.arrow_schema.remove_metadata() if data.features is not None else None

    def records(source: Source) -> Iterator[Record]:
        for number, row in enumerate(data, start=1):
            source.done = number
            yield Record(name, number, dict(row), "parquet")

    return Source(name, records, total, schema)


# ---------------------------------------------------------------------------------------------------------------- JSON


def as_json(value: Any) -> str:
    """One line of JSON; what JSON has no form for becomes text: moments as ISO writes them, bytes as base64.

    Escaped only if it holds what UTF-8 cannot write (half a surrogate pair) or a terminal would obey.
    """
    line = json.dumps(value, ensure_ascii=False, default=_text_of)
    return json.dumps(value, default=_text_of) if OBEYED.search(line) else line


def _text_of(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
