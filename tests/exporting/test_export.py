"""Models exported for ONNX Runtime: the same entities, loaded like any other model, and refused where it must be."""

import json

import pytest
import torch
from approaches import ROWS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import make_batch, records, without_gold
from transformers import pipeline

import hf_spanner
from hf_spanner.cli import main
from hf_spanner.evaluation.predicting import predict_sentences

pytest.importorskip("onnx", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxscript", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxruntime", reason="needs hf_spanner[onnx]")

from hf_spanner.exporting import export
from hf_spanner.onnx import GRAPH

WORDS = st.lists(
    st.sampled_from("the mayor of New York Bank England receptor 東京 \u200b IL-2 x".split(" ")), max_size=30
)


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def row(request):
    return request.param


@pytest.fixture(scope="module")
def pair(row, tokenizer, tmp_path_factory):
    """A model whose scores lie well apart, and the folder it was exported to."""
    torch.manual_seed(0)
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("exported")
    model = row.make(tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    model.save_pretrained(source)
    tokenizer.save_pretrained(source)
    told = []
    export(str(source), folder, records(), say=told.append)
    assert "all equal" in told[0]
    return model, hf_spanner.load_model(str(folder))[0], folder


def found(model, tokenizer, sentences, batch_size=32, **decoding):
    answers = predict_sentences(model, tokenizer, sentences, batch_size, **decoding)
    return [sorted((e.start, e.end, e.label, round(e.score, 3)) for e in entities) for entities in answers]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=6), st.integers(1, 4))
def test_an_exported_model_gives_the_same_entities_whatever_the_batch(pair, tokenizer, texts, batch_size):
    model, exported, _ = pair
    sentences = [{"tokens": words} for words in texts]
    assert found(exported, tokenizer, sentences, batch_size) == found(model, tokenizer, sentences, batch_size)


def test_long_texts_thresholds_and_heads_are_the_model_s_own(pair, tokenizer):
    model, exported, _ = pair
    sentences = [{"tokens": "the mayor of New York met the head of the Bank of England".split() * 12}]
    for decoding in ({}, {"threshold": 0.3, "overlap": "any"}, *({"head": head} for head in model.heads)):
        assert found(exported, tokenizer, sentences, **decoding) == found(model, tokenizer, sentences, **decoding)


def test_an_exported_folder_is_a_model_like_any_other(pair, tokenizer, tmp_path, capsys):
    model, _, folder = pair
    text = "the mayor of New York met the head of the Bank of England"
    expected = hf_spanner.pipeline(model, tokenizer)(text)
    for ner in (pipeline("nested-ner", model=str(folder)), hf_spanner.pipeline(folder)):
        answer = ner(text)
        assert [{**e, "score": None} for e in answer] == [{**e, "score": None} for e in expected]
    assert main(["predict", "--model", str(folder), "--format", "jsonl", text]) == 0
    assert len(json.loads(capsys.readouterr().out)["entities"]) == len(expected)
    assert main(["push", str(folder), "me/model", "--dry-run", str(tmp_path)]) == 0
    files = {file.name for file in folder.iterdir()}
    assert {file.name for file in tmp_path.iterdir()} == files
    assert {GRAPH, "config.json", "tokenizer.json", "README.md"} <= files and "model.safetensors" not in files
    assert not any(file.endswith(".py") for file in files)
    assert (tmp_path / GRAPH).read_bytes() == (folder / GRAPH).read_bytes()
    assert "for ONNX Runtime in single precision" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert hf_spanner.pipeline(tmp_path)(text) == answer


def test_what_belongs_to_training_is_refused_in_a_sentence(pair, tokenizer):
    _, exported, _ = pair
    batch = make_batch(tokenizer)
    for call, told in (
        (lambda: exported(**batch), "has no loss"),
        (lambda: exported.train(), "cannot be trained"),
        (lambda: exported.to("meta"), "runs on the CPU"),
        (lambda: exported.to(torch.bfloat16), "not as torch.bfloat16"),
        (lambda: exported(**without_gold(batch), output_hidden_states=True), "load the model that it was made from"),
        (lambda: exported.get_input_embeddings(), "no embeddings"),
    ):
        with pytest.raises(ValueError, match=told):
            call()
