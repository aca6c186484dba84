"""A record, from JSON, a table or anywhere: how its fields become sentences, by words or by characters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .chars import CharSpan, TextOptions, document_to_sentences
from .schema import ReadReport, Sentence, short
from .tags import decode_tags, detect_scheme, is_tag, without_strangers

TOKEN_KEYS = ("tokens", "words")
ENTITY_KEYS = ("entities", "ner", "spans")
TAG_KEYS = ("ner_tags", "tags")
TEXT_ENTITY_KEYS = ("entities", "spans", "label", "labels")
LIST_KEYS = {"pos", "relations", *TOKEN_KEYS, *ENTITY_KEYS, *TAG_KEYS, *TEXT_ENTITY_KEYS}
_SPAN_FIELDS = (("start", "start_offset"), ("end", "end_offset"), ("label", "type"))
_SAYS_NOTHING_NEW = {"id", "text"}  # fields of an entity that need no mention when they are left aside


def form_of(names: Collection[str]) -> str | None:
    """What a record with these fields counts in; None if it holds nothing that we know."""
    fields = set(names)
    if fields & set(TOKEN_KEYS) and fields & {*ENTITY_KEYS, *TAG_KEYS}:
        return "by words"
    return "by characters" if "text" in fields and fields & set(TEXT_ENTITY_KEYS) else None


def word_sentence(
    record: dict[str, Any], report: ReadReport, where: str, id: str, end_inclusive: bool = False
) -> Sentence:
    """The sentence of a record that counts in words."""
    tokens = record[pick_key(record, TOKEN_KEYS, where)]
    key = next((key for key in TAG_KEYS if key in record), None)
    if key and not any(key in record for key in ENTITY_KEYS):
        entities: Any = entities_of_tags(record[key], tokens, key, report, where)
    else:
        key = pick_key(record, ENTITY_KEYS, where, " (write [] for none)")
        entities = record[key]
        if isinstance(entities, list):  # anything else is refused, with a sentence, by `keep`
            entities = [_as_entity(entity, report, where, end_inclusive) for entity in entities]
    count_others(record, key, (*ENTITY_KEYS, *TAG_KEYS), report, where)
    return report.keep(id, document(record, where), tokens, entities, where, further_columns(record, report, where))


def further_columns(record: dict[str, Any], report: ReadReport, where: str) -> dict[str, Any]:
    """The columns that a sentence may have beside words and entities; what only has their name is left aside."""
    further = {"pos": record.get("pos")}
    for name, fits in (("labels", _are_labels), ("flat", _is_bool), ("corpus", _is_text)):
        value = record.get(name)
        if value is not None and not fits(value):
            report.ignore(f"field {name!r} of a sentence, of another meaning than here", f"{where}: {short(value)}")
        elif value is not None:
            further[name] = value
    return further


def _are_labels(value: Any) -> bool:
    """Whether these are labels that a sentence is annotated with, and not a tag for each of its words."""
    return isinstance(value, list) and all(isinstance(label, str) and label for label in value) and "O" not in value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def text_sentences(
    record: dict[str, Any],
    report: ReadReport,
    where: str,
    id: str,
    options: TextOptions,
    text_keys: tuple[str, ...] = ("text",),
) -> Iterator[Sentence]:
    """The sentences of a record that counts in characters."""
    text = record[pick_key(record, text_keys, where)]
    if not isinstance(text, str):
        raise ValueError(f"{where}: the text is {short(text)}, expected a string.")
    key = pick_key(record, TEXT_ENTITY_KEYS, where, " (write [] for none)")
    entities = record[key]
    if not isinstance(entities, list):
        raise ValueError(f"{where}: the entities are {short(entities)}, expected a list; write [] for none.")
    beside = {name: record.get(name) for name in ("flat", "corpus")}
    if key != "labels" and _are_labels(record.get("labels")):  # those it is annotated with; else they are entities
        beside["labels"] = record["labels"]
    further = further_columns(beside, report, where)
    others = tuple(name for name in TEXT_ENTITY_KEYS if name not in further)
    count_others(record, key, others, report, where)
    spans = [_char_span(entity, report, where) for entity in entities]
    doc_id = document(record, where)
    yield from document_to_sentences(text, spans, report, options, id=id, doc_id=doc_id, where=where, further=further)


def _char_span(entity: Any, report: ReadReport, where: str) -> CharSpan:
    if isinstance(entity, list) and len(entity) == 3:
        return CharSpan(*entity)
    if isinstance(entity, dict):
        names = [next((name for name in known if entity.get(name) is not None), None) for known in _SPAN_FIELDS]
        if None not in names:
            start, end, label = names
            count_fields(entity, {"mention", *map(str, names)}, report, where)
            return CharSpan(entity[start], entity[end], entity[label], mention=entity.get("mention"))
    raise ValueError(
        f"{where}: entity {short(entity)} has to be [start, end, label] or an object with 'start', 'end' and 'label'."
    )


def pick_key(record: dict[str, Any], keys: tuple[str, ...], where: str, remark: str = "") -> str:
    """The first of `keys` that the record has; none is an error that lists what there is."""
    for key in keys:
        if key in record:
            return key
    raise ValueError(
        f"{where}: found the fields {', '.join(map(repr, record)) or 'none'}, expected one of "
        f"{', '.join(map(repr, keys))}{remark}. Is this the right format?"
    )


def count_others(record: dict[str, Any], chosen: str, keys: tuple[str, ...], report: ReadReport, where: str) -> None:
    """Count what else a record holds that could be annotation, besides the field that was read."""
    for key in keys:
        others = record.get(key)
        if isinstance(others, dict):  # {"start": [...], "end": [...]}, as tables have entities, or one object
            others = [{}] * max((len(value) if isinstance(value, list) else 1 for value in others.values()), default=0)
        if key == chosen or not isinstance(others, list):
            continue
        entities = sum(isinstance(other, dict | list) for other in others)
        report.lose(f"entity under {key!r}, beside {chosen!r}", where, entities)
        report.ignore(f"word or tag under {key!r}, beside {chosen!r}", where, len(others) - entities)
    relations = record.get("relations")
    report.ignore("relation", where, len(relations) if isinstance(relations, list) else 0)


def count_fields(entity: dict[str, Any], read: set[str], report: ReadReport, where: str) -> None:
    """Count the fields of an entity that nobody reads."""
    for key in sorted(entity.keys() - read - _SAYS_NOTHING_NEW):
        report.ignore(f"field {short(key)} of an entity", f"{where}: {short(entity[key])}")


def _as_entity(entity: Any, report: ReadReport, where: str, end_inclusive: bool) -> Any:
    """The entity in our form if it is one we know; else as it is, for `check_sentence` to refuse."""
    if isinstance(entity, list) and len(entity) == 3:
        entity = dict(zip(("start", "end", "label"), entity, strict=True))
    elif isinstance(entity, dict):
        label = "label" if "label" in entity or "type" not in entity else "type"
        count_fields(entity, {"start", "end", "mention", label}, report, where)
        entity = {**entity, "label": entity[label]} if label in entity else entity
    if end_inclusive and isinstance(entity, dict) and type(entity.get("end")) is int:
        entity = {**entity, "end": entity["end"] + 1}
    return entity


def entities_of_tags(
    tags: Any, tokens: Any, key: str, report: ReadReport, where: str, scheme: str | None = None
) -> list[dict[str, Any]]:
    """The entities that one layer of tags stands for. One value that is no tag costs that tag; none is an error."""
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(
            f"{where}: {key!r} has to be a list of tags such as 'B-PER', but is {short(tags)}; numbers cannot be read "
            "without their names."
        )
    if not isinstance(tokens, list) or len(tokens) != len(tags):
        raise ValueError(f"{where}: {len(tags)} tags do not fit the words {short(tokens)}; expected one tag a word.")
    readable = [tag if is_tag(tag) else "O" for tag in tags]
    if scheme is None and tags and not any(map(is_tag, tags)):
        raise ValueError(f"{where}: {short(tags[0])} is not a tag; {key!r} has to hold tags such as O or B-PER.")
    try:
        scheme = scheme or detect_scheme([readable])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    clean, strangers = without_strangers(tags, scheme)
    for position in strangers:
        report.lose("value that is no tag of its scheme", f"{where}: {short(tags[position])} of word {position}")
    spans, repairs = decode_tags(clean, scheme)
    report.change("tag that broke its scheme", where, repairs)
    return [{"start": start, "end": end, "label": label} for start, end, label in spans]


def document(record: dict[str, Any], where: str) -> str | None:
    """The record's `doc_id` as a string, None if nobody knows."""
    return name_of(record, "doc_id", where)


def name_of(record: dict[str, Any], key: str, where: str) -> str | None:
    """A field that names something, as a string; None if it is missing."""
    value = record.get(key)
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"{where}: {key!r} is {short(value)}, expected a string or a number.")
    return None if value is None else str(value)
