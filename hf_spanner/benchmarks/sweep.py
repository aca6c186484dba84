"""A sweep over settings of a training: a few sentences drawn at random, the command that a user types, one row a run.

The rules of `hf_spanner.training.settings` come from here. A setting is chosen by its validation F1; the test F1 is
reported.
"""

from __future__ import annotations

import json
import platform
import random
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from ..data import load_nested_ner, write_jsonl


def draw(data: str, size: int | None, seed: int, folder: Path, validation: int | None, test: int | None) -> Path:
    """A folder with `size` training sentences of `data`, drawn at random, and the first of validation and test.

    Without a test split the second half of the validation split is one.
    """
    splits = {name: list(part) for name, part in load_nested_ner(data).items()}
    if "test" not in splits:
        middle = len(splits["validation"]) // 2
        splits["validation"], splits["test"] = splits["validation"][:middle], splits["validation"][middle:]
    if size is not None and size < len(splits["train"]):
        splits["train"] = random.Random(seed).sample(splits["train"], size)
    target = folder / f"{Path(data).name}-{size or 'all'}-{seed}"
    for name, limit in (("train", None), ("validation", validation), ("test", test)):
        target.mkdir(parents=True, exist_ok=True)
        write_jsonl(splits[name][:limit], target / f"{name}.jsonl")
    return target


def measure(
    data: str,
    size: int | None,
    seed: int,
    start: Sequence[str],
    settings: str,
    folder: Path,
    validation: int | None = None,
    test: int | None = None,
) -> dict[str, Any]:
    """Train once, from `start` (`--model default`, say) with `settings` (flags; "": what is chosen), and score."""
    drawn = draw(data, size, seed, folder / "data", validation, test)
    output = folder / "model"
    shutil.rmtree(output, ignore_errors=True)
    flags = [*start, *shlex.split(settings), "--seed", str(seed), "--report_to", "none", "--disable_tqdm", "true"]
    command = [sys.executable, "-m", "hf_spanner.cli", "train", "--data", str(drawn), "--output_dir", str(output)]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        subprocess.run([*command, *flags], stdout=log, stderr=subprocess.STDOUT, check=True)
    record = json.loads((output / "training.json").read_text(encoding="utf-8"))
    shutil.rmtree(output)
    return {
        "corpus": Path(data).name,
        "size": size,
        "seed": seed,
        "start": public_start(start),
        "settings": settings,
        "validation": round(100 * record["results"]["validation"]["f1"], 2),
        "test": round(100 * record["results"]["test"]["f1"], 2),
        "history": [[round(row["epoch"], 2), round(100 * row["eval_f1"], 2)] for row in record["history"]],
        "training": record["training"],
        "limits": [validation, test],
        "versions": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
    }


def public_start(start: Sequence[str]) -> str:
    """The flags a run starts from, with names in place of folders."""
    return " ".join(Path(part).name if "/" in part else part for part in start)


def identity(row: Mapping[str, Any]) -> tuple:
    return row["corpus"], row["size"], row["seed"], row["start"], row["settings"]


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Mean and spread over seeds, a line a setting; the best on validation of each corpus, size, start is marked."""
    groups: dict[tuple, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["corpus"], row["size"] or 10**9, row["start"]][row["settings"]].append(row)
    lines = ["| corpus | sentences | from | settings | runs | validation | test |", "|---|---|---|---|---|---|---|"]
    for (corpus, size, start), by_settings in sorted(groups.items()):
        best = max(by_settings, key=lambda s: statistics.mean(row["validation"] for row in by_settings[s]))
        for settings, runs in by_settings.items():
            mark = "**" if settings == best and len(by_settings) > 1 else ""
            scores = [spread([row[split] for row in runs]) for split in ("validation", "test")]
            shown = f"`{settings}`" if settings else "none: chosen"
            lines.append(
                f"| {corpus} | {'all' if size == 10**9 else f'{size:,}'} | `{start}` | {shown} | {len(runs)} "
                f"| {mark}{scores[0]}{mark} | {scores[1]} |"
            )
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation; of one value, the value."""
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.1f}"
