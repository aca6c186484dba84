"""Tables: parquet, Arrow (a folder of `save_to_disk` or one file) and CSV, by words or by characters."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..chars import WHOLE_TEXTS, TextOptions
from ..columns import Table, sentences_of_columns
from ..records import LIST_KEYS, TAG_KEYS, TOKEN_KEYS, entities_of_tags, form_of, text_sentences, word_sentence
from ..schema import ReadReport, Sentence, first_line, short
from .files import fields, identifier, parse_json, plain_name, text_lines, whole_lines

_ROWS = 1000  # of a table in memory at a time
# Columns of a CSV file with one word a row; the headings are compared without case.
_WORDS, _TAGS = ("word", "token"), ("tag", "ner_tag", "ner")
_SENTENCES = ("sentence_id", "sentence", "sentence #", "sent_id", "id")


def read_parquet(
    path: str | Path, report: ReadReport, text: TextOptions = WHOLE_TEXTS, *, end_inclusive: bool = False
) -> Iterator[Sentence]:
    """A parquet file with the columns that the JSON readers know, by words (`tokens`) or by characters (`text`)."""
    table = _open(Path(path), _parquet)
    return sentences_of_columns(table, report, str(path), text, end_inclusive=end_inclusive)


def read_arrow(
    path: str | Path, report: ReadReport, text: TextOptions = WHOLE_TEXTS, *, end_inclusive: bool = False
) -> Iterator[Sentence]:
    """A dataset that `save_to_disk` wrote, or one of its `.arrow` files; columns as in parquet."""
    table = _open(Path(path), lambda path: Table.of(open_arrow(path)))
    return sentences_of_columns(table, report, str(path), text, end_inclusive=end_inclusive)


def open_arrow(path: Path) -> Any:
    """The `Dataset` (or `DatasetDict`) at this path, checked through: Arrow trusts its files, and a damaged one would
    end the process without a word."""
    import datasets

    dataset = datasets.load_from_disk(path) if path.is_dir() else datasets.Dataset.from_file(str(path))
    for part in dataset.values() if isinstance(dataset, dict) else [dataset]:
        part.data.table.validate(full=True)
    return dataset


def _open(path: Path, opener: Any) -> Any:
    try:
        return opener(path)
    except Exception as error:  # Arrow fails in a dozen ways; the user needs one sentence
        raise ValueError(f"{path} is damaged or no table ({first_line(error)}); write it again.") from error


def _parquet(path: Path) -> Table:
    import pyarrow.parquet as pq
    from datasets import Features

    def rows() -> Iterator[dict[str, Any]]:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield from batch.to_pylist()

    with pq.ParquetFile(path) as file:
        return Table(Features.from_arrow_schema(file.schema_arrow), rows)


def read_csv(
    path: str | Path, report: ReadReport, text: TextOptions = WHOLE_TEXTS, *, end_inclusive: bool = False
) -> Iterator[Sentence]:
    """A table with a line of headings, separated by commas, semicolons or tabs, in one of three forms.

    One word a row: `word`, `tag` and `sentence_id`. One sentence a row, by words: `tokens` with `entities`, or with
    `ner_tags`. One text a row: `text` with `entities` in characters. A list in a cell is written as JSON; tokens and
    tags may also be written with spaces between them.
    """
    path = Path(path)
    rows = csv_rows(path)
    first, headings = next(rows, ("", []))
    names = [name.strip().lower() for name in headings]
    form = csv_form(names)
    if not names:
        return
    if form is None:
        raise ValueError(
            f"{first}: found the columns {short(headings, 200)}, expected 'tokens' with 'entities' or 'ner_tags', "
            "'text' with 'entities', or 'word', 'tag' and 'sentence_id'."
        )
    records = _records(rows, names)
    if form == "one word a row":
        yield from _word_rows(path, records, report)
        return
    for number, (where, cells) in enumerate(records):
        record = {
            key: _value(key, cell, where)
            for key, cell in cells.items()
            if cell.strip() or key in ("text", *TOKEN_KEYS)
        }
        id = identifier(record, path, number, where)
        if form == "by words":
            yield word_sentence(record, report, where, id, end_inclusive)
        else:
            yield from text_sentences(record, report, where, id, text)


def csv_form(names: list[str]) -> str | None:
    """What a CSV file with these headings (in lower case) holds; None if nothing that we know."""
    one_word_a_row = all(set(names) & set(known) for known in (_WORDS, _TAGS, _SENTENCES))
    return form_of(names) or ("one word a row" if one_word_a_row else None)


def csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """("file:line", cells) of every row that is not empty, the headings first."""
    headings = next((line for _, line in text_lines(path) if line.strip()), "")
    delimiter = max(",;\t", key=headings.count)
    csv.field_size_limit(1 << 30)  # a cell may hold a whole document
    lines = (line for _, line in whole_lines(path))  # a line break inside a cell counts as it is written
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{path}:{reader.line_num}: no row of a CSV file ({error}); put cells with quotes, line breaks or "
                f"{delimiter!r} inside quotes."
            ) from error
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield f"{path}:{reader.line_num}", cells


def _records(rows: Iterator[tuple[str, list[str]]], names: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    twice = sorted({name for name in names if names.count(name) > 1 and name})
    for where, cells in rows:
        if twice:
            raise ValueError(f"{where}: the heading {twice[0]!r} stands twice in the first line; rename one.")
        if len(cells) != len(names):
            raise ValueError(
                f"{where}: {len(cells)} cells, expected {len(names)} as in the first line: {short(cells)}. Put cells "
                "with separators or line breaks inside quotes."
            )
        yield where, dict(zip(names, cells, strict=True))


def _value(key: str, cell: str, where: str) -> Any:
    """A cell as JSON would have it."""
    if key not in LIST_KEYS:
        return cell
    if not cell.lstrip().startswith(("[", "{")):
        return fields(cell) if key in ("pos", *TOKEN_KEYS, *TAG_KEYS) else cell
    try:
        return parse_json(cell)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where}: the cell {key!r} is {short(cell)}, expected a JSON list with double quotes and commas "
            f"({first_line(error)})."
        ) from error


def _word_rows(path: Path, records: Iterator[tuple[str, dict[str, str]]], report: ReadReport) -> Iterator[Sentence]:
    """The sentences of a table with one word a row: rows that follow each other with one number, or with none."""
    rows: list[dict[str, str]] = []
    current = began = ""
    count = 0

    def sentence() -> Sentence:
        tokens = [next(row[name] for name in _WORDS if name in row) for row in rows]
        layers = {name: [row[name].strip() for row in rows] for name in _TAGS if name in rows[0]}
        entities = [
            entity for name, tags in layers.items() for entity in entities_of_tags(tags, tokens, name, report, began)
        ]
        return report.keep(f"{plain_name(path).stem}.{count}", None, tokens, entities, began)

    for where, row in records:
        number = next(row[name] for name in _SENTENCES if name in row).strip()
        if number and number != current and rows:  # an empty number goes on with the sentence
            yield sentence()
            count += 1
            rows = []
        current, began = number or current, began if rows else where
        rows.append(row)
    if rows:
        yield sentence()
