"""One training at a time in a folder."""

import json
import os
import platform
import subprocess
import sys

import pytest

from hf_spanner.lock import LOCK, locked
from hf_spanner.modeling.folders import process_began


def lock_of(folder, **changes) -> None:
    me = {"pid": os.getpid(), "began": process_began(os.getpid()), "host": platform.node()}
    (folder / LOCK).write_text(json.dumps({**me, **changes}))


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_folder_is_locked_once_in_a_process_and_free_afterwards(tmp_path):
    with locked(tmp_path), locked(tmp_path):
        assert os.listdir(tmp_path) == [LOCK]
    assert os.listdir(tmp_path) == []


def test_a_folder_that_was_made_for_nothing_goes_again(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "new"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_another_process_is_kept_out_in_a_sentence(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        lock_of(tmp_path, pid=process.pid, began=process_began(process.pid))
        with pytest.raises(
            OSError, match=f"is being trained in by process {process.pid} on .*name another output_dir"
        ):
            locked(tmp_path).__enter__()
        assert os.listdir(tmp_path) == [LOCK]
    finally:
        process.communicate(b"\n")


def test_the_lock_of_a_dead_process_is_taken_over_and_said(tmp_path, dead, caplog):
    lock_of(tmp_path, pid=dead)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert f"is taken over from process {dead} on" in caplog.text and os.listdir(tmp_path) == []


def test_a_number_that_is_used_again_is_not_the_process_of_before(tmp_path, caplog):
    lock_of(tmp_path, pid=os.getppid(), began=process_began(os.getppid()) + 1)
    with locked(tmp_path):
        assert "is taken over" in caplog.text


def test_a_process_on_another_machine_may_well_live(tmp_path, dead):
    lock_of(tmp_path, pid=dead, host="elsewhere")
    with pytest.raises(OSError, match=f"process {dead} on elsewhere: .*if it has ended, remove .*{LOCK}"):
        locked(tmp_path).__enter__()


def test_a_lock_that_cannot_be_read_is_nobodys(tmp_path, caplog):
    (tmp_path / LOCK).write_text("{")
    with locked(tmp_path):
        assert "is taken over" in caplog.text


def test_a_zombie_has_ended(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_began(process.pid) is None
    process.wait()
