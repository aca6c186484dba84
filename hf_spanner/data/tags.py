"""Tag sequences (BIO and its relatives) to entities and back. One layer of tags holds flat entities only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

Span = tuple[int, int, str]  # start, end (exclusive), label

# The prefixes that a scheme knows besides O: begin, inside, last, single. IOB1 uses B only between two touching
# entities of one label.
SCHEMES = {
    "IOB1": "BI",
    "BIO": "BI",
    "IOB2": "BI",
    "BIOES": "BIES",
    "IOBES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
    "BMEWO": "BMEW",
}
_IN_BIOES = {"M": "I", "W": "S", "L": "E", "U": "S"}  # what others call its prefixes

_TAG = re.compile(r"([BIESLUMW])-(.+)")


def is_tag(tag: str) -> bool:
    """True for `O` and for a prefix of any known scheme, a hyphen and a label."""
    return tag == "O" or _TAG.fullmatch(tag) is not None


def tags_to_entities(tags: Sequence[str], scheme: str | None = None) -> list[Span]:
    """The entities of one sentence in one layer, as (start, end, label), from left to right.

    Tolerant where real files are careless: an inside tag after `O` or after another label opens a new entity, and an
    entity that lacks its end tag ends where it ends. `scheme=None` detects the scheme from these tags alone.

    >>> tags_to_entities(["B-PER", "I-PER", "O", "I-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    return decode_tags(tags, detect_scheme([tags]) if scheme is None else scheme)[0]


def decode_tags(tags: Sequence[str], scheme: str) -> tuple[list[Span], int]:
    """`tags_to_entities`, and the number of places where tags broke their scheme and were read with goodwill."""
    prefixes = _prefixes(scheme)
    says_end = len(prefixes) > 2
    entities: list[Span] = []
    repairs = 0
    start, current = -1, ""  # start < 0: no entity is open
    for position, tag in enumerate([*tags, "O"]):
        prefix, label = _parse(tag)
        if prefix not in "O" + prefixes:
            raise ValueError(
                f"Tag {tag!r} does not belong to scheme {scheme}, which knows O and {', '.join(prefixes)}; "
                "choose another scheme or leave it to be detected."
            )
        prefix = _IN_BIOES.get(prefix, prefix)
        if start >= 0 and not (prefix in "IE" and label == current):
            entities.append((start, position, current))
            repairs += says_end
            start = -1
        if start < 0 and prefix != "O":
            start, current = position, label
            repairs += prefix in "IE" and scheme != "IOB1"
        if prefix in "ES":
            entities.append((start, position + 1, current))
            start = -1
    return entities, repairs


def entities_to_tags(entities: Iterable[Span], num_words: int, scheme: str = "BIO") -> list[str]:
    """One layer of tags for flat entities; an overlap is an error, because one layer cannot hold it.

    >>> entities_to_tags([(0, 2, "PER"), (3, 4, "LOC")], 4, "BIOES")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    if scheme == "IOB1":
        raise ValueError("Scheme 'IOB1' can be read but is not written; choose BIO, BIOES, BILOU or BMES.")
    prefixes = _prefixes(scheme)
    inside, last, single = list("IIB" if prefixes == "BI" else prefixes[1:])
    tags = ["O"] * num_words
    for start, end, label in entities:
        if not 0 <= start < end <= num_words:
            raise ValueError(f"Span [{start}, {end}) of label {label!r} does not fit into {num_words} words.")
        if any(tag != "O" for tag in tags[start:end]):
            raise ValueError(
                f"Span [{start}, {end}) of label {label!r} overlaps another entity; one layer of {scheme} tags holds "
                "flat entities only. Put nested entities into several layers."
            )
        letters = single if end - start == 1 else "B" + inside * (end - start - 2) + last
        tags[start:end] = [f"{letter}-{label}" for letter in letters]
    return tags


def detect_scheme(layer: Iterable[Sequence[str]]) -> str:
    """The scheme of one layer, given the tags of all its sentences: one of `SCHEMES`.

    With only B and I, it is IOB1 when some entity opens with I and B never opens one where I would have done. Where
    tags of several schemes are mixed, the greater number decides.
    """
    seen = SeenTags()
    for tags in layer:
        seen.see(tags)
    return seen.scheme()


class SeenTags:
    """What tells the scheme of a layer, gathered sentence by sentence: the layer may be larger than memory."""

    def __init__(self) -> None:
        self.prefixes: Counter[str] = Counter()
        self.opening_i = self.needless_b = False

    def see(self, tags: Iterable[str]) -> None:
        previous = ""
        for tag in tags:
            prefix, label = _parse(tag)
            self.prefixes[prefix] += 1
            self.opening_i |= prefix == "I" and label != previous
            self.needless_b |= prefix == "B" and label != previous
            previous = label

    def scheme(self) -> str:
        middle, single = self.prefixes["M"], self.prefixes["W"]
        if middle + single > sum(self.prefixes[prefix] for prefix in "ILU"):
            return "BMEWO" if single > self.prefixes["S"] else "BMES"
        bioes, bilou = (sum(self.prefixes[prefix] for prefix in pair) for pair in ("ES", "LU"))
        if bioes or bilou:
            if bioes == bilou:
                raise ValueError(
                    f"A layer mixes tags of BIOES and BILOU (prefixes {', '.join(sorted(self.prefixes))}); correct "
                    "the tags first."
                )
            return "BIOES" if bioes > bilou else "BILOU"
        return "IOB1" if self.opening_i and not self.needless_b else "BIO"


def without_strangers(tags: Sequence[str], scheme: str) -> tuple[list[str], list[int]]:
    """The tags with `O` in place of what is no tag of the scheme, and the positions where that was so."""
    known = "O" + _prefixes(scheme)
    strangers = [position for position, tag in enumerate(tags) if not is_tag(tag) or tag[0] not in known]
    clean = list(tags)
    for position in strangers:
        clean[position] = "O"
    return clean, strangers


def _prefixes(scheme: str) -> str:
    if scheme not in SCHEMES:
        raise ValueError(f"Scheme {scheme!r} is unknown; choose one of {', '.join(SCHEMES)}.")
    return SCHEMES[scheme]


def _parse(tag: str) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(
            f"{tag!r} is not a tag; expected O or a prefix, a hyphen and a label, such as B-PER. "
            "Is this the right column?"
        )
    return match[1], match[2]
