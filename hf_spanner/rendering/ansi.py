"""Nested entities on a terminal: the text, and under each of its lines a lane of brackets for every depth.

```text
the head of the office of the mayor of New York
                                       └ LOC ─┘
                          └─ PER ─────────────┘
            └─ ORG ───────────────────────────┘
└─ PER ───────────────────────────────────────┘
```
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from .colours import TERMINAL
from .layout import Line, Mark, Piece, lay_out
from .widths import text_width


def ansi_view(text: str, marks: Sequence[Mark], colours: Mapping[str, int], width: int | None, color: bool) -> str:
    """The view; `colours` are the places of labels in the palette, `width` that of the terminal if not given."""
    width = max(width or shutil.get_terminal_size().columns, 2)

    def extent(piece: Piece) -> tuple[int, int]:
        column, drawn = _bracket(piece, width)
        end = column + text_width(drawn)
        # One column more on the side of a label that stands outside its bracket keeps it apart from the neighbour.
        return max(column - (column < piece.left), 0), min(end + (end > piece.right), width)

    paint = Painter(colours if color else None)
    # Each character takes the colour of the innermost entity around it, so the outermost colour first.
    label_of: list[str | None] = [None] * len(text)
    for mark in sorted(marks, key=lambda m: (m.end - m.start, m.start, m.label), reverse=True):
        label_of[mark.start : mark.end] = [mark.label] * (mark.end - mark.start)
    rows = []
    for line in lay_out(text, marks, width, extent=extent):
        rows += [_lane(line, lane, True, width, paint) for lane in reversed(range(line.lanes(above=True)))]
        shown = [" " * (c.right - c.left) if c.is_space else c.shown for c in line.cells]
        rows.append(paint.runs(list(zip(shown, label_of[line.start : line.end], strict=True))))
        rows += [_lane(line, lane, False, width, paint) for lane in range(line.lanes())]
    return "\n".join(rows)


def use_color(stream: TextIO = sys.stdout) -> bool:
    """Whether to colour what is written to a stream: a terminal that can, and nobody has set NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _lane(line: Line, lane: int, above: bool, width: int, paint: Painter) -> str:
    """The brackets of one lane, from left to right."""
    row, column = [], 0
    there = (piece for piece in line.pieces if (piece.lane, piece.mark.above) == (lane, above))
    for (start, drawn), label in sorted((_bracket(piece, width), piece.mark.label) for piece in there):
        row += [" " * (start - column), paint(drawn, label)]
        column = start + text_width(drawn)
    return "".join(row)


def _bracket(piece: Piece, width: int) -> tuple[int, str]:
    """A piece's bracket with its label inside, or beside it where it is too narrow, and the column where it begins."""
    size = piece.right - piece.left
    corners = "┌┐╷" if piece.mark.above else "└┘╵"
    left, right = corners[0] if piece.begins else "…", corners[1] if piece.ends else "…"
    label, needed = piece.mark.name, text_width(piece.mark.name)
    room = size - 2 - needed
    if room >= 4:
        return piece.left, f"{left}─ {label} {'─' * (room - 3)}{right}"
    if room >= 2:
        return piece.left, f"{left} {label} {'─' * (room - 2)}{right}"
    if room >= 0:
        return piece.left, f"{left}{label}{'─' * room}{right}"
    bare = left + "─" * (size - 2) + right if size > 1 else corners[2] if piece.begins and piece.ends else "…"
    if piece.right + 1 + needed <= width or piece.left < needed + 1:
        return piece.left, f"{bare} {label}"
    return piece.left - needed - 1, f"{label} {bare}"


class Painter:
    """Colours for labels, or none."""

    def __init__(self, colours: Mapping[str, int] | None):
        self.colours = colours

    def __call__(self, text: str, label: str | None) -> str:
        if self.colours is None or label is None or not text:
            return text
        return f"\x1b[38;5;{TERMINAL[self.colours[label] % len(TERMINAL)]}m{text}\x1b[0m"

    def runs(self, pieces: list[tuple[str, str | None]]) -> str:
        """Neighbouring pieces of one label painted together; spaces at the end of the line are left out."""
        while pieces and not pieces[-1][0].strip(" "):
            pieces.pop()
        result, run, current = [], "", None
        for shown, label in pieces:
            if label != current:
                result.append(self(run, current))
                run, current = "", label
            run += shown
        return "".join([*result, self(run, current)])
