"""Trainings that are killed, run out of disk or find their files cut short, and go on as if nothing had been."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.harness import Fault, Trainings

from hf_spanner.lock import LOCK
from hf_spanner.training.checkpoints import checkpoints_in, fault_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trainings(encoder_folder, tmp_path_factory):
    return Trainings(tmp_path_factory.mktemp("faults"), encoder_folder)


@pytest.fixture(scope="module")
def averaged(encoder_folder, tmp_path_factory):
    return Trainings(tmp_path_factory.mktemp("averaged"), encoder_folder, ema_decay=0.8, save_total_limit=2)


@pytest.fixture(scope="module")
def twofold(encoder_folder, tmp_path_factory):
    return Trainings(tmp_path_factory.mktemp("twofold"), encoder_folder, processes=2)


def contents(folder) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_training_killed_inside_a_save_goes_on_as_if_nothing_had_been(trainings):
    trainings.killed_at("killed", moment=trainings.moments[0] // 2)  # in the middle of an epoch
    assert trainings.resumes_like_the_whole("killed")
    assert "is taken over from process" in trainings.said("killed")


def test_a_full_disk_ends_in_a_sentence_and_leaves_the_last_good_checkpoint_alone(trainings):
    fault = Fault("full", moment=int(trainings.moments[0] * 0.7))
    assert trainings.run("full", faults=[fault]) == 2
    last = trainings.said("full").strip().splitlines()[-1]
    assert last.startswith("hf-spanner train: The disk is full: ") and last.endswith(
        "free some space and go on with --resume."
    )
    assert "Traceback" not in trainings.said("full")
    folder = trainings.place / "full"
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"checkpoint"}, "no litter"
    assert trainings.resumes_like_the_whole("full")


def test_a_file_cut_short_costs_its_checkpoint_and_no_other(trainings):
    for share in (85, 80, 75, 70, 65):  # where the last is not the best, there are two
        name = f"short-{share}"
        trainings.killed_at(name, trainings.moments[0] * share // 100)
        whole = [
            path for path in checkpoints_in(trainings.place / name) if fault_of(path) is None
        ]  # none half removed
        steps = sorted(int(path.name.split("-")[1]) for path in whole)
        if len(steps) > 1:
            break
    assert len(steps) > 1, "the best and the last"
    file = trainings.place / name / f"checkpoint-{steps[-1]}" / "optimizer.pt"
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(1000)
    assert trainings.resumes_like_the_whole(name)
    fault = f"skipped: checkpoint-{steps[-1]}: optimizer.pt has 1,000 of {size:,} bytes."
    assert f"Training goes on from checkpoint-{steps[-2]} of {trainings.place / name}; {fault}" in trainings.said(name)


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(20))
def test_killed_at_any_time(trainings, kill):
    trainings.killed_after(f"time-{kill}", random.Random(kill).uniform(0.05, 0.95))
    assert trainings.resumes_like_the_whole(f"time-{kill}")


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(10))
def test_killed_inside_any_save(trainings, kill):
    trainings.killed_at(f"save-{kill}", random.Random(kill).randint(2, trainings.moments[0]))
    assert trainings.resumes_like_the_whole(f"save-{kill}")


@pytest.mark.slow
def test_killed_again_and_again(trainings):
    """Each time the training gets a little further: it ends all the same."""
    moment, kills = trainings.moments[0] // 3, 0
    while (code := trainings.run("again", "--resume", faults=[Fault("killed", moment)])) != 0:
        assert code == -9 and kills < 20, trainings.said("again")
        kills += 1
    assert kills >= 2
    assert (trainings.place / "again" / "model.safetensors").read_bytes() == trainings.weights


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(4))
def test_killed_with_averaged_weights(averaged, kill):
    averaged.killed_at(f"save-{kill}", random.Random(kill).randint(averaged.moments[0] // 4, averaged.moments[0]))
    assert averaged.resumes_like_the_whole(f"save-{kill}")


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(8))
def test_killed_with_two_processes(twofold, kill):
    if kill < 3:
        twofold.killed_after(f"kill-{kill}", 0.4 + 0.2 * kill)
    else:
        rank = kill % 2
        twofold.killed_at(f"kill-{kill}", random.Random(kill).randint(2, twofold.moments[rank]), rank)
    assert twofold.resumes_like_the_whole(f"kill-{kill}")


@pytest.mark.slow
@pytest.mark.parametrize("room", [0.3, 0.7, 0.9, 1.3, 1.8, 2.2, 2.6, 2.9])
def test_a_small_disk_fills_up(trainings, room):
    """On a file system with room for so many checkpoints, in place of the best, the last, the next and the model."""
    name = f"disk-{room}"
    folder = trainings.place / name
    folder.mkdir()
    (checkpoint,) = (trainings.place / "whole").glob("checkpoint-*")
    size = int(room * sum(len(content) for content in contents(checkpoint).values()))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"A file system can be mounted by root only: {done.stderr.strip()}")
    try:
        assert trainings.run(name) == 2, trainings.said(name)
        assert trainings.said(name).strip().splitlines()[-1].startswith("hf-spanner train: The disk is full: ")
        assert "Traceback" not in trainings.said(name)
        subprocess.run(["mount", "-o", "remount,size=20m", str(folder)], check=True)
        assert trainings.resumes_like_the_whole(name)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_second_training_is_kept_out_of_the_folder_of_the_first(trainings):
    lock = trainings.place / "both" / LOCK
    first = trainings.start("both")
    wait_for(lock.exists)
    assert trainings.run("both", "--overwrite") == 2
    assert f"is being trained in by process {first[0].pid} on " in trainings.said("both")
    assert trainings.end(first) == 0 and not lock.exists()
    assert (trainings.place / "both" / "model.safetensors").read_bytes() == trainings.weights


@pytest.mark.slow
def test_one_process_of_torchrun_is_killed(twofold):
    """Compared with torchrun left in peace: the forked processes of the other tests differ from it in last bits."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    torchrun += ["-m", "hf_spanner.cli", "train", *twofold.argv, "--output_dir"]
    whole, folder = twofold.place / "torchrun-whole", twofold.place / "torchrun"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with (twofold.place / "torchrun.log").open("a") as log:
        about = {"env": environment, "stdout": log, "stderr": log}
        assert subprocess.run([*torchrun, str(whole)], **about, timeout=300).returncode == 0
        running = subprocess.Popen([*torchrun, str(folder)], **about)
        wait_for((folder / "checkpoint-8").exists, seconds=240)
        os.kill(json.loads((folder / LOCK).read_text())["pid"], signal.SIGKILL)
        assert running.wait(120) != 0 and not (folder / "training.json").exists()
        assert subprocess.run([*torchrun, str(folder), "--resume"], **about, timeout=300).returncode == 0
    assert "Training goes on from checkpoint-" in twofold.said("torchrun")
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def wait_for(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
