"""JSON by words: JSON Lines (this package's own form and its cousins) and SpERT's JSON list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..schema import ReadReport, Sentence
from ..tags import decode_tags, detect_scheme
from .files import document, identifier, json_lines, json_records

TOKEN_KEYS = ("tokens", "words")
ENTITY_KEYS = ("entities", "ner", "spans")
TAG_KEYS = ("ner_tags", "tags")


def read_jsonl(path: str | Path, report: ReadReport, *, end_inclusive: bool = False) -> Iterator[Sentence]:
    """One sentence a line: `{"tokens": [...], "entities": [{"start", "end", "label"}]}`.

    `words` may stand for `tokens`; `ner` or `spans` for `entities`; `[start, end, label]` for an entity; `type` for
    `label`; and `ner_tags` or `tags` with one tag a word (BIO and its relatives) for all the entities. `pos`,
    part-of-speech tags, are kept where there are any.

    Args:
        end_inclusive: the file's ends name the last word instead of the word after it.
    """
    path = Path(path)
    for number, (where, record) in enumerate(json_lines(path)):
        tokens = record[pick_key(record, TOKEN_KEYS, where)]
        tag_key = next((key for key in TAG_KEYS if key in record), None)
        if tag_key and not any(key in record for key in ENTITY_KEYS):
            entities = _entities_of_tags(record[tag_key], tokens, tag_key, report, where)
        else:
            entities = record[pick_key(record, ENTITY_KEYS, where, " (write [] for none)")]
            if isinstance(entities, list):  # anything else is refused, with a sentence, by `keep`
                entities = [_as_entity(entity, end_inclusive) for entity in entities]
        pos = record.get("pos")
        yield report.keep(identifier(record, path, number), document(record), tokens, entities, where, pos)


def read_spert(path: str | Path, report: ReadReport) -> Iterator[Sentence]:
    """SpERT's JSON: `[{"tokens", "entities": [{"type", "start", "end"}], "relations", "orig_id"}]`."""
    path = Path(path)
    for number, (where, record) in enumerate(json_records(path)):
        entities = record.get("entities")
        if isinstance(entities, list):
            entities = [_as_entity(entity) for entity in entities]
        report.ignore("relation", count=len(record.get("relations") or []))
        key = "orig_id" if "orig_id" in record else "id"
        yield report.keep(
            identifier(record, path, number, key),
            document(record),
            record.get("tokens"),
            entities,
            where,
            record.get("pos"),
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


def _as_entity(entity: Any, end_inclusive: bool = False) -> Any:
    """The entity in our form if it is one we know; else as it is, for `check_sentence` to refuse."""
    if isinstance(entity, list) and len(entity) == 3:
        entity = dict(zip(("start", "end", "label"), entity, strict=True))
    elif isinstance(entity, dict) and "label" not in entity and "type" in entity:
        entity = {**entity, "label": entity["type"]}
    if end_inclusive and isinstance(entity, dict) and isinstance(entity.get("end"), int):
        entity = {**entity, "end": entity["end"] + 1}
    return entity


def _entities_of_tags(tags: Any, tokens: Any, key: str, report: ReadReport, where: str) -> list[dict[str, Any]]:
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(
            f"{where}: {key!r} has to be a list of tags such as 'B-PER'; numbers cannot be read without their names."
        )
    if not isinstance(tokens, list) or len(tokens) != len(tags):
        raise ValueError(f"{where}: {len(tags)} tags do not fit the words {tokens!r}; expected one tag a word.")
    try:
        spans, repairs = decode_tags(tags, detect_scheme([tags]))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    report.change("tag that broke its scheme", where, repairs)
    return [{"start": start, "end": end, "label": label} for start, end, label in spans]
