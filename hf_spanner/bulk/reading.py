"""How bulk prediction reads a record: which column, which model, and what is said of records that cannot be read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..default import folder_of
from .predictor import Predictor
from .sources import Record, Unreadable

SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class Reading:
    """How texts are read: all that a process needs to make a predictor.

    Attributes:
        model: a folder, a Hub id, or `"default"`.
        text_column, entities_column: where texts are, and where entities go.
        words: the texts are cut into words: lists, or strings with white space between the words.
        batch_size, device, dtype: as `Predictor` has them.
        options: of the pipeline, such as `threshold`.
    """

    model: str = "default"
    text_column: str = "text"
    entities_column: str = "entities"
    words: bool = False
    batch_size: int = 32
    device: str = "auto"
    dtype: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def predictor(self) -> Predictor:
        return Predictor(
            self.model, self.text_column, self.entities_column, self.batch_size, self.device,
            dtype=self.dtype, is_split_into_words=self.words, **self.options,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """What decides what is found; what only makes it faster may change while a run is interrupted."""
        from .. import __version__

        return {
            "hf_spanner": __version__,
            "model": fingerprint(self.model),
            "text column": self.text_column,
            "entities column": self.entities_column,
            "words": self.words,
            "dtype": self.dtype,
            "options": self.options,
        }

    def text_of(self, row: dict[str, Any]) -> str | list[str]:
        """The text (or the words) of a row. Raises `Unreadable`."""
        if self.text_column not in row:
            raise Unreadable(f"no {self.text_column!r}")
        if self.entities_column in row:
            raise Unreadable(f"has {self.entities_column!r} already")
        text = row[self.text_column]
        if isinstance(text, str):
            return text.split() if self.words else text
        if self.words and isinstance(text, list) and all(isinstance(word, str) for word in text):
            return text
        what = "null" if text is None else type(text).__name__
        wanted = "a string or a list of strings" if self.words else "a string"
        raise Unreadable(f"{self.text_column!r} is {what}, expected {wanted}")


def fingerprint(model: str) -> str:
    """What a model is known by: the digest of its folder's files (without texts for people), or its commit."""
    folder = Path(folder_of(model))
    if not folder.is_dir():
        from ..loading import load_config

        return f"{model}@{getattr(load_config(model), '_commit_hash', None)}"
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix != ".md" and not file.name.startswith("."):
            digest.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
            with file.open("rb") as opened:
                while chunk := opened.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()


def read_records(
    predictor: Predictor,
    reading: Reading,
    records: Iterable[Record],
    unicode_only: bool = False,
    tick: Callable[[int], None] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the records with what was found in them, in order; and what was set aside, with the reason.

    With `unicode_only` rows that UTF-8 cannot hold are set aside, too. `tick` is told how many texts have been read.
    """
    rows, texts, bad = [], [], []
    for record in records:
        try:
            row = record.row()
            text = reading.text_of(row)
            if unicode_only and (half := _half_a_pair(row)):
                raise Unreadable(f"holds {half}, half a surrogate pair, which parquet cannot")
        except Unreadable as error:
            bad.append({"file": record.file, "line": record.number, "reason": str(error), "content": _shown(record)})
            continue
        if reading.words and isinstance(row[reading.text_column], str):
            row = {**row, reading.text_column: " ".join(text)}  # offsets count in it
        rows.append(row)
        texts.append(text)
    found = predictor.read(texts, tick)
    return [{**row, reading.entities_column: entities} for row, entities in zip(rows, found, strict=True)], bad


def _shown(record: Record) -> Any:
    content = record.content
    return content.decode("utf-8", "backslashreplace") if isinstance(content, bytes) else content


def _half_a_pair(value: Any) -> str | None:
    """Half a surrogate pair in a value, as an escape; None if there is none."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return next((half for item in value if (half := _half_a_pair(item))), None)
    if isinstance(value, str) and not value.isascii():
        return next((ascii(c)[1:-1] for c in value if ord(c) in SURROGATES), None)
    return None
