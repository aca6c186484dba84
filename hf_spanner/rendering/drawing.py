"""Nested entities, drawn in one of three formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..harmless import harmless
from ..modeling.decoding import Entity
from .ansi import ansi_view
from .colours import places
from .entities import as_marks
from .html import THEMES, html_view, style_sheet
from .layout import Mark
from .markup import Html, tag
from .svg import svg_view

Text = str | Sequence[str]
Entities = Iterable[Mapping[str, Any] | Entity]
FORMATS = ("html", "svg", "ansi")


def render(
    text: Text,
    entities: Entities,
    format: str = "html",
    *,
    labels: Sequence[str] | None = None,
    theme: str = "auto",
    width: int | None = None,
    color: bool = True,
) -> str:
    """A text with its nested entities, drawn: inner ones nearest to the text.

    Entities may nest to any depth, share a span and cross. What is in texts and labels is shown and never obeyed:
    neither markup nor what would command a terminal or turn a text's direction.

    Args:
        text: any text; or its words, and then entities count in words.
        entities: what the pipeline returns; or, with words, `Entity` tuples.
        format: `"html"`, a piece of a page with its style, to be put anywhere; `"svg"`, a picture for papers;
            `"ansi"`, for terminals.
        labels: a model's labels, in order (`ner.model.config.types`): each has its own colour, in every text the
            same. Otherwise a label's colour follows from its name.
        theme: `"light"`, `"dark"`, or `"auto"`, what the reader has chosen. Terminals have their own.
        width: of a line: in pixels for SVG (640), in columns for terminals (their own). HTML wraps where it stands.
        color: of terminals; without it the drawing is plain text.

    ```python
    >>> text = "the mayor of New York"
    >>> print(render(text, ner(text, mentions=["name", "nominal"]), "ansi", color=False))
    the mayor of New York
                 └─place┘
    └─ person ──────────┘
    ```
    """
    if format not in FORMATS:
        raise ValueError(f"There is no format {format!r}: choose from {', '.join(FORMATS)}.")
    if theme not in THEMES:
        raise ValueError(f"There is no theme {theme!r}: choose from {', '.join(THEMES)}.")
    if width is not None and width < 1:
        raise ValueError(f"width={width} must be at least 1, or None.")
    if format == "html":
        return str(tag("style", Html(style_sheet(themes=[theme]))) + html(text, entities, labels, theme))
    whole, marks, colours = _prepared(text, entities, labels)
    if format == "ansi":
        return ansi_view(whole, marks, colours, width, color)
    return str(svg_view(whole, marks, colours, width, theme))


def html(text: Text, entities: Entities, labels: Sequence[str] | None = None, theme: str = "auto") -> Html:
    """The HTML alone, for a page that has the style sheet already."""
    return html_view(*_prepared(text, entities, labels), theme)


def _prepared(text: Text, entities: Entities, labels: Sequence[str] | None) -> tuple[str, list[Mark], dict[str, int]]:
    """The text, what is drawn on it, and each label's place in the palette."""
    whole, marks = as_marks(text, entities)
    marks = [mark._replace(label=harmless(mark.label)) for mark in marks]
    return whole, marks, places((mark.label for mark in marks), [harmless(label) for label in labels or ()])
