"""Training by the clock and with patience: when it ends, with what, and how its learning rate gets there."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests_support import LABELS, encoder_config, records
from transformers import EarlyStoppingCallback, TrainerCallback, get_scheduler

import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments, cli
from hf_spanner.training import budget as budgets
from hf_spanner.training import progress
from hf_spanner.training.budget import TimeBudget, fit_to_time

STEPS = {"eval_strategy": "steps", "save_strategy": "steps", "eval_steps": 1000, "save_steps": 1000}


def model():
    torch.manual_seed(0)
    model_class = hf_spanner.APPROACHES["span_ner"]
    encoder = encoder_config("bert", 200).to_dict()
    return model_class(
        model_class.config_class(encoder_config=encoder, labels=LABELS, max_span_length=6, max_subwords=64)
    )


def trainer(folder, tokenizer, callbacks=None, **settings):
    base = {
        "num_train_epochs": 50, "per_device_train_batch_size": 2, "learning_rate": 3e-3, "use_cpu": True,
        "disable_tqdm": True, "seed": 1, "max_minutes": 1.0, "logging_steps": 1,
    }  # fmt: skip
    return NestedNerTrainer(
        model=model(),
        args=NestedNerTrainingArguments(output_dir=str(folder), **{**base, **settings}),
        train_dataset=records() * 2,  # five steps an epoch
        eval_dataset=records(),
        processing_class=tokenizer,
        callbacks=callbacks,
    )


@pytest.fixture
def clock(monkeypatch):
    """A clock that training sets: seconds for a step, an evaluation and a checkpoint."""
    clock = SimpleNamespace(now=1000.0, step=2.0, evaluation=3.0, checkpoint=1.0)
    monkeypatch.setattr(budgets, "monotonic", lambda: clock.now)
    monkeypatch.setattr(progress, "monotonic", lambda: clock.now)
    forward, save, evaluate = (
        NestedNerTrainer.training_step,
        NestedNerTrainer._save_checkpoint,
        NestedNerTrainer.evaluation_loop,
    )

    def slow(function, what):
        def slowly(*args, **kwargs):
            clock.now += getattr(clock, what)
            return function(*args, **kwargs)

        return slowly

    monkeypatch.setattr(NestedNerTrainer, "training_step", slow(forward, "step"))
    monkeypatch.setattr(NestedNerTrainer, "_save_checkpoint", slow(save, "checkpoint"))
    monkeypatch.setattr(NestedNerTrainer, "evaluation_loop", slow(evaluate, "evaluation"))
    return clock


def rates(train) -> list[float]:
    return [entry["learning_rate"] for entry in train.state.log_history if "learning_rate" in entry]


def evaluations(train) -> list[int]:
    return [entry["step"] for entry in train.state.log_history if "eval_f1" in entry]


@pytest.mark.parametrize("settings", [{}, STEPS, {**STEPS, "eval_steps": 7, "save_steps": 7}])
def test_training_ends_in_time_with_an_evaluation_and_a_checkpoint(tokenizer, tmp_path, clock, settings, capsys):
    train = trainer(tmp_path, tokenizer, **settings)
    train.train()
    last = train.state.global_step
    assert 50 <= clock.now - 1000 <= 60 and last < train.state.max_steps
    assert evaluations(train)[-1] == last and len(evaluations(train)) == len(set(evaluations(train)))
    assert train.state.best_global_step in evaluations(train)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{train.state.best_global_step}"]
    assert f"Training ended at step {last} of 250, epoch" in (said := capsys.readouterr().out)
    assert "the time is up (max_minutes=1)" in said


def test_a_budget_shorter_than_a_step_still_ends_with_a_scored_model(tokenizer, tmp_path, clock):
    train = trainer(tmp_path, tokenizer, max_minutes=0.01)
    train.train()
    assert train.state.global_step == 1 == train.state.best_global_step
    assert evaluations(train) == [1]


def test_a_slow_first_step_does_not_end_training(tokenizer, tmp_path, clock):
    class Warm(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            clock.step = 1.0

    clock.step = 15.0  # compiling, reading the disk
    train = trainer(tmp_path, tokenizer, [Warm()], **STEPS)
    train.train()
    assert train.state.global_step > 15 and 45 <= clock.now - 1000 <= 62  # an evaluation reads slower here


def test_a_budget_that_is_not_needed_changes_nothing(tokenizer, tmp_path, clock, capsys):
    with_it = trainer(tmp_path / "a", tokenizer, num_train_epochs=2, max_minutes=60)
    without = trainer(tmp_path / "b", tokenizer, num_train_epochs=2, max_minutes=None)
    with_it.train(), without.train()
    assert rates(with_it) == rates(without) and with_it.state.global_step == 10
    assert "the time is up" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["linear", "cosine", "constant", "constant_with_warmup", "reduce_lr_on_plateau"])
def test_the_learning_rate_comes_to_its_end_with_the_time(tokenizer, tmp_path, clock, kind):
    train = trainer(tmp_path, tokenizer, lr_scheduler_type=kind, **STEPS)
    train.train()
    found, peak = rates(train), 3e-3
    if kind in ("linear", "cosine"):
        top = found.index(max(found))
        assert found[:top] == sorted(found[:top]) and found[top:] == sorted(found[top:], reverse=True)
        assert found[0] == 0 and max(found) == pytest.approx(peak, rel=0.1)
        assert found[-1] < peak / 10 and 1 <= top <= len(found) / 4
    else:
        assert found[-1] == pytest.approx(peak)


@given(
    kind=st.sampled_from(["linear", "cosine"]),
    steps=st.integers(2, 400),
    warm_up=st.floats(0, 0.5),
    gaps=st.lists(st.floats(0, 0.2), min_size=1, max_size=60),
)
def test_a_fitted_schedule_rises_falls_and_ends_at_zero(kind, steps, warm_up, gaps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    warm_up = math.ceil(warm_up * steps)
    schedule = get_scheduler(kind, optimizer, num_warmup_steps=warm_up, num_training_steps=steps)
    budget = TimeBudget()
    fit_to_time(schedule, budget, steps)
    found = [(0.0, schedule.get_last_lr()[0])]
    for gap in [*gaps[: steps - 1], 1.0]:
        budget.share = min(1.0, budget.share + gap)
        optimizer.step()
        schedule.step()
        found.append((max(budget.share * steps, schedule.last_epoch), schedule.get_last_lr()[0]))
    assert all(0 <= rate <= 1 for _, rate in found)
    rising = [rate for place, rate in found if place < warm_up]
    falling = [rate for place, rate in found if place >= warm_up]
    assert rising == sorted(rising)
    assert all(later <= earlier + 1e-9 for earlier, later in zip(falling, falling[1:], strict=False))
    assert found[-1][1] == pytest.approx(0, abs=1e-9)


def test_a_resumed_training_has_the_rest_of_the_time(tokenizer, tmp_path, clock):
    class Killed(TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            if state.global_step == 10:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path, tokenizer, callbacks=[Killed()], max_minutes=1).train()
    spent = clock.now - 1000
    state = json.loads((tmp_path / "checkpoint-10" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["TimeBudget"]["attributes"]["before"] == pytest.approx(spent)
    clock.now += 3600  # nobody trained
    resumed = trainer(tmp_path, tokenizer)
    resumed.train(resume_from_checkpoint=True)
    assert 50 <= clock.now - 1000 - 3600 <= 60
    found = rates(resumed)
    assert found[10:] == sorted(found[10:], reverse=True) and found[-1] < 3e-4
    clock.now = 9000  # one that begins anew has all of it
    resumed.train()
    assert 50 <= clock.now - 9000 <= 60


def test_a_training_without_limits_goes_on_with_some(tokenizer, tmp_path, clock):
    trainer(tmp_path, tokenizer, num_train_epochs=2, max_minutes=None, save_total_limit=3).train()
    resumed = trainer(tmp_path, tokenizer, num_train_epochs=3, patience=9, save_total_limit=3)
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 15


def test_the_average_of_the_weights_is_what_the_last_evaluation_sees(tokenizer, tmp_path, clock):
    train = trainer(tmp_path, tokenizer, ema_decay=0.9, load_best_model_at_end=False, **STEPS)
    train.train()
    last = train.state.global_step
    assert (tmp_path / f"checkpoint-{last}" / "raw_weights.safetensors").is_file()
    (told,) = [entry["eval_loss"] for entry in train.state.log_history if "eval_loss" in entry]
    assert train.evaluate()["eval_loss"] == pytest.approx(told, rel=1e-4)


def test_patience_ends_training_and_says_so(tokenizer, tmp_path, capsys):
    settings = {
        "max_minutes": None,
        "patience": 2,
        "learning_rate": 1e-9,
        "head_learning_rate": 1e-9,
    }  # nothing is learnt
    train = trainer(tmp_path, tokenizer, **settings)
    train.train()
    assert train.state.global_step == 15 and train.state.best_global_step == 5
    said = capsys.readouterr().out
    assert "Training ended at step 15 of 250" in said and "no better F1 in the last 2 evaluations (patience=2)" in said
    assert f"The best was step 5, F1 {train.state.best_metric:.4f}." in said
    train.train()  # from the start, with all its patience
    assert train.state.global_step == 15


def test_patience_outlives_an_interruption(tokenizer, tmp_path):
    class Killed(TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            if state.global_step == 15:
                raise KeyboardInterrupt

    settings = {"max_minutes": None, "patience": 3, "learning_rate": 1e-9, "head_learning_rate": 1e-9}
    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path, tokenizer, callbacks=[Killed()], **settings).train()
    resumed = trainer(tmp_path, tokenizer, **settings)
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 20
    (early,) = [c for c in resumed.callback_handler.callbacks if isinstance(c, EarlyStoppingCallback)]
    assert early.early_stopping_patience_counter == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_minutes": 0}, "max_minutes=0 must be a number of minutes above 0; leave it out for no limit."),
        ({"max_minutes": -1.0}, "max_minutes=-1 must be"),
        ({"max_minutes": math.nan}, "max_minutes=nan must be"),
        ({"max_minutes": math.inf}, "max_minutes=inf must be"),
        ({"max_minutes": 1.0, "frozen_encoder_epochs": 2}, "cannot be kept with frozen_encoder_epochs=2"),
        ({"patience": 0}, "patience=0 must be at least 1 evaluation"),
        ({"patience": 2, "load_best_model_at_end": False}, "patience=2 waits for a better checkpoint"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        NestedNerTrainingArguments(output_dir=str(tmp_path / "x"), **settings)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("flags", [["--max_minutes", "0"], ["--max_minutes", "nan"], ["--patience", "0"]])
def test_the_command_refuses_them_in_a_sentence_and_writes_nothing(tmp_path, flags, capsys):
    assert cli.main(["train", "--data", "sample", "--output_dir", str(tmp_path / "x"), *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hf-spanner train: {flags[0][2:]}={flags[1]} must be") and error.count("\n") == 1
    assert not (tmp_path / "x").exists()


ONE_OF_TWO = """
import json, os, sys, time
import torch
from pathlib import Path
sys.path[:0] = [os.environ["TESTS"], os.environ["TESTS"] + "/training"]
import test_budget
from conftest import _wordpiece
from hf_spanner.training import budget

rank = int(os.environ["RANK"])
budget.monotonic = lambda: time.monotonic() * (1 - 0.5 * rank)  # the second process has a slow clock
train = test_budget.trainer(os.environ["OUTPUT"], _wordpiece(), max_minutes=0.05, num_train_epochs=10_000)
train.train()
weights = sum(parameter.double().sum().item() for parameter in train.model.parameters())
rates = test_budget.rates(train)
Path(os.environ["OUTPUT"] + f"/{rank}.json").write_text(json.dumps([train.state.global_step, rates, weights]))
"""


@pytest.mark.slow
def test_two_processes_with_different_clocks_end_at_the_same_step(tmp_path):
    tests = Path(__file__).resolve().parents[1]
    script = tmp_path / "one_of_two.py"
    script.write_text(ONE_OF_TWO)
    about = {"TESTS": str(tests), "OUTPUT": str(tmp_path), "PYTHONPATH": str(tests.parent), "OMP_NUM_THREADS": "1"}
    about |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    done = subprocess.run(command, env={**os.environ, **about}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second and first[0] < 1000
    assert done.stdout.count("the time is up") == 1, "one process speaks for both"
