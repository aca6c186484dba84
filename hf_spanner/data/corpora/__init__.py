"""The corpora of the five papers: where they are from, what may be done with them, and what the papers count in them.

A corpus is a file `NAME.yaml` here: a description, and no code.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent


@dataclass
class Download:
    """A file to download, and its sum if that is known."""

    url: str
    name: str
    sha256: str | None = None


@dataclass
class Printed:
    """What a table of a paper says of a corpus: figures by part (`train`, `train+validation`, `all`)."""

    table: str
    parts: dict[str, dict[str, float]]
    overlap: str | None = None  # which entities the paper counts, see `OVERLAPS`
    note: str = ""


@dataclass
class Corpus:
    """A corpus, described."""

    name: str
    title: str
    language: str
    licence: str
    ask: str  # where it is to be had
    citation: str  # BibTeX
    papers: list[str]
    needs: str | None = None  # what nobody may pass on and a copy is made from; None: it is free
    format: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of the reader
    files: dict[str, list[str]] = field(default_factory=dict)  # by split, patterns; "all": split by the rule below
    beside: str | None = None  # brat: the folder of the texts, beside that of the annotations
    document_per_file: bool = False
    cut_from_documents: str | None = None  # a pattern that files and lists have in a document's name, and it has not
    leave_out: str | None = None  # a pattern of the ids of documents that no paper has
    split: dict[str, Any] = field(default_factory=dict)  # "sentences": numbers by split; "documents": ids by split
    splits_from: str = ""  # where a list of documents is to be found, if it is not here
    labels: dict[str, str] | None = None  # the source's labels that are kept, and what they are called
    cut_from_words: str | None = None  # a pattern that the source has in its words and the papers have not
    overlap: str | None = None
    download: list[Download] = field(default_factory=list)
    printed: list[Printed] = field(default_factory=list)
    note: str = ""

    @property
    def key(self) -> str:
        """The citation's key."""
        return self.citation.partition("{")[2].partition(",")[0]


def corpus_names() -> list[str]:
    """All corpora that are described."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def load_corpus(name: str) -> Corpus:
    """The description of a corpus."""
    if name not in corpus_names():
        near = difflib.get_close_matches(name, corpus_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(corpus_names())}."
        raise ValueError(f"There is no corpus {name!r}; {hint}")
    return read_corpus(FOLDER / f"{name}.yaml")


def read_corpus(file: Path) -> Corpus:
    """The description in a file. `like: NAME` takes over from another what it does not say itself."""
    values: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    if base := values.pop("like", None):
        values = {**yaml.safe_load((file.parent / f"{base}.yaml").read_text(encoding="utf-8")), **values}
    values["download"] = [_download(one) for one in values.get("download", ())]
    values["printed"] = [Printed(**one) for one in values.get("printed", ())]
    values["files"] = {
        split: [patterns] if isinstance(patterns, str) else patterns
        for split, patterns in values.get("files", {}).items()
    }
    return Corpus(file.stem, **values)


def _download(value: str | Mapping[str, str]) -> Download:
    described = {"url": value} if isinstance(value, str) else dict(value)
    return Download(**{"name": described["url"].rstrip("/").rsplit("/", 1)[-1], **described})
