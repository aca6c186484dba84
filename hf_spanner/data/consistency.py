"""The same words annotated here and not there, or with another label: what annotators may have overlooked.

Every text of an entity is looked for in all sentences, with an index of these texts by their first word, so that the
search is linear in the words of the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log

from .examples import Example, Row, Span, example

MAX_WORDS = 10  # longer texts hardly ever occur twice
SHOWN = 3  # examples of each side
LEAST_ANNOTATED = 2  # times; what was annotated once may be the odd one out
LEAST_SHARE, LEAST_SHARE_OF_A_WORD = 0.5, 0.75  # of the occurrences; a word is an entity in some contexts only
COMMON, LEAST_COMMON = 1 / 2000, 20  # a word of this share of all words, and this often, is a pronoun or the like

Words = tuple[str, ...]
Place = tuple[Row, int, int]


@dataclass
class Inconsistency:
    """A text that is mostly annotated one way (`usual`), and sometimes another (`unusual`: not at all, or otherwise).

    `missing` counts occurrences that are not annotated and lie neither inside an entity nor inside a longer text that
    is one elsewhere. `labels` counts those that are, by label; "A + B" is one span with both.
    """

    text: str
    labels: dict[str, int]
    annotated: int
    missing: int
    score: float  # how telling it is; the list is sorted by it
    usual: list[Example]
    unusual: list[Example]


@dataclass
class Consistency:
    """What is annotated sometimes, and what has several labels; the most telling first, common words not at all.

    `missing` and `relabelled` count occurrences: those of a telling text that are not annotated, and those that do not
    have the label that most of their text's have.
    """

    texts: int = 0  # different texts of entities
    sometimes: int = 0  # of these, annotated here and not there, telling or not
    missing: int = 0
    relabelled: int = 0
    missed: list[Inconsistency] = field(default_factory=list)
    disagreements: list[Inconsistency] = field(default_factory=list)


@dataclass
class Tally:
    """The occurrences of one text."""

    labels: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    places: dict[str, list[Place]] = field(default_factory=dict)  # by label, "" for those that are not annotated

    def add(self, label: str, place: Place) -> None:
        if label:
            self.labels[label] += 1
        else:
            self.missing += 1
        places = self.places.setdefault(label, [])
        if len(places) < SHOWN:
            places.append(place)

    def shown(self, labels: Iterable[str]) -> list[Example]:
        places = [place for label in labels for place in self.places.get(label, [])]
        return [example(*place) for place in places[:SHOWN]]


def find_inconsistencies(rows: Sequence[Row], examples: int) -> Consistency:
    """Look for every entity's text in all sentences; at most `examples` texts of either kind are returned."""
    tallies = tally_texts(rows)
    vocabulary = Counter(word for row in rows for word in row.words)
    common = max(COMMON * vocabulary.total(), LEAST_COMMON)
    result = Consistency(len(tallies), sum(tally.missing > 0 for tally in tallies.values()))
    for words, tally in tallies.items():
        weight = _weight(words, vocabulary, common)
        if not weight:
            continue
        annotated = tally.labels.total()
        share = annotated / (annotated + tally.missing)
        least = LEAST_SHARE if weight >= 0.5 else LEAST_SHARE_OF_A_WORD
        if tally.missing and annotated >= LEAST_ANNOTATED and share >= least:
            result.missing += tally.missing
            result.missed.append(_inconsistency(words, tally, weight, annotated, tally.missing))
        (usual, most), *others = tally.labels.most_common()
        if others and most >= LEAST_ANNOTATED:
            result.relabelled += annotated - most
            result.disagreements.append(_inconsistency(words, tally, weight, most, annotated - most, usual))
    for found in (result.missed, result.disagreements):
        found.sort(key=lambda one: (-one.score, one.text))
        del found[examples:]
    return result


def tally_texts(rows: Iterable[Row]) -> dict[Words, Tally]:
    """Count all occurrences of every entity's text of at most `MAX_WORDS` words."""
    rows = list(rows)
    tallies: dict[Words, Tally] = {}
    for row in rows:
        for start, end, label in _labelled(row.entities):
            if end - start <= MAX_WORDS:
                tallies.setdefault(row.words[start:end], Tally()).add(label, (row, start, end))
    lengths: dict[str, set[int]] = {}
    for words in tallies:
        lengths.setdefault(words[0], set()).add(len(words))
    longest_first = {word: sorted(sizes, reverse=True) for word, sizes in lengths.items()}
    for row in rows:
        for start, end in _missing(row, tallies, longest_first):
            tallies[row.words[start:end]].add("", (row, start, end))
    return tallies


def _labelled(entities: Iterable[Span]) -> Iterable[Span]:
    """One for each span, with all of its labels."""
    labels: dict[tuple[int, int], list[str]] = {}
    for start, end, label in entities:
        labels.setdefault((start, end), []).append(label)
    return [Span(start, end, " + ".join(sorted(names))) for (start, end), names in labels.items()]


def _missing(row: Row, known: dict[Words, Tally], lengths: dict[str, list[int]]) -> Iterable[tuple[int, int]]:
    """Spans of known texts that are not annotated, not inside an entity or another known text, and cross no entity."""
    gold = {(entity.start, entity.end) for entity in row.entities}
    furthest = dict(sorted(gold))  # the last end of the entities that begin at a word
    covered = 0  # all that ends here or before, and begins at this word or later, lies inside something
    for start, word in enumerate(row.words):
        if start in furthest:
            covered = max(covered, furthest[start])
        for size in lengths.get(word, ()):
            end = start + size
            if end <= covered or end > len(row.words) or row.words[start:end] not in known:
                continue
            covered = end
            if not any(s < start < e < end or start < s < end < e for s, e in gold):
                yield start, end


def _weight(words: Words, vocabulary: Counter[str], common: float) -> float:
    """How surely a text means the same wherever it stands: several words, or a name, rather than one common word."""
    if len(words) > 1:
        return 1.0 if any(map(_is_marked, words)) else 0.7
    (word,) = words
    if len(word) == 1 or not any(map(str.isalpha, word)):  # I, 7
        return 0.0
    small = vocabulary[word.lower()]
    only_begins_sentences = word.istitle() and small >= vocabulary[word]
    if _is_marked(word) and not only_begins_sentences:
        return 0.7
    return 0.25 if max(vocabulary[word], small) <= common else 0.0


def _is_marked(word: str) -> bool:
    """Whether a word looks like a name or a symbol: letters, and a capital or a digit among them."""
    return any(map(str.isalpha, word)) and (word != word.lower() or any(map(str.isdigit, word)))


def _inconsistency(
    words: Words, tally: Tally, weight: float, most: int, rest: int, usual: str | None = None
) -> Inconsistency:
    """`most` occurrences are annotated as usual, `rest` are not; of labels, `usual` is what most of them have."""
    score = weight * (most / (most + rest)) ** 2 * log(1 + most) * log(1 + rest)
    labels = [label for label, _ in tally.labels.most_common()]
    usually, unusually = (labels, [""]) if usual is None else ([usual], [name for name in labels if name != usual])
    return Inconsistency(
        " ".join(words),
        dict(tally.labels.most_common()),
        tally.labels.total(),
        tally.missing,
        round(score, 3),
        tally.shown(usually),
        tally.shown(unusually),
    )
