"""Parts: what is found in so many texts, written whole; together, in the order of their numbers, they are the output.

A part's name has its number and the digest of what was read for it, so that a run that goes on knows what is done, and
whether the input is still the same. Beside a part stands what was set aside of its input, written before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..modeling.folders import full_disk_said, sync
from . import tables
from .sources import Record, Source, as_json

TEXTS = 8192  # of a part: read together, so that texts of similar length share a batch
BYTES = 1 << 22  # of its input, so that long texts do not fill the memory
SETTINGS = "settings.json"
PART = re.compile(r"part-(\d{8})-([0-9a-f]{16})\.(jsonl|parquet)")


class Block(NamedTuple):
    """The input of a part."""

    number: int
    digest: str
    records: list[Record]
    done: int  # of the source, when this was read


def blocks(source: Source, texts: int = TEXTS, size: int = BYTES) -> Iterator[Block]:
    """The records of a source in blocks; where one ends depends on what stands in it alone."""
    number, records, digest, held = 0, [], hashlib.sha256(), 0
    for record in source:
        raw = record.raw
        digest.update(b"%d:" % len(raw) + raw)
        records.append(record)
        held += len(raw)
        if len(records) == texts or held >= size:
            yield Block(number, digest.hexdigest()[:16], records, source.done)
            number, records, digest, held = number + 1, [], hashlib.sha256(), 0
    if records:
        yield Block(number, digest.hexdigest()[:16], records, source.done)


class Parts:
    """The parts of an output, in a folder beside it until they are joined."""

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.output = Path(output)
        self.format = self.output.suffix.lower().lstrip(".")
        self.folder = self.output.with_name(f"{self.output.name}.parts")
        self.aside = self.output.with_name(f"{self.output.name}.bad.jsonl")  # what could not be read, if anything

    def exist(self) -> bool:
        """Whether a run has begun to make them."""
        return (self.folder / SETTINGS).is_file()

    def is_joined(self) -> bool:
        """Whether the output is there and nothing is left to do."""
        return self.output.is_file() and not self.folder.is_dir()

    def finished(self) -> dict[int, str]:
        """The digests of the parts that are there, by number."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        found = (PART.fullmatch(name) for name in names)
        return {int(part[1]): part[2] for part in found if part and part[3] == self.format}

    def check(self, resume: bool, overwrite: bool) -> None:
        """Refuse an output that cannot be written, or that would replace another."""
        if self.format not in ("jsonl", "parquet"):
            raise ValueError(
                f"--output {self.output} ends in neither .jsonl nor .parquet: give it one of these endings."
            )
        if not self.output.absolute().parent.is_dir():
            raise FileNotFoundError(f"--output {self.output}: its folder does not exist.")
        if resume and overwrite:
            raise ValueError("--resume goes on and --overwrite begins anew: give one of them.")
        if resume or overwrite:
            return
        if self.exist() and self.finished():
            raise FileExistsError(
                f"{self.folder} holds parts of an earlier run: go on with --resume, or begin anew with --overwrite."
            )
        if self.output.exists():
            raise FileExistsError(
                f"{self.output} is there already: name another file, or replace it with --overwrite."
            )

    def begin(self, settings: dict[str, Any], resume: bool) -> None:
        """Make the folder anew, or check that a run with these settings has made it."""
        if resume and self.exist():
            before = json.loads((self.folder / SETTINGS).read_text(encoding="utf-8"))
            for name, value in json.loads(json.dumps(settings)).items():
                if before.get(name) != value:
                    raise ValueError(
                        f"{self.folder} was begun with {name} {_short(before.get(name))}, now it is {_short(value)}: "
                        "go on with what it was begun with, or begin anew with --overwrite."
                    )
        for path in self.folder.iterdir():  # what a killed run was writing, and all that is not gone on with
            if path.name.endswith(".saving") or (path.name.startswith("part-") and not (resume and self.exist())):
                path.unlink(missing_ok=True)
        self._write(self.folder / SETTINGS, lambda path: path.write_text(json.dumps(settings, indent=1), "utf-8"))

    def write(
        self, block: Block, rows: list[dict[str, Any]], bad: list[dict[str, Any]], layout: tables.Layout
    ) -> None:
        """A part, whole, and before it what was set aside of its input."""
        name = f"part-{block.number:08}-{block.digest}"
        with full_disk_said(self.output, "go on with --resume"):
            if bad:
                self._write(self.folder / f"{name}.bad", lambda path: _write_lines(path, bad))
            if self.format == "parquet":
                self._write(self.folder / f"{name}.parquet", lambda path: tables.write(path, rows, layout))
            else:
                self._write(self.folder / f"{name}.jsonl", lambda path: _write_lines(path, rows))

    def join(self) -> int:
        """Make the output of all parts; returns how many lines or rows were set aside."""
        names = [f"part-{number:08}-{digest}" for number, digest in sorted(self.finished().items())]
        aside = [file for name in names if (file := self.folder / f"{name}.bad").is_file()]
        with full_disk_said(self.output, "go on with --resume"):
            if aside:
                self._write(self.aside, lambda path: _concatenate(path, aside))
            else:
                self.aside.unlink(missing_ok=True)
            files = [self.folder / f"{name}.{self.format}" for name in names]
            join = tables.join if self.format == "parquet" else _concatenate
            self._write(self.output, lambda path: join(path, files))
        return sum(count_lines(file) for file in aside)

    def remove(self) -> None:
        """Remove the folder of the parts: under another name first, so that it is whole or no folder of parts."""
        if self.folder.is_dir():
            shutil.rmtree(self._removed, ignore_errors=True)
            os.rename(self.folder, self._removed)
        shutil.rmtree(self._removed, ignore_errors=True)

    @property
    def _removed(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.removed")

    def _write(self, file: Path, write: Callable[[Path], Any]) -> None:
        """Write a file aside, among the parts, and give it its name when it is on the disk.

        What several processes write is not in each other's way, and what a killed one leaves goes with the parts.
        """
        aside = self.folder / f".{file.name}.{os.getpid()}.saving"
        try:
            write(aside)
            sync(aside)
            os.replace(aside, file)
            sync(file.parent)
        finally:
            aside.unlink(missing_ok=True)


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(as_json(row) + "\n" for row in rows)


def _concatenate(path: Path, parts: Iterable[Path]) -> None:
    with path.open("wb") as file:
        for part in parts:
            with part.open("rb") as opened:
                shutil.copyfileobj(opened, file)


def count_lines(file: Path) -> int:
    """The lines of a file; 0 if there is none."""
    if not file.is_file():
        return 0
    with file.open("rb") as opened:
        return sum(1 for _ in opened)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 100 else f"{text[:100]}…"
