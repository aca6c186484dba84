"""The score of an approach that types spans it is given: an accuracy, and not an F1 of finding entities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .nested_ner.scoring import EntityLike, read_entities, score_entities

PAPER_F1 = (
    "paper_f1 = 2a/(1+a) is what SNG's manuscript calls F1, from the accuracy a: the gold spans are given, so it sets "
    "recall to 1. It says nothing about finding entities."
)

# An entity that is a part of discontinuous mentions names them in its `mention`, such as `fragment:T3+T5`; one that is
# a mention of its own, too, names "whole" among them.
FRAGMENT, WHOLE = "fragment:", "whole"


def score_typing(
    predictions: Iterable[Iterable[EntityLike]],
    references: Iterable[Iterable[EntityLike]],
    labels: Iterable[str] | None = None,
) -> dict[str, Any]:
    """How many of the gold entities got their label, when the model was told their spans.

    Returns:
        `typing_accuracy`, its counts `correct` and `support`, `per_type` with the same three for each label, and the
        manuscript's `paper_accuracy`, `paper_precision`, `paper_recall` (1) and `paper_f1` (see `PAPER_F1`). A span
        with two gold labels gets one, so that one of the two is wrong.

        Where gold entities are fragments of discontinuous mentions (`mention: "fragment:T3"`, which the brat reader
        writes with `discontinuous="fragments"`), as SNG has CADEC and NEREL, also `discontinuous`: how many such
        mentions there are and how many are `right` in all fragments, with the manuscript's Equations 2 to 4:
        `paper_precision` (right among the continuous mentions), `paper_recall` (the same, over the continuous and the
        wrong discontinuous ones) and `paper_accuracy` (right among all mentions); `paper_f1` is then of precision and
        recall.

    Example:
        >>> score_typing([[(0, 1, "PER"), (2, 3, "PER")]], [[(0, 1, "PER"), (2, 3, "ORG")]])["typing_accuracy"]
        0.5
    """
    found, gold = [list(entities) for entities in predictions], [list(entities) for entities in references]
    scores = score_entities(found, gold, labels)
    accuracy = scores["recall"]  # correct / gold
    return {
        **_accuracy(scores),
        **(
            _with_discontinuous(found, gold)
            or {
                "paper_accuracy": accuracy,
                "paper_precision": accuracy,
                "paper_recall": 1.0,
                "paper_f1": 2 * accuracy / (1 + accuracy),
            }
        ),
        "per_type": {label: _accuracy(row) for label, row in scores["per_type"].items()},
    }


def _with_discontinuous(predictions: list[list[EntityLike]], references: list[list[EntityLike]]) -> dict[str, Any]:
    """The manuscript's figures by mentions; nothing where no mention is discontinuous."""
    continuous = correct = 0
    right: dict[tuple[int, str], bool] = {}  # (sentence, discontinuous mention): whether all its fragments are
    for number, (found, gold, entities) in enumerate(zip(*read_entities(predictions, references), references)):
        for triple, entity in zip(gold, entities, strict=True):
            kind = entity.get("mention") if isinstance(entity, Mapping) else getattr(entity, "mention", None)
            named = isinstance(kind, str) and kind.startswith(FRAGMENT)
            is_right = triple in found
            for part in str(kind).removeprefix(FRAGMENT).split("+") if named else [WHOLE]:
                if part == WHOLE:
                    continuous += 1
                    correct += is_right
                else:
                    right[number, part] = right.get((number, part), True) and is_right
    if not right:
        return {}
    whole, wrong = sum(right.values()), len(right) - sum(right.values())
    precision, recall = correct / max(continuous, 1), correct / max(continuous + wrong, 1)
    return {
        "discontinuous": {"support": len(right), "right": whole},
        "paper_accuracy": (correct + whole) / (continuous + len(right)),
        "paper_precision": precision,
        "paper_recall": recall,
        "paper_f1": 2 * precision * recall / max(precision + recall, 1e-12),
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
    if "discontinuous" in scores:
        lines.append(
            "discontinuous mentions: {support}, all fragments right: {right}".format(**scores["discontinuous"])
        )
        names = ("paper_accuracy", "paper_precision", "paper_recall", "paper_f1")
        return "\n".join([*lines, ", ".join(f"{name} {scores[name]:.4f}" for name in names)])
    return "\n".join([*lines, f"paper_f1: {scores['paper_f1']:.4f}", f"  ({PAPER_F1})"])
