"""The plain training loop of `scripts/train_no_trainer.py`."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from tests_support import records
from toy import make_toy_encoder

import hf_spanner
from hf_spanner.data.sample import load_sample

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "train_no_trainer.py"


def run(monkeypatch, folder, data, encoder, **settings):
    arguments = {"data": data, "output_dir": folder, "encoder": encoder, **settings}
    flags = [str(part) for name, value in arguments.items() for part in (f"--{name}", value)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *flags])
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_the_loop_learns_the_sample(tmp_path, monkeypatch, capsys):
    data = load_sample()
    encoder = make_toy_encoder(tmp_path / "encoder", (" ".join(s["tokens"]) for s in data["train"]), hidden_size=32)
    rates = {"learning_rate": 3e-3, "head_learning_rate": 1e-2}
    run(
        monkeypatch, tmp_path / "model", "sample", encoder, num_train_epochs=16, gradient_accumulation_steps=2, **rates
    )
    epochs = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("epoch")]
    losses = [float(line[3].rstrip(",")) for line in epochs]
    assert len(losses) == 16 and losses[-1] < 0.5 * losses[0]
    model, tokenizer = hf_spanner.load_model(str(tmp_path / "model"))
    truth = hf_spanner.evaluate(model, tokenizer, data["validation"])["f1"]
    assert truth > 0.2 and float(epochs[-1][-1]) == pytest.approx(truth, abs=1e-4), (
        "the loop says what the saved model scores"
    )


@pytest.mark.parametrize("approach", hf_spanner.APPROACHES)
def test_the_loop_trains_any_approach(approach, encoder_folder, tmp_path, monkeypatch):
    torch.manual_seed(0)
    for split in ("train", "validation"):
        lines = "".join(json.dumps(sentence) + "\n" for sentence in records() * 3)
        (tmp_path / f"{split}.jsonl").write_text(lines)
    settings = {"approach": approach, "num_train_epochs": 1, "per_device_eval_batch_size": 4, "max_span_length": 10}
    run(monkeypatch, tmp_path / "model", tmp_path, encoder_folder, **settings)
    model, _ = hf_spanner.load_model(str(tmp_path / "model"))
    assert model.config.model_type == approach
