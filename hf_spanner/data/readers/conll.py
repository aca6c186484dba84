"""Columns: one word a line, a blank line between sentences, one or several layers of tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..schema import ReadReport, Sentence
from ..tags import decode_tags, detect_scheme, is_tag
from .files import read_text

# Syntactic chunks carry B- and I- tags too (third column of CoNLL-2003) but are no entities.
_CHUNKS = {"ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP"}


@dataclass
class _Row:
    line: int
    columns: list[str]
    maybe_comment: bool


@dataclass
class _Layout:
    width: int
    token: int
    tags: list[int]

    def fits(self, row: _Row) -> bool:
        return len(row.columns) == self.width and all(is_tag(row.columns[column]) for column in self.tags)


def read_conll(
    path: str | Path,
    report: ReadReport,
    *,
    token_column: int | None = None,
    tag_columns: Sequence[int] | None = None,
    scheme: str | None = None,
    comment: str | None = "#",
) -> Iterator[Sentence]:
    """Columns separated by tabs or spaces; nested entities are the union over several columns of tags.

    Args:
        token_column: column of the words, from 0. By default the first, or the second if the first numbers the words
            of each sentence (GermEval: `index token outer inner`).
        tag_columns: columns of the tags. By default all that hold nothing but tags, syntactic chunks excepted.
        scheme: "IOB1", "BIO", "BIOES" or "BILOU"; by default detected for each column.
        comment: lines that begin with it are comments, unless they fit the columns: `#hashtag O` is a word. None: no
            comments.

    A line `-DOCSTART-` begins a new document.
    """
    path = Path(path)
    sentences, documents = _rows(path, comment)
    layout = _find_layout(path, sentences, token_column, tag_columns, report)
    if layout is None:
        report.ignore("comment line", count=sum(map(len, sentences)))
        return
    for rows in sentences:
        comments = [row for row in rows if row.maybe_comment and not layout.fits(row)]
        report.ignore("comment line", count=len(comments))
        rows[:] = [row for row in rows if row not in comments]
    _check_rows(path, sentences, layout)

    layers = [[[row.columns[column] for row in rows] for rows in sentences] for column in layout.tags]
    schemes = [scheme or _detect(path, column, layer) for column, layer in zip(layout.tags, layers, strict=True)]
    number = 0
    for index, (rows, doc_id) in enumerate(zip(sentences, documents, strict=True)):
        if not rows:
            continue
        where = f"{path}:{rows[0].line}"
        spans = []
        for layer, layer_scheme in zip(layers, schemes, strict=True):
            try:
                found, repairs = decode_tags(layer[index], layer_scheme)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
            spans += found
            report.change(f"tag that broke the scheme {layer_scheme}", where, repairs)
        entities = [{"start": start, "end": end, "label": label} for start, end, label in sorted(spans)]
        tokens = [row.columns[layout.token] for row in rows]
        yield report.keep(f"{path.stem}.{number}", doc_id, tokens, entities, where)
        number += 1


def _rows(path: Path, comment: str | None) -> tuple[list[list[_Row]], list[str | None]]:
    """The rows of every sentence, and the document that each sentence belongs to."""
    sentences: list[list[_Row]] = [[]]
    documents: list[str | None] = [None]
    num_docs = 0
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if line.startswith("-DOCSTART-"):
            sentences.append([])
            documents.append(f"{path.stem}.doc{num_docs}")
            num_docs += 1
        elif not line.strip(" \t"):
            if sentences[-1]:
                sentences.append([])
                documents.append(documents[-1])
        else:
            columns = line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
            columns = [column.strip(" ") for column in columns]
            sentences[-1].append(_Row(number, columns, bool(comment) and line.startswith(comment)))
    return sentences, documents


def _find_layout(
    path: Path,
    sentences: list[list[_Row]],
    token_column: int | None,
    tag_columns: Sequence[int] | None,
    report: ReadReport,
) -> _Layout | None:
    """Which column is what; None if there is no row to look at."""
    plain = [[row for row in rows if not row.maybe_comment] for rows in sentences]
    rows = [row for sentence in plain for row in sentence]
    if not rows:
        return None
    width = len(rows[0].columns)
    if token_column is None:
        token_column = 1 if width > 2 and all(map(_counts_up, plain)) else 0
    for column in [token_column, *(tag_columns or [])]:
        if not -width <= column < width:
            raise ValueError(
                f"{path}:{rows[0].line}: there is no column {column} among {width}: {rows[0].columns}. Count from 0."
            )
    token_column %= width
    if tag_columns is not None:
        return _Layout(width, token_column, [column % width for column in tag_columns])

    found, chunks = [], []
    for column in range(token_column + 1, width):
        values = {row.columns[column] for row in rows if len(row.columns) == width}
        if not all(map(is_tag, values)):
            continue
        labels = {value[2:] for value in values} - {""}
        (chunks if labels and labels <= _CHUNKS else found).append(column)
    if found:
        for column in chunks:
            report.ignore(f"column {column} of syntactic chunks")
    elif chunks:  # nothing else is there, so they are what is wanted
        found = chunks
    else:
        odd = next((row for row in rows if not is_tag(row.columns[-1])), rows[0])
        raise ValueError(
            f"{path}:{odd.line}: no column holds nothing but tags such as O or B-PER; the columns of this line are "
            f"{odd.columns}. Correct the tag or name the columns with tag_columns=."
        )
    return _Layout(width, token_column, found)


def _counts_up(rows: list[_Row]) -> bool:
    numbers = [row.columns[0] for row in rows]
    return numbers in ([str(n + 1) for n in range(len(rows))], [str(n) for n in range(len(rows))])


def _check_rows(path: Path, sentences: list[list[_Row]], layout: _Layout) -> None:
    for row in (row for rows in sentences for row in rows):
        if len(row.columns) != layout.width:
            raise ValueError(
                f"{path}:{row.line}: {len(row.columns)} columns, expected {layout.width} as in the first row: "
                f"{row.columns}. Separate columns by tabs if words contain spaces."
            )
        for column in layout.tags:
            if not is_tag(row.columns[column]):
                raise ValueError(
                    f"{path}:{row.line}: {row.columns[column]!r} in column {column} is not a tag; expected O or a "
                    "prefix, a hyphen and a label, such as B-PER."
                )


def _detect(path: Path, column: int, layer: list[list[str]]) -> str:
    try:
        return detect_scheme(layer)
    except ValueError as error:
        raise ValueError(f"{path}, column {column}: {error}") from error
