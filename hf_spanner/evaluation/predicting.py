"""Entities for many sentences: what evaluation, reports and scripts call."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..modeling.decoding import Entity
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.reading import Reader


def predict_sentences(
    model: NestedNerPreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[Mapping[str, Any]],
    batch_size: int = 32,
    threshold: float | Mapping[str, float] | None = None,
    overlap: str | None = None,
    head: str | None = None,
    progress: bool = False,
    mentions: Collection[str] | None = None,
    **inference: Any,
) -> list[list[Entity]]:
    """The model's entities for every sentence (records with `tokens`; `doc_id` if the model reads context, `pos` if
    it reads part-of-speech tags).

    Of a sentence that says which `labels` it is annotated with, only entities with these are given.

    With `progress` a bar is shown on a terminal. `mentions` are the kinds of mention that are looked for; None: all.

    `inference` are the approach's own parameters (`model.inference_parameters`), such as `num_steps` of diffusion_ner.
    A model that only types given spans (`model.task == "typing"`) takes these from `entities`, without their labels.
    """
    model.inference_settings(**inference)  # checks them
    reader = Reader(model, tokenizer)
    model.config.check_mentions(mentions)
    readings = [reading._replace(mentions=mentions) for reading in reader.cut_sentences(list(sentences))]
    decoding = {"threshold": threshold, "overlap": overlap, "head": head, **inference}
    return list(reader.read(readings, batch_size, progress=progress, **decoding))
