"""CoNLL-2012 (OntoNotes 5): columns with the entities in brackets, which may stand inside each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..schema import ReadReport, Sentence, short
from .files import field_lines, fields, plain_name

BEGIN = "#begin document"
_WORD, _POS, _ENTITIES, _WIDTH = 3, 4, 10, 11  # columns, and how many there are at least
_BEGIN = re.compile(rf"{BEGIN} \(([^()]*)\)(?:; part (\d+))?[ \t]*")
_CELL = re.compile(r"(?:\([^()*\s]+)*\*?\)*|-")


def read_conll2012(path: str | Path, report: ReadReport) -> Iterator[Sentence]:
    """`*_gold_conll`: the word in the 4th column, its part of speech in the 5th and named entities in the 11th.

    A document is a part of a file: `doc_id` is `bc/cctv/00/cctv_0000.000`. Coreference and the other layers are left
    aside.
    """
    path = Path(path)
    stem = plain_name(path).stem
    doc_id: str | None = None
    rows: list[tuple[int, list[str]]] = []
    count = 0
    for number, line in field_lines(path):
        if match := _BEGIN.fullmatch(line):
            doc_id = match[1] + (f".{match[2]}" if match[2] else "")
        elif line.startswith(BEGIN):  # with something behind it that may be words
            raise ValueError(
                f"{path}:{number}: cannot read {short(line)}; expected nothing but '{BEGIN} (name); part 000'."
            )
        elif line.strip() and not line.startswith("#"):
            columns = fields(line)
            if len(columns) < _WIDTH:
                raise ValueError(
                    f"{path}:{number}: {len(columns)} columns, expected at least {_WIDTH} as CoNLL-2012 has them: "
                    f"{short(line)}."
                )
            if rows and len(columns) != len(rows[0][1]):  # the brackets stand in another column then
                raise ValueError(
                    f"{path}:{number}: {len(columns)} columns, expected {len(rows[0][1])} as in the first row of its "
                    f"sentence: {short(line)}."
                )
            rows.append((number, columns))
            continue
        elif line.strip() and not line.startswith("#end document"):
            cell = "".join(fields(line)[_ENTITIES:_WIDTH])
            report.lose("bracket in a comment", f"{path}:{number}: {short(line)}", cell.count("("))
            report.ignore("comment", f"{path}:{number}: {short(line)}", 0 if "(" in cell else 1)
        if rows:
            yield _sentence(rows, f"{stem}.{count}", doc_id, report, path)
            rows, count = [], count + 1
    if rows:
        yield _sentence(rows, f"{stem}.{count}", doc_id, report, path)


def _sentence(
    rows: list[tuple[int, list[str]]], id: str, doc_id: str | None, report: ReadReport, path: Path
) -> Sentence:
    entities = []
    opened: list[tuple[int, str, str]] = []  # start, label, where; the last is the innermost
    for position, (line, columns) in enumerate(rows):
        cell, where = columns[_ENTITIES], f"{path}:{line}: {short(columns[_ENTITIES])}"
        if not _CELL.fullmatch(cell):
            report.lose("cell that is no bracket of an entity", where, max(cell.count("("), 1))
            continue
        opened += [(position, label, where) for label in re.findall(r"\(([^()*]+)", cell)]
        for _ in range(cell.count(")")):
            if not opened:
                report.lose("closing bracket without an opening one", where)
                continue
            start, label, _ = opened.pop()
            entities.append({"start": start, "end": position + 1, "label": label})
    for _, label, where in opened:
        report.lose("opening bracket without a closing one", f"{where} of {short(label)}")
    entities.sort(key=lambda entity: (entity["start"], entity["end"]))
    tokens, pos = ([columns[number] for _, columns in rows] for number in (_WORD, _POS))
    further = {"pos": pos}
    return report.keep(id, doc_id, tokens, entities, f"{path}:{rows[0][0]}", further)
