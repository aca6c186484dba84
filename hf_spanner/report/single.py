"""Sections of the page about one system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation.errors import KINDS, NONE
from ..evaluation.groups import BUCKETS, SIZES, TITLES
from ..rendering.markup import Html, join, tag
from . import svg
from .html import card_row, heat, percent, system_class, table, type_name

GROUPS = ("length", "sentence_length", "depth", "nesting", "layer", "unseen")
HUES = {"type": "s3", "boundary": "s1", "spurious": "s4", "missed": "s5"}


def cards(summary: Mapping[str, Any]) -> Html:
    """The headline figures."""
    scores, (low, high) = summary["scores"], summary["f1_interval"]
    rows = [
        ("F1", percent(scores["f1"]), f"{percent(low)} to {percent(high)} in 95 % of resamples"),
        ("Precision", percent(scores["precision"]), f"{scores['correct']:,} of {scores['predicted']:,} predictions"),
        ("Recall", percent(scores["recall"]), f"{scores['correct']:,} of {scores['support']:,} gold entities"),
        ("Macro F1", percent(scores["macro_f1"]), "the mean over types"),
        ("Locate F1", percent(scores["locate_f1"]), "spans alone, types ignored"),
        ("Type F1", percent(scores["type_f1"]), "of the spans that were located"),
    ]
    return card_row(rows)


def types(summary: Mapping[str, Any]) -> Html:
    """Scores by type, and confusion."""
    labels = list(summary["scores"]["per_type"])
    rows = [
        [
            type_name(label, labels),
            *(heat(percent(row[key]), row[key] ** 2 * 0.45) for key in ("precision", "recall", "f1")),
            *(f"{row[key]:,}" for key in ("support", "predicted", "correct")),
        ]
        for label, row in summary["scores"]["per_type"].items()
    ]
    scores = summary["scores"]
    foot = ["all", *(percent(scores[k]) for k in ("precision", "recall", "f1"))]
    foot += [f"{scores[k]:,}" for k in ("support", "predicted", "correct")]
    head = ["", "precision", "recall", "F1", "gold", "predicted", "correct"]
    return tag(
        "div", tag("div", tag("h3", "Scores"), table(head, rows, foot)), tag("div", _confusion(summary)), class_="pair"
    )


def _confusion(summary: Mapping[str, Any]) -> Html:
    labels, matrix = summary["confusion"]["labels"], summary["confusion"]["matrix"]
    if len(labels) < 2:
        return Html()
    rows = []
    for i, counts in enumerate(matrix):
        total = sum(counts) or 1
        cells = [
            tag("td", "", class_="none")
            if not count
            else heat(f"{count:,}", (count / total) ** 0.6 * 0.75, "plain" if i == j else "bad")
            for j, count in enumerate(counts)
        ]
        rows.append([NONE if i == len(labels) - 1 else type_name(labels[i], labels), *cells])
    return join(
        [
            tag("h3", "What is taken for what"),
            table(["gold ↓  predicted →", *labels], rows, class_="confusion"),
            tag("p", "none: no entity at that span. Colour is the share of the row.", class_="soft"),
        ]
    )


def groups(systems: Mapping[str, Mapping[str, Any]]) -> Html:
    """Bars of F1 by group, for one system or several."""
    first = next(iter(systems.values()))
    figures = []
    for name in GROUPS:
        if name not in first["groups"]:
            continue
        groups = list(dict.fromkeys(group for s in systems.values() for group in s["groups"][name]))
        rows = []
        for group in groups:
            members = [s["groups"][name].get(group) for s in systems.values()]
            support = max(row["support"] for row in members if row)
            there = any(row and (row["support"] or row["predicted"]) for row in members)
            if there:
                values = [row["f1"] if row and (row["support"] or row["predicted"]) else None for row in members]
                rows.append((group, values, f"{support:,} gold"))
        chart = svg.bars(f"F1 by {name}", rows, list(systems))
        figures.append(tag("figure", tag("figcaption", TITLES[name]), chart))
    keys = [
        tag("span", tag("i", class_=f"swatch {system_class(i)}"), f" {name}", class_="key")
        for i, name in enumerate(systems)
    ]
    buckets = _buckets(first) if len(systems) == 1 else Html()
    legend = tag("p", *keys, class_="keys") if len(systems) > 1 else tag("p", "F1 of each group.", class_="soft")
    return join([legend, tag("div", *figures, class_="grid"), buckets])


def _buckets(summary: Mapping[str, Any]) -> Html:
    """Table of F1 in the buckets of Ji et al. (2022)."""
    rows = []
    for name in (name for name in BUCKETS if name in summary["groups"]):
        cells = []
        for size in SIZES:
            row = summary["groups"][name][size]
            if row["support"] or row["predicted"]:
                cells.append(
                    heat(join([percent(row["f1"]), " ", tag("small", f"{row['support']:,}")]), row["f1"] ** 2 * 0.45)
                )
            else:
                cells.append(tag("td", "–", class_="none"))
        rows.append([TITLES[name], *cells])
    head = ["F1 and gold entities", *SIZES]
    return tag("div", tag("h3", "Buckets"), table(head, rows), style="margin-top:1.4rem")


def error_kinds(summary: Mapping[str, Any]) -> Html:
    """How many errors there are of each kind."""
    errors = summary["errors"]
    parts = []
    for side, name in (("wrong", "Wrong predictions"), ("missed", "Missed gold entities")):
        counts = errors[side]
        named = {f"{kind}: {KINDS[kind]}": count for kind, count in counts.items()}
        total = tag("small", f" {sum(counts.values()):,}")
        parts.append(tag("h3", name, total))
        parts.append(svg.stacked(name, named, [HUES[kind] for kind in counts]))
    boundary, of_type = percent(errors["boundary_error_rate"]), percent(errors["type_error_rate"])
    rates = f"BE-Rate {boundary} %, TE-Rate {of_type} %: wrong predictions of the kind as a share of all errors."
    return join([*parts, tag("p", rates, class_="soft")])


def calibration(summary: Mapping[str, Any]) -> Html:
    """The reliability curve."""
    result = summary["calibration"]
    if result is None:
        return Html()
    rows = [
        [f"{row['low']:.1f} to {row['high']:.1f}", f"{row['count']:,}", f"{row['score']:.2f}", percent(row["correct"])]
        for row in result["bins"]
        if row["count"]
    ]
    text = (
        f"ECE {percent(result['ece'])} %. On the dashed line a score means what it says; below it the model is too "
        "sure of itself. The bars count the predictions."
    )
    chart = tag("figure", svg.reliability("Reliability of scores", result["bins"]), class_="fit")
    side = tag("div", table(["score", "predictions", "mean score", "% correct"], rows))
    return join([tag("p", text, class_="soft"), tag("div", chart, side, class_="pair")])
