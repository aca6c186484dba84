"""Entities for many annotated or bare sentences, in batches of similar length; one path for scripts and evaluation."""

from collections.abc import Iterable, Mapping

import torch
from tqdm.auto import tqdm

from .modeling.decoding import Entity
from .modeling.encoding import pad_batch
from .training.features import NestedNerDataset


@torch.inference_mode()
def predict_sentences(
    model,
    tokenizer,
    sentences: Iterable[Mapping],
    batch_size: int = 32,
    threshold: float | Mapping[str, float] | None = None,
    overlap: str | None = None,
    head: str | None = None,
    progress: bool = False,
    **inference,
) -> list[list[Entity]]:
    """The model's entities for every sentence (records with `tokens`; `doc_id` if the model reads context, `pos` if
    it reads part-of-speech tags).

    Of a sentence that says which `labels` it is annotated with, only entities with these are given.

    With `progress` a bar is shown on a terminal.

    `inference` are the approach's own parameters (`model.inference_parameters`), such as `num_steps` of diffusion_ner.
    A model that only types given spans (`model.needs_spans`) takes them from `entities`; labels are not looked at.
    """
    model.inference_settings(**inference)  # checks them
    label = model.config.labels[0]  # of the given spans, until they are typed
    bare = [
        {
            **{key: sentence.get(key) for key in ("id", "doc_id", "tokens", "labels", "pos")},
            "entities": [{**span, "label": label} for span in sentence["entities"]] if model.needs_spans else [],
        }
        for sentence in sentences
    ]
    dataset = NestedNerDataset(bare, tokenizer, model.config)
    items = sorted(dataset.items, key=lambda item: len(item["input_ids"]), reverse=True)
    was_training = model.training
    model.eval()
    found = []
    starts = range(0, len(items), batch_size)
    for first in tqdm(starts, desc="predicting", unit="batch", leave=False, disable=None if progress else True):
        chosen = items[first : first + batch_size]
        batch = pad_batch(chosen, tokenizer.pad_token_id)
        entities = batch.pop("entities")
        batch.pop("annotated_labels", None)
        if model.needs_spans:
            batch["entities"] = torch.cat([entities[..., :2], entities.new_full((*entities.shape[:2], 1), -1)], dim=-1)
        output = model(**{key: value.to(model.device) for key, value in batch.items()}, **inference)
        entities = model.decode(output, threshold=threshold, overlap="any", head=head)
        found.extend(zip((item["place"] for item in chosen), entities, strict=True))
    model.train(was_training)
    return dataset.merge(found, overlap or model.config.overlap)
