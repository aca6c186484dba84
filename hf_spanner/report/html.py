"""What pages are made of: tables, cards, cells of heat maps, names in their colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..rendering.entities import join_words
from ..rendering.html import colour_class, html_view
from ..rendering.layout import Mark
from ..rendering.markup import Html, tag


def table(
    head: Sequence[Any], rows: Iterable[Sequence[Any]], foot: Sequence[Any] | None = None, **attributes: Any
) -> Html:
    """A table whose first column names its rows. Cells may be `<td>`s already, or anything that becomes one."""
    parts = [
        tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
        tag("tbody", *(_row(row) for row in rows)),
    ]
    if foot is not None:
        parts.append(tag("tfoot", _row(foot)))
    return scroll(tag("table", *parts, **attributes))


def scroll(inside: Html) -> Html:
    """What may be wider than the page, and is then moved by finger, mouse or arrow keys."""
    return tag("div", inside, class_="scroll", tabindex="0", role="group", aria_label="table")


def _row(row: Sequence[Any]) -> Html:
    name, *cells = row
    done = (cell if isinstance(cell, Html) and cell.startswith("<td") else tag("td", cell) for cell in cells)
    return tag("tr", tag("th", name, scope="row"), *done)


def card_row(rows: Sequence[tuple[str, str, str]]) -> Html:
    """Figures on cards: (what it is, its value, a note) each; the first is the main one."""
    cards = (
        tag("div", name, tag("b", value), tag("small", note), class_="card" if index else "card main")
        for index, (name, value, note) in enumerate(rows)
    )
    return tag("div", *cards, class_="cards")


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f}"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference of shares in points, with its sign; a true minus."""
    if value is None:
        return "–"
    text = f"{100 * value:+.{digits}f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


def heat(text: Any, strength: float, hue: str = "good") -> Html:
    """A cell whose background says how large its value is: `strength` from 0 up, `hue` "good", "bad" or "plain"."""
    return tag("td", text, class_=f"heat {hue}", style=f"--s:{100 * min(max(strength, 0), 0.65):.0f}%")


def sentence_view(words: Sequence[str], marks: Iterable[Mark], labels: Sequence[str]) -> Html:
    """A sentence with entities that count in words, above and below it; `labels` give each type its colour."""
    text, places = join_words(words)
    marks = [mark._replace(start=places[mark.start][0], end=places[mark.end - 1][1]) for mark in marks]
    colours = {mark.label: _place(mark.label, labels) for mark in marks}
    return html_view(text, marks, colours)


def system_class(index: int) -> str:
    """The classes of a system's colour, of several that are compared."""
    return colour_class(index)


def hue(label: str, labels: Sequence[str]) -> str:
    """The classes of a type's colour: by its place among the types, or that after the last if it is not among them."""
    return colour_class(_place(label, labels))


def _place(label: str, labels: Sequence[str]) -> int:
    return labels.index(label) if label in labels else len(labels)


def type_name(label: str, labels: Sequence[str]) -> Html:
    """A type's name in its colour."""
    return tag("span", label, class_=f"type {hue(label, labels)}")
