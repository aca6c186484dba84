"""What the page shows of a text: a view for each model, what only one of them finds, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..harmless import harmless
from ..rendering.colours import places
from ..rendering.html import html_view, style_sheet
from ..rendering.layout import Mark
from ..rendering.markup import Html, tag

PAGE = 4000  # characters of a text that are shown at once
HEAD = ["text", "label", "mention", "score", "start", "end"]
WIDTHS: list[str | int] = ["190px", "125px", "85px", "65px", "65px", "65px", "180px"]  # phones show text, label
Entities = Sequence[Mapping[str, Any]]


def page_bounds(text: str, size: int = PAGE) -> list[tuple[int, int]]:
    """The parts `[start, end)` of a text that are shown at once: cut at a line's end, a space, or where they must."""
    bounds, start = [], 0
    while len(text) - start > size:
        middle, end = start + size // 2, start + size
        end = next((p + 1 for p in (text.rfind(mark, middle, end) for mark in ("\n", " ")) if p >= 0), end)
        bounds.append((start, end))
        start = end
    return [*bounds, (start, len(text))]


def views(text: str, found: Mapping[str, Entities], labels: Sequence[str], bounds: tuple[int, int]) -> Html:
    """The part of the text in `bounds`, once for each model; what only one of two finds stands out."""
    keys = [{_key(entity) for entity in entities} for entities in found.values()]
    common = set.intersection(*keys) if keys else set()
    first, last = bounds
    boxes = []
    for name, entities in found.items():
        marks = [
            Mark(
                max(e["start"], first) - first, min(e["end"], last) - first, e["entity_group"], e["score"],
                e.get("mention"), _key(e) not in common, "" if _key(e) in common else "✱",
            )
            for e in entities
            if e["start"] < last and e["end"] > first
        ]  # fmt: skip
        colours = places((mark.label for mark in marks), labels)
        count = f"{len(entities):,} {'entity' if len(entities) == 1 else 'entities'}"
        alone = sum(_key(entity) not in common for entity in entities)
        said = f"{name}: {count}" + (f", {alone:,} found by it alone (✱)" if len(found) > 1 else "")
        boxes.append(tag("section", tag("p", said, class_="said"), html_view(text[first:last], marks, colours)))
    shell = (
        ".views { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }"
    )
    more = " .views .nested-ner { border: 1px solid color-mix(in srgb, var(--ink) 18%, var(--paper)); }"
    style = tag("style", Html(style_sheet(themes=["auto"]) + shell + more))
    return Html(style + tag("div", *boxes, class_="views"))


def rows(found: Mapping[str, Entities], bounds: tuple[int, int]) -> list[list[Any]]:
    """The entities that begin in `bounds`, for the table; of several models each names those that find it."""
    first, last = bounds
    finders: dict[tuple, list[str]] = {}
    table: dict[tuple, list[Any]] = {}
    for name, entities in found.items():
        for e in entities:
            if first <= e["start"] < last:
                said = (harmless(part, keep="\n\t") for part in (e["word"], e["entity_group"], e.get("mention", "")))
                row = [*said, round(e["score"], 2), e["start"], e["end"]]
                finders.setdefault(_key(e), []).append(name)
                table.setdefault(_key(e), row)
    ordered = sorted(table, key=lambda key: (key[0], -key[1], key[2]))
    return [[*table[key], " + ".join(finders[key])] if len(found) > 1 else table[key] for key in ordered]


def _key(entity: Mapping[str, Any]) -> tuple[int, int, str]:
    return entity["start"], entity["end"], entity["entity_group"]
