"""The score of an approach that types spans it is given: an accuracy, and not an F1 of finding entities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .nested_ner.scoring import EntityLike, score_entities

PAPER_F1 = (
    "paper_f1 = 2a/(1+a) is what SNG's manuscript calls F1, from the accuracy a: the gold spans are given, so it sets "
    "recall to 1. It says nothing about finding entities."
)


def score_typing(
    predictions: Iterable[Iterable[EntityLike]],
    references: Iterable[Iterable[EntityLike]],
    labels: Iterable[str] | None = None,
) -> dict[str, Any]:
    """How many of the gold entities got their label, when the model was told their spans.

    Returns:
        `typing_accuracy`, its counts `correct` and `support`, `per_type` with the same three for each label, and
        `paper_f1` (see `PAPER_F1`). A span with two gold labels gets one, so that one of the two is wrong.

    Example:
        >>> score_typing([[(0, 1, "PER"), (2, 3, "PER")]], [[(0, 1, "PER"), (2, 3, "ORG")]])["typing_accuracy"]
        0.5
    """
    scores = score_entities(predictions, references, labels)
    accuracy = scores["recall"]  # correct / gold
    return {
        **_accuracy(scores),
        "paper_f1": 2 * accuracy / (1 + accuracy),
        "per_type": {label: _accuracy(row) for label, row in scores["per_type"].items()},
    }


def _accuracy(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"typing_accuracy": row["recall"], "support": row["support"], "correct": row["correct"]}


def format_typing_scores(scores: Mapping[str, Any]) -> str:
    """A table of what `score_typing` returns."""
    rows = [*scores["per_type"].items(), ("all", scores)]
    width = max(6, *(len(str(label)) for label, _ in rows))
    lines = [f"{'':<{width}}  typing_accuracy  support  correct"]
    for label, row in rows:
        lines.append(f"{label:<{width}}  {row['typing_accuracy']:>15.4f}  {row['support']:>7}  {row['correct']:>7}")
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join([*lines, f"paper_f1: {scores['paper_f1']:.4f}", f"  ({PAPER_F1})"])
