"""How good a model is on annotated sentences: one function for the Trainer, the commands, scripts and users."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..data.describe import mention_kinds
from ..data.reshaping import of_mentions
from ..metrics.nested_ner.scoring import EntityLike
from ..metrics.tasks import score_task
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .groups import LENGTH, Bins, score_groups
from .mentions import list_mentions, score_mentions
from .predicting import predict_sentences


def evaluate(
    model: NestedNerPreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[Mapping[str, Any]],
    batch_size: int = 32,
    groups: bool = False,
    progress: bool = False,
    mentions: Collection[str] | None = None,
    **decoding: Any,
) -> dict[str, Any]:
    """The scores of a model on annotated sentences: strict, or, of a model that types given spans, of typing alone.

    ```python
    >>> model, tokenizer = hf_spanner.load_model("runs/litbank")
    >>> hf_spanner.evaluate(model, tokenizer, data["test"])["f1"]
    ```

    Args:
        groups: score by entity length, nesting and depth too.
        mentions: look only at mentions of these kinds, in the gold too, of a model that tells them apart.
        **decoding: `threshold`, `overlap`, `head` and the approach's own parameters, as in [`predict_sentences`].
    """
    sentences = of_mentions(sentences, mentions)
    found = predict_sentences(
        model, tokenizer, sentences, batch_size, progress=progress, mentions=mentions, **decoding
    )
    return score_predictions(model, found, sentences, groups)


def score_kinds(
    found: Sequence[Sequence[EntityLike]], sentences: Sequence[Mapping[str, Any]], kinds: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Strict scores of each kind of mention: span, label and kind must be right."""

    def of(entities: Iterable[Any], kind: str) -> list[Any]:
        return [e for e in entities if (e.get("mention") if isinstance(e, Mapping) else e.mention) == kind]

    return {
        kind: score_mentions(
            list_mentions([of(row, kind) for row in found], [of(s["entities"], kind) for s in sentences])
        )
        for kind in kinds
    }


def score_predictions(
    model: NestedNerPreTrainedModel,
    found: Sequence[Iterable[EntityLike]],
    sentences: Sequence[Mapping[str, Any]],
    groups: bool = False,
    lengths: Bins = LENGTH,
) -> dict[str, Any]:
    """The scores of what a model found in annotated sentences, those that suit its task.

    With `groups`, scores by length (grouped by `lengths`), nesting and depth are added (not where the spans were
    given).
    """
    listed = [list(entities) for entities in found]
    scores = score_task(model.task, listed, sentences, model.config.types)
    if model.config.mentions is not None and (kinds := mention_kinds(sentences)):
        scores["per_mention"] = score_kinds(listed, sentences, kinds)
    if groups and model.task == "finding":
        scores["groups"] = score_groups(listed, sentences, lengths=lengths)
    return scores
