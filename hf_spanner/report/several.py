"""Sections of the page about several systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.groups import BUCKETS
from ..rendering.markup import Html, join, tag
from .html import heat, percent, scroll, signed, system_class, table, type_name
from .single import GROUPS


def verdict(comparison: Mapping[str, Any]) -> Html:
    """Scores, differences and tests, and what they say."""
    baseline = comparison["baseline"]
    several = len(comparison["tests"]) > 1
    head = ["", "precision", "recall", "F1", "95 % interval", f"Δ to {baseline}", "95 % of Δ"]
    head += ["p, randomisation", "p, bootstrap", *(["p, Holm"] if several else [])]
    rows = []
    for i, (name, summary) in enumerate(comparison["systems"].items()):
        scores, test = summary["scores"], comparison["tests"].get(name)
        low, high = summary["f1_interval"]
        row: list[str] = [join([tag("i", class_=f"swatch {system_class(i)}"), f" {name}"])]
        row += [percent(scores["precision"]), percent(scores["recall"]), tag("td", tag("b", percent(scores["f1"], 2)))]
        row.append(f"{percent(low)} – {percent(high)}")
        if test is None:
            row += ["", "", "", "", *([""] if several else [])]
        else:
            below, above = test["interval"]
            row += [_difference(test["difference"], 0.05, 2), f"{signed(below)} to {signed(above)}"]
            row += [_p(test["p_randomisation"]), _p(test["p_bootstrap"]), *([_p(test["p_holm"])] if several else [])]
        rows.append(row)
    return join([table(head, rows), *(tag("p", sentence) for sentence in verdicts(comparison))])


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """One sentence for each system that is held against the baseline."""
    result, baseline = [], comparison["baseline"]
    for name, test in comparison["tests"].items():
        # One run of each: by sentences that change sides. Several: by runs and sentences drawn anew.
        several_runs = "runs" in comparison["systems"][name]
        p = test.get("p_holm", test["p_bootstrap" if several_runs else "p_randomisation"])
        size = f"{abs(100 * test['difference']):.2f} points of F1"
        if p < 0.05:
            better = "better" if test["difference"] > 0 else "worse"
            result.append(f"{name} is {better} than {baseline} by {size}; chance hardly explains it (p = {_p(p)}).")
        else:
            result.append(f"{name} and {baseline} differ by {size}, which chance may well explain (p = {_p(p)}).")
    return result


def _p(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _difference(value: float | None, full: float, digits: int = 1, good: bool = True) -> Html:
    """A cell of a heat map; `good` says whether more is better."""
    if value is None:
        return tag("td", "–", class_="none")
    return heat(signed(value, digits), abs(value) / full * 0.8, "good" if (value > 0) == good else "bad")


def heat_map(comparison: Mapping[str, Any]) -> Html:
    """Table 6 of Ji et al. (2022): F1 in every bucket less the baseline's; then the same for the other groups."""
    differences = [d["groups"] for d in comparison["differences"].values()]

    def columns(*names: str) -> list[tuple[str, str]]:
        pairs = ((name, group) for name in names for groups in differences for group in groups.get(name, ()))
        return [(n, g) for n, g in dict.fromkeys(pairs) if any(d[n].get(g) is not None for d in differences)]

    baseline = comparison["baseline"]
    text = f"Points of F1 above (blue) or below (orange) {baseline}, by bucket (Table 6 of Ji et al., 2022)."
    others = [_difference_table(comparison, columns(name)) for name in GROUPS if columns(name)]
    return join(
        [
            tag("p", text, class_="soft"),
            _difference_table(comparison, columns(*BUCKETS)),
            tag("div", *others, class_="pair"),
        ]
    )


def _difference_table(comparison: Mapping[str, Any], columns: Sequence[tuple[str, str]]) -> Html:
    names = list(dict.fromkeys(name for name, _ in columns))
    widths = Counter(name for name, _ in columns)
    first = next(iter(comparison["systems"].values()))
    over = [
        tag("th", ""),
        *(tag("th", name, colspan=widths[name], class_="rule", style="text-align:center") for name in names),
    ]
    under = [tag("th", ""), *(tag("th", group, style="text-align:center") for _, group in columns)]
    support = [first["groups"][name].get(group, {"support": 0})["support"] for name, group in columns]
    rows = [
        tag("tr", tag("th", system, scope="row"), *(_difference(d["groups"][n].get(g), 0.15) for n, g in columns))
        for system, d in comparison["differences"].items()
    ]
    rows.append(
        tag(
            "tr", tag("th", tag("small", "gold")), *(tag("td", tag("small", f"{n:,}"), class_="none") for n in support)
        )
    )
    return scroll(tag("table", tag("thead", tag("tr", *over), tag("tr", *under)), tag("tbody", *rows)))


def rates(comparison: Mapping[str, Any]) -> Html:
    """Table 7 of Ji et al. (2022), with the counts behind the rates."""
    rows = []
    for name, summary in comparison["systems"].items():
        errors, other = summary["errors"], comparison["differences"].get(name)
        row = [name]
        for rate in ("boundary_error_rate", "type_error_rate"):
            row.append(f"{percent(errors[rate])} %")
            row.append(_difference(other["errors"][rate], 0.1, good=False) if other else "")
        row += [f"{errors['wrong'][kind]:,}" for kind in ("boundary", "type", "spurious")]
        row += [f"{errors['missed'][kind]:,}" for kind in ("boundary", "type", "missed")]
        rows.append(row)
    head = [
        "",
        "BE-Rate",
        "Δ",
        "TE-Rate",
        "Δ",
        "wrong: boundary",
        "type",
        "spurious",
        "missed: boundary",
        "type",
        "missed",
    ]
    text = "Shares of a system's own errors (Table 7 of Ji et al., 2022): one with fewer can have higher rates."
    return join([table(head, rows), tag("p", text, class_="soft")])


def types_compared(systems: Mapping[str, Mapping[str, Any]], labels: Sequence[str]) -> Html:
    """F1 by type."""
    baseline, *others = systems.values()
    empty = {"f1": 0.0, "support": 0}
    rows = []
    for label in labels:
        base = baseline["scores"]["per_type"].get(label, empty)
        row: list[str] = [type_name(label, labels), f"{base['support']:,}", percent(base["f1"])]
        for other in others:
            f1 = other["scores"]["per_type"].get(label, empty)["f1"]
            row += [percent(f1), _difference(f1 - base["f1"], 0.15)]
        rows.append(row)
    names = list(systems)
    head = ["F1", "gold", names[0], *(cell for name in names[1:] for cell in (name, "Δ"))]
    return table(head, rows)
