"""Scores as a plain-text table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..harmless import harmless
from .given_spans import format_typing_scores

RATIOS = ("precision", "recall", "f1")
COUNTS = ("support", "predicted", "correct")


def format_scores(scores: Mapping[str, Any]) -> str:
    """A table of what `score_entities` returns: a row per type, then micro, macro, locate, type, and a row
    per kind of mention, if the model tells them apart.

    What `score_typing` returns is formatted likewise, with its own columns.

    Example:
        >>> from hf_spanner.metrics import score_entities
        >>> print(format_scores(score_entities([[(0, 2, "PER")]], [[(0, 2, "PER"), (1, 2, "LOC")]])))
                precision  recall      f1  support  predicted  correct
        LOC        0.0000  0.0000  0.0000        1          0        0
        PER        1.0000  1.0000  1.0000        1          1        1
        --------------------------------------------------------------
        micro      1.0000  0.5000  0.6667        2          1        1
        macro      0.5000  0.5000  0.5000
        locate     1.0000  0.5000  0.6667
        type       1.0000  1.0000  1.0000
    """
    if "typing_accuracy" in scores:
        return format_typing_scores(scores)
    types = [[harmless(label), *_ratios(row), *_counts(row)] for label, row in scores["per_type"].items()]
    summary = [
        ["micro", *_ratios(scores), *_counts(scores)],
        *([name, *_ratios(scores, prefix=f"{name}_")] for name in ("macro", "locate", "type")),
        *([harmless(kind), *_ratios(row), *_counts(row)] for kind, row in scores.get("per_mention", {}).items()),
    ]
    header = ["", *RATIOS, *COUNTS]
    table = [header, *types, *summary]
    widths = [max(6, *(len(row[column]) for row in table if column < len(row))) for column in range(len(header))]
    lines = [_line(row, widths) for row in table]
    lines.insert(1 + len(types), "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


def _ratios(row: Mapping[str, Any], prefix: str = "") -> list[str]:
    return [f"{row[prefix + name]:.4f}" for name in RATIOS]


def _counts(row: Mapping[str, Any]) -> list[str]:
    return [str(row[name]) for name in COUNTS]


def _line(row: list[str], widths: list[int]) -> str:
    name, *cells = row
    return "  ".join([name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:]))]).rstrip()
