"""The same tables in Markdown, for a model card, a pull request or the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.groups import BUCKETS, SIZES, TITLES
from ..harmless import harmless

# Tables 4 and 5 of DSpERT: what stands in the row, and where it is found.
REPRESENTATION_ROWS = (
    ("cosine of entity and neighbour, no overlap", ("overlap", "none", "cosine")),
    ("… weak overlap (≤ 0.5)", ("overlap", "weak", "cosine")),
    ("… strong overlap (> 0.5)", ("overlap", "strong", "cosine")),
    ("l2 norm of z", ("norm",)),
    ("cosine within a type", ("within",)),
    ("cosine between types", ("between",)),
    ("cosine of entities and other spans", ("to_negatives",)),
    ("l2 norm of the rows of W", ("weight_norm",)),
    ("absolute cosine of the rows of W", ("weight_cosine",)),
    ("… between types", ("weight_cosine_between",)),
    ("… of types and none", ("weight_cosine_to_none",)),
)

HEADLINE = {
    "precision": "precision",
    "recall": "recall",
    "macro F1": "macro_f1",
    "locate F1": "locate_f1",
    "type F1": "type_f1",
}


def value_at(figures: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """A number inside nested dicts."""
    inside: Any = figures
    for key in path:
        inside = inside[key]
    value: float | None = inside
    return value


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def difference(values: Sequence[float | None]) -> list[str]:
    """Of two values the second less the first, as one more cell; of any other number of values nothing."""
    if len(values) != 2:
        return []
    first, second = values
    return ["–" if first is None or second is None else f"{second - first:+.2f}"]


def points(value: float | None, sign: bool = False) -> str:
    """A share as points of a hundred."""
    if value is None:
        return "–"
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; the first column is to the left, the others to the right."""
    cells = [[harmless(cell, "\n").replace("|", "\\|").replace("\n", " ") for cell in row] for row in [head, *rows]]
    cells.insert(1, ["---", *["---:"] * (len(head) - 1)])
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def report_markdown(title: str, summary: Mapping[str, Any]) -> str:
    """The report on one system as Markdown."""
    scores, errors = summary["scores"], summary["errors"]
    low, high = summary["f1_interval"]
    named = {name: points(scores[key]) for name, key in HEADLINE.items()}
    parts = [
        f"# {title}",
        f"F1 {points(scores['f1'])} ({points(low)} to {points(high)} in 95 % of resamples), "
        + ", ".join(f"{name} {value}" for name, value in named.items())
        + f"; {scores['support']:,} gold entities in {summary['data']['sentences']:,} sentences.",
        *(f"> {note}" for note in summary["notes"]),
        "## Types",
        _score_table(scores["per_type"], scores),
    ]
    for name, rows in summary["groups"].items():
        if name not in BUCKETS:
            parts += [f"## {TITLES[name]}", _score_table(rows)]
    buckets = [
        [name, *(points(_f1(summary["groups"][name][size])) for size in SIZES)]
        for name in BUCKETS
        if name in summary["groups"]
    ]
    parts += ["## Buckets (F1)", table(["", *SIZES], buckets)]
    kinds = [["wrong", *(errors["wrong"].get(k, "–") for k in ("type", "boundary", "spurious", "missed"))]]
    kinds.append(["missed", *(errors["missed"].get(k, "–") for k in ("type", "boundary", "spurious", "missed"))])
    parts += ["## Errors", table(["", "type", "boundary", "spurious", "missed"], kinds), _rates(errors)]
    if summary["calibration"]:
        parts.append(f"Expected calibration error {points(summary['calibration']['ece'])} %.")
    if summary["unseen_density"] is not None:
        parts.append(f"{points(summary['unseen_density'])} % of the words never occur in training.")
    if summary.get("representations"):
        parts += ["## Representations", _representations({"value": summary["representations"]})]
    return "\n\n".join(parts) + "\n"


def comparison_markdown(title: str, comparison: Mapping[str, Any]) -> str:
    """The comparison of several systems as Markdown, in the form of the papers' tables."""
    baseline, systems = comparison["baseline"], comparison["systems"]
    rows = []
    for name, summary in systems.items():
        scores, test = summary["scores"], comparison["tests"].get(name)
        row = [name, *(points(scores[key]) for key in ("precision", "recall", "f1"))]
        if test is None:
            row += ["", "", "", ""]
        else:
            low, high = test["interval"]
            row += [f"{100 * test['difference']:+.2f}", f"{points(low, True)} to {points(high, True)}"]
            row += [f"{test['p_randomisation']:.4f}", f"{test['p_bootstrap']:.4f}"]
        rows.append(row)
    head = ["", "P", "R", "F1", f"Δ to {baseline}", "95 % of Δ", "p randomisation", "p bootstrap"]
    parts = [f"# {title}", table(head, rows)]
    notes = [f"> {name}: {note}" for name, summary in systems.items() for note in summary["notes"]]
    parts += notes
    parts += [f"## F1 less that of {baseline}, by bucket (Table 6 of Ji et al., 2022)"]
    for name in TITLES:
        if name in next(iter(systems.values()))["groups"]:
            parts += [f"### {TITLES[name]}", _difference_table(comparison, name)]
    rates = []
    for name, summary in systems.items():
        other = comparison["differences"].get(name)
        row = [name]
        for rate in ("boundary_error_rate", "type_error_rate"):
            row += [points(summary["errors"][rate]), points(other["errors"][rate], True) if other else ""]
        rates.append(row)
    parts += [
        "## Error rates in % of FP + FN (Table 7 of Ji et al., 2022)",
        table(["", "BE-Rate", "Δ", "TE-Rate", "Δ"], rates),
    ]
    described = {name: s["representations"] for name, s in systems.items() if s.get("representations")}
    if described:
        parts += ["## Representations (Tables 4 and 5 of DSpERT)", _representations(described)]
    alone = ", ".join(f"{name} {len(entities):,}" for name, entities in comparison["only"].items())
    counts = f"All find {comparison['by_all']:,} gold entities, none finds {comparison['by_none']:,}"
    parts.append(f"{counts}; found by one alone: {alone}.")
    return "\n\n".join(parts) + "\n"


def _score_table(rows: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any] | None = None) -> str:
    rows = dict(rows) if total is None else {**rows, "**all**": total}
    keys = ("precision", "recall", "f1")
    cells = [[name, *(points(row[k]) for k in keys), row["support"], row["predicted"]] for name, row in rows.items()]
    return table(["", "P", "R", "F1", "gold", "predicted"], cells)


def _f1(row: Mapping[str, Any]) -> float | None:
    return row["f1"] if row["support"] or row["predicted"] else None


def _rates(errors: Mapping[str, Any]) -> str:
    rates = (points(errors[rate]) for rate in ("boundary_error_rate", "type_error_rate"))
    return "BE-Rate {} %, TE-Rate {} %.".format(*rates)


def _difference_table(comparison: Mapping[str, Any], name: str) -> str:
    first, *_ = comparison["systems"].values()
    groups = list(dict.fromkeys(group for d in comparison["differences"].values() for group in d["groups"][name]))
    base = first["groups"][name]
    rows = [[f"{comparison['baseline']}, F1", *(points(_f1(base[g])) if g in base else "–" for g in groups)]]
    for system, difference in comparison["differences"].items():
        rows.append([system, *(points(difference["groups"][name].get(group), True) for group in groups)])
    return table(["", *groups], rows)


def _representations(described: Mapping[str, Mapping[str, Any]]) -> str:
    """A column for each system, and the difference if there are two."""
    rows = []
    for text, path in REPRESENTATION_ROWS:
        values = [value_at(figures, path) for figures in described.values()]
        rows.append([text, *map(number, values), *difference(values)])
    return table(["", *described, *(["Δ"] if len(described) == 2 else [])], rows)
