"""Nested entities as HTML: the text as it is, and under each of its lines a bar for every entity, with its label.

The browser wraps the lines. Every entity is one `<mark>` around its text (several, if it crosses another one), so that
text can be selected and copied, pointing at a bar shows its score, and a screen reader reads each label before its
entity. No script is needed, and nothing is loaded.

How it is made: a bar is a background that begins below (or above) the letters, as far away as its lane says. Inline
padding makes no room for it; the `.run` around a cluster of entities does, by a taller line, and `.words` in it moves
the letters back to where the rest of the line has them. Labels are `::before`, and so no part of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .colours import INK, PALETTE, PAPER, STYLES, Shades, shades, style_of
from .layout import Line, Mark, Piece, lay_out
from .markup import Html, tag
from .widths import print_width, printed_width

EM = 1000  # the layout counts in thousandths of one
# Nothing may be loaded, from anywhere: what a page needs is in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
THEMES = ("auto", "light", "dark")
STYLE = Path(__file__).with_name("view.css")


def html_view(text: str, marks: Sequence[Mark], colours: Mapping[str, int], theme: str = "auto") -> Html:
    """The view without its style sheet; `colours` are the places of labels in the palette."""
    number = f"{len(marks):,} {'entity' if len(marks) == 1 else 'entities'}"
    lines = [
        _line(line, colours)
        for line in lay_out(text, marks, measure=print_width, label_width=lambda m: label_width(m.name, m.stands_out))
    ]
    return tag("div", *lines, class_="nested-ner", role="figure", aria_label=number, data_theme=theme)


def colour_class(place: int) -> str:
    """The classes of a label's colour; `line`, `fill` and `label` are its shades in the style sheet."""
    return f"c{place % len(PALETTE)} {style_of(place)}"


def style_sheet(scope: str = ".nested-ner", themes: Iterable[str] = THEMES) -> str:
    """The style sheet of views, and of all inside `scope` that has the classes of a colour."""
    rules = []
    for theme in themes:
        if theme == "auto":
            rules += [_theme("light", scope), f"@media (prefers-color-scheme: dark) {{\n{_theme('dark', scope)}\n}}"]
        else:
            rules.append(_theme(theme, f'{scope}[data-theme="{theme}"]'))
    stripes = "repeating-linear-gradient(135deg, var(--fill) 0 5px, transparent 5px 8px)"
    bars = (
        f"{scope} .{STYLES[0]} {{ --bar: linear-gradient(var(--fill), var(--fill)); }}",
        f"{scope} .{STYLES[1]} {{ --bar: {stripes}; }}",
        f"{scope} .{STYLES[2]} {{ --bar: linear-gradient(transparent 0 0); }}",
    )
    return "\n".join([*rules, *bars, STYLE.read_text(encoding="utf-8")])


def page(title: str, views: Iterable[Html]) -> Html:
    """A whole page of views."""
    around = "body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--paper); color: var(--ink); }"
    style = style_sheet(":root", ["auto"]) + around
    body = tag("body", tag("main", *views))
    return Html("<!doctype html>\n" + tag("html", head(title, style), body, lang="en") + "\n")


def head(title: str, style: str) -> Html:
    """The head of a page that loads nothing."""
    policy = Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><link rel="icon" href="data:,">')
    view = Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">')
    return tag("head", view, policy, tag("title", title), tag("style", Html(style)))


def _theme(theme: str, scope: str) -> str:
    rows = [f"{scope} {{ color-scheme: {theme}; --paper: {PAPER[theme]}; --ink: {INK[theme]}; }}"]
    for place in range(len(PALETTE)):
        shade: Shades = shades(place, theme)
        rows.append(f"{scope} .c{place} {{ --edge: {shade.line}; --fill: {shade.fill}; --label: {shade.ink}; }}")
    return "\n".join(rows)


def _line(line: Line, colours: Mapping[str, int]) -> Html:
    """One line of the text: what lies between its entities, and clusters of those that touch each other."""
    parts: list[Html | str] = []
    position = line.start
    for pieces in _clusters(line.pieces):
        first, last = min(p.first for p in pieces), max(p.last for p in pieces)
        parts += [_text(line, position, first), _cluster(line, pieces, first, last, colours)]
        position = last
    parts.append(_text(line, position, line.end))
    return tag("div", *parts, class_="line", dir="auto")


def _text(line: Line, first: int, last: int) -> str:
    """Characters of a line; its line break is one of them, so that a copy has it."""
    return "".join(cell.shown for cell in line.cells[first - line.start : last - line.start])


def _clusters(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces that overlap, directly or by way of others, from left to right; in each the longest first."""
    clusters: list[list[Piece]] = []
    reached = -1
    for piece in sorted(pieces, key=lambda p: (p.first, -p.last, -p.lane, p.mark.label)):
        if piece.first >= reached:
            clusters.append([])
        clusters[-1].append(piece)
        reached = max(reached, piece.last)
    return clusters


def _cluster(line: Line, pieces: list[Piece], first: int, last: int, colours: Mapping[str, int]) -> Html:
    """Elements inside each other; one that crosses another is ended with it and taken up again."""
    places = sorted({place for piece in pieces for place in (piece.first, piece.last)})
    waiting = list(reversed(pieces))
    opened: list[tuple[Piece, bool, list[Html | str]]] = []  # an entity, whether it was taken up again, what is in it
    whole: list[Html | str] = []

    def close() -> tuple[Piece, bool]:
        piece, again, inside = opened.pop()
        (opened[-1][2] if opened else whole).append(_mark(line, piece, again, inside, colours))
        return piece, again

    for place, following in zip(places, [*places[1:], last], strict=True):
        crossed = []
        while any(piece.last == place for piece, *_ in opened):
            piece, _ = close()
            if piece.last != place:
                crossed.append(piece)
        opened += [(piece, True, []) for piece in reversed(crossed)]
        while waiting and waiting[-1].first == place:
            opened.append((waiting.pop(), False, []))
        if place < following:
            opened[-1][2].append(_text(line, place, following))
    lanes = [max((p.lane + 1 for p in pieces if p.mark.above == above), default=0) for above in (True, False)]
    return tag("span", tag("span", *whole, class_="words"), class_="run", style=f"--u:{lanes[0]};--d:{lanes[1]}")


def _mark(line: Line, piece: Piece, again: bool, inside: Sequence[Html | str], colours: Mapping[str, int]) -> Html:
    mark, style, label = piece.mark, f"--n:{piece.lane}", None
    if not again:
        label = mark.name if piece.begins else f"… {mark.name}"
        whole = piece.begins and piece.ends
        if more := piece.more if whole else max(label_width(label, mark.stands_out) - (piece.right - piece.left), 0):
            style += f";--more:{more / EM:.2f}em"
    states = {"up": mark.above, "out": mark.stands_out, "rest": not piece.begins}
    kinds = [colour_class(colours[mark.label]), *(name for name, holds in states.items() if holds)]
    return tag("mark", *inside, class_=" ".join(kinds), style=style, data_label=label, title=explain(mark))


def label_width(name: str, bold: bool = False) -> int:
    """How wide a label is, with the rim of its bar."""
    return round((0.79 if bold else 0.7) * printed_width(name) + 0.6 * EM)


def explain(mark: Mark) -> str:
    """What there is to say of an entity: label, kind of mention, score."""
    parts = [mark.name, mark.mention, None if mark.score is None else f"{mark.score:.2f}"]
    return ", ".join(part for part in parts if part)
