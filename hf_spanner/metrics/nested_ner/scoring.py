"""Scores of nested entities as plain set arithmetic: no dependencies, nothing from hf_spanner.

An entity of the whole evaluation is `(sentence, start, end, label)`; its span is the first three. Two sets of those,
predicted and gold, determine every number below, however deep entities nest, cross or share a span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

EntityLike = Mapping[str, Any] | Sequence[Any]
Triple = tuple[int, int, str]  # start, end, label
Place = tuple[int, int, int, str]  # sentence, start, end, label


def score_entities(
    predictions: Iterable[Iterable[EntityLike]],
    references: Iterable[Iterable[EntityLike]],
    labels: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Precision, recall and F1 of predicted entities against gold entities.

    Args:
        predictions: one list of entities per sentence. An entity is `{"start": 0, "end": 2, "label": "PER"}` (further
            keys such as `score` are ignored) or a tuple `(start, end, label, ...)`. The same entity twice counts once.
        references: the gold entities, likewise.
        labels: types that get a row in `per_type` even if they never occur, in this order. Entities of other types
            still count and follow in alphabetical order: nothing is left out of a score.

    Returns:
        - `precision`, `recall`, `f1`: micro and strict, an entity is correct if start, end and label all are;
          with the counts `support` (gold), `predicted` and `correct`.
        - `macro_precision`, `macro_recall`, `macro_f1`: means over the types that occur in either side. `macro_f1` is
          the mean of the types' F1, not the F1 of the means.
        - `per_type`: for each label the six numbers of the first item.
        - `locate_*`: types ignored, is there an entity of any type at this span?
        - `type_*`: restricted to the spans that were located, is the label right?

        A ratio without a denominator (no prediction, no gold) is 0.0.

    Example:
        >>> gold = [[(0, 5, "PER"), (3, 5, "ORG")]]
        >>> scores = score_entities([[(0, 5, "PER"), (3, 5, "PER")]], gold)
        >>> scores["f1"], scores["locate_f1"], scores["type_f1"]
        (0.5, 1.0, 0.5)
    """
    predictions, references = read_entities(predictions, references)
    predicted, gold = _entity_set(predictions), _entity_set(references)
    strict = _compare(predicted, gold)

    per_type = _per_type(predicted, gold, labels)
    occurring = [row for row in per_type.values() if row["support"] or row["predicted"]]
    macro = {
        f"macro_{name}": _ratio(sum(row[name] for row in occurring), len(occurring))
        for name in ("precision", "recall", "f1")
    }

    predicted_spans, gold_spans = {_span(e) for e in predicted}, {_span(e) for e in gold}
    located = predicted_spans & gold_spans
    locate = _compare(predicted_spans, gold_spans)
    typing = _compare({e for e in predicted if _span(e) in located}, {e for e in gold if _span(e) in located})
    halves = {
        f"{half}_{name}": row[name]
        for half, row in (("locate", locate), ("type", typing))
        for name in ("precision", "recall", "f1")
    }
    return {**strict, **macro, **halves, "per_type": per_type}


def read_entities(
    predictions: Iterable[Iterable[EntityLike]], references: Iterable[Iterable[EntityLike]]
) -> tuple[list[list[Triple]], list[list[Triple]]]:
    """Both sides as `(start, end, label)` triples per sentence; a ValueError says what is wrong with them."""
    predictions, references = list(predictions), list(references)
    if len(predictions) != len(references):
        raise ValueError(
            f"Got predictions for {len(predictions)} sentences but references for {len(references)}: "
            "both need one list of entities per sentence, in the same order, empty where there is none."
        )
    predicted, gold = ([[_triple(e) for e in sentence] for sentence in side] for side in (predictions, references))
    return predicted, gold


def _triple(entity: EntityLike) -> Triple:
    try:
        if isinstance(entity, Mapping):
            start, end, label = entity["start"], entity["end"], entity["label"]
        else:
            start, end, label = entity[:3]
        return int(start), int(end), label
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'{entity!r} is not an entity: expected {{"start": int, "end": int, "label": str}} or (start, end, label).'
        ) from error


def _entity_set(sentences: list[list[Triple]]) -> set[Place]:
    return {(number, *triple) for number, sentence in enumerate(sentences) for triple in sentence}


def _span(entity: Place) -> tuple[int, int, int]:
    return entity[:3]  # sentence, start, end


def _per_type(predicted: set[Place], gold: set[Place], labels: Iterable[str] | None) -> dict[str, dict[str, Any]]:
    n_predicted, n_gold, n_correct = (
        Counter(label for *_, label in entities) for entities in (predicted, gold, predicted & gold)
    )
    rows = list(dict.fromkeys(labels or ()))
    rows += sorted((n_predicted.keys() | n_gold.keys()) - set(rows), key=str)
    return {label: scores_of_counts(n_correct[label], n_predicted[label], n_gold[label]) for label in rows}


def _compare(predicted: Set[Any], gold: Set[Any]) -> dict[str, Any]:
    return scores_of_counts(len(predicted & gold), len(predicted), len(gold))


def scores_of_counts(correct: int, predicted: int, support: int) -> dict[str, Any]:
    """Precision, recall and F1 with the counts behind them: correct, predicted and gold entities."""
    return {
        "precision": _ratio(correct, predicted),
        "recall": _ratio(correct, support),
        "f1": _ratio(2 * correct, predicted + support),  # = 2PR / (P + R) without its 0/0
        "support": support,
        "predicted": predicted,
        "correct": correct,
    }


def _ratio(numerator: float, denominator: int) -> float:
    return numerator / denominator if denominator else 0.0
