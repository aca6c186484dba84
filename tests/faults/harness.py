"""Real trainings of tiny models in processes of their own, and what can happen to them."""

import errno
import json
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests_support import records

# A server that has imported everything once and forks: a training begins within milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["hf_spanner.cli.train", "faults.harness"])
WRITES = os.O_WRONLY | os.O_RDWR


@dataclass
class Fault:
    """What happens at the `moment`-th time that a training changes something in its folder.

    kind: "killed" (as by kill -9, a file that torch was writing is left half written), "full" (from then on nothing
    can be written), or "none" (the moments are counted, in the file `count`).
    """

    kind: str = "none"
    moment: int = 0
    count: str | None = None


def train(argv: list[str], log: str, fault: Fault | None = None, folder: str | None = None) -> None:
    """The body of a process: `hf-spanner train` with its fault; ends with the command's exit code."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    import torch

    from hf_spanner import cli

    torch.set_num_threads(1)
    if fault is not None:
        _install(fault, os.path.realpath(folder))
    code = cli.main(["train", *argv])
    sys.stdout.flush()
    os._exit(code)


def _install(fault: Fault, folder: str) -> None:
    import torch

    seen, save = 0, torch.save

    def happens(path, half_written: bool = False, grows: bool = True) -> None:
        nonlocal seen
        if isinstance(path, (str, os.PathLike)) and os.path.realpath(path).startswith(folder + os.sep):
            seen += 1
            if fault.kind == "killed" and seen == fault.moment:
                if half_written:
                    with open(path, "wb") as file:
                        file.write(b"half of it")
                os.kill(os.getpid(), signal.SIGKILL)
            elif fault.kind == "full" and seen >= fault.moment and grows:
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            elif fault.kind == "none" and fault.count:
                os.pwrite(counter, str(seen).encode(), 0)

    def audit(event: str, args: tuple) -> None:
        if event in ("os.rename", "os.remove", "os.rmdir", "os.link"):
            happens(args[0], grows=False)
        elif event == "os.mkdir" or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
            happens(args[0])

    def torch_save(obj, f, *args, **kwargs) -> None:  # C++ opens the file: nobody hears of it
        happens(f, half_written=True)
        save(obj, f, *args, **kwargs)

    counter = os.open(fault.count, os.O_WRONLY | os.O_CREAT) if fault.count else -1
    torch.save = torch_save
    sys.addaudithook(audit)


class Trainings:
    """Trainings with the same data, encoder and seed, in folders of their own."""

    def __init__(self, place: Path, encoder: str, **settings):
        self.place = place
        for split, times in (("train", 4), ("validation", 1)):
            (place / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records() * times))
        values = {
            "data": place, "encoder": encoder, "approach": "span_ner", "max_span_length": 12, "learning_rate": 3e-3,
            "num_train_epochs": 3, "per_device_train_batch_size": 2, "warmup_steps": 0, "use_cpu": True,
            "disable_tqdm": True, "save_strategy": "steps", "save_steps": 4, "eval_strategy": "steps",
            "eval_steps": 4, "logging_steps": 100,
        }  # fmt: skip
        self.argv = [str(word) for name, value in {**values, **settings}.items() for word in (f"--{name}", value)]
        self.whole = self.folder("whole")
        count = str(place / "count")
        begun = time.monotonic()
        assert self.run("whole", fault=Fault(count=count)) == 0, self.said("whole")
        self.seconds = time.monotonic() - begun
        self.moments = int(Path(count).read_text())  # how often an undisturbed training changes its folder
        self.weights = (self.whole / "model.safetensors").read_bytes()

    def folder(self, name: str) -> Path:
        return self.place / name

    def start(self, name: str, *flags: str, fault: Fault | None = None):
        argv = [*self.argv, "--output_dir", str(self.folder(name)), *flags]
        log = str(self.place / f"{name}.log")
        process = PROCESSES.Process(target=train, args=(argv, log, fault, str(self.folder(name))))
        process.start()
        return process

    def run(self, name: str, *flags: str, fault: Fault | None = None) -> int:
        """Train to the end, whatever that is, and return the exit code; -9 is a kill."""
        process = self.start(name, *flags, fault=fault)
        process.join(300)
        assert process.exitcode is not None, self.said(name)
        return process.exitcode

    def said(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text(errors="replace")

    def ends_like_the_whole(self, name: str) -> bool:
        """Whether a training has ended with the weights of the undisturbed one, to the last bit."""
        folder = self.folder(name)
        record = json.loads((folder / "training.json").read_text())
        best = json.loads((self.whole / "training.json").read_text())["best_checkpoint"]
        return (folder / "model.safetensors").read_bytes() == self.weights and record["best_checkpoint"] == best
