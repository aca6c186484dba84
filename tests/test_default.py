"""The default model, as it is installed: found without a name, offline, silent, small, and a start for one's own."""

import json
import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from transformers import pipeline
from transformers.utils import logging as transformers_logging

import hf_spanner
from hf_spanner import cli, default
from hf_spanner.data.sample import load_sample
from hf_spanner.loading import load_config, load_model

ROOT = Path(__file__).resolve().parents[1]
GENERAL = "The mayor of New York met the chief economist of the Bank of England in London."
BIOMEDICAL = "STAT5 binds the promoter of the human IL-2 receptor alpha gene in activated T cells."


@pytest.fixture(scope="module")
def ner():
    return hf_spanner.pipeline()


def found(entities) -> set[tuple[str, str]]:
    return {(entity["entity_group"], entity["word"]) for entity in entities}


def test_it_finds_nested_entities_of_general_and_biomedical_english(ner):
    every = ner(GENERAL, mentions=["name", "nominal"])
    assert {("person", "The mayor of New York"), ("place", "New York"), ("place", "London")} <= found(every)
    names = ner(GENERAL)  # what is shown without being asked
    assert ("place", "London") in found(names) and {e["mention"] for e in names} == {"name"}
    assert "Bank of England" in {e["word"] for e in names}, "without its article"
    assert "the Bank of England" in {e["word"] for e in every}, "the whole phrase"
    assert {("protein", "STAT5"), ("cell_type", "activated T cells")} <= found(ner(BIOMEDICAL))
    assert {("DNA", "IL-2 promoter"), ("protein", "IL-2")} <= found(ner("CD28 activates the IL-2 promoter."))
    for text in (GENERAL, BIOMEDICAL):
        assert all(text[e["start"] : e["end"]] == e["word"] for e in ner(text))


def test_it_tells_names_from_nominals_and_pronouns(ner):
    text = "Maria Gonzalez visited the museum in Cairo, and she liked it."
    kinds = {e["word"]: e["mention"] for e in ner(text, mentions=["name", "nominal", "pronoun"])}
    assert kinds["Maria Gonzalez"] == kinds["Cairo"] == "name" and kinds["she"] == "pronoun"
    assert "nominal" in (kinds.get("the museum in Cairo"), kinds.get("the museum"))
    assert {e["word"] for e in ner(text)} == {word for word, kind in kinds.items() if kind == "name"}


def test_no_name_no_network_no_warning(ner, caplog):
    transformers_logging.enable_propagation()
    try:
        with caplog.at_level(logging.WARNING), warnings.catch_warnings():
            warnings.simplefilter("error")
            plain = pipeline("nested-ner")
    finally:
        transformers_logging.disable_propagation()
    assert [record.getMessage() for record in caplog.records] == []
    assert type(plain) is hf_spanner.NestedNerPipeline
    assert plain([GENERAL, BIOMEDICAL]) == ner([GENERAL, BIOMEDICAL])
    # The filter that kept transformers' warning back is gone again.
    assert logging.getLogger("transformers.pipelines").filters == []


def test_the_command_needs_no_model_either(ner):
    done = subprocess.run(
        [sys.executable, "-m", "hf_spanner.cli", "predict", GENERAL], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0 and done.stderr == ""
    assert found(json.loads(done.stdout)["entities"]) == found(ner(GENERAL))


def test_it_is_small_and_read_in_single_precision_and_brings_no_code():
    files = {file.name: file.stat().st_size for file in default.FOLDER.iterdir()}
    assert sum(files.values()) <= 50e6 and not any(name.endswith(".py") for name in files)
    config = json.loads((default.FOLDER / "config.json").read_text())
    assert config["dtype"] == "float32" and "auto_map" not in config
    model, _ = load_model("default")
    assert model.dtype == torch.float32 and model.config.int8_embeddings


@pytest.mark.parametrize(
    ("start", "approach", "said"),
    [
        (["--model", "default"], load_config("default").model_type, "PER starts from person: "),
        (["--encoder", "default", "--approach", "span_ner", "--max_span_length", "8"], "span_ner", "span_ner on"),
    ],
)
def test_it_is_a_start_for_other_labels_and_its_encoder_for_other_approaches(start, approach, said, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in load_sample().items():
        lines = [json.dumps(dict(sentence)) + "\n" for sentence in list(sentences)[:8]]
        (data / f"{split}.jsonl").write_text("".join(lines))
    argv = ["train", *start, "--data", str(data), "--output_dir", str(tmp_path / "run"), "--use_cpu", "True",
            "--disable_tqdm", "True", "--num_train_epochs", "1", "--save_strategy", "no",
            "--load_best_model_at_end", "False"]  # fmt: skip
    assert cli.main(argv) == 0
    assert said in capsys.readouterr().out
    record = json.loads((tmp_path / "run" / "training.json").read_text())
    assert record["approach"] == approach and record["base_model"] == "ibm-granite/granite-embedding-30m-english"
    model, _ = load_model(str(tmp_path / "run"))
    assert not model.config.int8_embeddings and "PER" in model.config.labels
    assert model.config.threshold is None


def test_a_package_without_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(default, "FOLDER", tmp_path)
    for make in (hf_spanner.pipeline, lambda: pipeline("nested-ner"), lambda: load_model("default")):
        with pytest.raises(FileNotFoundError, match="The default model is missing"):
            make()


def test_its_card_and_its_notice_name_where_it_comes_from():
    card, notice = (ROOT / "model_cards" / "default.md").read_text(), (ROOT / "NOTICE").read_text()
    for name in ("ibm-granite/granite-embedding-30m-english", "GENIA", "GUM"):
        assert name.lower() in card.lower() and name.lower() in notice.lower()
