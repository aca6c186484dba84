"""What is counted in an encoder's sub-words before there is a model: sizes of sentences, lengths of entities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..modeling.subwords import WordEncoder

ANY_NUMBER = 10**9  # nothing is read here: no window is too small


def subword_counter(tokenizer: Any, max_word_subwords: int | None = None) -> Callable[[Mapping[str, Any]], int]:
    """A function that says how many sub-words of a sentence a model reads."""
    encoder = WordEncoder(tokenizer, ANY_NUMBER, max_word_subwords=max_word_subwords)

    def count(sentence: Mapping[str, Any]) -> int:
        return sum(map(len, encoder.subwords(sentence["tokens"])))

    return count


def size_embedding_rows(
    sentences: Iterable[Mapping[str, Any]],
    quantile: float,
    longest: int | None,
    counter: Callable[[Mapping[str, Any]], int] | None = None,
) -> int:
    """How many sizes of spans have an embedding of their own: so many that this share of the gold entities has one.

    The authors of DSpERT take 0.975, of training and validation data together.

    Args:
        longest: the cap on spans; longer entities share the last row anyhow. None for none.
        counter: of sub-words, if these are the unit of spans.
    """
    if not 0 < quantile <= 1:
        raise ValueError(f"size_embedding_quantile={quantile} must be above 0 and at most 1, such as 0.975.")
    sizes = []
    for sentence in sentences:
        for entity in sentence["entities"]:
            words = sentence["tokens"][entity["start"] : entity["end"]]
            sizes.append(len(words) if counter is None else counter({"tokens": words}))
    if not sizes:
        raise ValueError("There is no gold entity: size_embedding_quantile has nothing to count.")
    rows = max(1, math.ceil(np.quantile(sizes, quantile)))
    return rows if longest is None else min(rows, longest)
