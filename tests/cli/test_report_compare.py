"""`hf-spanner report`, `compare` and `tune-threshold`, with tiny models and prediction files."""

import json
import re

import pytest
import torch
from approaches import ROWS
from tests_support import LABELS, records

from hf_spanner import cli
from hf_spanner.data import write_jsonl
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.loading import load_model
from hf_spanner.metrics import score_entities
from hf_spanner.modeling.modeling_sng import SngForNestedNer


@pytest.fixture(scope="module")
def place(tmp_path_factory, tokenizer):
    """Data with three splits, models with random weights, files of predictions."""
    folder = tmp_path_factory.mktemp("report")
    sentences = records()
    for split in ("train", "validation", "test"):
        write_jsonl(sentences, folder / "data" / f"{split}.jsonl")
    torch.manual_seed(0)
    for name in ("span_ner", "dspert", "seq_ner"):
        next(row for row in ROWS if row.name == name).make(tokenizer).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    table = torch.randn(len(tokenizer), 8)
    typing = SngForNestedNer.from_vectors(table, LABELS, spans="gold", lstm_size=4, word_pooling="mean")
    typing.save_pretrained(folder / "typing")
    tokenizer.save_pretrained(folder / "typing")
    write_jsonl(sentences, folder / "gold.jsonl")
    write_jsonl([{**s, "entities": s["entities"][:1]} for s in sentences], folder / "some.jsonl")
    write_jsonl([{**s, "entities": []} for s in sentences], folder / "none.jsonl")
    write_jsonl(sentences[1:], folder / "short.jsonl")
    return folder


def run(*argv):
    return cli.main([str(word) for word in argv])


def test_a_report_of_a_model_with_its_representations(place, tmp_path, capsys):
    output = tmp_path / "new" / "r.html"
    code = run("report", place / "data", f"mine={place / 'dspert'}", "--representations", "--output", output)
    assert code == 0
    record = json.loads((tmp_path / "new" / "r.json").read_text(encoding="utf-8"))
    summary = record["summary"]
    assert record["title"] == "mine on data, test" and summary["representations"]["entities"] > 0
    assert summary["unseen_density"] == 0 and "eCon" in summary["groups"]
    scores = summary["scores"]
    assert len(record["errors"]) == scores["predicted"] + scores["support"] - 2 * scores["correct"]
    page = (tmp_path / "new" / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "Representations" in page
    assert (tmp_path / "new" / "r.md").read_text(encoding="utf-8") in capsys.readouterr().out


def test_a_report_of_a_file_agrees_with_the_scores(place, tmp_path, capsys):
    assert run("report", place / "data" / "test.jsonl", place / "some.jsonl", "--output", tmp_path / "r") == 0
    summary = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["summary"]
    assert summary["scores"]["precision"] == 1 and summary["scores"]["correct"] == 4
    assert summary["unseen_density"] is None and "eCon" not in summary["groups"]  # a single file has no training data
    args = ["report", place / "data" / "test.jsonl", place / "some.jsonl", "--train", place / "data"]
    assert run(*args, "--output", tmp_path / "r") == 0
    assert "eCon" in json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["summary"]["groups"]


def test_a_comparison_of_files_and_models(place, tmp_path, capsys):
    systems = [place / "gold.jsonl", f"few={place / 'some.jsonl'}", place / "span_ner"]
    assert run("compare", place / "data", *systems, "--output", tmp_path / "c.html", "--resamples", "200") == 0
    record = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert list(record["systems"]) == ["gold", "few", "span_ner"]
    assert record["comparison"]["tests"]["few"]["difference"] < 0
    assert all("id" in entity for entities in record["comparison"]["only"].values() for entity in entities)
    out = capsys.readouterr().out
    assert "few" in out and "points of F1" in out
    assert (tmp_path / "c.html").is_file() and (tmp_path / "c.md").is_file()


def test_systems_of_several_runs_are_compared_by_their_means(place, tmp_path, capsys):
    systems = [
        f"few={place / 'some.jsonl'},{place / 'none.jsonl'}",
        f"all={place / 'gold.jsonl'},{place / 'gold.jsonl'}",
    ]
    assert run("compare", place / "data", *systems, "--output", tmp_path / "c", "--resamples", "200") == 0
    comparison = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["comparison"]
    few = 2 * 4 / (4 + 14)
    assert comparison["systems"]["few"]["runs"] == pytest.approx([few, 0])
    assert comparison["tests"]["all"]["difference"] == pytest.approx(1 - few / 2)
    assert comparison["tests"]["all"]["p_randomisation"] == pytest.approx(1 / 3)
    out = capsys.readouterr().out
    assert "few: F1 of 2 runs: 0.2222 ± 0.3143" in out and "all is better than few by 77.78 points" in out
    assert "F1 of 2 runs" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_representations_of_two_models_side_by_side(place, capsys):
    models = [f"shallow={place / 'span_ner'}", f"deep={place / 'dspert'}"]
    assert run("compare", place / "data", *models, "--representations", "--resamples", "50") == 0
    out = capsys.readouterr().out
    assert "|  | shallow | deep | Δ |" in out and "… strong overlap" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["report", "DATA", "short.jsonl"], "lacks 1 of the 5 sentences of the data, such as 's0'"),
        (["report", "DATA", "nowhere/at/all"], "There is no model folder"),
        (["report", "DATA", "typing"], "types spans that it is given and finds none"),
        (["report", "DATA", "seq_ner", "--representations"], "seq_ner model has no span representations"),
        (["report", "DATA", "gold.jsonl", "--representations"], "is a file of predictions: --representations needs"),
        (["report", "DATA", "gold.jsonl", "--split", "dev"], "has no split 'dev'"),
        (["compare", "DATA", "gold.jsonl"], "at least two systems"),
        (["compare", "DATA", "gold.jsonl", "gold.jsonl"], "Two systems are called 'gold'"),
        (["compare", "DATA", "a=none.jsonl,gold.jsonl", "b=gold.jsonl"], "different numbers of runs (a 2, b 1)"),
        (["compare", "DATA", "gold.jsonl", "some.jsonl", "--length-bins", "1", "3-"], "Cannot read the length '3-'"),
        (
            ["tune-threshold", "DATA", "--model", "span_ner", "--among", "2.5"],
            "must lie between 0.05 and 1, as scores",
        ),
        (["tune-threshold", "DATA", "--model", "span_ner", "--among", "0.5", "--per-label"], "leave --per-label and"),
        (["tune-threshold", "DATA", "--model", "span_ner", "--sum-of", "3"], "says what the values of --among are"),
        (["tune-threshold", "DATA", "--model", "typing"], "no threshold to tune"),
        (["tune-threshold", "none.jsonl", "--model", "span_ner"], "has no gold entity"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(place, capsys, argv, message):
    words = {"DATA": "data"}
    argv = [place / words.get(w, w) if w in words or (place / w).exists() else w for w in argv]
    argv = [re.sub(r"\b(?=\w+\.jsonl)", f"{place}/", w) if isinstance(w, str) else w for w in argv]
    assert run(*argv) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_threshold_is_chosen_among_those_that_are_named(place, capsys):
    """By the F1 that evaluation gives at each; of several alike the highest. 1.2 of three probabilities is 0.4."""
    argv = ["tune-threshold", place / "data", "--model", place / "span_ner", "--sum-of", "3", "--among"]
    assert run(*argv, "0.3", "1.2", "2.9") == 0
    said = capsys.readouterr().out
    f1 = {}
    for phi in (0.3, 1.2, 2.9):
        model, tokenizer = load_model(str(place / "span_ner"))
        found = predict_sentences(model, tokenizer, records(), threshold=phi / 3)
        f1[phi] = score_entities(found, [s["entities"] for s in records()])["f1"]
        assert f"threshold {phi / 3:.4f} ({phi:g} of 3 probabilities): F1 {f1[phi]:.4f}" in said
    best = max(f1, key=lambda phi: (f1[phi], phi))
    assert f"tuned      F1 {f1[best]:.4f}  threshold {best / 3}"[:40] in said


@pytest.mark.parametrize("flags", [[], ["--per-label"]])
def test_a_tuned_threshold_is_saved_and_used(place, tmp_path, capsys, flags, tokenizer):
    """The gold is what the model finds at 0.05, while "none" wins everywhere: only a threshold lets it through."""
    model, _ = load_model(str(place / "span_ner"))
    with torch.no_grad():
        model.output_layer.bias[0] = 2.0
    found = predict_sentences(model, tokenizer, records(), threshold=0.05, overlap="nested")
    sentences = [{**s, "entities": [e._asdict() for e in row]} for s, row in zip(records(), found, strict=True)]
    data = tmp_path / "validation.jsonl"
    write_jsonl(sentences, data)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    before = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert run("tune-threshold", data, "--model", tmp_path, *flags) == 0
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8")) == before
    assert run("tune-threshold", data, "--model", tmp_path, "--save", *flags) == 0
    said = capsys.readouterr().out
    after = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert "Saved to" in said and {**before, "threshold": after["threshold"]} == after
    assert isinstance(after["threshold"], dict if flags else float)
    tuned = float(said.rsplit("tuned      F1 ", 1)[1].split()[0])
    assert run("evaluate", data, "--model", tmp_path, "--output", tmp_path / "s.json") == 0
    assert json.loads((tmp_path / "s.json").read_text())["f1"] == pytest.approx(tuned, abs=1e-4) and tuned > 0.9
    assert run("tune-threshold", data, "--model", tmp_path, "--save", *flags) == 0
    assert "Nothing is saved" in capsys.readouterr().out
