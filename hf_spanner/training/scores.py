"""The scores of a Trainer's evaluation, from the predictions that it has gathered from batches and processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from transformers.trainer_utils import EvalPrediction

from ..metrics.tasks import score_task
from ..modeling.configuration_nested_ner import NestedNerConfig
from ..modeling.decoding import Entity, resolve_overlaps, tensor_to_entities
from .dataset import NestedNerDataset


class NestedNerMetrics:
    """`compute_metrics` for `transformers.Trainer` itself, with any approach.

    ```python
    >>> data = NestedNerDataset(sentences, tokenizer, model.config)
    >>> trainer = Trainer(
    ...     model=model,
    ...     args=TrainingArguments("out", label_names=["entities"], remove_unused_columns=False),
    ...     train_dataset=NestedNerDataset(others, tokenizer, model.config), eval_dataset=data,
    ...     data_collator=NestedNerCollator(tokenizer.pad_token_id),
    ...     compute_metrics=NestedNerMetrics(model.config, data),
    ... )
    >>> trainer.evaluate()["eval_f1"]
    ```

    A model in evaluation mode that is told the `places` of its windows, as the collator does, answers with
    `predictions (B, P, 6)`: place, start, end, label id and score of each entity. Unlike logits these can be padded,
    gathered and concatenated. (`NestedNerTrainer` does all of this by itself.)

    Args:
        config: the model's.
        data: what is evaluated. With it sentences are scored whole; without it each window by itself, against the
            gold entities that lie in it: the same, unless sentences are longer than `max_subwords` or annotated with
            some labels alone.
    """

    def __init__(self, config: NestedNerConfig, data: NestedNerDataset | None = None):
        self.config, self.data = config, data
        self.found: list[list[Entity]] = []  # the entities of the last evaluation, by sentence (or window)
        self._windows: dict[tuple[int, int], tuple[list[Entity], list[Entity]]] = {}  # found and gold, until scored

    def __call__(self, prediction: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        """Strict scores (of typing, where spans are given); a window that two processes both saw counts once.

        With `compute_result=False` (`batch_eval_metrics`) windows are only kept until the last batch has come.
        """
        for rows, gold in batches(prediction):
            places = rows[:, 0, :2].long().tolist()
            found = tensor_to_entities(rows[..., 2:], self.names, self.config.mentions)
            for place, window, entities in zip(places, found, self.gold(gold), strict=True):
                self._windows[tuple(place)] = (window, entities)
        if not compute_result:
            return {}
        windows, self._windows = self._windows, {}
        if self.data is not None:
            self.found = self.data.merge(
                ((place, found) for place, (found, _) in windows.items()), self.config.overlap
            )
            sentences: Iterable[Any] = self.data.sentences
        else:
            self.found = [resolve_overlaps(found, self.config.overlap) for found, _ in windows.values()]
            sentences = [{"entities": gold} for _, gold in windows.values()]
        scores = score_task(self.config.task, self.found, sentences, self.config.types)
        return {name: value for name, value in scores.items() if isinstance(value, (int, float))}

    @property
    def names(self) -> dict[int, str]:
        return dict(enumerate(self.config.labels))

    def gold(self, rows: torch.Tensor) -> list[list[Entity]]:
        """`(B, E, 3)` = start, end, label id, padded with negative numbers, as entities."""
        scored = torch.nn.functional.pad(rows.double(), (0, 1), value=1.0)
        return tensor_to_entities(scored, self.names, self.config.mentions)


def batches(prediction: EvalPrediction) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Predictions `(B, P, 6)` and gold `(B, E, 3)`: all at once, or by batch (`eval_do_concat_batches=False`)."""
    found, gold = prediction.predictions, prediction.label_ids
    if isinstance(found, list):
        pairs = list(zip(found, gold, strict=True))
    else:
        pairs = [(found, gold)]
    for rows, entities in pairs:
        if isinstance(rows, tuple) or isinstance(entities, tuple) or rows.ndim != 3 or rows.shape[-1] != 6:
            raise ValueError(
                "These are no predictions of entities: give the Trainer a `NestedNerDataset` and the "
                "`NestedNerCollator`, whose batches name their `places`, and its arguments label_names=['entities']."
            )
        yield torch.as_tensor(rows).cpu(), torch.as_tensor(entities).cpu()
