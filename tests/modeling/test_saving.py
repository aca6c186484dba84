"""A folder is saved whole or not at all, with the code of its approach and no other's."""

import contextlib
import os
import platform
import subprocess
import sys

import pytest
import torch
from approaches import ROWS

from hf_spanner import AutoModelForNestedNer
from hf_spanner.loading import load_model
from hf_spanner.modeling.folders import full_disk_said, process_began, whole_or_not_at_all, write_whole

BY_NAME = {row.name: row for row in ROWS}
WEIGHT = "encoder.embeddings.word_embeddings.weight"


class Killed(BaseException):
    """Nobody catches this."""


@pytest.fixture
def model(tokenizer):
    return BY_NAME["span_ner"].make(tokenizer)


def test_a_save_that_ends_at_any_moment_leaves_the_new_model_or_none(model, tmp_path, monkeypatch):
    """Interrupted at every file that moves: the folder then has no config.json, and says so when it is loaded."""
    replace, states = os.replace, []
    torch.nn.init.zeros_(model.encoder.embeddings.word_embeddings.weight)
    for moment in range(100):
        folder = tmp_path / str(moment)
        model.save_pretrained(folder)  # an older model is there already
        moved = []

        def move(source, target, moment=moment, moved=moved):
            if len(moved) == moment:
                raise Killed
            moved.append(target)
            replace(source, target)

        monkeypatch.setattr(os, "replace", move)
        killed = True
        with contextlib.suppress(Killed):
            model.save_pretrained(folder)
            killed = False
        monkeypatch.setattr(os, "replace", replace)
        states.append((folder / "config.json").exists())
        assert not [name for name in os.listdir(folder) if name.startswith(".")]
        if not killed:
            break
    assert states == [False] * (len(states) - 1) + [True] and len(states) > 10
    with pytest.raises(FileNotFoundError, match="has no config.json: it is not the folder of a trained model"):
        load_model(str(tmp_path / "0"))


def test_a_save_that_fails_leaves_the_old_model_as_it_was(model, tmp_path, monkeypatch):
    model.save_pretrained(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    torch.nn.init.zeros_(model.encoder.embeddings.word_embeddings.weight)

    def full(*args, **kwargs):
        raise RuntimeError("I/O error: No space left on device (os error 28)")  # as safetensors says it

    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", full)
    with pytest.raises(OSError, match="The disk is full: .* was not saved; free some space"):
        model.save_pretrained(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_another_approach_saved_to_the_same_folder_leaves_no_code_or_shards_behind(model, tokenizer, tmp_path):
    (tmp_path / "handler.py").write_text("# the user's own")
    BY_NAME["dspert"].make(tokenizer).save_pretrained(tmp_path, max_shard_size="100KB")
    assert (tmp_path / "modeling_dspert.py").exists() and len(list(tmp_path.glob("*.safetensors"))) > 1
    model.save_pretrained(tmp_path)
    assert not (tmp_path / "modeling_dspert.py").exists() and (tmp_path / "modeling_span_ner.py").exists()
    assert [file.name for file in tmp_path.glob("model*.safetensors*")] == ["model.safetensors"]
    assert (tmp_path / "handler.py").exists()
    loaded = AutoModelForNestedNer.from_pretrained(tmp_path)
    assert torch.equal(loaded.state_dict()[WEIGHT], model.state_dict()[WEIGHT])


def test_saving_changes_nothing_in_memory(model, tmp_path):
    before = model.config.to_dict()
    model.save_pretrained(tmp_path)
    after = model.config.to_dict()
    assert {**after, "dtype": None, "architectures": None} == {**before, "dtype": None, "architectures": None}


def test_nothing_moves_when_the_writing_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_or_not_at_all(tmp_path / "a") as folder:
        (folder / "config.json").write_text("{}")
        raise ZeroDivisionError
    assert list((tmp_path / "a").iterdir()) == []


def test_what_a_killed_process_was_saving_is_removed_by_the_next_save_and_a_living_one_is_left_alone(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    parent, host = os.getppid(), platform.node()
    stale = [f".saving-{dead.pid}", f".saving-{os.getpid()}", f".saving-{dead.pid}.1.{host}.abc",
             f".saving-{parent}.{process_began(parent) + 1}.{host}.abc"]  # fmt: skip
    alive = [f".saving-{parent}", f".saving-{parent}.{process_began(parent)}.{host}.abc",
             f".saving-{dead.pid}.1.else.where.abc", ".saving-for-later"]  # fmt: skip
    for name in stale + alive:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text("half")
    with whole_or_not_at_all(tmp_path) as folder:
        (folder / "config.json").write_text("{}")
    assert {path.name for path in tmp_path.iterdir()} == {*alive, "config.json"}


def test_a_text_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", "first")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="The disk is full: .* was not saved"), full_disk_said(tmp_path):
        write_whole(tmp_path / "a", "second")
    assert (tmp_path / "a").read_text() == "first" and os.listdir(tmp_path) == ["a"]
