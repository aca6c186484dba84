"""Real trainings of tiny models in processes of their own, and what can happen to them."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
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


def train(argv: list[str], log: str, fault: Fault | None, folder: str, environment: dict[str, str]) -> None:
    """The body of a process: `hf-spanner train` with its fault; ends with the command's exit code."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.update(environment)
    import torch

    from hf_spanner import cli

    torch.set_num_threads(1)
    if fault is not None:
        install(fault, os.path.realpath(folder))
    code = cli.main(["train", *argv])
    sys.stdout.flush()
    os._exit(code)


def install(fault: Fault, folder: str) -> None:
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
    """Trainings with the same data, encoder and seed, in folders of their own; the first one is left in peace."""

    def __init__(self, place: Path, encoder: str, processes: int = 1, **settings):
        self.place, self.processes = place, processes
        data = place / "data"
        data.mkdir()
        for split, times in (("train", 4), ("validation", 1)):
            (data / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records() * times))
        values = {
            "data": data, "encoder": encoder, "approach": "span_ner", "max_span_length": 12, "learning_rate": 3e-3,
            "num_train_epochs": 3, "per_device_train_batch_size": 2 // processes, "warmup_steps": 0, "use_cpu": True,
            "disable_tqdm": True, "save_strategy": "steps", "save_steps": 4, "eval_strategy": "steps",
            "eval_steps": 4, "logging_steps": 100, "max_grad_norm": 1, "max_negatives": 100, "loss_reduction": "span",
            "boundary_smoothing": 0, "dropout": 0.1, "fresh_layers": 0,
        }  # fmt: skip
        self.argv = [str(word) for name, value in {**values, **settings}.items() for word in (f"--{name}", value)]
        counts = [place / f"count-{rank}" for rank in range(processes)]
        server = PROCESSES.Process(target=int)  # the server's imports are not the training's time
        server.start()
        server.join()
        begun = time.monotonic()
        assert self.run("whole", faults=[Fault(count=str(count)) for count in counts]) == 0, self.said("whole")
        self.seconds = time.monotonic() - begun
        self.moments = [int(count.read_text()) for count in counts]  # how often each process changes the folder
        self.weights = (place / "whole" / "model.safetensors").read_bytes()

    def start(self, name: str, *flags: str, faults: list[Fault | None] | None = None) -> list:
        """Begin a training in the folder `name`, with a fault for each of its processes."""
        folder = str(self.place / name)
        argv = [*self.argv, "--output_dir", folder, *flags]
        started = []
        port = str(free_port())
        for rank, fault in enumerate(faults or [None] * self.processes):
            environment = {}
            if self.processes > 1:  # what torchrun tells them
                environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(self.processes)}
                environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            log = str(self.place / f"{name}.log")
            started.append(PROCESSES.Process(target=train, args=(argv, log, fault, folder, environment)))
            started[-1].start()
        return started

    def end(self, started: list) -> int:
        """Wait for processes; when one fails the others are killed, as torchrun does; the exit code of the first."""
        sentinels = {process.sentinel: process for process in started}
        code = 0
        while sentinels:
            ready = wait(list(sentinels), timeout=300)
            assert ready, "a training hangs"
            for sentinel in ready:
                process = sentinels.pop(sentinel)
                process.join()
                if process.exitcode and not code:
                    code = process.exitcode
                    for other in sentinels.values():
                        other.kill()
        return code

    def run(self, name: str, *flags: str, faults: list[Fault | None] | None = None) -> int:
        """Train to the end, whatever that is, and return the exit code; -9 is a kill."""
        return self.end(self.start(name, *flags, faults=faults))

    def killed_at(self, name: str, moment: int, rank: int = 0) -> None:
        """Train until one of the processes is about to change something for the `moment`-th time."""
        faults: list[Fault | None] = [None] * self.processes
        faults[rank] = Fault("killed", moment)
        assert self.run(name, faults=faults) == -signal.SIGKILL, self.said(name)

    def killed_after(self, name: str, share: float) -> None:
        """Train for a share of the time that the undisturbed training took, then kill; sooner if it was faster now."""
        started = self.start(name)
        time.sleep(share * self.seconds)
        for process in started:
            process.kill()
        if self.end(started) == 0:
            shutil.rmtree(self.place / name)
            self.killed_after(name, share / 2)

    def said(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text(errors="replace")

    def resumes_like_the_whole(self, name: str) -> bool:
        """Whether `--resume` ends with the weights of the undisturbed training, to the last bit, without litter."""
        assert self.run(name, "--resume") == 0, self.said(name)
        folder, whole = self.place / name, self.place / "whole"
        best = [json.loads((run / "training.json").read_text())["best_checkpoint"] for run in (folder, whole)]
        assert best[0] == best[1]
        assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
        return (folder / "model.safetensors").read_bytes() == self.weights


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
