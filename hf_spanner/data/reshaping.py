"""The same annotations over other words or several sentences at once, and several corpora as one."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..modeling.words import split_words
from .describe import label_names, suggest_overlap
from .schema import Entity, Sentence, several

if TYPE_CHECKING:
    import datasets


def resplit_words(sentence: Sentence, splitter: str) -> Sentence:
    """The sentence in the words that `splitter` makes of its words, so that training sees what the pipeline sees.

    Every entity keeps its characters: words are cut further, never put together.

    >>> resplit_words({"tokens": ["IL-2", "gene,"], "entities": [{"start": 0, "end": 1, "label": "protein"}]}, "fine")
    {'tokens': ['IL', '-', '2', 'gene', ','], 'entities': [{'start': 0, 'end': 3, 'label': 'protein'}]}
    """
    words: list[str] = []
    first: list[int] = []  # first[i]: the new number of word i
    for word in sentence["tokens"]:
        first.append(len(words))
        words += [word[start:end] for start, end in split_words(word, splitter)] or [word]
    first.append(len(words))
    entities = [{**e, "start": first[e["start"]], "end": first[e["end"]]} for e in sentence["entities"]]
    new = cast("Sentence", {**sentence, "tokens": words, "entities": entities})
    if sentence.get("pos") is not None:  # all pieces of a word have its part of speech
        new["pos"] = [tag for i, tag in enumerate(sentence["pos"]) for _ in range(first[i], first[i + 1])]
    return new


def join_sentences(sentences: Iterable[Sentence], sizes: Sequence[int], seed: int = 0) -> Iterator[Sentence]:
    """Neighbouring sentences of a document as one, as many at a time as a draw from `sizes` says.

    A model that is to read paragraphs should be trained on some. Sentences without a `doc_id` stay alone.

    >>> a = {"id": "1", "doc_id": "d", "tokens": ["It", "."], "entities": []}
    >>> b = {"id": "2", "doc_id": "d", "tokens": ["Bonn"], "entities": [{"start": 0, "end": 1, "label": "GPE"}]}
    >>> list(join_sentences([a, b], sizes=[2]))[0]["entities"]
    [{'start': 2, 'end': 3, 'label': 'GPE'}]
    """
    if not sizes or min(sizes) < 1:
        raise ValueError(f"sizes={list(sizes)} must be numbers of sentences, at least 1 each, such as 1 2 4.")
    draw = random.Random(seed)
    group: list[Sentence] = []
    wanted = draw.choice(sizes)
    for sentence in sentences:
        doc = sentence.get("doc_id")
        if group and (len(group) == wanted or doc is None or doc != group[-1].get("doc_id")):
            yield _joined(group)
            group, wanted = [], draw.choice(sizes)
        group.append(sentence)
    if group:
        yield _joined(group)


def join_to_size(sentences: Iterable[Sentence], most: int, size: Callable[[Sentence], int]) -> Iterator[Sentence]:
    """Neighbouring sentences of a document as one, as many at a time as have a `size` of at most `most` together.

    So the authors of DSpERT train and evaluate, with 510 sub-words. Sentences without a `doc_id` stay alone.

    >>> a = {"doc_id": "d", "tokens": ["It", "."], "entities": []}
    >>> [len(s["tokens"]) for s in join_to_size([a, a, a], 4, lambda sentence: len(sentence["tokens"]))]
    [4, 2]
    """
    if most < 1:
        raise ValueError(f"Sentences cannot be joined up to a size of {most}: it must be at least 1, such as 510.")
    group: list[Sentence] = []
    used = 0
    for sentence in sentences:
        doc, more = sentence.get("doc_id"), size(sentence)
        if group and (used + more > most or doc is None or doc != group[-1].get("doc_id")):
            yield _joined(group)
            group, used = [], 0
        group.append(sentence)
        used += more
    if group:
        yield _joined(group)


def _joined(group: Sequence[Sentence]) -> Sentence:
    if len(group) == 1:
        return group[0].copy()
    words: list[str] = []
    entities: list[Entity] = []
    for sentence in group:
        shift = len(words)
        words += sentence["tokens"]
        entities += [
            cast("Entity", {**e, "start": e["start"] + shift, "end": e["end"] + shift}) for e in sentence["entities"]
        ]
    joined = cast("Sentence", {**group[0], "tokens": words, "entities": entities})
    if joined.get("labels") is not None:  # what all of them are annotated with
        joined["labels"] = [label for label in joined["labels"] if all(label in s["labels"] for s in group)]
    if joined.get("flat") is not None:
        joined["flat"] = any(sentence["flat"] for sentence in group)
    if "pos" in joined:
        tags = [sentence.get("pos") for sentence in group]
        known = [part for part in tags if part is not None]
        joined["pos"] = cast("list[str]", None) if len(known) < len(tags) else [tag for part in known for tag in part]
    return joined


OVERLAPS = {
    "flat": "entities that overlap no other (the flat variants of Ji et al.)",
    "outermost": "of entities that overlap the longest, then the first",
    "innermost": "of entities that overlap the shortest, then the first",
    "one_label": "of entities with one span the first, so that a span has one label",
}


def remove_overlaps(sentences: Iterable[Sentence], keep: str) -> tuple[list[Sentence], int]:
    """The sentences with those of their entities that `keep` (one of `OVERLAPS`) leaves, and how many are removed.

    >>> inner, outer = {"start": 1, "end": 2, "label": "DNA"}, {"start": 0, "end": 3, "label": "protein"}
    >>> sentence = {"id": "1", "doc_id": None, "tokens": ["a", "b", "c"], "entities": [inner, outer]}
    >>> remove_overlaps([sentence], "outermost")[0][0]["entities"]
    [{'start': 0, 'end': 3, 'label': 'protein'}]
    """
    if keep not in OVERLAPS:
        raise ValueError(f"keep={keep!r} is unknown; choose one of {', '.join(OVERLAPS)}.")
    result: list[Sentence] = []
    removed = 0
    for sentence in sentences:
        entities = _without_overlaps(sentence["entities"], keep)
        removed += len(sentence["entities"]) - len(entities)
        result.append(cast("Sentence", {**sentence, "entities": entities}))
    return result, removed


def _without_overlaps(entities: list[Entity], keep: str) -> list[Entity]:
    if keep == "one_label":
        first: dict[tuple[int, int], Entity] = {}
        for entity in entities:
            first.setdefault((entity["start"], entity["end"]), entity)
        return list(first.values())
    if keep == "flat":
        return [one for one in entities if not any(_overlap(one, other) for other in entities if other is not one)]
    sign = -1 if keep == "outermost" else 1
    kept: list[Entity] = []
    for one in sorted(entities, key=lambda e: (sign * (e["end"] - e["start"]), e["start"])):
        if not any(_overlap(one, other) for other in kept):
            kept.append(one)
    return [one for one in entities if any(one is other for other in kept)]


def _overlap(one: Entity, other: Entity) -> bool:
    return one["start"] < other["end"] and other["start"] < one["end"]


def of_mentions(sentences: Iterable[Any], mentions: Collection[str] | None) -> list[Any]:
    """The sentences with gold entities of these kinds alone; those whose kind nobody says stay."""
    if mentions is None:
        return list(sentences)
    wanted = {*mentions, None}
    return [{**s, "entities": [e for e in s["entities"] if e.get("mention") in wanted]} for s in sentences]


def join_corpora(
    corpora: Mapping[str, datasets.DatasetDict], complete: Collection[str] = (), flat: Collection[str] = ()
) -> datasets.DatasetDict:
    """Join corpora of different labels split by split; one alone is returned as it is.

    Each sentence gets a column `corpus` and a column `labels`: those of its own corpus. That a biomedical corpus marks
    no person does not mean that it mentions none, so a model trains on a sentence against its `labels` alone.

    Args:
        corpora: by name or path; the corpus is called by the last part of it.
        complete: those that hold no entity of the others' labels, although they do not mark them (say, no proteins in
            news). Their sentences have all labels, and so are examples without the others' entities too.
        flat: those that mark outermost entities alone, by choice and not because there are no others: their training
            sentences get a column `flat`, and a model learns nothing of the spans inside or across their entities.
            "auto" stands for all corpora in which no two entities overlap.
    """
    from datasets import DatasetDict, concatenate_datasets

    for option, names in (("complete", complete), ("flat", flat)):
        if unknown := set(several(option, names)) - set(corpora) - ({"auto"} if option == "flat" else set()):
            raise ValueError(f"{option} names {sorted(unknown)}, but the corpora are {sorted(corpora)}.")
    if flat:
        found = {source for source, data in corpora.items() if "auto" in flat and suggest_overlap(data) == "flat"}
        corpora = {source: with_flat(data, source in found or source in flat) for source, data in corpora.items()}
    if len(corpora) == 1:
        return next(iter(corpora.values()))
    if own := [source for source, data in corpora.items() if "labels" in next(iter(data.values())).column_names]:
        raise ValueError(
            f"{own[0]} says of each sentence what it is annotated with, and can only be trained on alone."
        )
    corpora = _with_the_same_fields(corpora)
    names = {source: Path(source).name for source in corpora}
    if len(set(names.values())) < len(names):
        raise ValueError(f"Two corpora have the same name: {sorted(names.values())}. Rename the folder of one.")
    labels_of = {source: label_names(data) for source, data in corpora.items()}
    every = sorted(set().union(*labels_of.values()))
    joined: dict[str | datasets.NamedSplit, list[datasets.Dataset]] = {}
    for source, data in corpora.items():
        labels = every if source in complete else labels_of[source]
        for split, part in data.items():
            part = part.add_column("corpus", [names[source]] * len(part))
            joined.setdefault(split, []).append(part.add_column("labels", [labels] * len(part)))
    return DatasetDict({split: concatenate_datasets(parts) for split, parts in joined.items()})


def _with_the_same_fields(corpora: Mapping[str, datasets.DatasetDict]) -> Mapping[str, datasets.DatasetDict]:
    """The corpora, all with a kind of mention in their entities (None where they say none) if some have one."""
    parts = [part for data in corpora.values() for part in data.values()]
    wide = next((part.features["entities"] for part in parts if "mention" in part.features["entities"].feature), None)
    if wide is None:
        return corpora
    return {
        source: type(data)({split: part.cast_column("entities", wide) for split, part in data.items()})
        for source, data in corpora.items()
    }


def with_flat(data: datasets.DatasetDict, flat: bool) -> datasets.DatasetDict:
    """The data with a column that says whether its training sentences are annotated flat."""
    train = data["train"]
    if "flat" in train.column_names:
        train = train.remove_columns("flat")
    return type(data)({**data, "train": train.add_column("flat", [flat] * len(train))})
