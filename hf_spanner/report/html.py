"""HTML from strings: what is text is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import Any

from ..harmless import harmless

COLOURS = 12  # hues of the style sheet: .c0 to .c11


class Html(str):
    """A string that is HTML already."""


def escape(value: Any) -> Html:
    """Text as HTML, quotes included, nothing in it that would turn the page's text; what is HTML stays as it is."""
    return value if isinstance(value, Html) else Html(_escape(harmless(value, keep="\n\t"), quote=True))


def join(parts: Iterable[Any], between: str = "") -> Html:
    return Html(between.join(escape(part) for part in parts))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """`tag("td", "a < b", class_="x")` → `<td class="x">a &lt; b</td>`. Attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(children)}</{name}>")


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
    return tag("div", tag("table", *parts, **attributes), class_="scroll")


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


def hue(label: str, labels: Sequence[str]) -> str:
    """The class of a type's colour: by its place among the types, the last colour for one that is not among them."""
    return f"c{labels.index(label) % COLOURS if label in labels else COLOURS - 1}"


def type_name(label: str, labels: Sequence[str]) -> Html:
    """A type's name in its colour."""
    return tag("span", label, class_=f"type {hue(label, labels)}")
