"""The one form in which a sentence travels through the package, and the account of what reading it cost.

A sentence is a list of words with entities over them; a span is `[start, end)` in words. Entities may nest, share a
span under two labels, and cross. Whatever file a sentence comes from, it passes `ReadReport.keep`, so that a wrong
span is found at the line that holds it and not three hours later inside a loss function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, cast

if TYPE_CHECKING:
    import datasets


class _Entity(TypedDict):
    start: int
    end: int
    label: str


class Entity(_Entity, total=False):
    """A labelled span `[start, end)` in words; its `mention` is its kind (name, nominal, ...), if the source says."""

    mention: str


class _Annotated(TypedDict):
    id: str
    doc_id: str | None
    tokens: list[str]
    entities: list[Entity]


class Sentence(_Annotated, total=False):  # two classes, for `typing.NotRequired` is younger than Python 3.10
    """One training or test item. `doc_id` groups sentences of one document; it is None when nobody knows.

    Further columns, if the source has them: `pos` are part-of-speech tags, one a word. `labels` are those that the
    sentence is annotated with, if these are not all that a model knows: types (`person`), or mentions of one kind
    (`person:name`). `flat`: its outermost entities alone are annotated. `corpus` names where it is from.
    """

    pos: list[str]
    labels: list[str]
    flat: bool
    corpus: str


FURTHER = ("pos", "labels", "flat", "corpus")  # columns that a data set has if its source has them


def features(
    labels: Iterable[str] | None = None, pos: bool = False, further: Collection[str] = (), mention: bool = False
) -> datasets.Features:
    """The `datasets.Features` of a nested NER dataset.

    Args:
        labels: entity types. With them the label is a `ClassLabel` (stored as an integer), without them a string.
        pos: whether there are part-of-speech tags.
        further: which of the columns that a source may have there are.
        mention: whether entities have a kind of mention.

    `List({...})` and not `Sequence({...})`: the latter turns a list of entities into a dict of lists.
    """
    from datasets import ClassLabel, Features, List, Value

    label = Value("string") if labels is None else ClassLabel(names=several("labels", labels))
    entity = {"start": Value("int32"), "end": Value("int32"), "label": label}
    columns: Any = {
        "id": Value("string"),
        "doc_id": Value("string"),
        "tokens": List(Value("string")),
        "entities": List(entity | ({"mention": Value("string")} if mention else {})),
    }
    may_have = {
        "pos": List(Value("string")),
        "labels": List(Value("string")),
        "flat": Value("bool"),
        "corpus": Value("string"),
    }
    there = {*further, *(["pos"] if pos else [])}
    return Features(columns | {name: kind for name, kind in may_have.items() if name in there})


def several(option: str, values: Iterable[str]) -> list[str]:
    """The values of an option that takes several; one string is refused, for its letters would be taken for them."""
    if isinstance(values, str):
        raise ValueError(f"{option}={values!r} is one string, expected several; write [{values!r}].")
    return list(values)


def check_sentence(record: Mapping[str, Any], where: str = "", labels: Collection[str] | None = None) -> None:
    """Refuse a record that is not a sentence, with a `ValueError` that names the place, the value and the remedy.

    Args:
        record: what should be a `Sentence`.
        where: how a reader of the message finds the record; the id is used if nothing is given.
        labels: if given, every label has to be one of them.
    """
    where = where or f"sentence {record.get('id')!r}"
    if labels is not None:
        several("labels", labels)
    tokens, entities = record.get("tokens"), record.get("entities")
    if not isinstance(tokens, list):
        raise ValueError(f"{where}: 'tokens' is {short(tokens)}, expected a list of words.")
    if not isinstance(entities, list):
        raise ValueError(
            f"{where}: 'entities' is {short(entities)}, expected a list; write [] for a sentence without entities."
        )
    for name in ("id", "doc_id"):
        if isinstance(record.get(name), str):
            _check_text(record[name], repr(name), where)
    _check_texts(tokens, "token", where)
    for entity in entities:
        _check_entity(entity, len(tokens), where, labels)
    if (pos := record.get("pos")) is not None:
        if not isinstance(pos, list) or len(pos) != len(tokens) or not all(isinstance(tag, str) for tag in pos):
            raise ValueError(
                f"{where}: 'pos' is {short(pos)}, expected {len(tokens)} part-of-speech tags, one a word."
            )
        _check_texts(pos, "part-of-speech tag", where)
    for text in record.get("labels") or ():
        _check_text(text, "a label", where)
    if isinstance(record.get("corpus"), str):
        _check_text(record["corpus"], "'corpus'", where)


def _check_texts(texts: list[Any], what: str, where: str) -> None:
    try:  # one pass in C over all of them; the search for the culprit below is only for the message
        " ".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(
                    f"{where}: {what} {position} is {short(text)}, expected a string; quote numbers, drop nulls."
                ) from None
            _check_text(text, f"{what} {position}", where)


def _check_text(text: str, what: str, where: str) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            f"{where}: {what} is {text!a}, half of a surrogate pair that UTF-8 cannot hold; write the whole character."
        )


def _check_entity(entity: Any, num_words: int, where: str, labels: Collection[str] | None) -> None:
    if not isinstance(entity, Mapping) or not {"start", "end", "label"} <= entity.keys():
        raise ValueError(f"{where}: entity {short(entity)} has to be an object with 'start', 'end' and 'label'.")
    start, end, label = entity["start"], entity["end"], entity["label"]
    if type(start) is not int or type(end) is not int:
        raise ValueError(f"{where}: entity {short(dict(entity))} needs whole numbers as 'start' and 'end'.")
    if start >= end:
        kind = "empty" if start == end else "reversed"
        raise ValueError(
            f"{where}: span [{start}, {end}) of label {short(label)} is {kind}; a span is [start, end) in words "
            "with an exclusive end. If the ends of this file are inclusive, read it with end_inclusive=True."
        )
    if start < 0 or end > num_words:
        raise ValueError(
            f"{where}: span [{start}, {end}) of label {short(label)} is out of range for {num_words} words; "
            "count words from 0 with an exclusive end."
        )
    if not isinstance(label, str) or not label:
        raise ValueError(f"{where}: label {short(label)} of span [{start}, {end}) has to be a non-empty string.")
    _check_text(label, "a label", where)
    mention = entity.get("mention")
    if mention is not None and (not isinstance(mention, str) or not mention):
        raise ValueError(f"{where}: mention {short(mention)} of span [{start}, {end}) has to be a non-empty string.")
    if mention is not None:
        _check_text(mention, "a mention", where)
    if labels is not None and label not in labels:
        raise ValueError(
            f"{where}: label {label!r} of span [{start}, {end}) is not one of {sorted(labels)}; "
            "add it to the labels or correct the data."
        )


def short(value: Any, limit: int = 80) -> str:
    """The value as a message shows it: its `repr`, cut off where it gets long."""
    try:
        text = repr(value)
    except RecursionError:  # JSON may nest deeper than Python prints
        text = f"a {type(value).__name__} of great depth"
    return text if len(text) <= limit else text[:limit] + "…"


def first_line(error: BaseException) -> str:
    """What somebody else's error says, for a sentence of ours."""
    message = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {message[:200]}"


MAX_EXAMPLES = 3


@dataclass
class ReadReport:
    """What reading one source gave and what it cost.

    Readers say what they could not keep (`lose`), what they kept in another shape (`change`) and what they left aside
    because it is no mention at all, such as relations (`ignore`). `str(report)` is a summary for people: one line if
    everything was kept, and one for the format if it had to be guessed.
    """

    source: str = ""
    sentences: int = 0
    words: int = 0
    entities: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    format: str = ""
    reason: str = ""  # why the source was read in this format, if nobody named it
    from_text: bool = False  # the source is text, and its words were cut by a word splitter

    def lose(self, reason: str, example: str = "", count: int = 1) -> None:
        """Count something annotated that does not reach the user."""
        self._note(self.lost, reason, example, count)

    def change(self, reason: str, example: str = "", count: int = 1) -> None:
        """Count something that reaches the user in another shape than it was written."""
        self._note(self.changed, reason, example, count)

    def ignore(self, reason: str, example: str = "", count: int = 1) -> None:
        """Count something that is not a mention and therefore of no use here."""
        self._note(self.ignored, reason, example, count)

    def _note(self, counter: Counter[str], reason: str, example: str, count: int) -> None:
        if count:
            counter[reason] += count
            examples = self.examples.setdefault(reason, [])
            if example and len(examples) < MAX_EXAMPLES:
                examples.append(example)

    def keep(
        self,
        id: str,
        doc_id: str | None,
        tokens: Any,
        entities: Any,
        where: str = "",
        further: Mapping[str, Any] | None = None,
    ) -> Sentence:
        """The gate that every sentence passes: checked, whatever it holds, freed of exact duplicates, counted.

        `further` holds columns that it may have, None where it has not.
        """
        there = {name: value for name, value in (further or {}).items() if value is not None}
        check_sentence({"id": id, "doc_id": doc_id, "tokens": tokens, "entities": entities, **there}, where)
        unique: dict[tuple[int, int, str], Entity] = {}
        for entity in entities:
            key = (entity["start"], entity["end"], entity["label"])
            if key in unique:
                self.lose("duplicate", f"{where or id}: {key[2]} {' '.join(tokens[key[0] : key[1]])!r}")
            else:
                unique[key] = Entity(start=key[0], end=key[1], label=key[2])
                if entity.get("mention") is not None:
                    unique[key]["mention"] = entity["mention"]
        sentence: Sentence = {"id": id, "doc_id": doc_id, "tokens": tokens, "entities": list(unique.values())}
        sentence.update(cast("Any", there))
        self.sentences += 1
        self.words += len(tokens)
        self.entities += len(unique)
        return sentence

    @property
    def faithful(self) -> bool:
        """True if something was read, and all that was annotated is there as it was written."""
        return self.sentences > 0 and not self.lost and not self.changed

    def __str__(self) -> str:
        source = f"{self.source}: " if self.source else ""
        lines = [f"{source}{self.sentences:,} sentences, {self.words:,} words, {self.entities:,} entities kept"]
        if self.reason:
            lines.append(f"  read as {self.format}: {self.reason}")
        if not self.sentences:
            lines.append("  nothing was read: the source holds no sentence")
        for verb, counter in (("not kept", self.lost), ("changed", self.changed), ("ignored", self.ignored)):
            for reason, count in counter.most_common():
                examples = "; ".join(self.examples.get(reason, []))
                lines.append(f"  {verb}: {count:,} × {reason}" + (f" (e.g. {examples})" if examples else ""))
        return "\n".join(lines)
