"""What a configuration says of labels and of scores: types and kinds of mention, thresholds, heads, reach.

Without torch and transformers: a configuration takes these rules from here, and so do exported models that are read
without either (`hf_spanner.onnx`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .decoding import (
    Calibration,
    Entity,
    Trim,
    best_labels,
    check_overlap,
    resolve_overlaps,
    split_mention,
    thresholds_of,
    with_kind,
)
from .words import SPLITTERS


class Reach(NamedTuple):
    """What a model can answer with at all: said before training and on cards, and how far windows must overlap."""

    longest: int | None = None  # the most words of an entity; None for any number
    unit: str = "word"  # what `longest` counts, or "subword"
    sizes: tuple[int, ...] | None = None  # if not every size up to `longest`
    learnt: int | None = None  # longer ones are not learnt
    per_text: int | None = None  # the most entities of one text

    @property
    def needed_overlap(self) -> int:
        """The words that neighbouring windows must share so that every entity lies whole in one of them."""
        return (self.longest or 1) - 1

    def overlap(self, capacity: int) -> int:
        """The words that they do share, if windows hold `capacity` sub-words."""
        return max(self.needed_overlap, capacity // 4)

    def refuses(self, size: int, at_end: bool = False) -> str | None:
        """Why an entity of this size cannot be found, in words; None if it can.

        `at_end`: it ends with its text. There seeds of any size are cut to what is left.
        """
        if self.longest is not None and size > self.longest:
            return f"longer than max_span_length={self.longest} {self.unit}s"
        if self.learnt is not None and size > self.learnt:
            return f"longer than the {self.learnt} words to which seeds learn to grow"
        if self.sizes is not None and size not in self.sizes and not at_end:
            return f"of another size than windows={list(self.sizes)}"
        return None


class LabelRules:
    """Of an object with the fields of `NestedNerConfig`."""

    id2label: Any
    mentions: Any

    @property
    def labels(self) -> list[str]:
        """The entity types in the order of their ids."""
        names: Any = self.id2label  # by number: `__post_init__` has made it so
        return [names[index] for index in range(len(names))]

    @property
    def types(self) -> list[str]:
        """The entity types, in the order of their first label: what entities are called and scored by."""
        return list(dict.fromkeys(self._type_of_each()))

    def _type_of_each(self) -> list[str]:
        """The type of each label. (A configuration's fields are slow to read: once each, not once a label.)"""
        mentions = self.mentions
        return [split_mention(label, mentions)[0] for label in self.labels]

    @property
    def label_types(self) -> list[int] | None:
        """Of each label the number of its type, if the model tells kinds of mention apart."""
        if self.mentions is None:
            return None
        names = self._type_of_each()
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return [numbers[name] for name in names]

    def thresholds(self, threshold: float | Mapping[str, float] | None) -> list[float | None]:
        """One threshold for each label, from one number or a mapping that names some of the types, or of the labels of
        one kind of mention (`person:name`), which go before their type."""
        labels, types = self.labels, self._type_of_each()
        names = list(dict.fromkeys((*types, *labels)))
        limits = dict(zip(names, thresholds_of(threshold, names), strict=True))
        return [
            limits[kind] if limits[label] is None else limits[label] for label, kind in zip(labels, types, strict=True)
        ]

    def check_reading(self) -> None:
        """Refuse what no text can be read with, whatever it is: a file may say anything."""
        config: Any = self
        check_overlap(config.overlap)
        self.check_choice("word_splitter", SPLITTERS)
        self.check_choice("predict_from", ("span", "seq"))
        self.check_choice("tag_scheme", ("BIO", "BIOES"))
        for name in ("multi_label", "exclusive_labels", "use_crf", "context_separator"):
            self.check_choice(name, (True, False))
        self.check_whole("max_subwords", "max_word_subwords", least=1)
        self.check_whole("context_sentences", least=0)
        if config.calibration is not None:
            Calibration(config.calibration)
        if self.mentions is not None:
            check_labels(self.mentions, "mentions")
        self.check_mentions(config.shown_mentions, "shown_mentions")
        if (trim := config.trim) is not None:
            if not isinstance(trim, dict) or "mentions" not in trim or set(trim) - set(Trim._fields):
                raise ValueError(f"trim={trim!r} must have `mentions`, and may have `before` and `after`.")
            self.check_mentions(trim["mentions"], "trim")
            for words in (trim.get("before", []), trim.get("after", [])):
                if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
                    raise ValueError(f"trim={trim!r} must have lists of words `before` and `after`.")

    def check_choice(self, name: str, choices: Iterable[Any]) -> None:
        """Refuse a value that is not one of `choices`."""
        value, choices = getattr(self, name), list(choices)
        if value not in choices:
            raise ValueError(f"{name}={value!r} is unknown: choose one of {choices}.")

    def check_whole(self, *names: str, least: int) -> None:
        """Refuse what is no whole number of at least `least`; None passes."""
        for name in names:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")

    def check_range(self, *names: str, least: float, most: float | None = None) -> None:
        """Refuse what is no number or out of range; None passes."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, (int, float)):
                raise ValueError(f"{name}={value!r} must be a number.")
            if value >= least and (most is None or value <= most):
                continue
            if most is not None:
                raise ValueError(f"{name}={value} must lie between {least} and {most}.")
            raise ValueError(
                f"{name}={value} must not be negative." if least == 0 else f"{name}={value} must be at least {least}."
            )

    def check_mentions(self, mentions: Iterable[str] | None, option: str = "mentions") -> None:
        """Refuse kinds of mention that the model does not tell apart."""
        if mentions is None:
            return
        if isinstance(mentions, str) or not isinstance(mentions, Iterable):
            raise ValueError(f"{option}={mentions!r} must be a list of kinds of mention, such as ['name'].")
        if self.mentions is None:
            raise ValueError(
                f"{option}={mentions!r}: this model does not tell kinds of mention apart. Train one on data whose "
                "entities have a `mention`, with `--mentions true`."
            )
        if unknown := [kind for kind in mentions if kind not in self.mentions]:
            raise ValueError(f"{option} names {unknown[0]!r}; this model tells {', '.join(self.mentions)} apart.")

    def choose_head(self, head: str | None) -> str:
        """Which head predicts: the one asked for, if the model has it."""
        config: Any = self
        heads = config.heads
        if head is None:
            head = config.predict_from if len(heads) > 1 else heads[0]
        if head not in heads:
            raise ValueError(
                f"This {config.model_type} model has no {head!r} head, only {list(heads)}. "
                "A span approach gets a 'seq' head by training with bundle_weight=0.1."
            )
        return str(head)

    def decide(
        self,
        candidates: Callable[[list[float | None]], list[list[Entity]]],
        threshold: float | Mapping[str, float] | None,
        overlap: str | None,
        head: str,
    ) -> list[list[Entity]]:
        """Entities of each sentence, in text order, of what `candidates` finds by one threshold for each label.

        The arguments are those of a model's `decode`.
        """
        config: Any = self
        thresholds = self.thresholds(config.threshold if threshold is None else threshold)
        rise = None if config.calibration is None else Calibration(config.calibration)
        if rise is not None:
            scores = {share: None if share is None else rise.inverse(share) for share in set(thresholds)}
            thresholds = [scores[share] for share in thresholds]
        found = candidates(thresholds)
        if head == "span" and config.exclusive_labels:
            found = [best_labels(entities) for entities in found]
        if (mentions := self.mentions) is not None:
            found = [[with_kind(entity, mentions) for entity in entities] for entities in found]
        if rise is not None:
            found = [[entity._replace(score=rise(entity.score)) for entity in entities] for entities in found]
        return [resolve_overlaps(entities, overlap or config.overlap) for entities in found]


def check_labels(labels: Any, option: str = "labels") -> list[str]:
    """A list of distinct, non-empty names, or a sentence that says what is wrong."""
    if isinstance(labels, str):
        raise TypeError(f"{option} must be a list of names, not the string {labels!r}.")
    if not isinstance(labels, Iterable):
        raise TypeError(f"{option} must be a list of names, not {labels!r}.")
    labels = list(labels)
    if not labels:
        raise ValueError(f"{option} is empty: name at least one entity type, e.g. labels=['PER'].")
    for label in labels:
        if not isinstance(label, str) or not label:
            raise ValueError(f"Label {label!r} must be a non-empty string.")
    if duplicate := next((label for i, label in enumerate(labels) if label in labels[:i]), None):
        raise ValueError(f"Label {duplicate!r} is given twice: labels must be distinct.")
    return labels
