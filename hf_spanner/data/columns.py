"""Datasets that already have columns, from the Hub, from memory or from a table on disk: how rows become sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .chars import WHOLE_TEXTS, TextOptions
from .records import (
    ENTITY_KEYS,
    LIST_KEYS,
    TAG_KEYS,
    TEXT_ENTITY_KEYS,
    TOKEN_KEYS,
    entities_of_tags,
    text_sentences,
    word_sentence,
)
from .schema import FURTHER, ReadReport, Sentence, first_line, short
from .tags import SeenTags, is_tag

if TYPE_CHECKING:
    import datasets

Row = dict[str, Any]


@dataclass
class Table:
    """Rows that can be read again and again, and the features of their columns."""

    features: Any
    rows: Callable[[], Iterable[Row]]

    @classmethod
    def of(cls, dataset: datasets.Dataset) -> Table:
        wanted = [name for name in dataset.features if name in _COLUMNS]
        plain = dataset.select_columns(wanted).with_format(None) if wanted else dataset
        return cls(dataset.features, lambda: plain)


_COLUMNS = {"id", "doc_id", "text", *FURTHER} | LIST_KEYS


def sentences_of_columns(
    table: Table | datasets.Dataset,
    report: ReadReport,
    where: str,
    text: TextOptions = WHOLE_TEXTS,
    *,
    end_inclusive: bool = False,
) -> Iterator[Sentence]:
    """Sentences from columns by words (`tokens` with `entities`, or with `ner_tags`, one tag a word) or by characters
    (`text` with `entities`), under all the names that the JSON readers know."""
    table = table if isinstance(table, Table) else Table.of(table)
    columns = table.features
    tokens = next((key for key in TOKEN_KEYS if key in columns), None)
    entities = next((key for key in (ENTITY_KEYS if tokens else TEXT_ENTITY_KEYS) if _holds_lists(columns, key)), None)
    tags = next((key for key in TAG_KEYS if key in columns), None) if tokens else None
    if not (tokens and (entities or tags)) and not ("text" in columns and entities):
        raise ValueError(
            f"{where}: found the columns {', '.join(map(repr, columns))}, expected 'tokens' with 'entities' (start, "
            "end, label) or with 'ner_tags' (BIO), or 'text' with 'entities' in characters. Rename or map the columns "
            "first."
        )
    tags = None if entities else tags
    prepare = (
        _entity_reader(columns[entities], entities, where)
        if entities
        else _tag_reader(table, str(tags), report, where)
    )
    for number, row in enumerate(_guarded(table.rows(), where)):
        row_where = f"{where}, row {number}"
        row = {key: value for key, value in row.items() if value is not None or key in (tokens, entities, tags)}
        row[entities or "entities"] = prepare(row, row_where)
        row = {key: value for key, value in row.items() if key != tags}
        id = str(row.get("id", number))
        if tokens:
            yield word_sentence(row, report, row_where, id, end_inclusive)
        else:
            yield from text_sentences(row, report, row_where, id, text)


def _holds_lists(columns: Any, key: str) -> bool:
    """Whether a column can hold entities: "label" is often the class of a whole text."""
    return key in columns and (isinstance(columns[key], dict | list) or hasattr(columns[key], "feature"))


def _guarded(rows: Iterable[Row], where: str) -> Iterator[Row]:
    """The rows; where the table is damaged, a sentence says so in place of the library's own errors."""
    try:
        yield from rows
    except Exception as error:  # Arrow fails in a dozen ways; only reading happens inside the `try`
        raise ValueError(f"{where} is damaged or no table ({first_line(error)}); write it again.") from error


def _entity_reader(feature: Any, key: str, where: str) -> Callable[[Row, str], Any]:
    fields = getattr(feature, "feature", feature)  # List({...}), or {...: List} as old `Sequence({...})` columns have
    fields = fields[0] if isinstance(fields, list) else fields
    label = next((name for name in ("label", "type") if isinstance(fields, dict) and name in fields), None)
    if label is None:
        raise ValueError(
            f"{where}: column {key!r} is {feature}, expected a list of objects with 'start', 'end' and 'label'."
        )
    names = getattr(getattr(fields[label], "feature", fields[label]), "names", None)

    def entities_of(row: Row, row_where: str) -> Any:
        entities = row[key]
        if isinstance(entities, dict):
            entities = _one_by_one(entities, row_where)
        if not isinstance(entities, list):  # refused, with a sentence, by the reader of records
            return entities
        return [_plain(entity, label, names, row_where) for entity in entities]

    return entities_of


def _plain(entity: Any, label: str, names: list[str] | None, where: str) -> Any:
    """The entity without the fields that are empty here, and with the name of its class."""
    if not isinstance(entity, dict):
        return entity
    plain = {name: value for name, value in entity.items() if value is not None or name in ("start", "end", label)}
    return plain if names is None else {**plain, label: _name(plain[label], names, where)}


def _one_by_one(columns: dict[str, Any], where: str) -> list[Row]:
    """The entities of a dict of lists, one list a field."""
    if len({len(values) if isinstance(values, list) else -1 for values in columns.values()}) != 1:
        raise ValueError(f"{where}: the entities are {short(columns)}, expected lists of one length.")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _tag_reader(table: Table, key: str, report: ReadReport, where: str) -> Callable[[Row, str], Any]:
    names = getattr(getattr(table.features[key], "feature", None), "names", None)

    def tags_of(values: Any, row_where: str) -> Any:
        if names and isinstance(values, list):
            return [_name(value, names, row_where) for value in values]
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(
                f"{row_where}: the {key!r} {short(values)} are not tags and have no names; "
                "cast the column to List(ClassLabel(names=[...]))."
            )
        return values

    seen, tagged, stranger = SeenTags(), False, None
    for number, row in enumerate(_guarded(table.rows(), where)):
        values = tags_of(row[key], f"{where}, row {number}")
        seen.see(value if is_tag(value) else "O" for value in values)
        tagged = tagged or any(map(is_tag, values))
        stranger = stranger or next((value for value in values if not is_tag(value)), None)
    if stranger is not None and not tagged:
        raise ValueError(f"{where}: column {key!r} cannot be read: {short(stranger)} is not a tag such as O or B-PER.")
    try:
        scheme = seen.scheme()
    except ValueError as error:
        raise ValueError(f"{where}: column {key!r} cannot be read: {error}") from error

    def entities_of(row: Row, row_where: str) -> Any:
        tokens = next(row[name] for name in TOKEN_KEYS if name in row)
        return entities_of_tags(tags_of(row[key], row_where), tokens, key, report, row_where, scheme)

    return entities_of


def _name(value: Any, names: list[str], where: str) -> str:
    if type(value) is not int or not 0 <= value < len(
        names
    ):  # -1 means "unknown" and would be the last name to Python
        raise ValueError(f"{where}: class {short(value)} has no name among {short(names)}; remove what has no label.")
    return names[value]
