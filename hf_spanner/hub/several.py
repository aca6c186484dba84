"""Several trainings of one kind, with other seeds or on other parts of the data: their mean and spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

SUMMARY = "several.json"
SCORES = ("f1", "precision", "recall", "typing_accuracy")


def summarise(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The scores of each training by split, their means and standard deviations, and the best on validation data (the
    first where there is none: test data chooses nothing)."""
    runs = {
        name: {
            split: {key: scores[key] for key in SCORES if key in scores} for split, scores in record["results"].items()
        }
        for name, record in records.items()
    }
    first = next(iter(runs.values()))
    columns = {
        split: {key: [run[split][key] for run in runs.values()] for key in scores} for split, scores in first.items()
    }
    return {
        "runs": runs,
        "mean": {split: {key: statistics.mean(row) for key, row in rows.items()} for split, rows in columns.items()},
        "std": {split: {key: deviation(row) for key, row in rows.items()} for split, rows in columns.items()},
        "best": max(runs, key=lambda name: next(iter(runs[name].get("validation", {0: 0}).values()))),
    }


def deviation(values: list[float]) -> float:
    """The standard deviation of a sample; of one value there is none."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def summary_table(summary: Mapping[str, Any]) -> str:
    """A Markdown table: a row a training, and mean ± standard deviation; in per cent."""
    columns = [(split, key) for split, scores in summary["mean"].items() for key in scores]
    lines = ["| | " + " | ".join(f"{split} {key}" for split, key in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, scores in summary["runs"].items():
        lines.append(f"| {name} | " + " | ".join(f"{100 * scores[split][key]:.1f}" for split, key in columns) + " |")
    cells = [spread(summary, split, key) for split, key in columns]
    return "\n".join([*lines, "| **mean ± sd** | " + " | ".join(cells) + " |"])


def spread(summary: Mapping[str, Any], split: str, key: str) -> str:
    """Mean ± standard deviation, in per cent."""
    return f"{100 * summary['mean'][split][key]:.1f} ± {100 * summary['std'][split][key]:.1f}"


def summary_line(summary: Mapping[str, Any]) -> str:
    """The same in a sentence, for a card."""
    if not summary["mean"]:
        return f"{len(summary['runs'])} runs ({', '.join(summary['runs'])}), with no data to score them on."
    key = next(iter(next(iter(summary["mean"].values()))))
    scores = ", ".join(f"{split} {spread(summary, split, key)}" for split in summary["mean"])
    return f"{key} of {len(summary['runs'])} runs ({', '.join(summary['runs'])}), mean ± standard deviation: {scores}."
