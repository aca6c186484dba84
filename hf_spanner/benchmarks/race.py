"""The race: every approach trained under one budget on several corpora, scored alike, and the outcome in one table.

Each entrant is a recipe of `recipes/race/`, trained by `hf-spanner train` in a process of its own, so that its time
and memory are its own. What a run has shown is one JSON file; a race that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers

from ..analysis.figures import BLUE, LETTERS, TITLE, new_figure, save_figure
from ..data.splits import load_split
from ..evaluation import list_mentions, read_predictions, write_predictions
from ..evaluation.comparison import SentenceCounts, compare_systems
from ..evaluation.predicting import predict_sentences
from ..evaluation.scoring import score_predictions
from ..loading import load_model
from .reading_speed import compare_speed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRANTS = (
    "seq_ner", "span_ner", "bl_ner", "dspert_shallow", "dspert", "biaffine_ner", "locate_and_label", "diffusion_ner",
    "sng",
)  # fmt: skip
PACE = "span_ner"  # whom the others' time is measured by


def run_entrant(
    entrant: str, data: str, folder: Path, seed: int, encoder: str | None, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Train one entrant on one corpus and score it on test (validation, if there is no test), or read what did.

    Args:
        entrant: a recipe of `recipes/race/`, without its ending.
        folder: of the corpus; the run gets `ENTRANT-SEED/` (the model), `.jsonl` (predictions), `.log` and `.json`.
        encoder: in place of the recipe's, where the Hub cannot be reached.
    """
    name = folder / f"{entrant}-{seed}"
    result = name.with_suffix(".json")
    if result.exists():
        return json.loads(result.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["train", f"race/{entrant}.yaml", "--data", data, "--output_dir", str(name), "--seed", str(seed)]
    argv.append("--overwrite")  # what has no result was not measured to its end
    if encoder is not None and entrant != "sng":
        argv += ["--encoder", encoder]
    say(f"{entrant} on {Path(data).name}, seed {seed}: training")
    with name.with_suffix(".log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-m", "hf_spanner.cli", *argv], stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{entrant} on {data} stopped with exit code {process.returncode}: see {name}.log.")

    _, splits, _ = load_split(data, "train")
    split = "test" if "test" in splits else "validation"
    sentences = list(splits[split])
    model, tokenizer = load_model(str(name))
    found = predict_sentences(model, tokenizer, sentences)
    write_predictions(str(name.with_suffix(".jsonl")), sentences, found)
    scores = score_predictions(model, found, sentences, groups=True)
    record = json.loads((name / "training.json").read_text(encoding="utf-8"))
    row = {
        "entrant": entrant,
        "corpus": Path(data).name,
        "seed": seed,
        "split": split,
        "sentences": len(sentences),
        **{key: scores[key] for key in ("precision", "recall", "f1", "support", "predicted", "correct")},
        "validation_f1": record["results"]["validation"]["f1"],
        "groups": {key: value for key, value in scores["groups"].items() if key in ("length", "depth")},
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "memory_mib": usage.ru_maxrss / 1024,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                     "python": platform.python_version()},
    }  # fmt: skip
    result.write_text(json.dumps(row, indent=1), encoding="utf-8")
    say(f"{entrant} on {row['corpus']}, seed {seed}: {split} F1 {100 * row['f1']:.1f}")
    return row


def reading_speeds(folder: Path, data: str, rows: Sequence[Mapping], sentences: int = 128, repeats: int = 5) -> dict:
    """How fast each entrant's pipeline reads beside `span_ner`'s, in one interleaved run."""
    models = {row["entrant"]: str(folder / f"{row['entrant']}-{row['seed']}") for row in reversed(rows)}
    models = {name: models[name] for name in sorted(models, key=lambda name: (name != PACE, name))}
    texts = load_split(data, rows[0]["split"])[0][:sentences]
    speeds = compare_speed(models, texts, repeats=repeats, floors=False)
    column = next(key for key in speeds[0] if key.startswith("speed relative"))
    return {row["model"]: row[column] for row in speeds}


def compare_best(folder: Path, data: str, rows: Sequence[Mapping]) -> dict[str, Any] | None:
    """The two best by mean validation F1 held against each other, every seed's predictions beside the other's.

    If two or more were trained with several seeds, the two best of these: one seed is luck.
    """
    seeds: dict[str, set[int]] = {}
    for row in rows:
        seeds.setdefault(row["entrant"], set()).add(row["seed"])
    if len(repeated := [name for name in seeds if len(seeds[name]) > 1]) > 1:
        seeds = {name: seeds[name] for name in repeated}
    mean = {name: statistics.mean(row["validation_f1"] for row in rows if row["entrant"] == name) for name in seeds}
    if len(mean) < 2:
        return None
    best, second = sorted(mean, key=lambda name: mean[name], reverse=True)[:2]
    sentences = load_split(data, rows[0]["split"])[0]
    gold = [sentence["entities"] for sentence in sentences]
    common = sorted(seeds[best] & seeds[second])
    counts = {
        name: [
            SentenceCounts.of(
                list_mentions(read_predictions(folder / f"{name}-{seed}.jsonl", sentences), gold), len(sentences)
            )
            for seed in common
        ]
        for name in (best, second)
    }
    tests = compare_systems(_pool(counts[second]), _pool(counts[best]))
    return {"best": best, "second": second, "seeds": common, **tests}


def _pool(counts: Sequence[SentenceCounts]) -> SentenceCounts:
    """Sentences' counts summed over seeds: a sentence is drawn with all its runs, for these are not independent."""
    columns: list[Any] = [sum(column) for column in zip(*counts, strict=True)]
    return SentenceCounts(*columns)


# -------------------------------------------------------------------------------------------------------- the outcome


def read_race(folder: str | Path) -> list[dict]:
    """The files `CORPUS.json` of a race: a corpus each, with its rows and its comparison of the best."""
    files = sorted(Path(folder).glob("*.json"))
    corpora = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    if not corpora:
        raise ValueError(f"{folder} holds no result of a race (CORPUS.json): run `python scripts/race.py` first.")
    return corpora


def write_race(results: str | Path, folder: str | Path) -> str:
    """The table of a race and its plot, from its saved results, as race.md, race.svg and race.png; the table again."""
    corpora = read_race(results)
    table, figure, folder = race_table(corpora), draw_race(corpora), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "race.md").write_text(table + "\n", encoding="utf-8")
    save_figure(figure, folder / "race")
    return table


def race_table(corpora: Sequence[Mapping]) -> str:
    """Markdown: for each corpus its entrants, best first."""
    parts = []
    for corpus in corpora:
        rows = _by_entrant(corpus["rows"])
        pace = next((row for row in rows if row["entrant"] == PACE), None)
        split = corpus["rows"][0]["split"]
        lines = [
            f"**{corpus['corpus']}**, {split}, {corpus['rows'][0]['sentences']:,} sentences",
            "",
            "| recipe | F1 | P | R | 1 word | 2-5 | 6 or more | outermost | inner | reads | trains | memory (MiB) |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for row in rows:
            f1 = [100 * value for value in row["f1"]]
            spread = f" ± {statistics.stdev(f1):.1f} ({len(f1)} seeds)" if len(f1) > 1 else ""
            cells = [f"`race/{row['entrant']}.yaml`", f"{statistics.mean(f1):.1f}{spread}"]
            cells += [f"{100 * row[key]:.1f}" for key in ("precision", "recall")]
            cells += [f"{100 * value:.1f}" for value in row["buckets"]]
            speed = corpus.get("reading", {}).get(row["entrant"])
            cells.append("" if speed is None else f"{speed:.2f}")
            cells.append("" if pace is None else f"{pace['cpu_seconds'] / row['cpu_seconds']:.2f}")
            cells.append(f"{row['memory_mib']:,.0f}")
            lines.append("| " + " | ".join(cells) + " |")
        if best := corpus.get("best"):
            low, high = (100 * end for end in best["interval"])
            lines += [
                "",
                f"`{best['best']}` over `{best['second']}`: {100 * best['difference']:+.1f} points "
                f"(95 %: {low:+.1f} to {high:+.1f}; p = {best['p_bootstrap']:.3f} by paired bootstrap over sentences, "
                f"{len(best['seeds'])} seed(s) each).",
            ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def draw_race(corpora: Sequence[Mapping]) -> Figure:
    """F1 against reading speed, a panel for each corpus."""
    figure, panels = new_figure(panels=len(corpora))
    for axes, corpus in zip(panels, corpora, strict=True):
        reading = corpus.get("reading", {})
        rows = [row for row in _by_entrant(corpus["rows"]) if row["entrant"] in reading]
        points = [(reading[row["entrant"]], 100 * statistics.mean(row["f1"])) for row in rows]
        axes.margins(x=0.05, y=0.1)
        axes.plot([x for x, _ in points], [y for _, y in points], "o", color=BLUE)
        axes.set_xlim(left=0)
        low, high = axes.get_ylim()
        heights = _apart([(y - low) / (high - low) for _, y in points], 0.055)
        for row, point, height in zip(rows, points, heights, strict=True):  # names stand beside the plot
            axes.annotate(
                row["entrant"], point, (1.06, height), textcoords="axes fraction", fontsize=LETTERS, va="center",
                arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.6, "relpos": (0, 0.5)},
            )  # fmt: skip
        axes.set_title(f"{corpus['corpus']}, {corpus['rows'][0]['split']}", fontsize=TITLE)
        axes.set_xlabel(f"sentences per second beside {PACE}")
        axes.set_ylabel("strict micro F1")
    return figure


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Falling heights moved for a gap between neighbours: down, and where that goes below zero up again."""
    placed: list[float] = []
    for height in heights:
        placed.append(min(height, placed[-1] - gap) if placed else height)
    for index in reversed(range(len(placed))):
        placed[index] = max(placed[index], placed[index + 1] + gap if index + 1 < len(placed) else 0.0)
    return placed


def _by_entrant(rows: Sequence[Mapping]) -> list[dict]:
    """One row for each entrant, best first: F1 of every seed, all else of the first."""
    merged: dict[str, dict] = {}
    for row in rows:
        if row["entrant"] not in merged:
            merged[row["entrant"]] = {**row, "f1": [], "buckets": _buckets(row["groups"])}
        merged[row["entrant"]]["f1"].append(row["f1"])
    return sorted(merged.values(), key=lambda row: -statistics.mean(row["f1"]))


def _buckets(groups: Mapping) -> list[float]:
    """F1 of one word, of two to five, of six and more, of outermost entities and of those inside others."""
    wanted = [("length", {"1"}), ("length", {"2", "3", "4", "5"}), ("length", {"6-10", ">10"}), ("depth", {"1"})]
    wanted.append(("depth", set(groups["depth"]) - {"1"}))
    result = []
    for grouping, names in wanted:
        chosen = [groups[grouping][name] for name in names if name in groups[grouping]]
        correct, others = (sum(g[key] for g in chosen) for key in ("correct", "predicted"))
        support = sum(g["support"] for g in chosen)
        result.append(2 * correct / max(others + support, 1))
    return result
