"""What a training shows, to people and to others."""

import io
import re

import pytest
import torch
from tests_support import LABELS, encoder_config, records
from transformers import PrinterCallback, ProgressCallback, TrainerCallback

import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.training import progress
from hf_spanner.training.progress import ProgressTable


def trainer(folder, tokenizer, callbacks=None, evaluation=None, approach="span_ner", config=None, **settings):
    torch.manual_seed(0)
    model_class = hf_spanner.APPROACHES[approach]
    config = config or {"encoder_config": encoder_config("bert", 200).to_dict(), "max_span_length": 6}
    base = {
        "num_train_epochs": 2, "per_device_train_batch_size": 2, "learning_rate": 3e-3, "use_cpu": True, "seed": 1,
        "disable_tqdm": True,
    }  # fmt: skip
    return NestedNerTrainer(
        model=model_class(model_class.config_class(labels=LABELS, **config)),
        args=NestedNerTrainingArguments(output_dir=str(folder), **{**base, **settings}),
        train_dataset=records() * 2,
        eval_dataset=records() if evaluation is None else evaluation,
        processing_class=tokenizer,
        callbacks=callbacks,
    )


def rows(text: str) -> list[list[str]]:
    """The table in what was printed, without its header."""
    lines = text.splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.split()[:2] == ["epoch", "step"]]
    return [line.split() for line in lines[start + 1 :] if re.match(r" *\d+\.\d\d ", line)]


@pytest.mark.parametrize("disable_tqdm", [True, False])
def test_a_file_gets_a_row_an_evaluation(tokenizer, tmp_path, disable_tqdm, capsys):
    train = trainer(tmp_path, tokenizer, num_train_epochs=3, disable_tqdm=disable_tqdm, warmup_steps=0)
    train.train()
    train.evaluate()
    out, error = capsys.readouterr()
    assert "\r" not in out + error and "{" not in out and error == ""
    assert out.splitlines()[0].split() == "epoch step loss val loss P R F1 time left".split()
    table, best = rows(out), 0.0
    history = [entry for entry in train.state.log_history if "eval_f1" in entry][:3]
    assert len(table) == 3
    for row, entry in zip(table, history, strict=True):
        assert row[:2] == [f"{entry['epoch']:.2f}", str(entry["step"])]
        scores = [entry[f"eval_{name}"] for name in ("loss", "precision", "recall", "f1")]
        assert row[3:7] == [f"{score:.4f}" for score in scores]
        assert ("best" in row) == (entry["step"] == 5 or entry["eval_f1"] > best)
        assert 0 < float(row[2]) < 10  # though nothing was logged yet
        best = max(best, entry["eval_f1"])
    assert table[-1][-1] == "0:00"
    assert "Training ended at step 15, epoch 3.00, after 0:0" in out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_live_line_too(tokenizer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    train = trainer(tmp_path, tokenizer, disable_tqdm=False)
    train.train()
    live = terminal.getvalue()
    assert re.search(r"\repoch 0\.60, step 3, \d+:\d\d left \|", live)
    assert re.search(r"\repoch 1\.20, step 6, best F1 0\.\d{4}, \d+:\d\d left \|.*\| 60%", live)
    assert "step 5, evaluating, batch 1" in live
    assert live.count("\n") == 0 and len(rows(capsys.readouterr().out)) == 2
    train.evaluate()  # its own bar, as ever
    assert "1/1" in terminal.getvalue()


def test_trainings_without_evaluation_have_a_row_an_epoch(tokenizer, tmp_path, capsys):
    trainer(tmp_path, tokenizer, eval_strategy="no", save_strategy="no", load_best_model_at_end=False).train()
    assert [row[:2] for row in rows(capsys.readouterr().out)] == [["1.00", "5"], ["2.00", "10"]]


def test_several_evaluation_sets_have_a_row_each(tokenizer, tmp_path, capsys):
    sets = {"news": records(), "tales": records()[:2]}
    trainer(tmp_path, tokenizer, evaluation=sets, metric_for_best_model="tales_f1", num_train_epochs=1).train()
    news, tales = rows(capsys.readouterr().out)
    assert news[3] == "news" and tales[3] == "tales" and "best" in tales and "best" not in news


def test_the_metric_that_chooses_has_a_column():
    cells = progress.scores({"eval_loss": 1.0, "eval_typing_accuracy": 0.5, "eval_runtime": 3.0}, "typing_accuracy")
    assert cells == {"val loss": "1.0000", "typing_accuracy": "0.5000"}
    assert list(progress.scores({"eval_f1": 1.0, "eval_runtime": 3.0}, "eval_f1")) == ["F1"]
    assert progress.scores({}, None) == {}


def test_others_get_all_values_and_keep_their_callbacks(tokenizer, tmp_path, capsys):
    class Report(TrainerCallback):
        seen: list

        def on_log(self, args, state, control, logs=None, **kwargs):
            self.seen.append(dict(logs))

    class Mine(PrinterCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            print("mine")

    report = Report()
    report.seen = []
    train = trainer(tmp_path, tokenizer, callbacks=[Mine(), report], logging_steps=2)
    train.train()
    assert "mine" in capsys.readouterr().out
    keys = set().union(*report.seen)
    assert {"loss", "grad_norm", "learning_rate", "eval_f1", "eval_locate_f1", "total_flos", "train_loss"} <= keys
    logged = set().union(*train.state.log_history)
    assert keys <= logged


@pytest.mark.parametrize(("disable_tqdm", "kind"), [(True, PrinterCallback), (False, ProgressCallback)])
def test_the_display_is_taken_away_as_ever(tokenizer, tmp_path, disable_tqdm, kind, capsys):
    train = trainer(tmp_path, tokenizer, disable_tqdm=disable_tqdm, num_train_epochs=1)
    train.remove_callback(kind)
    train.train()
    assert "val loss" not in capsys.readouterr().out


def test_a_notebook_keeps_its_own(tokenizer, tmp_path, monkeypatch):
    class NotebookProgressCallback(TrainerCallback):
        """Stands for the one of transformers, which needs IPython."""

    monkeypatch.setattr("transformers.trainer.DEFAULT_PROGRESS_CALLBACK", NotebookProgressCallback)
    mine = PrinterCallback()
    callbacks = trainer(tmp_path, tokenizer, [mine], disable_tqdm=False).callback_handler.callbacks
    assert type(callbacks[-1]) is NotebookProgressCallback and mine in callbacks
    assert not any(isinstance(callback, ProgressTable) for callback in callbacks)


def test_a_training_that_is_to_be_silent_is(tokenizer, tmp_path, capsys):
    trainer(tmp_path, tokenizer, log_level="error", num_train_epochs=1).train()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (3599, "59:59"), (3900, "1:05:00"), (None, "-")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text
