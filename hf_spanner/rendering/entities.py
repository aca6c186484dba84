"""What can be drawn: the pipeline's entities over a text, or entities over its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from ..modeling.decoding import Entity
from .layout import Mark


def as_marks(text: str | Sequence[str], entities: Iterable[Mapping[str, Any] | Entity]) -> tuple[str, list[Mark]]:
    """A text and its entities in characters, ready to be drawn.

    Args:
        text: a text; or its words, which are joined by a space. Entities then count in words.
        entities: mappings with `start`, `end` and `entity_group` (or `label`), and perhaps `score` and `mention`; or
            `Entity` tuples.
    """
    if not isinstance(text, Iterable) or isinstance(text, (bytes, Mapping)):
        raise TypeError(f"The text is {type(text).__name__}, expected a string, or a list of words.")
    if not isinstance(entities, Iterable) or isinstance(entities, (str, bytes, Mapping)):
        raise TypeError(f"The entities are {type(entities).__name__}, expected a list: the text comes first.")
    whole, places = (text, None) if isinstance(text, str) else join_words(text)
    return whole, [_mark(entity, len(whole), places) for entity in entities]


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The words joined by a space, and where each of them is."""
    places, position = [], 0
    for word in words:
        places.append((position, position + len(word)))
        position += len(word) + 1
    return " ".join(words), places


def _mark(entity: Mapping[str, Any] | Entity, length: int, places: Sequence[tuple[int, int]] | None) -> Mark:
    row: Any = entity._asdict() if isinstance(entity, Entity) else entity
    if isinstance(row, list):
        raise TypeError(
            "The entities are lists, as of several texts: draw each text with its own, render(texts[0], found[0])."
        )
    if not isinstance(row, Mapping):
        raise TypeError(f"Cannot draw {entity!r:.80}: an entity is what the pipeline returns, a dict, or an Entity.")
    label = row.get("entity_group", row.get("label"))
    start, end = row.get("start"), row.get("end")
    if places is not None and "start_word" in row:
        start, end = row["start_word"], row["end_word"]
    if label is None or start is None or end is None:
        raise ValueError(f"Cannot draw {dict(row)!r:.120}: an entity has start, end and entity_group (or label).")
    try:
        start, end = index(start), index(end)  # of numpy, too
        score = None if row.get("score") is None else float(row["score"])
    except (TypeError, ValueError):
        raise ValueError(f"Cannot draw {dict(row)!r:.120}: start and end are whole numbers, score is one.") from None
    size, unit = (length, "characters") if places is None else (len(places), "words")
    if start == end:
        raise ValueError(f"The entity {label!r} covers {unit} {start} to {end}, which is nothing to draw.")
    if not 0 <= start < end <= size:
        raise ValueError(
            f"An entity covers {unit} {start} to {end}, and the text has {size}: are they of another text?"
        )
    if places is not None:
        start, end = places[start][0], places[end - 1][1]
        if start == end:
            raise ValueError(f"The entity {label!r} covers an empty word, which cannot be drawn.")
    return Mark(start, end, str(label), score, row.get("mention"))
