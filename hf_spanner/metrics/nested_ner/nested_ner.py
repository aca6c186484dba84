"""Nested NER as an `evaluate` metric. This folder loads offline by its path and, as a Hub Space, by its name."""

from typing import Any

import datasets
import evaluate

from .scoring import read_entities, score_entities

_DESCRIPTION = """\
Strict entity-level precision, recall and F1 for entities that may nest, cross or share a span: micro, macro and per
type, and the two halves of the task apart: locating the span and typing it.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: one list of entities per sentence, each {"start": int, "end": int, "label": str}, end exclusive.
        Further keys are ignored; the same entity twice counts once.
    references: the gold entities, likewise.
    labels: optional, types that get a row in `per_type` even if they never occur, in this order.
Returns:
    precision, recall, f1: micro, exact boundaries and type.
    support, predicted, correct: the counts behind them.
    macro_precision, macro_recall, macro_f1: means over the types that occur in predictions or references.
    locate_precision, locate_recall, locate_f1: types ignored.
    type_precision, type_recall, type_f1: restricted to correctly located spans.
    per_type: {label: {precision, recall, f1, support, predicted, correct}}.
Examples:
    >>> metric = evaluate.load("nested_ner")  # or the path of this folder
    >>> gold = [[{"start": 0, "end": 5, "label": "PER"}, {"start": 3, "end": 5, "label": "ORG"}]]
    >>> found = [[{"start": 0, "end": 5, "label": "PER"}, {"start": 3, "end": 5, "label": "PER"}]]
    >>> scores = metric.compute(predictions=found, references=gold)
    >>> scores["f1"], scores["locate_f1"], scores["type_f1"]
    (0.5, 1.0, 0.5)
"""


class NestedNer(evaluate.Metric):
    """`score_entities` behind the interface of `evaluate`: `compute`, `add`, `add_batch`, several processes."""

    def _info(self) -> evaluate.MetricInfo:
        # List, not Sequence: a Sequence of dicts comes back as a dict of lists.
        entities = datasets.List(
            {"start": datasets.Value("int64"), "end": datasets.Value("int64"), "label": datasets.Value("string")}
        )
        columns: Any = {"predictions": entities, "references": entities}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(columns),
        )

    # evaluate stores what it is given as Arrow rows and fails on any key beyond the three; models and pipelines add
    # `score` and `word`. So entities are reduced to the three on their way in. (evaluate appends to these docstrings.)

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add the entities of several sentences."""
        predicted, gold = (
            [[{"start": start, "end": end, "label": label} for start, end, label in sentence] for sentence in side]
            for side in read_entities(predictions, references)
        )
        super().add_batch(predictions=predicted, references=gold)

    def add(self, *, prediction: Any = None, reference: Any = None, **combined: Any) -> None:
        """Add the entities of one sentence; `evaluate.combine` says `predictions` and `references` of one, too."""
        one = {"predictions": prediction, "references": reference, **combined}
        self.add_batch(**{name: [side] for name, side in one.items()})

    def _compute(self, predictions: Any, references: Any, labels: Any = None) -> dict[str, Any]:
        return score_entities(predictions, references, labels=labels)
