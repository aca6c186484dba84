"""Cutting data into parts by document: sentences of one document never stand on both sides."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def documents(sentences: Iterable[Mapping[str, Any]]) -> list[list[int]]:
    """The sentences' indices by document, in text order; a sentence without `doc_id` is a document of its own."""
    groups: dict[Any, list[int]] = {}
    for index, sentence in enumerate(sentences):
        doc = sentence.get("doc_id")
        groups.setdefault(("alone", index) if doc is None else doc, []).append(index)
    return list(groups.values())


def hold_out(groups: Sequence[Sequence[int]], share: float, seed: int) -> tuple[list[int], list[int]]:
    """What stays and what is held out: whole documents, drawn at random, of about `share` of the sentences.

    >>> hold_out([[0, 1, 2, 3, 4, 5], [6], [7, 8, 9]], share=0.1, seed=0)
    ([0, 1, 2, 3, 4, 5, 7, 8, 9], [6])
    """
    if len(groups) < 2:
        raise ValueError(f"{len(groups)} document cannot be cut in two.")
    wanted = max(1, round(share * sum(map(len, groups))))
    held: list[int] = []
    for group in random.Random(seed).sample(list(groups), len(groups)):
        if len(held) + len(group) <= wanted:
            held += group
    held = held or sorted(map(list, groups), key=len)[0]  # all are larger than that
    out = set(held)
    return sorted(index for group in groups for index in group if index not in out), sorted(held)


def make_folds(groups: Sequence[Sequence[int]], number: int, seed: int) -> list[list[int]]:
    """So many parts of about the same size, of whole documents drawn at random; each sentence is in one of them."""
    if len(groups) < number:
        raise ValueError(f"{len(groups)} documents do not make {number} folds.")
    folds: list[list[int]] = [[] for _ in range(number)]
    shuffled = random.Random(seed).sample(list(groups), len(groups))
    for group in sorted(shuffled, key=len, reverse=True):  # the largest first, always to the smallest fold
        min(folds, key=len).extend(group)
    return [sorted(fold) for fold in folds]
