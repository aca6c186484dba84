"""Nested entities as SVG, for papers and slides: the text in Helvetica, and under its lines a lane for every depth.

A word is a `<text>` of its own with the width that Helvetica gives it, and so is a label, so that bars stay under
their words and labels in their bars whatever font the reader's machine has instead. Words of scripts that run from
right to left are put in that order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .colours import INK, PAPER, shades, style_of
from .html import explain
from .layout import Line, Mark, Piece, lay_out
from .markup import Html, join, tag
from .widths import print_width, printed_width

EM = 1000  # the unit of the layout, in thousandths
SIZE, SMALL = 16, 11  # of the letters, and of labels, in pixels
ASCENT, DESCENT, LANE, BAR, GAP = 14, 6, 17, 14, 6
INSET = 4  # left of a label in its bar
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


class Run(NamedTuple):
    """Neighbouring cells `[first, last)` of a line that are shown as one, and where they stand in print."""

    first: int
    last: int
    left: float
    right: float
    room: float  # of its width, what is there for a label: after the letters
    backwards: bool  # from right to left


def svg_view(
    text: str, marks: Sequence[Mark], colours: Mapping[str, int], width: int | None = None, theme: str = "auto"
) -> Html:
    """The picture; `width` is in pixels, 640 if not given, and less where the text is short."""
    most = max(round((width or 640) * EM / SIZE), EM)
    first = "dark" if theme == "dark" else "light"
    lines = lay_out(text, marks, most, print_width, lambda mark: _label_width(mark.name), _extent)
    right = max((_extent(piece)[1] for line in lines for piece in line.pieces), default=0)
    right = max([right, *(line.cells[-1].right for line in lines if line.cells)])
    parts: list[Html] = []
    y = float(GAP)
    for line in lines:
        y += line.lanes(above=True) * LANE
        parts.append(_line(line, right, y, colours, first))
        y += ASCENT + DESCENT + line.lanes() * LANE + GAP
    wide = _px(right) + 2 * GAP
    number = f"{len(marks):,} {'entity' if len(marks) == 1 else 'entities'} in a text"
    paper = tag("rect", class_="paper", width="100%", height="100%", fill=PAPER["dark"] if theme == "dark" else "none")
    used = sorted({colours[mark.label] for mark in marks})
    return tag(
        "svg", tag("title", number), _definitions(used, theme), paper,
        tag("g", *parts, transform=f"translate({GAP} 0)"), xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide:g} {y:g}", width=f"{wide:g}", height=f"{y:g}", role="img",
        font_family=FONT, font_size=SIZE,        fill=INK[first],
    )  # fmt: skip


def _px(units: float) -> float:
    return round(units * SIZE / EM, 2)


def _label_width(name: str) -> int:
    """How wide a label is, with the rim of its bar, in units of the layout."""
    return round((printed_width(name) * SMALL + 2 * INSET * EM) / SIZE)


def _extent(piece: Piece) -> tuple[int, int]:
    """A piece and its label, which may be wider where a line break cuts an entity."""
    return piece.left, max(piece.right, piece.left + _label_width(_name(piece)))


def _name(piece: Piece) -> str:
    return piece.mark.name if piece.begins else f"… {piece.mark.name}"


def _definitions(used: Sequence[int], theme: str) -> Html:
    """Stripes for the labels that have them, and, where the theme is the reader's, the colours of the dark one."""
    first = "dark" if theme == "dark" else "light"
    patterns = [
        tag(
            "pattern",
            tag("rect", width=5, height=8, fill=shades(place, first).fill, class_=f"f{place}"),
            id=f"stripes{place}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        )  # fmt: skip
        for place in used
        if style_of(place) == "striped"
    ]
    rules = [f".paper {{ fill: {PAPER['dark']}; }} svg {{ fill: {INK['dark']}; }} .on {{ fill: {PAPER['dark']}; }}"]
    for place in used:
        shade = shades(place, "dark")
        named = (("f", shade.fill), ("l", shade.line), ("t", shade.ink))
        rules += [f".{letter}{place} {{ fill: {colour}; }}" for letter, colour in named]
    dark = tag("style", Html("@media (prefers-color-scheme: dark) { " + " ".join(rules) + " }"))
    return join([tag("defs", *patterns) if patterns else "", dark if theme == "auto" else ""])


def _line(line: Line, right: float, y: float, colours: Mapping[str, int], theme: str) -> Html:
    """One line of the text, its letters' tops at `y`, with the bars above and below."""
    runs = _runs(line, right)
    words = [
        tag(
            "text",
            "".join(cell.shown for cell in line.cells[run.first : run.last]),
            x=f"{_px(run.left + run.room * run.backwards):g}",
            y=f"{y + ASCENT:g}",
            textLength=f"{_px(run.right - run.left - run.room):g}",
            lengthAdjust="spacingAndGlyphs",
            direction="rtl" if run.backwards else None,
            text_anchor="end" if run.backwards else None,
        )  # fmt: skip
        for run in runs
        if run.right - run.left > run.room and not line.cells[run.first].is_space
    ]
    backwards = _direction("".join(cell.shown for cell in line.cells)) == -1
    bars = (_bar(line, piece, runs, backwards, y, colours[piece.mark.label], theme) for piece in line.pieces)
    return tag("g", *words, *bars)


def _bar(line: Line, piece: Piece, runs: Sequence[Run], backwards: bool, y: float, place: int, theme: str) -> Html:
    """A piece's bar with its label; where words are put in another order it has several parts."""
    mark, shade = piece.mark, shades(place, theme)
    top = y - (piece.lane + 1) * LANE if mark.above else y + ASCENT + DESCENT + piece.lane * LANE
    filling = {
        "solid": (shade.fill, f"f{place}"),
        "striped": (f"url(#stripes{place})", None),
        "hollow": ("none", None),
    }
    fill, kind = (shade.ink, f"t{place}") if mark.stands_out else filling[style_of(place)]
    spans = _spans(line, piece, runs)
    parts = []
    for left, right in spans:
        across = {"x": f"{_px(left):g}", "width": f"{max(_px(right - left), 1):g}"}
        parts.append(tag("rect", y=f"{top:g}", height=BAR, fill=fill, class_=kind, **across))
        parts.append(tag("rect", y=f"{top:g}", height=2, fill=shade.line, class_=f"l{place}", **across))
    left, right = spans[0][0], spans[-1][1]
    if piece.begins:
        x = _px(right) - 2.5 if backwards else _px(left)
        parts.append(tag("rect", x=f"{x:g}", y=f"{top:g}", width=2.5, height=BAR, fill=shade.line, class_=f"l{place}"))
    x = _px(right) - INSET if backwards else _px(left) + INSET
    ink, kind = (PAPER[theme], "on") if mark.stands_out else (shade.ink, f"t{place}")
    anchor = "end" if backwards else None
    place_of = {"x": f"{x:g}", "y": f"{top + 11:g}", "text_anchor": anchor}
    if room := printed_width(name := _name(piece)):
        place_of |= {"textLength": f"{room * SMALL / EM:.4g}", "lengthAdjust": "spacingAndGlyphs"}
        parts.append(tag("text", name, font_size=SMALL, fill=ink, class_=kind, **place_of))
    return tag("g", tag("title", explain(mark)), *parts)


# ------------------------------------------------------------------------------------------- from right to left, too


def _runs(line: Line, right: float) -> list[Run]:
    """The words and spaces of a line, from left to right as they are seen."""
    bounds: list[tuple[int, int]] = []
    for index, cell in enumerate(line.cells):
        previous = line.cells[index - 1]
        if bounds and previous.is_space == cell.is_space and not previous.room:
            bounds[-1] = (bounds[-1][0], index + 1)
        else:
            bounds.append((index, index + 1))
    ways = [_direction("".join(cell.shown for cell in line.cells[first:last])) for first, last in bounds]
    base = next((way for way in ways if way), 1)
    if all(way != -1 for way in ways):  # all from left to right: where the layout has them
        return [
            Run(a, b, line.cells[a].left, line.cells[b - 1].right, line.cells[b - 1].room, False) for a, b in bounds
        ]
    for index, way in enumerate(ways):  # what has no direction goes with its neighbours if they agree
        if not way:
            before = next((w for w in reversed(ways[:index]) if w), base)
            after = next((w for w in ways[index + 1 :] if w), base)
            ways[index] = before if before == after else base
    order: list[int] = []
    index = 0
    while index < len(bounds):  # runs against the line's own direction are turned as a whole
        last = index
        while last < len(bounds) and ways[last] == ways[index]:
            last += 1
        part = range(index, last)
        order += part if ways[index] == base else reversed(part)
        index = last
    if base == -1:
        order.reverse()
    widths = [line.cells[b - 1].right - line.cells[a].left for a, b in bounds]
    x = right - sum(widths) if base == -1 else 0.0
    runs = []
    for index in order:
        first, last = bounds[index]
        runs.append(Run(first, last, x, x + widths[index], line.cells[last - 1].room, ways[index] == -1))
        x += widths[index]
    return runs


def _direction(text: str) -> int:
    """1 from left to right, -1 from right to left, 0 if it goes with what is around it."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return 1 if kind == "L" else -1
    return 0


def _spans(line: Line, piece: Piece, runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Where a piece is seen, from left to right; neighbouring parts are one."""
    first, last = piece.first - line.start, piece.last - line.start
    spans: list[tuple[float, float]] = []
    for run in sorted(runs, key=lambda r: r.left):
        a, b = max(first, run.first), min(last, run.last)
        if a >= b:
            continue
        origin = line.cells[run.first].left
        left, right = line.cells[a].left - origin, line.cells[b - 1].right - origin
        span = (run.right - right, run.right - left) if run.backwards else (run.left + left, run.left + right)
        if spans and spans[-1][1] >= span[0] - 1:
            span = (spans.pop()[0], span[1])
        spans.append(span)
    return spans
