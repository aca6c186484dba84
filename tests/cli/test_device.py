"""Every command that reads with a model does it on any device, in any precision."""

import json
import time

import pytest
import torch
from approaches import ROWS
from tests_support import records

from hf_spanner import cli, load_model
from hf_spanner.data import write_jsonl
from hf_spanner.loading import find_device


@pytest.fixture(scope="module")
def place(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("device")
    for split in ("train", "validation", "test"):
        write_jsonl(records(), folder / "data" / f"{split}.jsonl")
    torch.manual_seed(0)
    next(row for row in ROWS if row.name == "span_ner").make(tokenizer).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    write_jsonl(records(), folder / "gold.jsonl")
    (folder / "texts.jsonl").write_text('{"text": "the mayor of New York"}\n')
    return folder


def commands(place) -> dict[str, list[str]]:
    data, model, out = str(place / "data"), str(place / "model"), str(place / "out")
    return {
        "evaluate": ["evaluate", data, "--model", model],
        "report": ["report", data, model, "--representations"],
        "compare": ["compare", data, model, f"gold={place / 'gold.jsonl'}", "--resamples", "10"],
        "tune-threshold": ["tune-threshold", data, "--model", model, "--calibrate"],
        "predict": ["predict", "--model", model, "the mayor of New York", "--format", "jsonl"],
        "predict a file": [
            "predict",
            "--model",
            model,
            "--input",
            str(place / "texts.jsonl"),
            "--output",
            str(place / f"{time.monotonic_ns()}.jsonl"),
        ],
        "pictures": ["pictures", data, "--model", model, "--output", out, "--formats", "svg"],
    }


NAMES = ["evaluate", "report", "compare", "tune-threshold", "predict", "predict a file", "pictures"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options",
    [[], ["--device", "cpu", "--dtype", "bfloat16"], ["--device", "spread"]],
    ids=["auto", "cpu, bfloat16", "spread"],
)
def test_a_command_reads_on_the_device_that_is_named(name, options, place):
    if name == "pictures":
        pytest.importorskip("matplotlib")
    assert cli.main([*commands(place)[name], *options]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_device_that_is_not_there_is_refused_with_a_sentence(name, place, capsys):
    if name == "pictures":
        pytest.importorskip("matplotlib")
    for device, sentence in (("cuda:97", "'cuda:97' is not available, there is"), ("gpu", "There is no device 'gpu'")):
        assert cli.main([*commands(place)[name], "--device", device]) != 0
        error = capsys.readouterr().err
        assert sentence in error and "auto" in error and error.count("\n") == 1


def test_numbers_are_as_they_were_saved_or_as_was_asked_for(place, capsys):
    folder = str(place / "model")
    assert load_model(folder)[0].dtype == torch.float32
    assert load_model(folder, device="auto", dtype="bfloat16")[0].dtype == torch.bfloat16
    scores = []
    for dtype in ("float32", "float16"):
        assert cli.main(["evaluate", str(place / "data"), "--model", folder, "--dtype", dtype]) == 0
        scores.append(capsys.readouterr().out)
    assert "F1" in scores[0] or "f1" in scores[0].lower()


def test_auto_is_a_gpu_if_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert find_device("auto") == find_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert find_device("auto") == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda:1")
    for name in ("cuda:2", "mps", "meta"):
        with pytest.raises(ValueError, match=f"'{name}' is not available, there is cpu and 2 of cuda"):
            find_device(name)


def test_predictions_are_the_same_on_a_device_that_is_named(place, capsys):
    found = []
    for options in ([], ["--device", "cpu"], ["--dtype", "float32"]):
        assert cli.main([*commands(place)["predict"], *options]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] == found[2]
