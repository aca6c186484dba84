"""What the papers claim, each an inequality between two cells of their tables, held against what comes out here."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy import stats

from ..evaluation.comparison import SentenceCounts, f1_of
from ..hub.record import RECORD, read_record
from ..hub.several import deviation
from .measures import Reading, groups_of, look_up
from .runner import explain
from .runs import Place, Run, plan_run, read_budgets
from .tables import PAPERS, Cell, Table, read_table

FILE = Path(__file__).resolve().parent / "claims.yaml"
REPRODUCED, NOT_HERE, CONTRADICTED, OPEN = "reproduced", "not at this scale", "contradicted", "open"
MEANINGS = {
    REPRODUCED: "the difference goes the paper's way, and all of its 95 % interval does",
    NOT_HERE: "the interval holds 0: under this budget the two cannot be told apart",
    CONTRADICTED: "all of the interval goes the other way",
    OPEN: "not run yet, or one run only of a figure whose interval needs several",
}


@dataclass(frozen=True)
class Claim:
    """`larger` is said to be larger than `smaller`: two cells of a table, on one corpus or on two."""

    paper: str
    name: str
    claim: str
    table: Table
    larger: Cell
    smaller: Cell
    printed: tuple[str | None, str | None] = (None, None)

    @property
    def corpus(self) -> str:
        return " and ".join(dict.fromkeys((self.larger.corpus, self.smaller.corpus)))


@dataclass
class Outcome:
    """What came of a claim: the values of both sides by seed, the interval of their difference, and the verdict."""

    claim: Claim
    larger: dict[int, float] = field(default_factory=dict)
    smaller: dict[int, float] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    failed: str | None = None
    versions: dict[str, None] = field(default_factory=dict)  # of the programs that made the runs

    @property
    def verdict(self) -> str:
        return verdict(self.interval)


def read_claims(paper: str | None = None, only: Iterable[str] | None = None) -> list[Claim]:
    """The claims, one for each corpus that they are tried on."""
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    wanted = None if only is None else set(only)
    names = {parts["name"] for name in PAPERS for parts in content[name]}
    if unknown := sorted((wanted or set()) - names):
        raise ValueError(f"There is no claim {unknown[0]!r}: choose from {', '.join(sorted(names))}.")
    return [
        claim
        for name in PAPERS
        if paper in (None, name)
        for parts in content[name]
        if wanted is None or parts["name"] in wanted
        for claim in _claims(name, parts)
    ]


def _claims(paper: str, parts: dict[str, Any]) -> list[Claim]:
    table = read_table(paper, parts["table"])
    cells = []
    for side in (parts["larger"], parts["smaller"]):
        row, column = side["row"], str(side.get("column", parts.get("column")))
        if (cell := table.cell(row, column)) is None:
            raise ValueError(
                f"The claim {parts['name']!r} names row {row!r}, column {column!r}, which {table.name} lacks."
            )
        cells.append(replace(cell, measure=side.get("measure", parts.get("measure", cell.measure))))
    printed = (None, None) if "measure" in parts else (cells[0].printed, cells[1].printed)
    about = (paper, parts["name"], parts["claim"], table)
    if "corpora" not in parts:
        return [Claim(*about, cells[0], cells[1], printed)]
    return [
        Claim(*about, replace(cells[0], corpus=corpus), replace(cells[1], corpus=corpus), printed)
        for corpus in parts["corpora"]
    ]


# --------------------------------------------------------------------------------------------------------- the verdict


def verdict(interval: tuple[float, float] | None) -> str:
    """What the 95 % interval of (larger - smaller) says of a claim; an end at 0 belongs to neither side."""
    if interval is None:
        return OPEN
    low, high = interval
    return REPRODUCED if low > 0 else CONTRADICTED if high < 0 else NOT_HERE


def interval_of_counts(
    larger: Sequence[SentenceCounts], smaller: Sequence[SentenceCounts], resamples: int = 5000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % interval of the difference in F1, by a bootstrap over sentences and over runs.

    A resample draws sentences, the same for all runs, and runs of either side; its difference is that of the mean F1.
    """
    draw = np.random.default_rng(seed)
    number = len(larger[0].support)
    weights = draw.multinomial(number, np.full(number, 1 / number), size=resamples).astype(float)  # (R, N)
    sides = []
    for runs in (larger, smaller):
        f1 = np.stack([f1_of(*(weights @ np.stack(counts, axis=1)).T) for counts in runs])  # (S, R)
        chosen = draw.integers(len(runs), size=(len(runs), resamples))
        sides.append(np.take_along_axis(f1, chosen, axis=0).mean(0))
    low, high = np.percentile(sides[0] - sides[1], [2.5, 97.5])
    return float(low), float(high)


def interval_of_values(larger: Sequence[float], smaller: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the difference of two means of runs (Welch's t); None of a single run."""
    if min(len(larger), len(smaller)) < 2:
        return None
    if deviation([*larger]) == deviation([*smaller]) == 0:
        difference = larger[0] - smaller[0]
        return difference, difference
    interval = stats.ttest_ind(larger, smaller, equal_var=False).confidence_interval(0.95)
    return float(interval.low), float(interval.high)


# ------------------------------------------------------------------------------------------------------------ the work


def make_claims(
    place: Place,
    seeds: Iterable[int] | None = None,
    paper: str | None = None,
    only: Iterable[str] | None = None,
    dry_run: bool = False,
    page: Path | None = None,
) -> str:
    """Train what is not trained, seed by seed, judge all claims, and return the page (which `page` gets, too).

    What is done stays done: the page is written after every claim, and a call that was interrupted goes on. A dry run
    trains nothing, and says what is done; with `page` it judges that.
    """
    seeds, chosen = place.seeds((1, 2, 3), seeds), read_claims(paper, only)
    claims = [claim for claim in chosen if _at_hand(place, claim)]
    if not claims:
        corpora = ", ".join(sorted({claim.corpus for claim in chosen}))
        raise FileNotFoundError(
            f"None of the claims' corpora ({corpora}) is at hand: --data-root names the folder with a folder for each."
        )
    outcomes = {id(claim): Outcome(claim) for claim in claims}
    files = [place.output / "claims.md", *([page] if page else [])]

    def write() -> str:
        text = claims_page(place, list(outcomes.values()), seeds)
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        rows = [_row(outcome) for outcome in outcomes.values()]
        (place.output / "claims.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
        return text

    if dry_run:
        runs = {run.folder: run for seed in seeds for claim in claims for run in runs_of(place, claim, seed)}
        if page is not None:  # of what is there
            outcomes = {id(claim): judge(place, claim, seeds) for claim in claims}
            write()
        return "\n".join(f"{'done' if run.done else 'to train'}: {run.name}" for run in runs.values())
    failed: dict[Path, str] = {}
    for seed in seeds:
        for claim in claims:
            for run in runs_of(place, claim, seed):
                if not run.done and run.folder not in failed:
                    place.say(f"training {run.name} ({claim.paper}, {claim.name})")
                    failed |= _train(place, run)
            outcomes[id(claim)] = judge(place, claim, seeds, failed)
            place.say(f"{claim.paper}, {claim.name}, {claim.corpus}: {outcomes[id(claim)].verdict}")
            write()
    return write()


def _at_hand(place: Place, claim: Claim) -> bool:
    try:
        return all(place.source(cell.corpus) for cell in (claim.larger, claim.smaller))
    except FileNotFoundError:
        return False


def runs_of(place: Place, claim: Claim, seed: int) -> list[Run]:
    """The trainings of both sides, which may be one."""
    runs = [plan_run(place, cell, seed) for cell in (claim.larger, claim.smaller)]
    return runs[:1] if runs[0].folder == runs[1].folder else runs


def _train(place: Place, run: Run) -> dict[Path, str]:
    try:
        place.train(run)
    except (ValueError, TypeError, OSError, ImportError, RuntimeError, LookupError) as error:
        place.say(f"  failed: {(told := explain(error, run.log))}")
        return {run.folder: told}
    return {}


def judge(place: Place, claim: Claim, seeds: Sequence[int], failed: dict[Path, str] | None = None) -> Outcome:
    """What the runs that are done say of a claim."""
    outcome = Outcome(claim)
    readings: list[list[Reading]] = []
    for cell, values in ((claim.larger, outcome.larger), (claim.smaller, outcome.smaller)):
        readings.append([])
        for seed in seeds:
            run = plan_run(place, cell, seed)
            if not run.done:
                outcome.failed = (failed or {}).get(run.folder)
                continue
            made_with = read_record(run.folder / RECORD)["versions"]
            outcome.versions[", ".join(f"{name} {number}" for name, number in made_with.items())] = None
            reading = Reading(run, cell, place.commands)
            value = look_up(reading.section(cell.section)[0], cell.measure)
            if value is not None:
                values[seed] = value
                readings[-1].append(reading)
    if not (outcome.larger and outcome.smaller):
        return outcome
    counts = [[_counts(reading) for reading in side] for side in readings]
    if claim.larger.corpus == claim.smaller.corpus and all(c is not None for side in counts for c in side):
        first, second = ([c for c in side if c is not None] for side in counts)
        outcome.interval = interval_of_counts(first, second)
    else:
        outcome.interval = interval_of_values([*outcome.larger.values()], [*outcome.smaller.values()])
    return outcome


def _counts(reading: Reading) -> SentenceCounts | None:
    """The counts behind a score, by sentence; None if the measure is not the F1 or the accuracy of mentions."""
    if not reading.cell.measure.endswith((".f1", ".typing_accuracy")):
        return None
    if (chosen := groups_of(reading, reading.cell.measure)) is None:
        return None
    mentions = [mention for mention, there in zip(reading.mentions, chosen, strict=True) if there]
    counts = SentenceCounts.of(mentions, len(reading.sentences))
    if reading.cell.measure.endswith(".f1"):
        return counts
    return counts._replace(predicted=counts.support)  # of spans that are given: right ones of all


# ------------------------------------------------------------------------------------------------------------ the page


def claims_page(place: Place, outcomes: Sequence[Outcome], seeds: Sequence[int]) -> str:
    """Markdown: how many of the claims hold, and for each its figures."""
    verdicts = [outcome.verdict for outcome in outcomes]
    budget = place.budget
    size = ""
    if budget.sentences is not None:
        size = f"{budget.sentences[0]:,} training and {budget.sentences[2]:,} test sentences, "
    encoder, shown = "ENCODER" if place.encoder is None else Path(place.encoder).name, " ".join(map(str, seeds))
    versions = dict.fromkeys(version for outcome in outcomes for version in outcome.versions)
    lines = [
        "# What the papers claim, and what comes out here",
        "",
        f"Budget `{budget.name}`: {size}the encoder {encoder} (none for sng), the recipes of `race/` with what the "
        f"paper's rows change; seeds {shown}. So small a training says something of such trainings; a claim that is "
        "not reproduced here may well hold at the paper's scale.",
        "",
        "```bash",
        f"hf-spanner reproduce --claims --data-root DATA --encoder {encoder} --seeds {shown}{_changes(place)}",
        "```",
        "",
        *([f"Made with {'; and with '.join(versions)}.", ""] if versions else []),
        *(f"- {verdicts.count(name)} *{name}*: {meaning}." for name, meaning in MEANINGS.items()),
        "",
        "Intervals of F1 and accuracy: a bootstrap over sentences and runs; of other figures: Welch's t over runs.",
    ]
    for paper in PAPERS:
        if not (mine := [outcome for outcome in outcomes if outcome.claim.paper == paper]):
            continue
        head = "| claim | paper | corpus | larger? | smaller? | difference | 95 % | runs | verdict |"
        lines += ["", f"## {paper}", "", head, "|---|---|---|---:|---:|---:|---|---:|---|"]
        lines += ["| " + " | ".join(_cells(outcome)) + " |" for outcome in mine]
    failures = dict.fromkeys(f"{o.claim.paper}, {o.claim.name}: {o.failed}" for o in outcomes if o.failed)
    if failures:
        lines += ["", "Not trained:", "", *(f"- {told}" for told in failures)]
    return "\n".join(lines) + "\n"


def _changes(place: Place) -> str:
    """The flags that make another budget of the one that is named."""
    flags = [] if place.budget.name == "claims" else [f"--budget {place.budget.name}"]
    if place.budget.sentences != read_budgets()[place.budget.name].sentences:
        flags.append("--sentences " + " ".join(map(str, place.budget.sentences or ())))
    flags += [f"--set {name}={value}" for name, value in place.settings.items()]
    return "".join(f" {flag}" for flag in flags)


def _cells(outcome: Outcome) -> list[str]:
    claim = outcome.claim
    larger, smaller = (_shown(values, claim.larger) for values in (outcome.larger, outcome.smaller))
    printed = " > ".join(figure or "?" for figure in claim.printed) if any(claim.printed) else "in words"
    difference = interval = "–"
    if outcome.larger and outcome.smaller:
        times, digits = claim.larger.times, _digits(claim.larger)
        of = statistics.mean(outcome.larger.values()) - statistics.mean(outcome.smaller.values())
        difference = f"{of * times:+.{digits}f}"
        if outcome.interval is not None:
            interval = " to ".join(f"{end * times:+.{digits}f}" for end in outcome.interval)
    where = f"{claim.claim} ({claim.table.item})"
    runs = f"{len(outcome.larger)}, {len(outcome.smaller)}"
    return [where, printed, claim.corpus, larger, smaller, difference, interval, runs, f"*{outcome.verdict}*"]


def _digits(cell: Cell) -> int:
    return 1 if cell.times == 100 else 2


def _shown(values: dict[int, float], cell: Cell) -> str:
    if not values:
        return "–"
    numbers, digits = [value * cell.times for value in values.values()], _digits(cell)
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) < 2 else f"{mean} ± {deviation(numbers):.{digits}f}"


def _row(outcome: Outcome) -> dict[str, Any]:
    claim = outcome.claim
    return {
        "paper": claim.paper,
        "name": claim.name,
        "claim": claim.claim,
        "table": claim.table.name,
        "corpus": claim.corpus,
        "larger": outcome.larger,
        "smaller": outcome.smaller,
        "interval": outcome.interval,
        "verdict": outcome.verdict,
    }
