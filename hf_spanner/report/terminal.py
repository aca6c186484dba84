"""Nested entities on a terminal: the text, and under each of its lines a lane of brackets for every depth.

```text
the head of the office of the mayor of New York
                                       └ LOC ─┘
                          └─ PER ─────────────┘
            └─ ORG ───────────────────────────┘
└─ PER ───────────────────────────────────────┘
```
"""

import os
import shutil
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from ..harmless import OBEYED, harmless

# Of middle brightness, to be read on dark and on light backgrounds; neighbours in the list are far apart in hue.
PALETTE = (33, 166, 35, 170, 136, 37, 161, 99, 70, 208, 67, 133)
TAB = 4
ZERO_WIDTH_JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"


class Cell(NamedTuple):
    """What one character of the text looks like, and the columns `[left, right)` of its line that it takes."""

    shown: str
    left: int
    right: int
    is_space: bool


class Piece(NamedTuple):
    """The part of an entity that stands on one line, in columns `[left, right)`."""

    left: int
    right: int
    label: str
    begins: bool  # the entity's first character is on this line
    ends: bool


def render(
    text: str,
    entities: Iterable[Mapping[str, Any]],
    width: int | None = None,
    color: bool = True,
    labels: Sequence[str] | None = None,
) -> str:
    """The text with its entities drawn under it, inner ones nearest to the text.

    Entities may nest to any depth, share a span and cross. One that goes on after a line break ends there in `…`.
    What a terminal would obey instead of show (escape sequences, carriage returns) is shown as a symbol.

    Args:
        text: any text; its line breaks are kept, and lines longer than `width` are wrapped.
        entities: as the pipeline gives them: mappings with `entity_group`, `start` and `end` in characters.
        width: in columns; that of the terminal if not given.
        color: whether to colour brackets and text, one colour a label.
        labels: a model's labels, in order: each gets its own colour. Otherwise a label's colour follows from its name.

    ```python
    >>> print(render("the mayor of New York", ner("the mayor of New York"), color=False))
    the mayor of New York
                 └ LOC ─┘
    └─ PER ─────────────┘
    ```
    """
    width = max(width or shutil.get_terminal_size().columns, 2)
    entities = [{**entity, "entity_group": harmless(entity["entity_group"])} for entity in entities]
    entities.sort(key=lambda e: (e["end"] - e["start"], e["start"], e["entity_group"]))
    paint = Painter(color, [harmless(label) for label in labels or ()])
    # Each character takes the colour of the innermost entity around it: the first in the list.
    colour_of = [None] * len(text)
    for entity in reversed(entities):
        colour_of[entity["start"] : entity["end"]] = [entity["entity_group"]] * (entity["end"] - entity["start"])
    rows = []
    for start, cells in wrap(text, width):
        end = start + len(cells)
        rows.append(paint.runs([(cell.shown, label) for cell, label in zip(cells, colour_of[start:end], strict=True)]))
        pieces = [piece_on_line(entity, start, cells) for entity in entities]
        for lane in lanes([piece for piece in pieces if piece], width):
            rows.append(paint.lane(lane))
    return "\n".join(rows)


def use_color(stream: TextIO = sys.stdout) -> bool:
    """Whether to colour what is written to a stream: a terminal that can, and nobody has set NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ------------------------------------------------------------------------------------------------------- text → lines


def wrap(text: str, width: int) -> list[tuple[int, list[Cell]]]:
    """Lines as (index of the first character, one cell a character): broken at newlines, spaces and wide characters.

    Every character of the text is in exactly one line; the newline and the spaces at a break take no column.
    """
    shown = [_shown(character, text[i + 1 : i + 2]) for i, character in enumerate(text)]
    lines, start = [], 0
    while start < len(text):
        cells: list[Cell] = []
        column, previous, after_wide = 0, "", False
        last_break = end = start
        while end < len(text) and text[end] != "\n":
            is_space = text[end].isspace()
            size = TAB - column % TAB if text[end] == "\t" else char_width(shown[end], previous)
            if size and (after_wide or size == 2):
                last_break = end
            if column + size > width and not is_space:
                break
            right = min(column + size, width) if is_space else column + size
            cells.append(Cell(_filled(text[end], shown[end], right - column), column, right, is_space))
            column, previous, end = right, shown[end], end + 1
            after_wide = size == 2 or (size == 0 and after_wide)
            if is_space:
                last_break = end
        if end < len(text) and text[end] == "\n":
            cells.append(Cell("", column, column, True))
            end += 1
        elif end < len(text) and last_break > start:
            end = last_break
        lines.append((start, cells[: end - start]))
        start = end
    return lines or [(0, [])]


def char_width(character: str, previous: str = "") -> int:
    """Columns that a character takes after another one: 0 for marks that join it, 2 for wide ones, else 1."""
    if not character:
        return 0
    if character == EMOJI_STYLE:  # the character before it becomes a wide emoji
        return 1 if previous and char_width(previous) == 1 else 0
    if previous == ZERO_WIDTH_JOINER or "\U0001f3fb" <= character <= "\U0001f3ff" and char_width(previous) == 2:
        return 0  # the rest of an emoji family, or a skin tone
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\u00ad":
        return 0
    if "\u1160" <= character <= "\u11ff":  # the vowels and final consonants of Hangul syllables
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(character: str, following: str) -> str:
    """The character as a terminal may print it."""
    if character == "\r" and following == "\n":
        return ""
    if character < " " and character not in "\t\n":
        return chr(0x2400 + ord(character))  # ␛ for escape, and so on
    if character == "\x7f":
        return "␡"
    if OBEYED.match(character) and character not in "\t\n":
        return "\ufffd"
    return character


def _filled(character: str, shown: str, size: int) -> str:
    """White space as wide as the columns it takes; every other character as it is."""
    return " " * size if character.isspace() else shown


# ---------------------------------------------------------------------------------------------------- entities → lanes


def piece_on_line(entity: Mapping[str, Any], start: int, cells: list[Cell]) -> Piece | None:
    """The columns of a line that an entity covers, without spaces at either end; None if it is not on the line."""
    first, last = max(entity["start"], start), min(entity["end"], start + len(cells))
    covered = [cell for cell in cells[first - start : max(last - start, 0)] if not cell.is_space]
    if first >= last or not covered:
        return None
    left, right = covered[0].left, covered[-1].right
    if left == right:  # nothing but combining marks: they stand on the column before
        left = max(left - 1, 0)
        right = left + 1
    return Piece(left, right, entity["entity_group"], entity["start"] >= start, entity["end"] <= start + len(cells))


def lanes(pieces: list[Piece], width: int) -> list[list[tuple[int, str, str]]]:
    """Brackets of a line's pieces, given innermost first, as (column, bracket, label) lane by lane.

    A bracket goes under everything that it touches: the inner one stands above the outer one, and none hides another.
    """
    brackets, ranges = [], []
    for piece in pieces:
        column, drawn = bracket(piece, width)
        end = column + text_width(drawn)
        brackets.append((column, drawn, piece.label))
        # One column more on the side of a label that stands outside its bracket keeps it apart from the neighbour.
        ranges.append((max(column - (column < piece.left), 0), min(end + (end > piece.right), width)))
    places = stack(ranges)
    return [
        sorted(drawn for drawn, place in zip(brackets, places, strict=True) if place == lane)
        for lane in range(max(places, default=-1) + 1)
    ]


def stack(ranges: Sequence[tuple[int, int]]) -> list[int]:
    """The lane of each range `[left, right)`, given innermost first: the first one beyond all that it overlaps."""
    depth = [0] * max((right for _, right in ranges), default=0)  # lanes taken so far at each place
    lanes = []
    for left, right in ranges:
        lanes.append(max(depth[left:right], default=0))
        depth[left:right] = [lanes[-1] + 1] * (right - left)
    return lanes


def bracket(piece: Piece, width: int) -> tuple[int, str]:
    """A piece's bracket with its label inside, or beside it where it is too narrow, and the column where it begins."""
    size = piece.right - piece.left
    left, right = "└" if piece.begins else "…", "┘" if piece.ends else "…"
    label, needed = piece.label, text_width(piece.label)
    room = size - 2 - needed
    if room >= 4:
        return piece.left, f"{left}─ {label} {'─' * (room - 3)}{right}"
    if room >= 2:
        return piece.left, f"{left} {label} {'─' * (room - 2)}{right}"
    if room >= 0:
        return piece.left, f"{left}{label}{'─' * room}{right}"
    bare = left + "─" * (size - 2) + right if size > 1 else "╵" if piece.begins and piece.ends else "…"
    if piece.right + 1 + needed <= width or piece.left < needed + 1:
        return piece.left, f"{bare} {label}"
    return piece.left - needed - 1, f"{label} {bare}"


def text_width(text: str) -> int:
    """Columns that a text takes."""
    return sum(char_width(character, text[i - 1 : i]) for i, character in enumerate(text))


# -------------------------------------------------------------------------------------------------------------- colour


class Painter:
    """Colours for labels, or none."""

    def __init__(self, color: bool, labels: Sequence[str] | None = None):
        self.color = color
        self.order = {label: index for index, label in enumerate(labels or ())}

    def code(self, label: str) -> int:
        """The label's colour: by its place among the model's labels, else by its name."""
        return PALETTE[self.order.get(label, zlib.crc32(label.encode("utf-8", "replace"))) % len(PALETTE)]

    def __call__(self, text: str, label: str | None) -> str:
        if not self.color or label is None or not text:
            return text
        return f"\x1b[38;5;{self.code(label)}m{text}\x1b[0m"

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

    def lane(self, brackets: list[tuple[int, str, str]]) -> str:
        row, column = [], 0
        for start, drawn, label in brackets:
            row += [" " * (start - column), self(drawn, label)]
            column = start + text_width(drawn)
        return "".join(row)
