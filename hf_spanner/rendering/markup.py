"""HTML and SVG from strings: what is text is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as _escape
from typing import Any

from ..harmless import harmless


class Html(str):
    """A string that is HTML (or SVG) already."""


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
