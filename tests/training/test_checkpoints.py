"""Which checkpoint is whole, which one to go on from, and what is removed of the others."""

import json
import os

import pytest

from hf_spanner.training import checkpoints
from hf_spanner.training.checkpoints import LIST, STATE, checkpoints_in, fault_of, newest_intact, remove_old


def save(folder, step: int, best: int | None = None, **files: str):
    """A checkpoint as the Trainer would leave it."""
    aside = folder / checkpoints.ASIDE / f"checkpoint-{step}"
    (aside / "deeper").mkdir(parents=True)
    (aside / "weights").write_text(f"weights of step {step}")
    (aside / "deeper" / "more").write_text("more")
    (aside / STATE).write_text(json.dumps({"best_global_step": best}))
    for name, text in files.items():
        (aside / name).write_text(text)
    target = folder / f"checkpoint-{step}"
    checkpoints.publish_checkpoint(aside, target)
    return target


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_checkpoint_has_its_name_when_it_is_whole(tmp_path):
    checkpoint = save(tmp_path, 10)
    assert names(tmp_path) == {"checkpoint-10"} and fault_of(checkpoint) is None
    assert set(json.loads((checkpoint / LIST).read_text())["files"]) == {"weights", "deeper/more", STATE}


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda c: (c / "weights").unlink(), "weights is missing"),
        (lambda c: (c / "deeper" / "more").write_text("mo"), "deeper/more has 2 of 4 bytes"),
        (lambda c: (c / LIST).unlink(), "no readable checkpoint.json"),
        (lambda c: (c / LIST).write_text('{"saved": 1, "fi'), "no readable checkpoint.json"),
        (lambda c: (c / LIST).write_text('{"saved": 1, "files": {"../../x": 3}}'), "no readable checkpoint.json"),
        (lambda c: (c / LIST).write_text('{"saved": 1, "files": {"/x": 3}}'), "no readable checkpoint.json"),
        (lambda c: (c / LIST).write_text('{"saved": 1, "files": {"x": "3"}}'), "no readable checkpoint.json"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_skipped_and_the_fault_named(tmp_path, spoil, fault):
    first, second = save(tmp_path, 10), save(tmp_path, 20)
    spoil(second)
    found, skipped = newest_intact(tmp_path)
    assert found == first and list(skipped) == ["checkpoint-20"] and fault in skipped["checkpoint-20"]


def test_a_file_that_somebody_adds_is_no_fault(tmp_path):
    checkpoint = save(tmp_path, 10)
    (checkpoint / "notes.txt").write_text("mine")
    assert newest_intact(tmp_path) == (checkpoint, {})


def test_the_newest_is_the_last_that_was_saved(tmp_path):
    """Another training in the same folder may have gone further, long ago."""
    save(tmp_path, 100), save(tmp_path, 20)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["checkpoint-20", "checkpoint-100"]


def test_nothing_goes_on_without_the_best_checkpoint_until_then(tmp_path):
    save(tmp_path, 10, best=10), save(tmp_path, 20, best=10)
    (tmp_path / "checkpoint-10" / "weights").write_text("")
    found, skipped = newest_intact(tmp_path)
    assert found is None
    assert skipped["checkpoint-20"] == ("the best until then, checkpoint-10, is not whole: weights has 0 of 18 bytes")
    assert newest_intact(tmp_path, with_best=False)[0] == tmp_path / "checkpoint-20"


@pytest.mark.parametrize(
    ("limit", "best", "kept"),
    [(None, None, {10, 20, 30, 40}), (1, None, {40}), (2, None, {30, 40}), (1, 20, {20, 40}), (3, 20, {20, 30, 40}),
     (2, 40, {30, 40}), (9, 20, {10, 20, 30, 40})],
)  # fmt: skip
def test_old_checkpoints_go_but_never_the_last_or_the_best(tmp_path, limit, best, kept):
    for step in (10, 20, 30, 40):
        save(tmp_path, step)
    remove_old(tmp_path, limit, best and str(tmp_path / f"checkpoint-{best}"))
    assert names(tmp_path) == {f"checkpoint-{step}" for step in kept}


def test_what_somebody_else_made_is_never_removed(tmp_path):
    for step in (10, 20):
        save(tmp_path, step)
    for name in ("checkpoint-7", "checkpoint-10-good", "checkpoint-mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("mine")
    (tmp_path / "checkpoint-10" / "deeper" / "notes.txt").write_text("mine")
    remove_old(tmp_path, 1, None)
    assert names(tmp_path) == {
        "checkpoint-20",
        "checkpoint-7",
        "checkpoint-10-good",
        "checkpoint-mine",
        "checkpoint-10",
    }
    assert [file.name for file in (tmp_path / "checkpoint-10").rglob("*") if file.is_file()] == ["notes.txt"]


def test_a_checkpoint_saved_again_takes_the_place_of_the_first(tmp_path):
    save(tmp_path, 10, other="x")
    checkpoint = save(tmp_path, 10)
    assert names(tmp_path) == {"checkpoint-10"} and not (checkpoint / "other").exists()
    (checkpoint / "notes.txt").write_text("mine")
    save(tmp_path, 10)
    (kept,) = names(tmp_path) - {"checkpoint-10"}
    assert kept.startswith("checkpoint-10-before-") and os.listdir(tmp_path / kept) == ["notes.txt"]


def test_a_removal_that_is_cut_off_is_finished_by_the_next(tmp_path, monkeypatch):
    old, new = save(tmp_path, 10), save(tmp_path, 20)
    (old / "weights").unlink()  # the list goes last
    assert newest_intact(tmp_path) == (new, {})
    remove_old(tmp_path, 1, None)
    assert names(tmp_path) == {"checkpoint-20"}
