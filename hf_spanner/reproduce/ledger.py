"""The ledger: every table, figure, equation and experiment of the papers, what makes it, and whether that ran here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..data.corpora import load_corpus
from .tables import PAPERS, corpora_of, read_table

FILE = Path(__file__).resolve().parent / "ledger.yaml"


@dataclass(frozen=True)
class Row:
    """A line of the ledger: `tables` make it, `tests` (files of `tests/`) prove it; a drawing has neither."""

    paper: str
    item: str
    shows: str
    tables: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    drawing: bool = False

    def command(self) -> str:
        """What makes or proves it."""
        parts = [f"hf-spanner reproduce {self.paper} {name}" for name in self.tables]
        if self.tests and not self.tables:
            parts.append("pytest " + " ".join(f"tests/{name}" for name in self.tests))
        return "; ".join(parts) or "a drawing"

    def needs(self) -> list[str]:
        """The corpora of its tables."""
        tables = [read_table(self.paper, name) for name in self.tables]
        return list(dict.fromkeys(corpus for table in tables for corpus in corpora_of(table)))


def read_ledger() -> list[Row]:
    """All rows, paper by paper."""
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    rows: list[Row] = []
    for paper in PAPERS:
        for parts in content[paper]:
            fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in parts.items()}
            rows.append(Row(paper, **fields))
    return rows


def state(row: Row, output: Path) -> str:
    """Whether its tables were made in a folder, when, and under which budget."""
    if not row.tables:
        return "" if row.drawing else "by tests"
    made = {name: _made(output / "tables" / row.paper / f"{name}.json") for name in row.tables}
    return "; ".join(made.values() if len(made) == 1 else (f"{name}: {told}" for name, told in made.items()))


def _made(file: Path) -> str:
    if not file.is_file():
        return "not made here"
    outcome: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    told = [outcome["budget"]]
    if failed := sum("failed" in cell for cell in outcome["cells"]):
        told.append(f"{failed} of {len(outcome['cells'])} figures failed")
    if outcome["missing"]:
        told.append(f"without {', '.join(outcome['missing'])}")
    return f"{outcome['made']} ({', '.join(told)})"


def ledger_text(output: Path, data_root: Path | None = None, paper: str | None = None) -> str:
    """The ledger as Markdown: a table for each paper, and what its corpora need that are not free."""
    rows = [row for row in read_ledger() if paper in (None, row.paper)]
    lines: list[str] = []
    for name in PAPERS:
        if not (mine := [row for row in rows if row.paper == name]):
            continue
        lines += [f"## {name}", "", "| item | shows | made by | needs | here |", "|---|---|---|---|---|"]
        for row in mine:
            there = [c for c in row.needs() if data_root is not None and (data_root / c).exists()]
            needs = ", ".join(f"{c} (at hand)" if c in there else c for c in row.needs())
            lines.append(f"| {row.item} | {row.shows} | `{row.command()}` | {needs} | {state(row, output)} |")
        lines.append("")
    drawings = sum(row.drawing for row in rows)
    lines.append(
        f"{len(rows)} rows, {drawings} of them drawings. A corpus lies in DATA_ROOT/NAME. Those that are not free:"
    )
    for corpus in map(load_corpus, dict.fromkeys(corpus for row in rows for corpus in row.needs())):
        if corpus.needs:
            lines.append(f"- {corpus.name} needs {corpus.needs}; its reader was tried on files made to the format.")
    lines.append("`--budget small` makes every row without them, on the package's sample corpus.")
    return "\n".join(lines)
