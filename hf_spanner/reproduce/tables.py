"""Tables of the papers as data: what each cell is trained with, how it is measured, and what the paper prints.

A table is a YAML file, `tables/PAPER/TABLE.yaml`. What a cell is made of may stand at the top (for all cells), at its
column and at its row, and is taken in this order, the row's last:

- `corpus`, `recipe` (`{corpus}` stands for the corpus), `settings` (of the training, on top of the recipe's);
- `evaluate`: how the trained model reads, such as `{head: seq}` or `{num_steps: 1}`; `split`, if not test;
- `measure`: where the figure stands among all that is measured of a run, such as `scores.f1` or
  `groups.nesting.nested.f1` (see `measures.py`; `{row}` and `{column}` stand for their names; of a row it may be a
  list, one for each of its columns); `times` and `digits`: how the paper prints it;
- `minus`: the row that is subtracted, where the paper shows differences.

`printed` of a row are the paper's own figures, one for each of its columns; null where our copy of the paper lacks
one. They are shown beside ours and used for nothing else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent / "tables"
PAPERS = ("dspert", "bundling", "sng", "locate_and_label", "diffusion_ner")
KINDS = ("table", "curve", "histogram", "analysis")
PARTS = ("corpus", "recipe", "settings", "evaluate", "split", "measure", "times", "digits", "minus")
TOP = ("title", "kind", "item", "note", "seeds", "rows", "columns", "axis", *PARTS)


@dataclass(frozen=True)
class Cell:
    """One figure of a table: what is trained, how it is read and measured, and what the paper prints."""

    row: str
    column: str
    corpus: str
    measure: str
    recipe: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    evaluate: Mapping[str, Any] = field(default_factory=dict)
    split: str = "test"
    times: float = 1.0
    digits: int | None = 2  # None: as many as it takes
    minus: str | None = None
    printed: str | None = None

    @property
    def section(self) -> str:
        """What must be measured: the first part of `measure`."""
        return self.measure.split(".")[0]


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper; `cells` are in its order, row by row."""

    paper: str
    name: str
    title: str
    item: str
    kind: str
    cells: tuple[Cell, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    seeds: tuple[int, ...] = (1,)
    note: str = ""
    axis: str = ""

    def cell(self, row: str, column: str) -> Cell | None:
        return next((cell for cell in self.cells if (cell.row, cell.column) == (row, column)), None)


def corpora_of(table: Table) -> list[str]:
    """The corpora whose sentences a table needs; what recipes hold needs none."""
    return list(dict.fromkeys(cell.corpus for cell in table.cells if cell.section != "recipe"))


def table_names(paper: str) -> list[str]:
    """The tables of a paper, by name."""
    if paper not in PAPERS:
        raise ValueError(f"There is no paper {paper!r}: choose from {', '.join(PAPERS)}.")
    return sorted(file.stem for file in (FOLDER / paper).glob("*.yaml"))


@cache
def read_table(paper: str, name: str) -> Table:
    """A table by the names of its paper and its file."""
    names = table_names(paper)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(names)}."
        raise ValueError(f"{paper} has no table {name!r}; {hint}")
    content = yaml.safe_load((FOLDER / paper / f"{name}.yaml").read_text(encoding="utf-8"))
    return make_table(paper, name, content)


def make_table(paper: str, name: str, content: Mapping[str, Any]) -> Table:
    """A table from the content of its file; a ValueError says what is wrong with it."""
    place = f"{paper}/{name}.yaml"
    _known(content, TOP, place)
    if (kind := content.get("kind", "table")) not in KINDS:
        raise ValueError(f"{place}: there is no kind {kind!r}: choose from {', '.join(KINDS)}.")
    columns: dict[str, dict] = {str(column): dict(parts or {}) for column, parts in content["columns"].items()}
    rows: dict[str, dict] = {str(row): dict(parts or {}) for row, parts in content["rows"].items()}
    for column, parts in columns.items():
        _known(parts, PARTS, f"{place}, column {column}")
    cells = []
    for row, parts in rows.items():
        _known(parts, (*PARTS, "columns", "printed"), f"{place}, row {row}")
        chosen = [str(column) for column in parts.pop("columns", columns)]
        printed = parts.pop("printed", None) or [None] * len(chosen)
        if len(printed) != len(chosen) or not columns.keys() >= set(chosen):
            raise ValueError(f"{place}: row {row!r} prints {len(printed)} figures for the columns {chosen}.")
        measures = parts.pop("measure", None)
        if not isinstance(measures, list):
            measures = [measures] * len(chosen)
        if len(measures) != len(chosen):
            raise ValueError(f"{place}: row {row!r} has {len(measures)} measures for the columns {chosen}.")
        for column, figure, measure in zip(chosen, printed, measures, strict=True):
            own = parts if measure is None else {**parts, "measure": measure}
            layers = [{key: content[key] for key in PARTS if key in content}, columns[column], own]
            cells.append(_cell(row, column, layers, figure, place))
    there = {(cell.row, cell.column) for cell in cells}
    for cell in cells:
        if cell.minus is not None and (cell.minus, cell.column) not in there:
            raise ValueError(f"{place}: row {cell.row!r} is minus {cell.minus!r}, which has no {cell.column}.")
    return Table(
        paper=paper,
        name=name,
        title=content["title"],
        item=content.get("item", name),
        kind=kind,
        cells=tuple(cells),
        rows=tuple(rows),
        columns=tuple(columns),
        seeds=tuple(content.get("seeds", (1,))),
        note=" ".join(content.get("note", "").split()),
        axis=content.get("axis", ""),
    )


def _cell(row: str, column: str, layers: list[dict], printed: Any, place: str) -> Cell:
    merged: dict[str, Any] = {"settings": {}, "evaluate": {}}
    for layer in layers:
        for key, value in layer.items():
            merged[key] = {**merged[key], **value} if key in ("settings", "evaluate") else value
    if lacking := [key for key in ("corpus", "measure") if key not in merged]:
        raise ValueError(f"{place}: row {row!r}, column {column!r} has no {lacking[0]}.")
    if merged.get("recipe"):
        merged["recipe"] = merged["recipe"].format(corpus=merged["corpus"])
    merged["measure"] = merged["measure"].format(row=row, column=column)
    cell = Cell(row=row, column=column, **merged)
    figure = printed if printed is None or isinstance(printed, str) else f"{printed:,.{cell.digits or 0}f}"
    return Cell(row=row, column=column, printed=figure, **merged)


def _known(content: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    if unknown := [key for key in content if key not in names]:
        raise ValueError(f"{place}: {unknown[0]!r} is nothing a table has: {', '.join(names)}.")
