"""Every file format is one function `read_x(path, report, **options)` that yields sentences; `READERS` names them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from ..schema import ReadReport, Sentence, check_sentence
from .brat import read_brat
from .conll import read_conll
from .files import first_record
from .jsonl import read_jsonl, read_spert
from .label_studio import read_label_studio
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
}

JSON_SUFFIXES = {".jsonl", ".json", ".ndjson"}
COLUMN_SUFFIXES = {".conll", ".bio", ".iob", ".iob1", ".iob2", ".bioes", ".bilou", ".tsv", ".txt", ".col"}
BRAT_SUFFIXES = {".ann"}


def guess_format(path: str | Path) -> str:
    """The format of a file or a brat folder, from its name and its first record."""
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        if any(path.glob("*.ann")):
            return "brat"
    elif suffix in BRAT_SUFFIXES or (suffix == ".txt" and path.with_suffix(".ann").exists()):
        return "brat"
    elif suffix in JSON_SUFFIXES:
        return _guess_json(path)
    elif suffix in COLUMN_SUFFIXES:
        return "conll"
    raise ValueError(f"Cannot guess the format of {path}; pass format= with one of {', '.join(READERS)}.")


def _guess_json(path: Path) -> str:
    is_list, record = first_record(path)
    tokens = record.get("tokens", record.get("words"))
    by_words = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)  # Prodigy's are objects
    if is_list:
        return "spert" if by_words or not record else "label-studio"
    if by_words or not record:
        return "jsonl"
    entities = record.get("entities")
    newer_doccano = isinstance(entities, list) and any(
        isinstance(entity, dict) and "start_offset" in entity for entity in entities
    )
    return "doccano" if newer_doccano or "text" not in record else "jsonl-chars"


def read_file(
    path: str | Path, format: str | None = None, *, labels: Collection[str] | None = None, **options: object
) -> tuple[list[Sentence], ReadReport]:
    """Read one file (or brat folder) and say what reading it cost.

    Args:
        format: one of `READERS`; guessed if not given.
        labels: if given, any other label is an error.
        options: the reader's own, such as `on_misaligned="drop"`.

    >>> sentences, report = read_file("train.conll", tag_columns=[2, 3])  # doctest: +SKIP
    >>> print(report)  # doctest: +SKIP
    train.conll: 120 sentences, 2,511 words, 300 entities kept
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a file, or a folder of brat documents.")
    format = format or guess_format(path)
    if format not in READERS:
        raise ValueError(f"Format {format!r} is unknown; choose one of {', '.join(READERS)}.")
    if path.is_dir() and format != "brat":
        raise ValueError(f"{path} is a folder, but format {format!r} is read from a single file; name the file.")
    known = list(inspect.signature(READERS[format]).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"Format {format!r} has no option {', '.join(map(repr, unknown))}; it knows {', '.join(known) or 'none'}."
        )
    report = ReadReport(source=str(path))
    sentences = list(READERS[format](path, report, **options))
    if labels is not None:
        labels = set(labels)
        for sentence in sentences:
            check_sentence(sentence, f"{path}, sentence {sentence['id']!r}", labels)
    return sentences, report


__all__ = ["READERS", "guess_format", "read_file"]
