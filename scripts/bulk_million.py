"""Bulk prediction of a million texts that is killed on the way: complete, in order, nothing twice, in constant memory.

    python scripts/bulk_million.py
    python scripts/bulk_million.py --model out-int8 --texts 200000 --few 20000

The texts are a few thousand, repeated; some lines are bad. First --few of them are read without a break, for the
memory that it takes. All of them are read by a command that is killed with SIGKILL three times, while it reads, while
it writes a part and while it writes down what was set aside, and goes on with --resume each time. Every line of the
output is then compared with the input and with what the pipeline finds in its text. Without --model it is one with a
single small layer and random weights: it is not the model that is looked at.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hf_spanner
from hf_spanner.benchmarks.cost_curves import make_model, make_tokenizer
from hf_spanner.bulk.parts import PART
from hf_spanner.cli.predict import SET_ASIDE

DISTINCT = 5000
BAD = [b"\xff\xfe is not UTF-8", b'{"id": 1, "text": "broken', b'{"id": 2}', b"[1, 2]"]
EVERY = 997  # one line of so many is bad


def make_cheap_model(folder: Path) -> str:
    """A model with random weights that finds something."""
    model = make_model("span_ner", cap=4, size=32, layers=1)
    model.config.threshold = None
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return str(folder)


def make_texts() -> list[str]:
    """Texts of 1 to 15 words; one in fifty is empty."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(900)]
    return [
        "" if number % 50 == 0 else " ".join(draw.choices(words, k=draw.randint(1, 15))) for number in range(DISTINCT)
    ]


def write_input(file: Path, texts: list[str], number: int) -> int:
    """So many lines; returns how many of them are bad. One is a megabyte long."""
    bad = 0
    with file.open("wb") as opened:
        for line in range(number):
            if line % EVERY == EVERY - 1:
                opened.write(BAD[bad % len(BAD)] + (b"x" * 1_000_000 if bad == 5 else b"") + b"\n")
                bad += 1
            else:
                opened.write(json.dumps({"id": line, "text": texts[line % len(texts)]}).encode() + b"\n")
    return bad


class Run:
    """`hf-spanner predict` in a process of its own, whose memory is watched."""

    def __init__(self, source: Path, output: Path, model: str, *more: str) -> None:
        command = [sys.executable, "-m", "hf_spanner.cli", "predict", "--model", model]
        self.output, self.parts, self.peak = output, output.with_name(f"{output.name}.parts"), 0.0
        self.process = subprocess.Popen(
            [*command, "--input", str(source), "--output", str(output), "--batch-size", "256", *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def watch(self, wait: float) -> bool:
        """Wait a moment; whether it still runs."""
        time.sleep(wait)
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return False
        if "VmHWM:" in status:
            self.peak = max(self.peak, int(status.split("VmHWM:")[1].split()[0]) / 1024)
        return self.process.poll() is None

    def files(self) -> list[str]:
        return os.listdir(self.parts) if self.parts.is_dir() else []

    def written(self) -> int:
        """Its parts so far."""
        return sum(PART.fullmatch(name) is not None for name in self.files())

    def kill_when(self, due: Callable[[list[str]], bool], parts: int) -> str:
        """Kill it in a moment that is `due`, once so many more parts are written; returns what it left half done."""
        begun = self.written()
        while self.written() < begun + parts:
            if not self.watch(0.05):
                raise SystemExit(f"it ended before it could be killed: {self.end()}")
        while True:
            if due(self.files()):
                self.process.send_signal(signal.SIGSTOP)  # and look again: it may just have got further
                if due(self.files()):
                    break
                self.process.send_signal(signal.SIGCONT)
            if self.process.poll() is not None:
                raise SystemExit(f"it ended before it could be killed: {self.end()}")
        self.process.kill()
        self.process.wait()
        return ", ".join(name for name in self.files() if name.endswith(".saving")) or "nothing"

    def end(self) -> str:
        """What it said, once it has ended."""
        while self.watch(0.2):
            pass
        assert self.process.stdout is not None
        return self.process.stdout.read().strip()


def saving(ending: str) -> Callable[[list[str]], bool]:
    """Whether a file with this ending is being written."""
    return lambda names: any(name.startswith(".part-") and f"{ending}." in name for name in names)


def found_in(model: str, texts: list[str]) -> dict[str, set[tuple]]:
    predictor = hf_spanner.Predictor(model, device="cpu")
    return {text: keys(entities) for text, entities in zip(texts, predictor.read(texts), strict=True)}


def keys(entities: list[dict]) -> set[tuple]:
    return {(e["start"], e["end"], e["entity_group"], e.get("mention")) for e in entities}


def faults(source: Path, output: Path, expected: dict[str, set[tuple]]) -> Iterator[str]:
    """Where the output is not what the input asks for, line by line."""
    with source.open("rb") as given, output.open(encoding="utf-8") as gotten:
        for number, line in enumerate(given):
            if number % EVERY == EVERY - 1:
                continue
            row, asked = json.loads(gotten.readline() or "{}"), json.loads(line)
            if {name: row.get(name) for name in asked} != asked:
                yield f"line {number + 1} of the input should be next, and is {str(row)[:100]}"
            elif keys(row["entities"]) != expected[row["text"]]:
                yield f"id {row['id']} has other entities"
        if rest := gotten.read():
            yield f"behind the last line stand {rest.count(chr(10)):,} more"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=100_000, help="so many for the memory to compare with")
    parser.add_argument("--model", help="a folder or default (default: a small one with random weights)")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder, texts, begun = Path(name), make_texts(), time.monotonic()
        model = args.model or make_cheap_model(folder / "model")
        more = ("--workers", args.workers)
        write_input(folder / "few.jsonl", texts, args.few)
        few = Run(folder / "few.jsonl", folder / "few.out.jsonl", model, *more)
        few.end()
        source, output = folder / "all.jsonl", folder / "all.out.jsonl"
        bad = write_input(source, texts, args.texts)
        parts, peaks = max(args.texts // 8192 // 10, 1), []
        moments = {
            "while reading": lambda names: True,
            "in a part": saving(".jsonl"),
            "in a side file": saving(".bad"),
        }
        for moment, due in moments.items():
            run = Run(source, output, model, *more, *(["--resume"] if peaks else []))
            left = run.kill_when(due, parts)
            print(f"killed {moment} with {run.written()} parts written, half done: {left}", flush=True)
            peaks.append(run.peak)
        run = Run(source, output, model, *more, "--resume")
        told = run.end()
        peaks.append(run.peak)
        wrong = list(faults(source, output, found_in(model, texts)))
        aside = [json.loads(line) for line in output.with_name(f"{output.name}.bad.jsonl").open(encoding="utf-8")]
        numbers = [row["line"] for row in aside]
        if numbers != list(range(EVERY, args.texts + 1, EVERY)):
            wrong.append(f"{len(numbers)} lines were set aside, {bad} are bad")
        if left_behind := sorted(str(path) for path in folder.glob("*all.out.jsonl.parts*")):
            wrong.append(f"left behind: {left_behind}")
        if run.process.returncode != SET_ASIDE:
            wrong.append(f"the exit code is {run.process.returncode}, where lines are set aside {SET_ASIDE}")
        print(told.splitlines()[-1] if told else "")
        print(f"{args.texts:,} texts, {bad:,} bad lines set aside; faults: {len(wrong)}", *wrong[:5], sep="\n  ")
        runs = ", ".join(f"{peak:.0f}" for peak in peaks)
        print(f"MiB at most: {few.peak:.0f} at {args.few:,} texts, {max(peaks):.0f} at {args.texts:,} (runs: {runs})")
        print(f"{max(peaks) / few.peak:.3f} times the memory; {time.monotonic() - begun:.0f} s in all")
        return 1 if wrong or max(peaks) > 1.1 * few.peak else 0


if __name__ == "__main__":
    raise SystemExit(main())
