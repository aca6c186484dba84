"""Bulk predictions that are killed while they read and while they write, and end in the same bytes all the same."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from approaches import ROWS
from faults.harness import PROCESSES, Fault, install

from hf_spanner.bulk.reading import Reading
from hf_spanner.bulk.running import predict_bulk
from hf_spanner.bulk.sources import open_source

WORDS = "the mayor of New York met the head of the Bank of England in London Größe café 東京 IL-2 receptor".split()


def predict(source: str, output: str, model: str, workers: int, resume: bool, fault: Fault | None, log: str) -> None:
    """The body of a process."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    torch.set_num_threads(1)
    if fault is not None:
        install(fault, os.path.dirname(os.path.realpath(output)))
    predict_bulk(open_source(source), output, Reading(model), workers=workers, resume=resume, part=8)
    sys.stdout.flush()
    os._exit(0)


class Bulk:
    """One input, and what comes of it if nobody is killed."""

    def __init__(self, place: Path, tokenizer, ending: str):
        self.place, self.ending = place, ending
        torch.manual_seed(0)
        next(row for row in ROWS if row.name == "span_ner").make(tokenizer).save_pretrained(place / "model")
        tokenizer.save_pretrained(place / "model")
        draw = random.Random(0)
        texts = (" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(100))
        lines = [json.dumps({"id": i, "text": text}) if i % 9 else "{" for i, text in enumerate(texts)]
        (place / "in.jsonl").write_text("\n".join(lines))
        begun = time.monotonic()
        assert self.run("whole", fault=Fault(count=str(place / "count"))) == 0, self.said("whole")
        self.seconds = time.monotonic() - begun
        self.moments = int((place / "count").read_text())

    def start(self, name: str, workers: int = 1, resume: bool = False, fault: Fault | None = None):
        (self.place / name).mkdir(exist_ok=True)
        output = str(self.place / name / f"out{self.ending}")
        log = str(self.place / f"{name}.log")
        args = (str(self.place / "in.jsonl"), output, str(self.place / "model"), workers, resume, fault, log)
        process = PROCESSES.Process(target=predict, args=args)
        process.start()
        return process

    def run(self, name: str, **how) -> int:
        process = self.start(name, **how)
        process.join(300)
        return process.exitcode

    def said(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text()

    def files(self, name: str) -> dict[str, bytes]:
        folder = self.place / name
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def resumes_like_the_whole(self, name: str, **how) -> bool:
        assert self.run(name, resume=True, **how) == 0, self.said(name)
        return self.files(name) == self.files("whole")


@pytest.fixture(scope="module", params=[".jsonl", ".parquet"])
def bulk(request, tmp_path_factory, tokenizer):
    return Bulk(tmp_path_factory.mktemp("bulk"), tokenizer, request.param)


@pytest.mark.parametrize("kill", range(6))
def test_killed_while_it_writes(bulk, kill):
    """Just before it makes, renames or removes a file, the moments spread from the first to the last."""
    moment = 1 + (bulk.moments - 1) * kill // 5
    assert bulk.run(f"write-{kill}", fault=Fault("killed", moment)) == -signal.SIGKILL
    assert bulk.resumes_like_the_whole(f"write-{kill}")


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(20))
def test_killed_at_any_moment_and_again(bulk, kill):
    """The second time while it goes on."""
    draw = random.Random(kill)
    assert bulk.run(f"any-{kill}", fault=Fault("killed", draw.randint(1, bulk.moments))) == -signal.SIGKILL
    bulk.run(f"any-{kill}", resume=True, fault=Fault("killed", draw.randint(1, bulk.moments)))
    assert bulk.resumes_like_the_whole(f"any-{kill}")


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(5))
def test_killed_with_two_workers_which_end_with_it(bulk, kill):
    name = f"two-{kill}"
    process = bulk.start(name, workers=2)
    parts = bulk.place / name / f"out{bulk.ending}.parts"
    deadline = time.monotonic() + 300
    while len(list(parts.glob("part-*"))) < 2 * kill + 1 and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = children.read_text().split() if children.exists() else []
    process.kill()
    process.join()
    while any(Path(f"/proc/{worker}").exists() and is_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker outlives its parent"
        time.sleep(0.05)
    assert bulk.resumes_like_the_whole(name, workers=2)


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
