"""What the papers print of a corpus beside what a copy of it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..describe import Statistics, statistics
from ..reshaping import OVERLAPS, remove_overlaps
from ..schema import Sentence
from . import Corpus

# What a description may give as a figure; each is an attribute of `Statistics`, or counted here.
FIGURES = {
    "sentences": "sentences",
    "words": "words",
    "entities": "entities",
    "types": "types",
    "nested": "entities inside another",
    "in_nesting": "entities inside another or around one",
    "nesting_percentage": "the same, of 100 entities",
    "sentences_with_nesting": "sentences with nesting",
    "mean_length": "words of a sentence, mean",
    "documents": "documents",
}


class Compared(NamedTuple):
    """One figure of a paper, and ours; None if the part of the data is not there."""

    table: str
    part: str
    figure: str
    printed: float
    here: float | None

    @property
    def equal(self) -> bool:
        """Whether they are the same to the digits that are printed."""
        return self.here is not None and f"{self.here:.{_decimals(self.printed)}f}" == f"{self.printed}"


def compare(corpus: Corpus, splits: Mapping[str, Sequence[Sentence]]) -> list[Compared]:
    """Every printed figure of a corpus, and the same of these splits."""
    rows = []
    for printed in corpus.printed:
        for part, figures in printed.parts.items():
            names = list(splits) if part == "all" else part.split("+")
            there = all(name in splits for name in names)
            sentences = [sentence for name in names for sentence in splits.get(name, ())]
            if printed.overlap is not None:
                sentences = remove_overlaps(sentences, printed.overlap)[0]
            counts = statistics(sentences)
            for figure, value in figures.items():
                here = _figure(figure, counts, sentences) if there else None
                rows.append(Compared(printed.table, part, figure, value, here))
    return rows


def _figure(name: str, counts: Statistics, sentences: Sequence[Sentence]) -> float:
    if name == "documents":
        return len({sentence["doc_id"] for sentence in sentences} - {None})
    return len(counts.labels) if name == "types" else getattr(counts, name)


def comparison_table(corpus: Corpus, rows: Sequence[Compared]) -> str:
    """The comparison as a Markdown table, with what is known of the differences below."""
    if not rows:
        return f"No paper prints figures of {corpus.title}."
    lines = ["| printed in | part | figure | printed | here | |", "|---|---|---|---:|---:|---|"]
    for row in rows:
        lines.append(
            f"| {row.table} | {row.part} | {FIGURES[row.figure]} | {_number(row.printed, row.printed)} | "
            f"{'–' if row.here is None else _number(row.here, row.printed)} | {_verdict(row)} |"
        )
    for printed in corpus.printed:
        if printed.overlap is not None:
            lines += ["", f"{printed.table}: counted are {OVERLAPS[printed.overlap]}."]
        if printed.note:
            lines += ["", f"{printed.table}: {printed.note}"]
    return "\n".join(lines)


def _verdict(row: Compared) -> str:
    if row.here is None:
        return "not there"
    return "=" if row.equal else f"{row.here - row.printed:+,.{_decimals(row.printed)}f}"


def _number(value: float, like: float) -> str:
    return f"{value:,.{_decimals(like)}f}"


def _decimals(value: Any) -> int:
    return len(str(value).partition(".")[2])
