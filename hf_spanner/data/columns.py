"""Datasets that already have columns, from the Hub or from memory: how their rows become sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .schema import ReadReport, Sentence
from .tags import decode_tags, detect_scheme

if TYPE_CHECKING:
    import datasets


def sentences_of_columns(dataset: datasets.Dataset, report: ReadReport, where: str) -> Iterator[Sentence]:
    """Sentences from `tokens` and `entities` in our form, or from `tokens` and `ner_tags` (one tag a word)."""
    columns = dataset.features
    if "tokens" not in columns or not {"entities", "ner_tags"} & set(columns):
        raise ValueError(
            f"{where}: found the columns {', '.join(map(repr, columns))}, expected 'tokens' with 'entities' (start, "
            "end, label) or with 'ner_tags' (BIO). Rename or map the columns first."
        )
    wanted = [name for name in ("id", "doc_id", "tokens", "entities", "ner_tags", "pos") if name in columns]
    dataset = dataset.select_columns(wanted).with_format(None)
    if "entities" in columns:
        entities_of = _entity_reader(columns["entities"], where)
    else:
        entities_of = _tag_reader(dataset, report, where)
    for number, row in enumerate(dataset):
        id, doc_id = row.get("id"), row.get("doc_id")
        row_where = f"{where}, row {number}"
        yield report.keep(
            str(number) if id is None else str(id),
            None if doc_id is None else str(doc_id),
            row["tokens"],
            entities_of(row, row_where),
            row_where,
            row.get("pos"),
        )


def _entity_reader(feature: Any, where: str) -> Callable[[dict[str, Any], str], Any]:
    fields = getattr(feature, "feature", feature)  # List({...}), or {...: List} as old `Sequence({...})` columns have
    if not isinstance(fields, dict) or not {"start", "end", "label"} <= set(fields):
        raise ValueError(
            f"{where}: column 'entities' is {feature}, expected a list of objects with 'start', 'end' and 'label'."
        )
    label = getattr(fields["label"], "feature", fields["label"])
    names = getattr(label, "names", None)

    def entities_of(row: dict[str, Any], row_where: str) -> Any:
        entities = row["entities"]
        if isinstance(entities, dict):
            columns = (entities["start"], entities["end"], entities["label"])
            entities = [{"start": s, "end": e, "label": label} for s, e, label in zip(*columns, strict=True)]
        if names is None or entities is None:  # no list at all is refused, with a sentence, by `keep`
            return entities
        return [{**entity, "label": _name(entity["label"], names, row_where)} for entity in entities]

    return entities_of


def _tag_reader(dataset: datasets.Dataset, report: ReadReport, where: str) -> Callable[[dict[str, Any], str], Any]:
    names = getattr(getattr(dataset.features["ner_tags"], "feature", None), "names", None)

    def tags_of(values: Any, row_where: str) -> list[str]:
        if names:
            return [_name(value, names, row_where) for value in values]
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(
                f"{row_where}: the 'ner_tags' {values!r} are not tags and have no names; "
                "cast the column to List(ClassLabel(names=[...]))."
            )
        return values

    try:
        scheme = detect_scheme(tags_of(tags, where) for tags in dataset["ner_tags"])
    except ValueError as error:
        raise ValueError(f"{where}: column 'ner_tags' cannot be read: {error}") from error

    def entities_of(row: dict[str, Any], row_where: str) -> Any:
        tags = tags_of(row["ner_tags"], row_where)
        if len(tags) != len(row["tokens"]):
            raise ValueError(
                f"{row_where}: {len(tags)} tags do not fit {len(row['tokens'])} words; expected one each."
            )
        spans, repairs = decode_tags(tags, scheme)
        report.change(f"tag that broke the scheme {scheme}", row_where, repairs)
        return [{"start": start, "end": end, "label": label} for start, end, label in spans]

    return entities_of


def _name(value: Any, names: list[str], where: str) -> str:
    if value is None or not 0 <= value < len(names):  # -1 means "unknown" and would be the last name to Python
        raise ValueError(f"{where}: class {value} has no name among {names}; remove what has no label.")
    return names[value]
