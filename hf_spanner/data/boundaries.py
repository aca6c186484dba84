"""Entities that a word splitter would spoil: on raw text their boundaries would lie inside its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import regex

from ..modeling.words import SPLITTERS, split_words
from .examples import Row
from .schema import MAX_EXAMPLES, ReadReport

# Words as corpora have them that are written without a space before them, or after them.
_CLOSES = regex.compile(r"[.,;:!?%)\]}»”’…]+|['’](?:s|re|ve|ll|d|m|t|S)|n['’]t|[-‐‑]\p{L}.*")
_OPENS = regex.compile(r"[(\[{«“‘$£€#@]+")
_HYPHEN = regex.compile(r"[-‐‑]")
_BRACKET = regex.compile(r"-[LR][RSC]B-")  # -LRB-: a bracket in Penn Treebank's spelling
_IN_A_WORD = "boundary inside a word"  # what readers of text call it


@dataclass
class Boundaries:
    """How a word splitter deals with the entities when it cuts raw text.

    Data in words has lost its spaces. They are put back as one usually writes, so that its counts are estimates.
    """

    splitter: str
    entities: int = 0
    spoilt: int = 0  # entities that begin or end inside a word
    recut: int = 0  # entities with good boundaries, but other words than in the data
    estimated: bool = True
    examples: list[str] = field(default_factory=list)
    spoilt_by: dict[str, int] = field(default_factory=dict)  # the same with every splitter; only for data in words


def check_boundaries(
    rows: Sequence[Row], splitter: str, reports: Mapping[str, ReadReport] | None = None, examples: int = MAX_EXAMPLES
) -> Boundaries:
    """Count the entities that `splitter` spoils. What reading text has found is in `reports`, and exact."""
    if splitter not in SPLITTERS:
        raise ValueError(f"Unknown word splitter {splitter!r}: choose one of {sorted(SPLITTERS)}.")
    result = Boundaries(splitter, entities=sum(len(row.entities) for row in rows))
    of_text = [report for report in (reports or {}).values() if report.from_text]
    if of_text:
        result.estimated = False
        for report in of_text:
            for reason in (reason for reason in report.lost | report.changed if reason.startswith(_IN_A_WORD)):
                result.spoilt += (report.lost + report.changed)[reason]
                result.examples += report.examples.get(reason, [])
        del result.examples[examples:]
        return result
    result.spoilt_by = dict.fromkeys(SPLITTERS, 0)
    seen: set[str] = set()
    hyphens = _cuts_hyphens(rows)
    for row in rows:
        if not row.entities:
            continue
        text, spans = write_text(row.words, hyphens)
        for name in SPLITTERS:
            words = split_words(text, name)
            starts, ends = {start for start, _ in words}, {end for _, end in words}
            for start, end, label in row.entities:
                first, last = spans[start][0], spans[end - 1][1]
                if first not in starts or last not in ends:
                    result.spoilt_by[name] += 1
                    if name == splitter and len(result.examples) < examples:
                        whole = text[_before(words, first) : _after(words, last)]
                        if whole not in seen:
                            seen.add(whole)
                            result.examples.append(f"{label} {text[first:last]!r} in {whole!r}")
                elif name == splitter:
                    result.recut += any(_pieces(word, name) > 1 for word in row.words[start:end])
    result.spoilt = result.spoilt_by[splitter]
    return result


def _cuts_hyphens(rows: Iterable[Row]) -> bool:
    """Whether the data's words mostly end at hyphens, so that one alone joins its neighbours; else it is a dash."""
    alone = inside = 0
    for row in rows:
        for word in row.words:
            if "-" in word:
                alone += word == "-"
                inside += word[0] != "-" != word[-1]
    return alone > 2 * inside


def write_text(words: Iterable[str], hyphens: bool = True) -> tuple[str, list[tuple[int, int]]]:
    """The words as one would write them, and the `[start, end)` of each in characters.

    Args:
        hyphens: whether a hyphen alone stands without spaces.

    >>> write_text(["Eye", "-", "tracking", "(", "Bonn", ")", ",", "Anna", "'s"])[0]
    "Eye-tracking (Bonn), Anna's"
    """
    parts: list[str] = []
    spans, length, glued = [], 0, True
    for word in words:
        before, after = _glue(word, hyphens)
        if not glued and not before:
            parts.append(" ")
            length += 1
        spans.append((length, length + len(word)))
        parts.append(word)
        length += len(word)
        glued = after
    return "".join(parts), spans


@cache
def _glue(word: str, hyphens: bool) -> tuple[bool, bool]:
    """Whether a word is written without a space before it, and after it."""
    joins = word == "/" or (hyphens and bool(_HYPHEN.fullmatch(word)))
    closes = bool(_CLOSES.fullmatch(word)) and not _BRACKET.fullmatch(word)
    return joins or closes, joins or bool(_OPENS.fullmatch(word))


@cache
def _pieces(word: str, splitter: str) -> int:
    return len(split_words(word, splitter))


def _before(words: Sequence[tuple[int, int]], first: int) -> int:
    return max((start for start, _ in words if start <= first), default=first)


def _after(words: Sequence[tuple[int, int]], last: int) -> int:
    return min((end for _, end in words if end >= last), default=last)
