"""Sentences to files. A file appears under its name only when it is complete: written aside, then renamed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from .schema import FURTHER, Sentence


def write_jsonl(sentences: Iterable[Sentence], path: str | Path) -> int:
    """One sentence a line, by words; `read_jsonl` gives the same sentences back. Returns their number."""
    number = 0
    with _complete_or_not_at_all(Path(path)) as file:
        for sentence in sentences:
            whole: dict[str, Any] = {**sentence}
            record = {key: whole[key] for key in ("id", "doc_id", "tokens", "entities")}
            record |= {name: whole[name] for name in FURTHER if whole.get(name) is not None}
            record["entities"] = [{k: v for k, v in e.items() if v is not None} for e in sentence["entities"]]
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            number += 1
    return number


def write_brat(sentences: Iterable[Sentence], folder: str | Path) -> list[Path]:
    """One `.txt`/`.ann` pair a document, one sentence a line, words joined by one space. Returns the `.txt` files.

    Sentences without a `doc_id` go to the document `sentences`. `read_file(folder, splitter="whitespace")`
    gives the same words and entities back. brat has no place for the ids of sentences, nor for sentences without
    words. Characters that file systems refuse become `_` in the document's name.
    """
    documents: dict[str | None, list[Sentence]] = {}
    for sentence in sentences:
        _check_for_brat(sentence)
        documents.setdefault(sentence["doc_id"], []).append(sentence)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    written = []
    for doc_id, members in documents.items():
        name = _file_name("sentences" if doc_id is None else doc_id, used)
        text, annotations = _as_brat(members)
        for suffix, content in ((".txt", text), (".ann", annotations)):
            with _complete_or_not_at_all(folder / (name + suffix)) as file:
                file.write(content)
        written.append(folder / f"{name}.txt")
    return written


def write_text(text: str, path: str | Path) -> None:
    """A text file."""
    with _complete_or_not_at_all(Path(path)) as file:
        file.write(text)


WRITERS = {"jsonl": write_jsonl, "brat": write_brat}


def _as_brat(sentences: list[Sentence]) -> tuple[str, str]:
    """The text and the annotations of one document."""
    lines: list[str] = []
    annotations: list[str] = []
    position = 0  # of the sentence's first character in the document
    for sentence in sentences:
        line = " ".join(sentence["tokens"])
        starts = []
        start = position
        for token in sentence["tokens"]:
            starts.append(start)
            start += len(token) + 1
        for entity in sentence["entities"]:
            first, last = entity["start"], entity["end"] - 1
            begin, end = starts[first], starts[last] + len(sentence["tokens"][last])
            mention = line[begin - position : end - position]
            annotations.append(f"T{len(annotations) + 1}\t{entity['label']} {begin} {end}\t{mention}\n")
        lines.append(line + "\n")
        position += len(line) + 1
    return "".join(lines), "".join(annotations)


def _check_for_brat(sentence: Sentence) -> None:
    for token in sentence["tokens"]:
        if token.split() != [token]:
            raise ValueError(
                f"Sentence {sentence['id']!r}: token {token!r} is empty or contains white space, so brat's text could "
                "not be cut into the same words again; replace the white space or write jsonl."
            )
    for entity in sentence["entities"]:
        if entity["label"].split() != [entity["label"]]:
            raise ValueError(
                f"Sentence {sentence['id']!r}: label {entity['label']!r} contains white space, which brat does not "
                "allow; rename the label or write jsonl."
            )


def _file_name(doc_id: str, used: set[str]) -> str:
    """A name that every file system accepts and no other document of this folder has."""
    name = plain = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", doc_id).lstrip(".") or "_"
    number = 1
    while name.lower() in used:  # lower: some file systems do not tell A from a
        number += 1
        name = f"{plain}_{number}"
    used.add(name.lower())
    return name


@contextmanager
def _complete_or_not_at_all(path: Path) -> Iterator[TextIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
