"""The one runner of all tables: what there is to do, doing what is not done, and the figures that came out."""

from __future__ import annotations

import json
import statistics
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__
from ..benchmarks.timing import interleave
from ..errors import origin
from ..evaluation.predicting import predict_sentences
from ..hub.record import RECORD, read_record
from ..hub.several import deviation
from .measures import RECORDED, WITHOUT_TRAINING, Reading, describe_corpus, look_up
from .runs import Place, Run, paper_recipe, plan_run
from .tables import Cell, Table, corpora_of

OF_THE_CORPUS = ("types", "groups")  # where a corpus that stands in need not have all that is asked for
SPLITS = ("train", "validation", "test")
NONE = "none"  # where there is nothing to have a score
SPEED = "speed"  # a section of the whole table: its systems read in turns


@dataclass
class Figure:
    """What came out for a cell: a value for each seed, where they stand, or why there is none."""

    cell: Cell
    values: dict[int, Any] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    failed: str | None = None

    @property
    def numbers(self) -> list[float]:
        return [value for value in self.values.values() if isinstance(value, (int, float))]

    @property
    def mean(self) -> float | None:
        """In the paper's units."""
        return statistics.mean(self.numbers) * self.cell.times if self.numbers else None

    @property
    def deviation(self) -> float | None:
        return deviation(self.numbers) * self.cell.times if len(self.numbers) > 1 else None

    def text(self) -> str:
        """As it stands in a table."""
        if self.mean is None:
            if not self.values and not self.failed:
                return "not at hand"
            others = [value for value in self.values.values() if value is not None]
            if others and isinstance(others[0], list):  # a curve, which is drawn
                return f"{others[0][0][1]:.{self.cell.digits}f} to {others[0][-1][1]:.{self.cell.digits}f}"
            return "failed" if self.failed else str(others[0]) if others else NONE
        form = "g" if self.cell.digits is None else f",.{self.cell.digits}f"
        return f"{self.mean:{form}}" + ("" if self.deviation is None else f" ± {self.deviation:{form}}")


class Reproduction:
    """A table made again in a place."""

    def __init__(self, table: Table, place: Place, seeds: Iterable[int] | None = None):
        self.table, self.place = table, place
        self.seeds = place.seeds(table.seeds, seeds)
        self.corpora = corpora_of(table)
        self.remarks: dict[str, None] = {}  # sentences for the reader of the table, each once
        self._counted: dict[str, dict[str, Any]] = {}
        self._readings: dict[tuple, Reading] = {}
        self._failed: dict[Path, str] = {}
        self.missing = self._missing()
        self._speeds: dict[tuple, dict[str, float]] = {}

    def _missing(self) -> dict[str, str]:
        """The corpora that are not at hand, each with the sentence that says so; if none is, that is raised."""
        missing = {}
        for corpus in self.corpora:
            try:
                self.place.source(corpus)
            except FileNotFoundError as error:
                missing[corpus] = str(error)
        if missing and len(missing) == len(self.corpora):
            raise FileNotFoundError(next(iter(missing.values())))
        return missing

    # -------------------------------------------------------------------------------------------------------- the plan

    def runs(self) -> list[Run]:
        """The trainings that the table needs, each once."""
        found: dict[Path, Run] = {}
        for cell in self.table.cells:
            if cell.section not in WITHOUT_TRAINING and cell.corpus not in self.missing:
                for seed in self.seeds:
                    run = plan_run(self.place, cell, seed)
                    found.setdefault(run.folder, run)
        return list(found.values())

    def plan(self) -> list[str]:
        """What a call would do, a line each."""
        lines = [f"{self.table.item} of {self.table.paper}: {self.table.title}"]
        lines += [f"  {sentence}" for sentence in self.missing.values()]
        for corpus in self.corpora:
            if corpus not in self.missing and self.place.stands_in(corpus):
                lines.append(f"  {corpus}: not there, the sample corpus stands in")
        for run in self.runs():
            state = "done" if run.done else "to train"
            lines.append(f"  {state}: hf-spanner train {' '.join(run.argv())}")
        measured = list(dict.fromkeys(cell.measure for cell in self.table.cells))
        lines.append(f"  then measured: {', '.join(measured)}")
        return lines

    # -------------------------------------------------------------------------------------------------------- the work

    def train(self) -> None:
        """All trainings, one after the other; one that fails is said and left out."""
        runs = self.runs()
        for number, run in enumerate(runs, 1):
            if run.done:
                continue
            self.place.say(f"training {number} of {len(runs)}: {run.name}")
            try:
                self.place.train(run)
            except (ValueError, TypeError, OSError, ImportError, RuntimeError, LookupError) as error:
                self._failed[run.folder] = explain(error, run.log)
                self.place.say(f"  failed: {self._failed[run.folder]}")

    def figures(self) -> list[Figure]:
        """A figure for every cell; what fails is said in its place."""
        made: dict[tuple[str, str], Figure | None] = {_key(cell): None for cell in self.table.cells}
        for cell in sorted(self.table.cells, key=_read_together):
            made[_key(cell)] = self._figure(cell)
        figures = {key: figure for key, figure in made.items() if figure is not None}
        whole = {key: dict(figure.values) for key, figure in figures.items()}
        for (_, column), figure in figures.items():
            if figure.cell.minus is not None:
                other = (figure.cell.minus, column)
                figure.failed = figure.failed or figures[other].failed
                _subtract(figure, whole[other])
        return list(figures.values())

    def _figure(self, cell: Cell) -> Figure:
        figure = Figure(cell)
        if cell.section != "recipe" and cell.corpus in self.missing:
            return figure
        try:
            if cell.section in WITHOUT_TRAINING:
                self._without_training(figure)
            else:
                for seed in self.seeds:
                    run = plan_run(self.place, cell, seed)
                    if run.folder in self._failed or not run.done:
                        raise LookupError(self._failed.get(run.folder, f"{run.name} is not trained"))
                    figure.values[seed], source = self._measure(run, cell)
                    figure.sources.append(source)
        except LookupError as error:
            if not (cell.section in OF_THE_CORPUS and self.place.stands_in(cell.corpus)):
                figure.failed = explain(error)
        except (ValueError, OSError, ImportError, RuntimeError) as error:
            figure.failed = explain(error)
        return figure

    def _measure(self, run: Run, cell: Cell) -> tuple[Any, str]:
        reading = self.reading(run, cell)
        if cell.section == SPEED:
            content, file = self._speed(cell), self._file("speed.json")
        else:
            content, file = reading.section(cell.section)
        if cell.section not in RECORDED and cell.split not in read_record(run.folder / RECORD)["results"]:
            self._no_split(cell, cell.split, "read is its validation split")
        value = look_up(content, cell.measure)
        if isinstance(value, str) and cell.measure.endswith(".picture"):
            value = (reading.folder / value).relative_to(self.place.output).as_posix()
        return value, f"{file.relative_to(self.place.output).as_posix()}#{cell.measure}"

    def reading(self, run: Run, cell: Cell) -> Reading:
        """The run, read as the cell asks."""
        key = (run.folder, cell.split, json.dumps(dict(cell.evaluate), sort_keys=True))
        if key not in self._readings:
            self._readings = {key: Reading(run, cell, self.place.commands)}  # one model in memory is enough
        return self._readings[key]

    def _without_training(self, figure: Figure) -> None:
        cell = figure.cell
        if cell.section == "recipe":
            figure.values = {0: look_up(_flat(paper_recipe(cell)), cell.measure)}
            figure.sources = [f"{cell.recipe}#{cell.measure}"]
            return
        # The sample has no test split of its own; the part of it that small trainings read has one.
        of_sample = self.place.stands_in(cell.corpus)
        source = self.place.make_data(cell.corpus) if of_sample else self.place.source(cell.corpus)
        file = self.place.output / "statistics" / f"{Path(source).name}.json"
        if source not in self._counted:  # anew in every call: a corpus may be mended
            self._counted[source] = describe_corpus(source)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self._counted[source], indent=1), encoding="utf-8")
        split = next((part for part in cell.measure.split(".") if part in SPLITS), None)
        if split and split not in self._counted[source]:
            self._no_split(cell, split, "what is counted in it is left out")
            return
        figure.values = {0: look_up(self._counted[source], cell.measure)}
        figure.sources = [f"{file.relative_to(self.place.output).as_posix()}#{cell.measure}"]

    def _no_split(self, cell: Cell, split: str, instead: str) -> None:
        where = self.place.source(cell.corpus)
        self.remarks[f"{cell.corpus}, as it lies in {where}, has no {split} split: {instead}."] = None

    def _file(self, name: str) -> Path:
        return self.place.output / "tables" / self.table.paper / f"{self.table.name}.{name}"

    def _speed(self, cell: Cell, repeats: int = 3) -> dict[str, float]:
        """Sentences per second of every system of the table beside those of its first, all timed in turns."""
        if not self._speeds:
            timed = [c for c in self.table.cells if c.section == SPEED]
            runs = [plan_run(self.place, c, self.seeds[0]) for c in timed]
            readings = [Reading(run, c, self.place.commands) for run, c in zip(runs, timed, strict=True)]
            candidates = {
                _key(c): partial(predict_sentences, *r.loaded, r.sentences, **c.evaluate)
                for c, r in zip(timed, readings, strict=True)
            }
            seconds = interleave(candidates, repeats)
            first = seconds[_key(timed[0])]
            self._speeds = {
                _key(c): {"relative": first / seconds[_key(c)], "sentences": len(r.sentences) / seconds[_key(c)]}
                for c, r in zip(timed, readings, strict=True)
            }
            named = [{"cell": list(key), **figures} for key, figures in self._speeds.items()]
            file = self._file("speed.json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(named, indent=1), encoding="utf-8")
        return self._speeds[_key(cell)]

    # ----------------------------------------------------------------------------------------------------- the outcome

    def outcome(self, figures: Sequence[Figure]) -> dict[str, Any]:
        """All that is known, for a JSON file."""
        place = self.place
        return {
            "paper": self.table.paper,
            "table": self.table.name,
            "item": self.table.item,
            "title": self.table.title,
            "kind": self.table.kind,
            "budget": place.budget.name,
            "seeds": self.seeds,
            "encoder": place.encoder and Path(place.encoder).name,
            "missing": self.missing,
            "stand-ins": [c for c in self.corpora if c not in self.missing and place.stands_in(c)],
            "remarks": [*self.remarks],
            "made": time.strftime("%Y-%m-%d %H:%M"),
            "hf_spanner": __version__,
            "cells": [_row(figure) for figure in figures],
        }


def _key(cell: Cell) -> tuple[str, str]:
    return cell.row, cell.column


def _row(figure: Figure) -> dict[str, Any]:
    return {
        "row": figure.cell.row,
        "column": figure.cell.column,
        "printed": figure.cell.printed,
        "ours": figure.text(),
        "mean": figure.mean,
        "deviation": figure.deviation,
        "values": figure.values,
        "from": figure.sources,
        **({"failed": figure.failed} if figure.failed else {}),
    }


def _read_together(cell: Cell) -> tuple[str, ...]:
    """Cells of one run and one way of reading beside each other: a model is then loaded once."""
    return cell.corpus, str(cell.recipe), str(sorted(cell.settings.items(), key=str)), str(cell.evaluate), cell.split


def _subtract(figure: Figure, other: Mapping[int, Any]) -> None:
    """Seed by seed; None where either has nothing."""
    both = {seed: (value, other.get(seed)) for seed, value in figure.values.items()}
    figure.values = {seed: None if a is None or b is None else a - b for seed, (a, b) in both.items()}


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as text: they stand in a table as the paper prints them."""
    return {key: " ".join(map(str, value)) if isinstance(value, list) else value for key, value in recipe.items()}


def explain(error: Exception, log: Path | None = None) -> str:
    """The error in a line; of a mistake in the program the log has all of it."""
    if log is not None and not all(origin(error)):
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
    return " ".join(str(error).split())[:300] or type(error).__name__
