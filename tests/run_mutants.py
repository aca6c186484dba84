"""Mutation testing: `make mutants` makes the mistakes of `mutants.yaml` one by one, and a test must notice each.

    python tests/run_mutants.py                 # all of them
    python tests/run_mutants.py --only context  # those whose name contains "context"

Nothing is changed in the working tree: every process has a copy of it in a temporary folder, from which the tests
import (that is checked, in the hook below). A mutant that survives, one that does not fit its file or is no Python,
and tests that fail without any mutant fail the run.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = Path(__file__).resolve().with_name("mutants.yaml")
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs", "outputs", "wandb")
TREE = "HF_SPANNER_MUTANTS_TREE"  # the environment variable that names the copy
TIMEOUT = 300  # seconds; a mutant may make a loop endless


@dataclass
class Mutant:
    name: str
    file: str  # relative to the root
    old: str
    new: str
    why: str
    tests: list[str]

    def problem(self, root: Path = ROOT) -> str | None:
        """Why it cannot be made, in words; None if it can."""
        path = root / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            return f"{self.old!r} stands {count} times in {self.file}, not once"
        if self.old == self.new:
            return "it changes nothing"
        try:
            compile(text.replace(self.old, self.new), self.file, "exec")
        except SyntaxError as error:
            return f"it is no Python: {error}"
        return None


def read_mutants(file: Path = MUTANTS) -> list[Mutant]:
    return [Mutant(**entry) for entry in yaml.safe_load(file.read_text(encoding="utf-8"))]


# ------------------------------------------------------------------------------------- inside pytest: -p run_mutants


def pytest_collection_finish(session) -> None:
    """Stop unless the code under test is that of the copy."""
    import pytest

    import hf_spanner.modeling

    tree = Path(os.environ[TREE]).resolve()
    for module in (hf_spanner, hf_spanner.modeling):
        if not Path(module.__file__).resolve().is_relative_to(tree):
            pytest.exit(f"{module.__name__} was imported from {module.__file__}, not from {tree}", returncode=3)


# --------------------------------------------------------------------------------------------------------- outside it


def run_tests(tree: Path, tests: list[str], *options: str) -> tuple[int | None, str]:
    """pytest's exit code (None: out of time) and output for some tests of a copy."""
    path = os.pathsep.join([str(tree), str(tree / "tests")])
    # CI: hypothesis draws the same examples every time. No bytecode: two versions of a file may be of one second.
    settings = {"PYTHONPATH": path, TREE: str(tree), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "run_mutants", "--tb=no", "-o", "console_output_style=classic", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env={**os.environ, **settings}, timeout=TIMEOUT, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return None, "out of time"
    return done.returncode, done.stdout + done.stderr


def judge(mutant: Mutant, tree: Path) -> tuple[bool, str]:
    """Whether its tests notice a mutant, and what to say of it. The copy is as before afterwards."""
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        code, output = run_tests(tree, mutant.tests)
    finally:
        file.write_text(text, encoding="utf-8")
    if code is None:
        return True, "killed   (out of time)"
    if code == 1:
        failed = [line.split(" - ")[0] for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return True, f"killed   by {failed[0].split('::')[-1] if failed else '?'}"
    if code == 0:
        return False, f"SURVIVED {' '.join(mutant.tests)}"
    return False, f"BROKEN   pytest ended with {code}:\n{output}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of the names of those to run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mutants", type=Path, default=MUTANTS, help="another list")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    mutants = [mutant for mutant in read_mutants(options.mutants) if options.only in mutant.name]
    wrong = [f"{mutant.name}: {problem}" for mutant in mutants if (problem := mutant.problem())]
    if wrong or not mutants:
        print("\n".join(wrong) or f"No mutant has {options.only!r} in its name.")
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(options.processes):
            trees.put(shutil.copytree(ROOT, Path(folder, str(number)), ignore=LEFT_OUT))

        def job(work, *work_arguments):
            tree = trees.get()
            try:
                return work(*work_arguments, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.processes) as pool:
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            halves = [tests[number :: options.processes] for number in range(options.processes)]
            unspoilt = pool.map(lambda some: job(lambda tree: run_tests(tree, some)), filter(None, halves))
            for code, output in unspoilt:
                if code != 0:
                    print(f"The tests do not pass without any mutant (pytest ended with {code}):\n{output}")
                    return 1
            print(
                f"{len(tests)} files and tests pass without a mutant ({time.monotonic() - started:.0f} s)", flush=True
            )
            alive = 0
            for mutant, (killed, verdict) in zip(mutants, pool.map(lambda m: job(judge, m), mutants), strict=True):
                print(f"{mutant.name:52} {verdict}", flush=True)
                alive += not killed
    print(f"{len(mutants) - alive} of {len(mutants)} mutants killed in {time.monotonic() - started:.0f} s")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
