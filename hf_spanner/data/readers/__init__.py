"""Every file format is one function `read_x(path, report, **options)` that yields sentences; `READERS` names them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from ..chars import Splitter, TextOptions
from ..schema import ReadReport, Sentence, check_sentence, several
from .brat import read_brat
from .cas import read_cas
from .conll import read_conll
from .conll2012 import read_conll2012
from .docbin import read_docbin
from .dygie import read_dygie
from .files import check_rereadable
from .genia import read_genia
from .guessing import (
    BRAT_SUFFIXES,
    COLUMN_SUFFIXES,
    DATA_SUFFIXES,
    JSON_SUFFIXES,
    TABLE_SUFFIXES,
    data_suffix,
    decide_format,
    has_tags,
)
from .harem import read_harem
from .jsonl import read_jsonl, read_spert
from .label_studio import read_label_studio
from .ldc import read_ace, read_ere
from .pubtator import read_pubtator
from .tables import read_arrow, read_csv, read_parquet
from .text_jsonl import read_doccano, read_jsonl_chars

Reader = Callable[..., Iterator[Sentence]]

READERS: dict[str, Reader] = {
    "jsonl": read_jsonl,
    "jsonl-chars": read_jsonl_chars,
    "conll": read_conll,
    "brat": read_brat,
    "spert": read_spert,
    "label-studio": read_label_studio,
    "doccano": read_doccano,
    "parquet": read_parquet,
    "csv": read_csv,
    "arrow": read_arrow,
    "conll2012": read_conll2012,
    "dygie": read_dygie,
    "pubtator": read_pubtator,
    "genia": read_genia,
    "harem": read_harem,
    "ace": read_ace,
    "ere": read_ere,
    "docbin": read_docbin,
    "cas": read_cas,
}
FOLDERS = {"brat", "arrow", "ace", "ere", "cas"}  # formats that are read from a folder as a whole
_TEXT = tuple(field.name for field in dataclasses.fields(TextOptions))


def guess_format(path: str | Path) -> str:
    """The format of a file, a brat folder or a folder of `save_to_disk`, from what it holds."""
    return _decide(Path(path))[0]


def _decide(path: Path) -> tuple[str, str]:
    """The format and the reason for it."""
    decided = decide_format(path)
    if decided is None:
        raise ValueError(f"Cannot guess the format of {path}; pass format= with one of {', '.join(READERS)}.")
    return decided


def read_file(
    path: str | Path, format: str | None = None, *, labels: Collection[str] | None = None, **options: Any
) -> tuple[list[Sentence], ReadReport]:
    """Read one file, or all of a folder, and say what reading it cost.

    Args:
        format: one of `READERS`; guessed from the content if not given, and `report.reason` says why.
        labels: if given, any other label is an error.
        options: the reader's own, such as `end_inclusive=True`; for texts those of `TextOptions`, such as `splitter`.

    >>> sentences, report = read_file("train.conll", tag_columns=[2, 3])  # doctest: +SKIP
    >>> print(report)  # doctest: +SKIP
    train.conll: 120 sentences, 2,511 words, 300 entities kept
      read as conll: its lines are columns, one of them of tags such as O or B-PER
    """
    sentences, report = open_file(path, format, labels=labels, **options)
    return list(sentences), report


def open_file(
    path: str | Path,
    format: str | None = None,
    *,
    labels: Collection[str] | None = None,
    model_splitter: Splitter | None = None,
    **options: Any,
) -> tuple[Iterator[Sentence], ReadReport]:
    """`read_file`, one sentence at a time: the report grows while the sentences are taken.

    Args:
        model_splitter: how text is cut into words if `splitter` does not say it; no matter to data that has words.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a file, or a folder of files or brat documents.")
    check_rereadable(path)
    report = ReadReport(source=str(path))
    if path.is_dir() and format not in FOLDERS and (format is not None or decide_format(path) is None):
        files = _files(path, format, report)
    else:
        files = [path]
    # The readers are made at once, so that what is wrong with format and options is said before anything is read.
    parts = [_sentences(file, format, report, model_splitter, options) for file in files]
    if report.format == "brat" and path.is_dir():
        for file in data_files(path):
            if file.suffix not in (".txt", ".ann"):
                report.ignore("file beside the brat documents", str(file))
    known = None if labels is None else set(several("labels", labels))
    return _checked(parts, path, known), report


def data_files(folder: Path) -> list[Path]:
    """The files of a folder and its sub-folders whose ending says that they hold data; what is hidden is no data."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and data_suffix(path) in DATA_SUFFIXES
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def _files(folder: Path, format: str | None, report: ReadReport) -> list[Path]:
    """The data files of a folder that is neither brat nor Arrow; a text without tags in it is a read-me."""
    files = data_files(folder)
    for file in [file for file in files if format is None and file.suffix == ".txt" and not has_tags(file)]:
        report.ignore("text file without tags", str(file))
        files.remove(file)
    if not files:
        hint = f"format {format!r} is read from files" if format else "no file in it has a known ending"
        raise ValueError(
            f"Cannot guess the format of {folder}: it is a folder, and {hint} such as *.jsonl, *.conll or *.parquet; "
            f"name the file, and pass format= with one of {', '.join(READERS)}."
        )
    return files


def _sentences(
    path: Path, format: str | None, report: ReadReport, model_splitter: Splitter | None, options: dict[str, Any]
) -> Iterator[Sentence]:
    format, reason = (format, "") if format else _decide(path)
    if format not in READERS:
        raise ValueError(f"Format {format!r} is unknown; choose one of {', '.join(READERS)}.")
    report.format, report.reason = report.format or format, report.reason or reason  # of several files the first
    return READERS[format](path, report, **_reader_options(format, model_splitter, options))


def _reader_options(format: str, model_splitter: Splitter | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options as the reader takes them: those for texts together in one `TextOptions`."""
    parameters = dict(list(inspect.signature(READERS[format]).parameters.items())[2:])
    text = parameters.pop("text", None)
    known = [*(_TEXT if text else ()), *parameters]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"Format {format!r} has no option {', '.join(map(repr, unknown))}; it knows {', '.join(known) or 'none'}."
        )
    if text is None:
        return options
    asked = {name: value for name, value in options.items() if name in _TEXT}
    if model_splitter is not None:
        asked = {"splitter": model_splitter, **asked}
    own = {name: value for name, value in options.items() if name not in _TEXT}
    return {"text": dataclasses.replace(text.default, **asked), **own}


def _checked(parts: list[Iterator[Sentence]], path: Path, labels: set[str] | None) -> Iterator[Sentence]:
    for part in parts:
        for sentence in part:
            if labels is not None:
                check_sentence(sentence, f"{path}, sentence {sentence['id']!r}", labels)
            yield sentence


__all__ = [
    "BRAT_SUFFIXES",
    "COLUMN_SUFFIXES",
    "DATA_SUFFIXES",
    "FOLDERS",
    "JSON_SUFFIXES",
    "READERS",
    "TABLE_SUFFIXES",
    "guess_format",
    "open_file",
    "read_file",
]
