"""Mutation testing: `make mutants` makes the mistakes of `mutants.yaml` one by one, and a test must notice each.

    python tests/run_mutants.py                 # all of them
    python tests/run_mutants.py --only context  # those whose name contains "context"

Nothing is changed in the working tree: every process has a copy of it in a temporary folder, from which the tests
import (that is checked, see `Check`). A mutant that survives, one that does not fit its file or is no Python, and
tests that fail without any mutant fail the run.
"""

import argparse
import contextlib
import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = Path(__file__).resolve().with_name("mutants.yaml")
OURS = ("hf_spanner", "modeling", "model_cards", "scripts", "tests")
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs", "outputs", "wandb")
TIMEOUT, OUT_OF_TIME = 240, -1  # seconds, as a mutant may make a loop endless; and the exit code that says so
# With CI set, hypothesis draws the same examples every time.
ENVIRONMENT = {"CI": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
# Of the ten seconds that a test file of this project takes, these take seven: they are imported once, before forking.
HEAVY = ("datasets", "hypothesis", "scipy.optimize", "torch", "transformers.pipelines", "transformers.trainer")


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

    @contextlib.contextmanager
    def made(self, tree: Path):
        """A copy of the tree with the mistake, and afterwards without."""
        file = tree / self.file
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(text, encoding="utf-8")


def read_mutants(file: Path = MUTANTS) -> list[Mutant]:
    return [Mutant(**entry) for entry in yaml.safe_load(file.read_text(encoding="utf-8"))]


# ------------------------------------------------------------------------------------------------- a process of tests


class Check:
    """A pytest plugin that stops the run unless the code under test, and the tests, are those of the copy."""

    def __init__(self, tree: Path):
        self.tree = tree

    def pytest_collection_finish(self, session) -> None:
        import hf_spanner.modeling

        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
        files = {name: Path(file) for name, file in files.items() if file and not name.endswith("main__")}
        ours = [ROOT / folder for folder in OURS]
        strangers = [name for name, file in files.items() if any(file.is_relative_to(folder) for folder in ours)]
        for name in ("hf_spanner", hf_spanner.modeling.__name__):
            if not files[name].resolve().is_relative_to(self.tree):
                strangers.append(name)
        if strangers:
            pytest.exit(f"{strangers} were not imported from the copy in {self.tree}", returncode=3)


def run_tests(tree: Path, tests: Sequence[str], log: Path) -> None:
    """In a process of its own: pytest on some tests of a copy."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
    os.chdir(tree)
    mine = [str(tree), str(tree / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(mine)
    sys.path = [*mine, *(entry for entry in sys.path if entry and Path(entry).resolve() not in (ROOT, ROOT / "tests"))]
    sys.dont_write_bytecode = True  # two versions of a file may be of one second
    sys.exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=short", *tests], plugins=[Check(tree)])))


def exit_code(process: multiprocessing.Process, started: float) -> int | None:
    """That of a process which has ended or had to be; None of one that runs."""
    if process.exitcode is None and time.monotonic() - started < TIMEOUT:
        return None
    timely = process.exitcode is not None
    process.kill()
    process.join()
    return process.exitcode if timely else OUT_OF_TIME


def run_all(
    jobs: Sequence[tuple[Mutant | None, Sequence[str]]],
    trees: Sequence[Path],
    say: Callable[[Mutant | None, int, str], None],
) -> None:
    """Run jobs (a mutant, or none, and its tests), one at a time in each copy; `say` hears exit code and output."""
    context = multiprocessing.get_context("fork")
    waiting, free, running = deque(jobs), list(trees), []
    while waiting or running:
        while waiting and free:
            tree, (mutant, tests) = free.pop(), waiting.popleft()
            log, change = tree.with_suffix(".log"), contextlib.ExitStack()
            if mutant is not None:
                change.enter_context(mutant.made(tree))
            process = context.Process(target=run_tests, args=(tree, tests, log))
            process.start()
            running.append((process, time.monotonic(), mutant, tree, log, change))
        wait([job[0].sentinel for job in running], timeout=1)
        for job in list(running):
            process, started, mutant, tree, log, change = job
            if (code := exit_code(process, started)) is not None:
                change.close()
                running.remove(job)
                free.append(tree)
                say(mutant, code, log.read_text(encoding="utf-8"))


# --------------------------------------------------------------------------------------------------------- the whole


def verdict(code: int, output: str) -> tuple[bool, str]:
    """Whether a mutant is dead, and in words."""
    if code == OUT_OF_TIME:
        return True, "killed (out of time)"
    if code == 1:
        failed = [line.split(" - ")[0] for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return True, f"killed by {failed[0].split('::')[-1] if failed else '?'}"
    return False, "SURVIVED" if code == 0 else f"BROKEN: pytest ended with {code}\n{output}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
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
    os.environ.update(ENVIRONMENT)
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    failures = []

    def say_unspoilt(_, code: int, output: str) -> None:
        if code:
            failures.append("tests")
            print(f"Tests do not pass without any mutant (pytest ended with {code}):\n{output}", flush=True)

    def say(mutant: Mutant, code: int, output: str) -> None:
        killed, words = verdict(code, output)
        failures.extend([] if killed else [mutant.name])
        print(f"{mutant.name:50} {words}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder).resolve() / f"copy{number}" for number in range(options.processes)]
        for copy in copies:
            copy.mkdir()
            for name in OURS:
                shutil.copytree(ROOT / name, copy / name, ignore=LEFT_OUT)
            shutil.copy(ROOT / "pyproject.toml", copy)
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        shares = [tests[number :: options.processes] for number in range(options.processes)]
        run_all([(None, share) for share in shares if share], copies, say_unspoilt)
        if not failures:
            print(f"{len(tests)} selections pass without a mutant ({time.monotonic() - started:.0f} s)", flush=True)
            run_all([(mutant, mutant.tests) for mutant in mutants], copies, say)
            killed = len(mutants) - len(failures)
            print(f"{killed} of {len(mutants)} mutants killed in {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
