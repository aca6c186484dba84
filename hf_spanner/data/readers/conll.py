"""Columns: one word a line, a blank line between sentences, one or several layers of tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..schema import ReadReport, Sentence, short
from ..tags import SeenTags, decode_tags, is_tag, without_strangers
from .files import field_lines, plain_name

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
    schemes: list[str] = field(default_factory=list)

    def fits(self, row: _Row) -> bool:
        return len(row.columns) == self.width and any(is_tag(row.columns[column]) for column in self.tags)


@dataclass
class _Column:
    """What the values of one column are, over the whole file."""

    tags: int = 0
    others: int = 0
    entity_tags: int = 0
    has_outside: bool = False
    stranger: str = ""  # where the first value stands that is no tag
    labels: set[str] = field(default_factory=set)

    def see(self, value: str, path: Path, line: int) -> None:
        if not is_tag(value):
            self.others += 1
            self.stranger = self.stranger or f"{path}:{line}: {short(value)}"
            return
        self.tags += 1
        if value == "O":
            self.has_outside = True
        else:
            self.entity_tags += 1
            self.labels.add(value[2:])

    @property
    def is_layer(self) -> bool:
        """Whether these are tags. Half of them are enough: a bad tag costs that tag and not its layer."""
        return self.tags > 0 and self.tags >= self.others

    @property
    def only_tags(self) -> bool:
        """Whether these can be nothing but tags. (`B-52` alone is a word.)"""
        return self.has_outside and self.entity_tags > 0 and not self.others


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

    The file is read several times, first to find out what its columns are, and never held in memory. A value that is
    no tag, in a column of tags, is counted as not kept and read as `O`.

    Args:
        token_column: column of the words, from 0. By default the first, or the second if the first numbers the words
            of each sentence (GermEval: `index token outer inner`).
        tag_columns: columns of the tags. By default all that hold more tags than other values, syntactic chunks
            excepted.
        scheme: "IOB1", "BIO", "BIOES", "BILOU", "BMES" or "BMEWO"; by default detected for each column.
        comment: lines that begin with it are comments, unless they fit the columns: `#hashtag O` is a word. None: no
            comments.

    A line `-DOCSTART-` begins a new document.
    """
    path = Path(path)
    layout = _find_layout(path, comment, token_column, tag_columns, report)
    if layout is None:
        report.ignore("comment line", str(path), sum(len(rows) for rows, _ in _sentences(path, comment)))
        return
    layout.schemes = [scheme] * len(layout.tags) if scheme else _detect_schemes(path, comment, layout)
    stem = plain_name(path).stem
    sentences = _without_comments(_sentences(path, comment), layout, report, path)
    for number, (rows, doc_id) in enumerate(sentences):
        _check_widths(path, rows, layout)
        spans = [
            span for layer in range(len(layout.tags)) for span in _spans(path, rows, layout, layer, scheme, report)
        ]
        entities = [{"start": start, "end": end, "label": label} for start, end, label in sorted(spans)]
        tokens = [row.columns[layout.token] for row in rows]
        name = None if doc_id is None else f"{stem}.doc{doc_id}"
        yield report.keep(f"{stem}.{number}", name, tokens, entities, f"{path}:{rows[0].line}")


def _spans(
    path: Path, rows: list[_Row], layout: _Layout, layer: int, asked: str | None, report: ReadReport
) -> list[tuple[int, int, str]]:
    """The entities of one sentence in one layer of tags."""
    column, scheme = layout.tags[layer], layout.schemes[layer]
    tags = [row.columns[column] for row in rows]
    clean, strangers = without_strangers(tags, scheme)
    for position in strangers:
        where = f"{path}:{rows[position].line}"
        if asked and is_tag(tags[position]):
            raise ValueError(
                f"{where}: Tag {tags[position]!r} does not belong to scheme {asked}; choose another scheme or leave "
                "it to be detected."
            )
        report.lose(f"value in column {column} that is no tag of its scheme", f"{where}: {short(tags[position])}")
    found, repairs = decode_tags(clean, scheme)
    report.change(f"tag that broke the scheme {scheme}", f"{path}:{rows[0].line}", repairs)
    return found


def _sentences(path: Path, comment: str | None) -> Iterator[tuple[list[_Row], int | None]]:
    """The rows of every sentence, and the number of the document that it belongs to."""
    rows: list[_Row] = []
    document: int | None = None
    for number, line in field_lines(path):
        begins_document = line.startswith("-DOCSTART-") and not _entity_tags(line.split()[1:])  # else a word, oddly
        if begins_document or not line.strip(" \t"):
            if rows:
                yield rows, document
            rows = []
            if begins_document:
                document = 0 if document is None else document + 1
        else:
            columns = line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
            columns = [column.strip(" ") for column in columns]
            rows.append(_Row(number, columns, bool(comment) and line.startswith(comment or "")))
    if rows:
        yield rows, document


def _without_comments(
    sentences: Iterable[tuple[list[_Row], int | None]], layout: _Layout, report: ReadReport | None, path: Path
) -> Iterator[tuple[list[_Row], int | None]]:
    for rows, document in sentences:
        kept = [row for row in rows if not row.maybe_comment or layout.fits(row)]
        if report is not None and len(kept) < len(rows):
            _count_comments([row for row in rows if row not in kept], report, path)
        if kept:
            yield kept, document


def _count_comments(rows: list[_Row], report: ReadReport, path: Path) -> None:
    for row in rows:
        where = f"{path}:{row.line}: {short(row.columns)}"
        tags = _entity_tags(row.columns[1:])
        report.lose("tag in a comment line", where, tags)  # it may be a word that begins with # in a damaged line
        report.ignore("comment line", where, 0 if tags else 1)


def _entity_tags(columns: Iterable[str]) -> int:
    return sum(is_tag(column) and column != "O" for column in columns)


def _find_layout(
    path: Path,
    comment: str | None,
    token_column: int | None,
    tag_columns: Sequence[int] | None,
    report: ReadReport,
) -> _Layout | None:
    """Which column is what; None if there is no row to look at."""
    first: _Row | None = None
    columns: list[_Column] = []
    numbered = True
    for rows, _ in _sentences(path, comment):
        plain = [row for row in rows if not row.maybe_comment]
        numbered = numbered and _counts_up(plain)
        for row in plain:
            if first is None:
                first, columns = row, [_Column() for _ in row.columns]
            if len(row.columns) == len(columns):
                for column, value in zip(columns, row.columns, strict=True):
                    column.see(value, path, row.line)
    if first is None:
        return None
    width = len(columns)
    token = (1 if width > 2 and numbered else 0) if token_column is None else token_column
    for number in [token, *(tag_columns or [])]:
        if not -width <= number < width:
            raise ValueError(
                f"{path}:{first.line}: there is no column {number} among {width}: {short(first.columns)}. "
                "Count from 0."
            )
    token %= width
    if token_column is None and columns[token].only_tags:
        raise ValueError(
            f"{path}:{first.line}: column {token}, where words are expected, holds nothing but tags: "
            f"{short(first.columns)}. Add the words, or name the columns with token_column= and tag_columns=."
        )
    if tag_columns is None:
        return _Layout(width, token, _tag_columns(path, columns, token, first, report))
    chosen = [number % width for number in tag_columns]
    for number in chosen:
        if not columns[number].tags:
            raise ValueError(
                f"{columns[number].stranger} in column {number} is not a tag, and neither is any other value of the "
                "column; expected O or a prefix, a hyphen and a label, such as B-PER."
            )
    return _Layout(width, token, chosen)


def _tag_columns(path: Path, columns: list[_Column], token: int, first: _Row, report: ReadReport) -> list[int]:
    """The columns of tags; what looks like tags elsewhere is counted."""
    layers: list[int] = []
    chunks: list[int] = []
    for number in range(token + 1, len(columns)):
        column = columns[number]
        if column.is_layer:
            (chunks if column.labels and column.labels <= _CHUNKS else layers).append(number)
        elif column.has_outside:
            report.lose(
                f"tag in column {number}, which holds more other values than tags", column.stranger, column.entity_tags
            )
        else:  # say, parts of speech, or lemmas, of which E-mail looks like a tag
            report.ignore(f"column {number}, which holds no tags", column.stranger)
    if layers:
        for number in chunks:
            report.ignore(f"column {number} of syntactic chunks", str(path))
        return layers
    if chunks:  # nothing else is there, so they are what is wanted
        return chunks
    odd = columns[-1].stranger or f"{path}:{first.line}: {short(first.columns[-1])}"
    raise ValueError(
        f"{odd} is not a tag: no column holds tags such as O or B-PER; the columns of line {first.line} are "
        f"{short(first.columns)}. Correct the tags or name the columns with tag_columns=."
    )


def _counts_up(rows: list[_Row]) -> bool:
    numbers = [row.columns[0] for row in rows]
    return numbers in ([str(n + 1) for n in range(len(rows))], [str(n) for n in range(len(rows))])


def _check_widths(path: Path, rows: list[_Row], layout: _Layout) -> None:
    for row in rows:
        if len(row.columns) != layout.width:
            raise ValueError(
                f"{path}:{row.line}: {len(row.columns)} columns, expected {layout.width} as in the first row: "
                f"{short(row.columns)}. Separate columns by tabs if words contain spaces."
            )


def _detect_schemes(path: Path, comment: str | None, layout: _Layout) -> list[str]:
    seen = [SeenTags() for _ in layout.tags]
    for rows, _ in _without_comments(_sentences(path, comment), layout, None, path):
        _check_widths(path, rows, layout)
        for column, tags in zip(layout.tags, seen, strict=True):
            values = [row.columns[column] for row in rows]
            tags.see(value if is_tag(value) else "O" for value in values)
    schemes = []
    for column, tags in zip(layout.tags, seen, strict=True):
        try:
            schemes.append(tags.scheme())
        except ValueError as error:
            raise ValueError(f"{path}, column {column}: {error}") from error
    return schemes
