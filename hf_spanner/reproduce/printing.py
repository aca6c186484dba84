"""A reproduced table for people: Markdown with the paper's column and ours side by side, JSON, a plot of a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ..analysis.figures import COLOURS, legend_above, new_figure, save_figure
from .measures import WITHOUT_TRAINING
from .runner import NONE, Figure
from .tables import Table


def markdown(table: Table, outcome: dict[str, Any]) -> str:
    """The table, and below it what must be known of its figures."""
    cells = {(cell["row"], cell["column"]): cell for cell in outcome["cells"]}
    printed = [c for c in table.columns if any(cell["printed"] for cell in cells.values() if cell["column"] == c)]
    heads = [head for c in table.columns for head in ([f"{c}, paper", f"{c}, ours"] if c in printed else [c])]
    lines = [f"**{table.item}: {table.title}** ({table.paper}, budget {outcome['budget']})", ""]
    lines += [f"| {table.axis} | " + " | ".join(map(_cell, heads)) + " |", "|---" + "|---:" * len(heads) + "|"]
    for row in table.rows:
        shown = []
        for column in table.columns:
            cell = cells.get((row, column))
            shown += [cell["printed"] or "–" if cell else ""] if column in printed else []
            shown.append(_linked(cell["ours"]) if cell else "")
        lines.append(f"| {_cell(row)} | " + " | ".join(map(_cell, shown)) + " |")
    return "\n".join([*lines, *(f"\n{note}" for note in notes(table, outcome))])


def _linked(ours: str) -> str:
    """A picture as a link, from the folder of the tables of a paper."""
    return f"[{PurePosixPath(ours).name}](../../{ours})" if ours.endswith(".png") else ours


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def notes(table: Table, outcome: dict[str, Any]) -> list[str]:
    """What a reader of the figures must know."""
    lines = [table.note] if table.note else []
    seeds = ", ".join(map(str, outcome["seeds"]))
    lines += outcome["missing"].values()
    if all(cell.section in WITHOUT_TRAINING for cell in table.cells):
        pass  # what is counted or set hangs on no budget
    elif outcome["budget"] != "full":
        lines.append(
            f"Ours: budget {outcome['budget']} (a sample of the sentences, a small encoder), seed {seeds}: not to be "
            "held against the paper's figures."
        )
    else:
        lines.append(f"Ours: the paper's recipe, seed {seeds}.")
    if outcome["stand-ins"]:
        lines.append(f"Not at hand, the package's sample corpus stands in: {', '.join(outcome['stand-ins'])}.")
    lines += outcome["remarks"]
    if any(cell["ours"] == NONE for cell in outcome["cells"]):
        lines.append(
            f"“{NONE}”: there is nothing that this would be a figure of, neither in the data nor among what was found."
        )
    reasons = dict.fromkeys(cell["failed"] for cell in outcome["cells"] if "failed" in cell)
    return [*lines, *(f"Failed: {reason}" for reason in reasons)]


def write_outcome(table: Table, outcome: dict[str, Any], figures: Sequence[Figure], folder: Path) -> list[Path]:
    """`TABLE.md`, `TABLE.json`, and of a curve or a histogram `TABLE.svg` and `TABLE.png`; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{table.name}.{ending}" for ending in ("md", "json")]
    files[0].write_text(markdown(table, outcome) + "\n", encoding="utf-8")
    files[1].write_text(json.dumps(outcome, ensure_ascii=False, indent=1), encoding="utf-8")
    if table.kind in ("curve", "histogram"):
        files += save_figure(draw(table, figures), folder / table.name, ["svg", "png"])
    return files


def draw(table: Table, figures: Sequence[Figure]) -> Any:
    """A line a row over the columns, or bars; of rows whose figures are curves themselves, these.

    F1 and speed, say, which have no scale in common, are drawn one below the other.
    """
    kinds = list(dict.fromkeys(figure.cell.section for figure in figures))
    drawing, panels = new_figure(f"{table.item}: {table.title}", len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        of_kind = [figure for figure in figures if figure.cell.section == kind]
        _panel(axes, table, of_kind)
        names = {figure.cell.measure.split(".")[-1] for figure in of_kind}
        axes.set_ylabel(AXES.get(names.pop(), "") if len(names) == 1 else "")
    panels[-1].set_xlabel(table.axis)
    return drawing


ROOM = 40  # letters of the columns' names that stand beside each other in a picture
AXES = {"f1": "F1", "relative": "relative speed", "by_epoch": "loss"}


def _places(table: Table) -> dict[str, float]:
    """Where a column stands: at its own number in a curve of numbers, else one beside the other."""
    if table.kind == "curve":
        with suppress(ValueError):
            return {column: float(column) for column in table.columns}
    return {column: float(place) for place, column in enumerate(table.columns)}


def _panel(axes: Any, table: Table, figures: Sequence[Figure]) -> None:
    places = _places(table)
    rows = [row for row in table.rows if any(figure.cell.row == row for figure in figures)]
    for number, row in enumerate(rows):
        colour, of_row = COLOURS[number % len(COLOURS)], [figure for figure in figures if figure.cell.row == row]
        if series := [value for f in of_row for value in f.values.values() if isinstance(value, list)]:
            for index, points in enumerate(series):
                axes.plot(*zip(*points, strict=True), color=colour, label=row if not index else None)
            continue
        known = [(places[f.cell.column], f.mean, f.deviation or 0.0) for f in of_row if f.mean is not None]
        if not known:
            continue
        x, y, spread = (list(values) for values in zip(*known, strict=True))
        error = spread if any(spread) else None
        if table.kind == "histogram":
            width = 0.8 / len(rows)
            left = [place + number * width - 0.4 + width / 2 for place in x]
            axes.bar(left, y, width, yerr=error, capsize=2, color=colour, label=row)
        else:
            axes.errorbar(x, y, yerr=error, fmt="o-", color=colour, label=row, capsize=2)
    if axes.has_data() and not any(isinstance(v, list) for f in figures for v in f.values.values()):
        axes.set_xticks(list(places.values()), list(places))
        if not any(figure.mean for figure in figures):
            axes.set_ylim(0, 1)
        if max(map(len, places)) * len(places) > ROOM:  # each has as much room as the longest
            axes.tick_params(axis="x", labelrotation=45)
    legend_above(axes)
