"""Where everything stands: a text and its entities → lines, and on each line the entities' pieces in lanes.

Nothing here knows what it is drawn with: a terminal, a page or print differ in how wide a character is and in how much
room a piece takes with its label, and both are given.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..harmless import OBEYED
from .widths import TAB, Measure, char_width

ENDLESS = sys.maxsize  # the width of what wraps by itself
NO_ROOM: Mapping[int, int] = MappingProxyType({})


class Mark(NamedTuple):
    """An entity to be drawn, over characters `[start, end)`."""

    start: int
    end: int
    label: str
    score: float | None = None
    mention: str | None = None
    stands_out: bool = False  # a mistake, or what the reader should look at
    sign: str = ""  # before the label, so that colour is not all that tells
    above: bool = False  # above the text and not below it: two annotations of one text

    @property
    def name(self) -> str:
        """What is written on it."""
        return f"{self.sign} {self.label}".strip()


class Cell(NamedTuple):
    """What one character of the text looks like, and the columns `[left, right)` of its line that it takes."""

    shown: str
    left: int
    right: int
    is_space: bool
    room: int = 0  # of these columns, those after the character that are there for a label


class Piece(NamedTuple):
    """The part of a mark that stands on one line: its characters `[first, last)`, their columns `[left, right)`."""

    mark: Mark
    more: int  # columns that its label needs and its text lacks
    first: int
    last: int
    left: int
    right: int
    begins: bool  # the entity's first character is on this line
    ends: bool
    lane: int = 0  # 0 is the nearest to the text


class Line(NamedTuple):
    """One line: the index of its first character, a cell a character, and the pieces that stand there."""

    start: int
    cells: list[Cell]
    pieces: list[Piece]

    @property
    def end(self) -> int:
        return self.start + len(self.cells)

    def lanes(self, above: bool = False) -> int:
        """How many lanes there are on one side of the text."""
        return max((piece.lane + 1 for piece in self.pieces if piece.mark.above == above), default=0)


def own_columns(piece: Piece) -> tuple[int, int]:
    """The columns of a piece whose label needs no more room than the piece has."""
    return piece.left, piece.right


def lay_out(
    text: str,
    marks: Sequence[Mark],
    width: int = ENDLESS,
    measure: Measure = char_width,
    label_width: Callable[[Mark], int] | None = None,
    extent: Callable[[Piece], tuple[int, int]] = own_columns,
) -> list[Line]:
    """Lines of at most `width`, and each mark's pieces on them, inner ones in lanes nearer to the text.

    A label that is wider than its text needs room: either the text is drawn apart after the entity, by `label_width`,
    or the label stands beside the bar, and `extent` says where.

    Args:
        text: any text; its line breaks are kept.
        marks: in any order; they may nest, cross and share spans.
        measure: how wide a character is.
        label_width: how wide an entity must at least be for its label.
        extent: the columns that a piece takes, its label with it. No two pieces of a lane share one.
    """
    marks = sorted(marks, key=lambda m: (m.end - m.start, m.start, m.label))
    more = [0] * len(marks) if label_width is None else _room(text, marks, measure, label_width)
    after: dict[int, int] = {}  # the room after a character
    for mark, room in zip(marks, more, strict=True):
        if room:
            after[mark.end - 1] = after.get(mark.end - 1, 0) + room
    lines = [Line(start, cells, []) for start, cells in wrap(text, width, measure, after)]
    starts = [line.start for line in lines]
    for mark, room in zip(marks, more, strict=True):
        number = max(bisect_left(starts, mark.start + 1) - 1, 0)
        while number < len(lines) and lines[number].start < mark.end:
            piece = _piece_on_line(mark, room, lines[number], blank=not text[mark.start : mark.end].strip())
            if piece is not None:
                lines[number].pieces.append(piece)
            number += 1
    return [line._replace(pieces=_in_lanes(line.pieces, extent)) for line in lines]


# ------------------------------------------------------------------------------------------------------- text → lines


def wrap(
    text: str, width: int = ENDLESS, measure: Measure = char_width, after: Mapping[int, int] = NO_ROOM
) -> list[tuple[int, list[Cell]]]:
    """Lines as (index of the first character, one cell a character): broken at newlines, spaces and wide characters.

    Every character of the text is in exactly one line; the newline and the spaces at a break take no column. `after`
    some characters, by index, there is room for labels.
    """
    shown = [_shown(character, text[i + 1 : i + 2]) for i, character in enumerate(text)]
    tab = TAB * measure(" ", "")
    lines, start = [], 0
    while start < len(text):
        cells: list[Cell] = []
        column, previous, after_wide = 0, "", False
        last_break = end = start
        while end < len(text) and text[end] != "\n":
            is_space = text[end].isspace()
            columns = char_width(shown[end], previous)
            size = tab - column % tab if text[end] == "\t" else measure(shown[end], previous)
            if columns and (after_wide or columns == 2):
                last_break = end
            room = after.get(end, 0)
            if column + size + room > width and not is_space and end > start:
                break
            right = min(column + size, width) if is_space else column + size
            cells.append(Cell(shown[end], column, right + room, is_space, room))
            right += room
            column, previous, end = right, shown[end], end + 1
            after_wide = columns == 2 or (columns == 0 and after_wide)
            if is_space:
                last_break = end
        if end < len(text) and text[end] == "\n":
            cells.append(Cell("\n", column, column, True))
            end += 1
        elif end < len(text) and last_break > start:
            end = last_break
        lines.append((start, cells[: end - start]))
        start = end
    return lines or [(0, [])]


def _shown(character: str, following: str) -> str:
    """The character as it may be shown: one that would be obeyed (`hf_spanner.harmless`) as a symbol, one for one."""
    if character == "\r" and following == "\n":
        return ""
    if character in "\ufffe\uffff":  # no characters, and XML refuses them
        return "\ufffd"
    if character in "\t\n" or not OBEYED.match(character):
        return character
    if character < " ":
        return chr(0x2400 + ord(character))  # ␛ for escape, and so on
    return "␡" if character == "\x7f" else "\ufffd"


# ------------------------------------------------------------------------------------------------------ marks → lanes


def _piece_on_line(mark: Mark, more: int, line: Line, blank: bool) -> Piece | None:
    """The part of a mark on a line, without spaces at its ends unless it is all `blank`; None if there is none."""
    first, last = max(mark.start, line.start), min(mark.end, line.end)
    while not blank and first < last and line.cells[first - line.start].is_space:
        first += 1
    while not blank and first < last and line.cells[last - line.start - 1].is_space:
        last -= 1
    if first >= last:
        return None
    left, right = line.cells[first - line.start].left, line.cells[last - line.start - 1].right
    if left == right:  # nothing but combining marks: they stand on the column before
        left = max(left - 1, 0)
        right = left + 1
    return Piece(mark, more, first, last, left, right, mark.start >= line.start, mark.end <= line.end)


def _room(text: str, marks: Sequence[Mark], measure: Measure, label_width: Callable[[Mark], int]) -> list[int]:
    """What the label of each mark, given innermost first, needs more than its text and the room of those inside it."""
    after: dict[int, int] = {}
    more = []
    for mark in marks:
        needed = label_width(mark)
        for index in range(mark.start, mark.end):
            if needed <= 0:
                break
            needed -= measure(_shown(text[index], text[index + 1 : index + 2]), text[index - 1 : index]) + after.get(
                index, 0
            )
        more.append(max(needed, 0))
        after[mark.end - 1] = after.get(mark.end - 1, 0) + more[-1]
    return more


def _in_lanes(pieces: list[Piece], extent: Callable[[Piece], tuple[int, int]]) -> list[Piece]:
    """The pieces, given innermost first, each in its lane, on either side of the text."""
    done = []
    for above in (True, False):
        side = [piece for piece in pieces if piece.mark.above == above]
        places = stack([extent(piece) for piece in side])
        done += [piece._replace(lane=lane) for piece, lane in zip(side, places, strict=True)]
    return done


def stack(ranges: Sequence[tuple[int, int]]) -> list[int]:
    """The lane of each range `[left, right)`, given innermost first: the first one beyond all that it overlaps."""
    places = sorted({place for ends in ranges for place in ends})
    rank = {place: index for index, place in enumerate(places)}
    depth = [0] * len(places)  # lanes taken so far from each place to the next
    lanes = []
    for left, right in ranges:
        inside = slice(rank[left], rank[right])
        lanes.append(max(depth[inside], default=0))
        depth[inside] = [lanes[-1] + 1] * (rank[right] - rank[left])
    return lanes
