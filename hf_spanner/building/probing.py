"""What an encoder's layers know: do they tell words apart, or only sentences?

An encoder that was trained to give one vector a sentence may say that in its last layer and nothing else: all words of
a sentence are nearly the same there, and a head has nothing to tell them by. Such layers had better start at random
(`fresh_layers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from transformers import AutoConfig

from ..modeling.encoders import load_encoder

SENTENCES = 32  # that are read


def collapsed_layers(encoder: str, tokenizer: Any, sentences: Iterable[Mapping[str, Any]], least: float) -> int:
    """How many of the last layers have less than `least` of their variance within sentences."""
    words = [
        list(sentence["tokens"]) for sentence in islice((s for s in sentences if len(s["tokens"]) > 3), SENTENCES)
    ]
    if len(words) < 2:
        return 0
    shares = variance_within(encoder, tokenizer, words)
    return next((i for i, share in enumerate(reversed(shares)) if share >= least), len(shares) - 1)


@torch.no_grad()
def variance_within(encoder: str, tokenizer: Any, sentences: Sequence[Sequence[str]]) -> list[float]:
    """For each layer, the embeddings first: the share of the sub-words' variance that is not between sentences.

    A dimension's share is its mean squared distance from the sentence's mean, divided by that from the mean of all;
    the layer's is the mean over its dimensions, so that none outweighs the others.
    """
    model = load_encoder(encoder, AutoConfig.from_pretrained(encoder, trust_remote_code=False)).eval()
    names = ("input_ids", "attention_mask")
    batch = tokenizer(sentences, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt")
    states = model(**{name: batch[name] for name in names}, output_hidden_states=True).hidden_states
    mask = batch["attention_mask"].bool()
    shares = []
    for layer in states or ():
        total = layer[mask].var(0, unbiased=False)
        inside = torch.cat([row[kept] - row[kept].mean(0) for row, kept in zip(layer, mask, strict=True)])
        shares.append((inside.pow(2).mean(0) / total).nan_to_num(1.0).mean().item())
    return shares
