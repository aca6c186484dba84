"""What writers share: texts made of words, names of files, and files that appear when they are complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..chars import CharSpan
from ..schema import Sentence


class Line(NamedTuple):
    """A sentence as a text, its words joined by one space; `words` and `spans` count in the text of its document."""

    text: str
    words: list[tuple[int, int]]
    spans: list[CharSpan]


def in_characters(sentence: Sentence, position: int = 0) -> Line:
    """The sentence as a text that begins at `position` of its document."""
    words = []
    for token in sentence["tokens"]:
        words.append((position, position + len(token)))
        position += len(token) + 1
    spans = [
        CharSpan(words[e["start"]][0], words[e["end"] - 1][1], e["label"], mention=e.get("mention"))
        for e in sentence["entities"]
    ]
    return Line(" ".join(sentence["tokens"]), words, spans)


def documents(sentences: Iterable[Sentence]) -> dict[str | None, list[Sentence]]:
    """The sentences of each document; None for those of which nobody knows."""
    found: dict[str | None, list[Sentence]] = {}
    for sentence in sentences:
        found.setdefault(sentence["doc_id"], []).append(sentence)
    return found


def check_words(sentence: Sentence, format: str) -> None:
    """Refuse words that a text joined by spaces would not give back."""
    for token in sentence["tokens"]:
        if token.split() != [token]:
            raise ValueError(
                f"Sentence {sentence['id']!r}: token {token!r} is empty or contains white space, so {format}'s text "
                "could not be cut into the same words again; replace the white space or write jsonl."
            )


def file_name(doc_id: str, used: set[str]) -> str:
    """A name that every file system accepts and no other document of this folder has."""
    name = plain = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", doc_id).lstrip(".") or "_"
    number = 1
    while name.lower() in used:  # lower: some file systems do not tell A from a
        number += 1
        name = f"{plain}_{number}"
    used.add(name.lower())
    return name


@contextmanager
def complete_or_not_at_all(path: Path, binary: bool = False) -> Iterator[IO[Any]]:
    """The file to write to: written aside, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    how: dict[str, Any] = {"mode": "wb"} if binary else {"mode": "w", "encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, **how) as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(text: str, path: str | Path) -> None:
    """A text file."""
    with complete_or_not_at_all(Path(path)) as file:
        file.write(text)
