"""Rows as parquet: the columns of the input as they were, and the entities as a list of structs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .sources import as_json

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("hf_spanner")


class Layout(NamedTuple):
    """What a table needs to know that its rows do not say.

    Attributes:
        entities_column: the name of the column of entities.
        mentions: whether these have kinds of mention.
        words: whether they count in words, too.
        nesting: whether they say how deep they lie, and in which other.
        schema: the columns of the input, if it knows them.
    """

    entities_column: str = "entities"
    mentions: bool = False
    words: bool = False
    nesting: bool = False
    schema: pa.Schema | None = None


def entity_type(layout: Layout) -> pa.DataType:
    """A list of entities, as the pipeline gives them."""
    import pyarrow as pa

    fields = {"entity_group": pa.string(), "score": pa.float64(), "word": pa.string()}
    fields |= {"start": pa.int64(), "end": pa.int64()}
    if layout.mentions:
        fields["mention"] = pa.string()
    if layout.words:
        fields |= {"start_word": pa.int64(), "end_word": pa.int64()}
    if layout.nesting:
        fields |= {"depth": pa.int64(), "parent": pa.int64()}
    return pa.list_(pa.struct(list(fields.items())))


def write(path: Path, rows: Sequence[dict[str, Any]], layout: Layout) -> None:
    """Write rows to a parquet file. A column with values of several types becomes JSON text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {} if layout.schema is None else {field.name: field.type for field in layout.schema}
    types[layout.entities_column] = entity_type(layout)
    names = list(types) if layout.schema is not None else list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows], types.get(name), name) for name in names}
    pq.write_table(pa.table(columns), path)


def join(path: Path, parts: Iterable[Path]) -> None:
    """Write parquet files one after the other into one; columns that have several types in them become JSON text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = list(parts)
    fields: dict[str, pa.DataType] = {}
    for part in parts:
        for field in pq.read_schema(part):
            fields[field.name] = _common(fields.get(field.name, field.type), field.type)
    schema = pa.schema(list(fields.items()))
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            table = pq.ParquetFile(part).read()
            there = set(table.column_names)
            columns = [
                (column if (column := table[name]).type == kind else _column(column.to_pylist(), kind, name))
                if name in there
                else pa.nulls(len(table), kind)
                for name, kind in fields.items()
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds values of both; text if there is no other."""
    import pyarrow as pa

    try:
        schemas = [pa.schema([("it", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("it").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.string()


def _column(values: list[Any], kind: pa.DataType | None, name: str) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if kind is not None and not pa.types.is_string(kind):
            raise
    logger.warning("The column %r holds values of several types: they are written as text, as JSON has them.", name)
    return pa.array([v if v is None or isinstance(v, str) else as_json(v) for v in values], pa.string())
