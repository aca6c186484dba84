"""A hundred folders that pretend to be a model: nothing runs, nothing is written outside, each error is a sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from approaches import ROWS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def outcome(tokenizer, tmp_path_factory):
    """What came of loading, running and publishing each folder, in a process that watches itself."""
    good, place = tmp_path_factory.mktemp("good"), tmp_path_factory.mktemp("hostile")
    (row,) = (row for row in ROWS if row.name == "span_ner")
    torch.manual_seed(0)
    row.make(tokenizer).save_pretrained(good)
    tokenizer.save_pretrained(good)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    env |= {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(place / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    env |= {"HF_HOME": str(place / "tmp"), "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, str(HERE / "hostile.py"), str(good), str(place)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=place, timeout=600)
    assert "ANSWER" in done.stdout, f"the process ended with {done.returncode}:\n{done.stderr[-3000:]}"
    assert not (place / "ran").exists()
    return json.loads(done.stdout.rpartition("ANSWER")[2])


def test_no_folder_runs_code_or_writes_outside_the_target(outcome):
    assert len(outcome["answers"]) >= 70
    for reading in ("broken", "plain_broken"):  # by this package, and by transformers with the package imported
        assert {name: answer[reading] for name, answer in outcome["answers"].items() if answer[reading]} == {}
    assert outcome["changed"] == []


def test_no_file_from_elsewhere_is_published(outcome):
    assert outcome["leaked"] == []


def test_every_refusal_is_a_sentence_that_names_the_folder(outcome):
    for name, answer in outcome["answers"].items():
        if answer["error"] is not None:
            kind, told = answer["error"]
            assert kind in ("ValueError", "TypeError", "FileNotFoundError"), (name, kind, told)
            assert "\n" not in told.strip() and len(told) < 700 and told.endswith("."), (name, told)


def test_none_takes_long(outcome):
    for reading in ("seconds", "plain_seconds"):
        assert {name: a[reading] for name, a in outcome["answers"].items() if a[reading] > 20} == {}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a billion labels", "has 1,000,000,000 labels, more than 100,000: refused."),
        ("config nests objects", "is nested more than 100 deep: refused."),
        ("config is a pipe", "no config.json"),
        ("a billion layers", "num_hidden_layers=1000000000, more than 1,000: refused."),
        ("a tokenizer of 2 GB", "has 2,048 MB, more than 256: refused."),
        ("a tokenizer that is a link", "outside the folder: refused."),
        ("shapes larger than the data", "The model.safetensors of"),
        ("sizes unlike the configuration", "have other sizes than its config.json says"),
        ("a recipe that is a bomb", "holds more than 1,000,000 values: refused."),
        ("shards elsewhere", "names a file outside its folder, '../../../etc/passwd': refused."),
        ("shards that are pickles", "has weights in 'evil.bin', which is no safetensors file: refused"),
        ("a shard that is the folder above", "has weights in '..', which is no safetensors file: refused"),
        ("no labels", "names no labels"),
        ("a field that is a method", "cannot be set: it follows from the other fields"),
        ("a tokenizer of other numbers", "The tokenizer has sub-words that the model does not know"),
        ("an adapter", "is an adapter of another model"),
        ("a record that is a link", "outside the folder: refused."),
        ("a card that is a link", "outside the folder: refused."),
        ("a record of other types", "is not a record that hf_spanner wrote"),
    ],
)
def test_what_is_wrong_is_said(outcome, name, sentence):
    assert sentence in (outcome["answers"][name]["error"] or ["", ""])[1], outcome["answers"][name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a billion labels", "has 1,000,000,000 labels, more than 100,000: refused."),
        ("a billion layers", "num_hidden_layers=1000000000, more than 1,000: refused."),
        ("a tokenizer of 2 GB", "has 2,048 MB, more than 256: refused."),
        ("a tokenizer that is a link", "outside the folder: refused."),
        ("a tokenizer elsewhere", "names a file outside its folder"),
        ("shards elsewhere", "names a file outside its folder, '../../../etc/passwd': refused."),
        ("an adapter", "is an adapter of another model"),
    ],
)
def test_the_same_bounds_hold_for_the_pipeline_of_transformers(outcome, name, sentence):
    assert sentence in (outcome["answers"][name]["plain"] or ""), outcome["answers"][name]


@pytest.mark.parametrize(
    "name",
    [
        "code in auto_map",
        "code of a pipeline",
        "a pickle beside the weights",
        "a module that torch imports",
        "a record that writes elsewhere",
        "a record with a template",
        "labels are escape sequences",
    ],
)
def test_what_can_do_no_harm_is_loaded(outcome, name):
    assert outcome["answers"][name]["error"] is None
