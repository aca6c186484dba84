"""The section about span representations, of one system or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..rendering.markup import Html, join, tag
from . import svg
from .html import table, type_name
from .markdown import REPRESENTATION_ROWS, difference, number, value_at


def representations(systems: Mapping[str, Mapping[str, Any]]) -> Html:
    """Tables 4 and 5 of DSpERT, and the entities' representations on two principal components."""
    described = {name: s["representations"] for name, s in systems.items() if s.get("representations")}
    if not described:
        return Html()
    names, rows = [name or "value" for name in described], []
    for text, path in REPRESENTATION_ROWS:
        values = [value_at(figures, path) for figures in described.values()]
        rows.append([text, *map(number, values), *difference(values)])
    if len(names) == 2:
        names.append("Δ")
    labels = list(next(iter(systems.values()))["scores"]["per_type"])
    figures = []
    for name, figure in described.items():
        pca = figure["pca"]
        chart = svg.scatter("Representations of gold entities", pca["points"], pca["labels"], labels)
        shares = " and ".join(f"{100 * share:.0f} %" for share in pca["shares"])
        there = set(pca["labels"])
        keys = [
            tag("span", svg.key(label, labels), type_name(label, labels), class_="key")
            for label in labels
            if label in there
        ]
        caption = f"{name}: {figure['entities']:,} gold entities" if name else f"{figure['entities']:,} gold entities"
        note = f"Two principal components: {shares} of the variance."
        if figure["out_of_reach"]:
            note += f" {figure['out_of_reach']:,} entities are longer than the span cap and have no representation."
        figures.append(
            tag(
                "figure",
                tag("figcaption", caption),
                chart,
                tag("p", *keys, class_="keys"),
                tag("p", note, class_="soft"),
            )
        )
    text = "Tables 4 and 5 of DSpERT: neighbours are spans whose ends are at most five words from the entity's."
    return join([tag("p", text, class_="soft"), table(["", *names], rows), tag("div", *figures, class_="pair")])
