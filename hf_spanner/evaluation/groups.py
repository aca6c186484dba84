"""Scores for groups of entities: by length, sentence, place in the gold's nesting, and what training showed of them.

Gold entities and predictions are put into groups by the same rule, each by its own span and label, so every group has
its own precision and recall, and the counts of the groups add up to those of the whole. What is said of nesting is
always said of the gold: a prediction is *inner* if a gold entity lies around it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..metrics.nested_ner.scoring import EntityLike
from .mentions import Mention, list_mentions, score_by

Sentences = Sequence[Mapping[str, Any]]  # records with `tokens` and gold `entities`
Span = tuple[int, int]
Surface = tuple[str, ...]


class Bins(NamedTuple):
    """Names for the ranges of a number; each range reaches up to its bound and includes it, the last has none."""

    names: tuple[str, ...]
    bounds: tuple[float, ...]

    def of(self, value: float) -> str:
        return self.names[bisect_left(self.bounds, value)]

    @classmethod
    def parse(cls, ranges: Sequence[str]) -> Bins:
        """`["1", "2", "3-4", "5-"]`: ranges of whole numbers that follow each other from 1 on, the last without end.

        >>> Bins.parse(["1-4", "5-9", "10-"]).of(7)
        '5-9'
        """
        bounds: list[int] = []
        for index, text in enumerate(ranges):
            first, dash, last = text.partition("-")
            is_last = index + 1 == len(ranges)
            wanted = 1 + (bounds[-1] if bounds else 0)
            fits = first == str(wanted) and (last == "" if is_last else not dash or last.isdecimal())
            if not fits or (is_last and not dash) or (last and int(last) < wanted):
                raise ValueError(
                    f"Cannot read the length {text!r} of {' '.join(ranges)}: ranges follow each other from 1 on and "
                    "the last has no end, such as 1 2 3 4 5-9 10-."
                )
            bounds.append(int(last or first))
        if not ranges:
            raise ValueError("There is no range of lengths: name some, such as 1 2 3 4 5-9 10-.")
        return cls(tuple(ranges), tuple(bounds[:-1]))


LENGTH = Bins(("1", "2", "3", "4", "5", "6-10", ">10"), (1, 2, 3, 4, 5, 10))
SENTENCE_LENGTH = Bins(("1-10", "11-20", "21-30", "31-40", ">40"), (10, 20, 30, 40))
# Table 5 of Ji et al. (2022): extra-small, small, large, extra-large.
SIZES = ("XS", "S", "L", "XL")
BUCKETS = {
    "eLen": Bins(SIZES, (1, 2, 4)),
    "tLen": Bins(SIZES, (7, 16, 31)),
    "eCon": Bins(SIZES, (0.1, 0.5, 0.9)),
    "eDen": Bins(SIZES, (0.01, 0.025, 0.05)),
}

# What a group is about, for people; in the order in which they are shown.
TITLES = {
    "length": "Words in the entity",
    "sentence_length": "Words in the sentence",
    "depth": "Depth: gold entities around it, itself included",
    "nesting": "Place in nested structures (Zhu et al., 2023)",
    "layer": "Outermost or inner",
    "unseen": "Words of the entity that training never showed",
    "eLen": "eLen: entity length (Ji et al., 2022)",
    "tLen": "tLen: sentence length (Ji et al., 2022)",
    "eCon": "eCon: how consistently training labels these words so (Ji et al., 2022)",
    "eDen": "eDen: gold entities per word of the sentence (Ji et al., 2022)",
}


def score_groups(
    predictions: Iterable[Iterable[EntityLike]],
    sentences: Sentences,
    train: Sentences | None = None,
    lengths: Bins = LENGTH,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Strict scores by every grouping of [`groupings`]: `{"length": {"1": {precision, recall, f1, ...}, ...}, ...}`.

    Args:
        predictions: one list of entities per sentence.
        sentences: records with `tokens` and gold `entities`, in the same order.
        train: the training sentences; without them there is no `eCon` and no `unseen`.
        lengths: the groups of `length`, such as `Bins.parse(["1-4", "5-9", "10-"])`.
    """
    mentions = list_mentions(predictions, [sentence["entities"] for sentence in sentences])
    return score_groupings(mentions, sentences, train, lengths)


def score_groupings(
    mentions: Sequence[Mention], sentences: Sentences, train: Sentences | None = None, lengths: Bins = LENGTH
) -> dict[str, dict[str, dict[str, Any]]]:
    """What [`score_groups`] returns, from mentions."""
    result = {}
    for name, keys in groupings(mentions, sentences, train, lengths).items():
        result[name] = score_by(mentions, keys, group_names(name, keys, lengths))
    return result


def groupings(
    mentions: Sequence[Mention], sentences: Sentences, train: Sentences | None = None, lengths: Bins = LENGTH
) -> dict[str, list[str]]:
    """The group of each mention under every grouping.

    - `length`, `sentence_length`: in words.
    - `depth`: spans of the longest chain of gold entities around it, each strictly inside the next, itself included.
    - `nesting`: *nested* if it lies strictly inside a gold entity that has one inside, *covering* if it strictly
      contains a gold entity that lies in another, *both*, or *flat* (Figure 3 of DSpERT).
    - `layer`: *outermost* if it lies strictly inside no gold entity, else *inner*.
    - `eLen`, `tLen`, `eCon`, `eDen`: the buckets XS to XL of Ji et al. (2022). eCon is the share of the occurrences of
      its words in training (whatever their case, entity or not) that carry its label; 0 if there are none. eDen is the
      number of gold entities of the sentence divided by its words.
    - `unseen`: whether *some* or *none* of its words never occur in training.
    """
    words = [sentence["tokens"] for sentence in sentences]
    gold = [sentence["entities"] for sentence in sentences]
    around = surroundings(mentions)
    keys = {
        "length": [lengths.of(m.end - m.start) for m in mentions],
        "sentence_length": [SENTENCE_LENGTH.of(len(words[m.sentence])) for m in mentions],
        "depth": [str(around[m.sentence, m.span].depth) for m in mentions],
        "nesting": [around[m.sentence, m.span].nesting for m in mentions],
        "layer": ["outermost" if around[m.sentence, m.span].depth == 1 else "inner" for m in mentions],
        "eLen": [BUCKETS["eLen"].of(m.end - m.start) for m in mentions],
        "tLen": [BUCKETS["tLen"].of(len(words[m.sentence])) for m in mentions],
        "eDen": [BUCKETS["eDen"].of(len(gold[m.sentence]) / len(words[m.sentence])) for m in mentions],
    }
    if train is not None:
        surfaces = [surface(words[m.sentence], m) for m in mentions]
        consistency = label_consistency(train, set(surfaces))
        known = {word for sentence in train for word in sentence["tokens"]}
        keys["eCon"] = [
            BUCKETS["eCon"].of(consistency(words_of, m.label)) for words_of, m in zip(surfaces, mentions, strict=True)
        ]
        keys["unseen"] = ["none" if known.issuperset(words[m.sentence][m.start : m.end]) else "some" for m in mentions]
    return {name: keys[name] for name in TITLES if name in keys}


def group_names(name: str, keys: Iterable[str], lengths: Bins = LENGTH) -> list[str]:
    """The groups of a grouping in their order, empty ones too; of `depth`, as deep as the mentions are."""
    if name == "depth":
        return [str(depth) for depth in range(1, max((int(key) for key in keys), default=1) + 1)]
    fixed = {
        "length": lengths.names,
        "sentence_length": SENTENCE_LENGTH.names,
        "nesting": ("flat", "nested", "covering", "both"),
        "layer": ("outermost", "inner"),
        "unseen": ("none", "some"),
    }
    return list(fixed.get(name, SIZES))


# ------------------------------------------------------------------------------------------------------------- nesting


class Surroundings(NamedTuple):
    """How a span lies among the gold entities of its sentence."""

    depth: int
    nested: bool
    covering: bool

    @property
    def nesting(self) -> str:
        if self.nested and self.covering:
            return "both"
        return "nested" if self.nested else "covering" if self.covering else "flat"


def surroundings(mentions: Iterable[Mention]) -> dict[tuple[int, Span], Surroundings]:
    """For the span of every mention, by (sentence, span)."""
    spans: dict[int, tuple[set[Span], set[Span]]] = {}
    for mention in mentions:
        every, gold = spans.setdefault(mention.sentence, (set(), set()))
        every.add(mention.span)
        if mention.gold:
            gold.add(mention.span)
    result = {}
    for sentence, (every, gold) in spans.items():
        by_size = sorted(gold, key=lambda span: span[0] - span[1])  # the longest first: who is around comes before
        depth: dict[Span, int] = {}
        for span in by_size:
            depth[span] = 1 + max((depth[outer] for outer in depth if inside(span, outer)), default=0)
        outer = {span for span in gold if any(inside(other, span) for other in gold)}
        inner = {span for span in gold if any(inside(span, other) for other in gold)}
        for span in every:
            result[sentence, span] = Surroundings(
                depth=1 + max((depth[other] for other in gold if inside(span, other)), default=0),
                nested=any(inside(span, other) for other in outer),
                covering=any(inside(other, span) for other in inner),
            )
    return result


def inside(a: Span, b: Span) -> bool:
    """Whether span a lies strictly inside span b."""
    return b[0] <= a[0] and a[1] <= b[1] and a != b


# ------------------------------------------------------------------------------------------- what training has shown


def surface(words: Sequence[str], mention: Mention) -> Surface:
    """The words of a mention, whatever their case."""
    return tuple(word.lower() for word in words[mention.start : mention.end])


class LabelConsistency:
    """How often training shows some words, and how often with which label."""

    def __init__(self) -> None:
        self.occurrences: Counter[Surface] = Counter()
        self.labelled: Counter[tuple[Surface, str]] = Counter()

    def __call__(self, words: Surface, label: str) -> float:
        total = self.occurrences[words]
        return self.labelled[words, label] / total if total else 0.0


def label_consistency(train: Sentences, surfaces: Iterable[Surface]) -> LabelConsistency:
    """Find all occurrences of the surfaces in the training sentences by one walk through a tree of their words."""
    end = object()
    tree: dict[Any, Any] = {}
    node: Any
    for words in surfaces:
        node = tree
        for word in words:
            node = node.setdefault(word, {})
        node[end] = words
    result = LabelConsistency()
    for sentence in train:
        tokens = [word.lower() for word in sentence["tokens"]]
        labels: dict[Span, set[str]] = {}
        for entity in sentence["entities"]:
            labels.setdefault((entity["start"], entity["end"]), set()).add(entity["label"])
        for start in range(len(tokens)):
            node, position = tree, start
            while position < len(tokens) and (node := node.get(tokens[position])) is not None:
                position += 1
                if (words := node.get(end)) is not None:
                    result.occurrences[words] += 1
                    for label in labels.get((start, position), ()):
                        result.labelled[words, label] += 1
    return result


def unseen_density(sentences: Sentences, train: Sentences) -> float:
    """oDen (Eq. 21 of Ji et al., 2022): the share of words that do not occur in the training sentences."""
    known = {word for sentence in train for word in sentence["tokens"]}
    words = [word for sentence in sentences for word in sentence["tokens"]]
    return sum(word not in known for word in words) / len(words) if words else 0.0


# --------------------------------------------------------------------------------------------------------- as a table


def format_groups(groups: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """A table of what `score_groups` returns, for the terminal."""
    rows = [(f"{by} {name}", row) for by, members in groups.items() for name, row in members.items()]
    width = max(len(name) for name, _ in rows)
    lines = [f"{'':<{width}}  precision  recall      f1  support  predicted  correct"]
    for by, members in groups.items():
        lines.append("-" * len(lines[0]))
        for name, row in members.items():
            lines.append(
                f"{f'{by} {name}':<{width}}  {row['precision']:>9.4f}  {row['recall']:>6.4f}  {row['f1']:>6.4f}  "
                f"{row['support']:>7}  {row['predicted']:>9}  {row['correct']:>7}"
            )
    return "\n".join(lines)
