"""Text without annotation: sentences for what learns from text alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .chars import Splitter, word_splitter
from .readers import BRAT_SUFFIXES, data_files, open_file
from .readers.files import plain_name, text_lines
from .readers.guessing import data_suffix, has_tags

TEXT_SUFFIXES = {".txt", ".text", ".md", ""}  # the last ones for a file that is named by itself


def read_texts(source: str | Path, splitter: Splitter = "compound") -> Iterator[dict[str, Any]]:
    """The texts of a file or folder as records with `tokens`, `id` and `doc_id`, without entities.

    Of a `.txt` file every line that is not blank is a text. Every format of annotated data will do, too, such as JSON
    Lines with `tokens` or `text`: its annotation is left aside. All may be packed by gzip.

    Args:
        splitter: how a text is cut into words; data that comes in words keeps them.

    >>> [sentence["tokens"] for sentence in read_texts("text/")]  # doctest: +SKIP
    [['The', 'IL-2', 'gene', '.'], ['It', 'is', 'expressed', '.']]
    """
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"There is no text {str(source)!r}: name a file or folder of .txt or .jsonl(.gz).")
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
    if data_suffix(file) in TEXT_SUFFIXES and not has_tags(file):
        cut = word_splitter(splitter)
        for number, line in text_lines(file):
            if tokens := [line[start:end] for start, end in cut(line)]:
                name = plain_name(file).stem
                yield {"id": f"{name}.{number}", "doc_id": name, "tokens": tokens}
        return
    sentences, _ = open_file(file, model_splitter=splitter)
    for sentence in sentences:
        if sentence["tokens"]:
            kept = {name: sentence.get(name) for name in ("id", "doc_id", "tokens", "pos")}
            yield {name: value for name, value in kept.items() if value is not None}
