"""What a model's task decides: how it is scored, which metric chooses the best, and what its card says it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .given_spans import score_typing
from .nested_ner.scoring import EntityLike, score_entities


class Task(NamedTuple):
    score: Callable[..., dict[str, Any]]
    metric: str  # by which the best checkpoint is chosen
    card_metrics: list[str]  # under the names that the Hub knows
    does: str  # "It ... with 5 labels"


TASKS: Mapping[str, Task] = {
    "finding": Task(
        score_entities, "f1", ["precision", "recall", "f1"], "finds named entities, also those inside others,"
    ),
    "typing": Task(score_typing, "typing_accuracy", ["accuracy"], "types spans that it is given"),
}


def score_task(
    task: str,
    predictions: Sequence[Iterable[EntityLike]],
    sentences: Iterable[Mapping[str, Any]],
    labels: Iterable[str] | None = None,
) -> dict[str, Any]:
    """The scores that suit a task: strict, or of typing alone if the spans were given."""
    return TASKS[task].score(predictions, [sentence["entities"] for sentence in sentences], labels=labels)
