"""How good a model is on annotated sentences: one function for the Trainer, the commands, scripts and users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..metrics.nested_ner.scoring import EntityLike
from ..metrics.tasks import score_task
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .groups import score_groups
from .predicting import predict_sentences


def evaluate(
    model: NestedNerPreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[Mapping[str, Any]],
    batch_size: int = 32,
    groups: bool = False,
    progress: bool = False,
    **decoding: Any,
) -> dict[str, Any]:
    """The scores of a model on annotated sentences: strict, or, of a model that types given spans, of typing alone.

    ```python
    >>> model, tokenizer = hf_spanner.load_model("runs/litbank")
    >>> hf_spanner.evaluate(model, tokenizer, data["test"])["f1"]
    ```

    Args:
        groups: score by entity length, nesting and depth too.
        **decoding: `threshold`, `overlap`, `head` and the approach's own parameters, as in [`predict_sentences`].
    """
    sentences = list(sentences)
    found = predict_sentences(model, tokenizer, sentences, batch_size, progress=progress, **decoding)
    return score_predictions(model, found, sentences, groups)


def score_predictions(
    model: NestedNerPreTrainedModel,
    found: Sequence[Iterable[EntityLike]],
    sentences: Sequence[Mapping[str, Any]],
    groups: bool = False,
) -> dict[str, Any]:
    """The scores of what a model found in annotated sentences, those that suit its task.

    With `groups`, scores by length, nesting and depth are added (not where the spans were given).
    """
    scores = score_task(model.task, found, sentences, model.config.labels)
    if groups and model.task == "finding":
        scores["groups"] = score_groups(found, sentences)
    return scores
