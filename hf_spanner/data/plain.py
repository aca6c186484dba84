"""Text without annotation: sentences for what learns from text alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .chars import Splitter, word_splitter
from .readers import BRAT_SUFFIXES, JSON_SUFFIXES, data_files, open_file
from .readers.files import json_records, plain_name, text_lines
from .readers.guessing import data_suffix, has_tags
from .records import TOKEN_KEYS

TEXT_SUFFIXES = {".txt", ".text", ".md", ""}  # the last ones for a file that is named by itself


def check_text(source: str | Path) -> Path:
    """The path of a text, if it is there."""
    if not Path(source).exists():
        raise FileNotFoundError(f"There is no text {str(source)!r}: name a file or folder of .txt or .jsonl(.gz).")
    return Path(source)


def read_texts(source: str | Path, splitter: Splitter = "compound") -> Iterator[dict[str, Any]]:
    """The texts of a file or folder as records with `tokens`, `id` and `doc_id`, without entities.

    Of a `.txt` file every line that is not blank is a text, of JSON Lines every `tokens` or `text`; other formats of
    annotated data will do, too. All annotation is left aside. Files may be packed by gzip.

    Args:
        splitter: how a text is cut into words; data that comes in words keeps them.

    >>> [sentence["tokens"] for sentence in read_texts("text/")]  # doctest: +SKIP
    [['The', 'IL-2', 'gene', '.'], ['It', 'is', 'expressed', '.']]
    """
    path = check_text(source)
    found = False
    for file in data_files(path) if path.is_dir() else [path]:
        if path.is_dir() and data_suffix(file) in BRAT_SUFFIXES:  # the text is in the file beside it
            continue
        for sentence in _texts(file, splitter):
            found = True
            yield sentence
    if not found:
        raise ValueError(f"{source} holds no text: name a file or folder of .txt or .jsonl(.gz).")


def _texts(file: Path, splitter: Splitter) -> Iterator[dict[str, Any]]:
    cut, name, suffix = word_splitter(splitter), plain_name(file).stem, data_suffix(file)
    if suffix in JSON_SUFFIXES:
        for number, (where, record) in enumerate(json_records(file)):
            tokens = next((record[key] for key in TOKEN_KEYS if key in record), None)
            if tokens is None and isinstance(record.get("text"), str):
                tokens = [record["text"][start:end] for start, end in cut(record["text"])]
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise ValueError(f"{where} has neither words, 'tokens', nor a 'text': it cannot be read as text.")
            if tokens:
                known = {key: record[key] for key in ("doc_id", "pos") if record.get(key) is not None}
                yield {"id": str(record.get("id", f"{name}.{number}")), **known, "tokens": tokens}
    elif suffix in TEXT_SUFFIXES and not has_tags(file):
        for number, line in text_lines(file):
            if tokens := [line[start:end] for start, end in cut(line)]:
                yield {"id": f"{name}.{number}", "doc_id": name, "tokens": tokens}
    else:
        for sentence in open_file(file, model_splitter=splitter)[0]:
            if sentence["tokens"]:
                kept = {key: sentence.get(key) for key in ("id", "doc_id", "tokens", "pos")}
                yield {key: value for key, value in kept.items() if value is not None}
