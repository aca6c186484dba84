"""Kinds of mention by the commands: trained on, scored, shown; and sentences that say what is known of them."""

import json

import pytest
from tests_support import records

from hf_spanner import cli, load_nested_ner
from hf_spanner.data import join_corpora, join_sentences, label_names, mention_kinds, read_file, write_jsonl
from hf_spanner.hub.record import read_record
from hf_spanner.loading import load_for


def told() -> list[dict]:
    """The sentences with a kind for each entity: one word is a name."""
    for record in (rows := records()):
        for e in record["entities"]:
            e["mention"] = "name" if e["end"] - e["start"] == 1 else "nominal"
    return rows


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split, times in (("train", 6), ("validation", 1)):
        write_jsonl(told() * times, folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def trained(data, encoder_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    argv = ["train", "--data", str(data), "--output_dir", str(folder), "--approach", "span_ner", "--mentions", "true"]
    argv += ["--encoder", encoder_folder, "--max_span_length", "12", "--learning_rate", "3e-3", "--use_cpu", "true"]
    assert cli.main([*argv, "--num_train_epochs", "25", "--disable_tqdm", "true", "--report_to", "none"]) == 0
    return folder


def test_kinds_are_learnt_and_scored(trained, data, capsys, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    assert config["mentions"] == ["name", "nominal"] and any(":nominal" in x for x in config["id2label"].values())
    scores = read_record(trained / "training.json")["results"]["validation"]
    assert scores["f1"] > 0.7 and scores["per_mention"].keys() == {"name", "nominal"}
    assert all(":" not in label for label in scores["per_type"])
    evaluate = ["evaluate", str(data), "--model", str(trained), "--split", "validation"]
    assert cli.main([*evaluate, "--mentions", "name", "--output", str(tmp_path / "s.json")]) == 0
    assert "nominal" not in capsys.readouterr().out
    names = sum(e["mention"] == "name" for record in told() for e in record["entities"])
    assert json.loads((tmp_path / "s.json").read_text())["support"] == names


def test_kinds_are_shown(trained, capsys):
    argv = ["predict", "--model", str(trained), "--format", "jsonl", "the mayor of New York"]
    assert cli.main(argv) == 0
    every = json.loads(capsys.readouterr().out)["entities"]
    assert every and all(e["mention"] in ("name", "nominal") for e in every)
    assert cli.main([*argv, "--mentions", "nominal"]) == 0
    assert json.loads(capsys.readouterr().out)["entities"] == [e for e in every if e["mention"] == "nominal"]
    assert cli.main([*argv, "--mentions", "pronoun"]) == 2
    assert "this model tells name, nominal apart" in capsys.readouterr().err


def test_reports_look_at_the_labels_and_kinds_asked_for(trained, data, capsys, tmp_path):
    report = ["report", "--data", str(data), str(trained), "--split", "validation", "--resamples", "10"]
    label = told()[0]["entities"][0]["label"]
    gold = [e for record in told() for e in record["entities"] if e["label"] == label]
    assert cli.main([*report, "--labels", label, "--mentions", "nominal", "--output", str(tmp_path / "r")]) == 0
    summary = json.loads((tmp_path / "r.json").read_text())["summary"]
    assert summary["scores"]["support"] == sum(e["mention"] == "nominal" for e in gold)
    assert set(summary["scores"]["per_type"]) == {label}
    capsys.readouterr()
    assert cli.main([*report, "--labels", "XYZ"]) == 2
    assert "--labels names 'XYZ'; the data has" in capsys.readouterr().err
    found = str(tmp_path / "found.jsonl")
    evaluate = ["evaluate", str(data), "--model", str(trained), "--split", "validation", "--predictions", found]
    assert cli.main(evaluate) == 0  # a file of predictions is cut down likewise
    report[3] = found
    assert cli.main([*report, "--labels", label, "--mentions", "nominal", "--output", str(tmp_path / "f")]) == 0
    again = json.loads((tmp_path / "f.json").read_text())["summary"]["scores"]
    assert again["support"] == summary["scores"]["support"]


def test_going_on_keeps_what_it_knows_and_other_labels_start_from_a_kind(trained, data):
    sentences = list(load_nested_ner(str(data))["train"])
    labels = label_names(sentences, mentions=True)
    model, _, lines = load_for(str(trained), labels, sentences)
    assert lines == [] and model.config.labels == labels
    old = sentences[0]["entities"][0]["label"]
    renamed = [
        {**s, "entities": [{**e, "label": "X", "mention": None} for e in s["entities"] if e["label"] == old]}
        for s in sentences
    ]
    model, _, (line,) = load_for(str(trained), ["X"], renamed)
    assert line.startswith(f"X starts from {old}:") and model.config.mentions is None


def test_labels_of_a_sentence_do_not_hide_what_a_model_sees_of_new_ones(trained, data):
    """Sentences of several corpora say what they are annotated with, in labels that the old model does not know."""
    renamed = [
        {**s, "entities": [{**e, "label": f"{e['label']}_new", "mention": None} for e in s["entities"]]}
        for s in load_nested_ner(str(data))["train"]
    ]
    labels = label_names(renamed)
    *_, lines = load_for(str(trained), labels, [{**s, "labels": labels} for s in renamed])
    assert any(" starts from " in line for line in lines)


def test_without_kinds_in_the_data_there_is_nothing_to_learn(tmp_path, encoder_folder, capsys):
    write_jsonl(records(), tmp_path / "train.jsonl")
    write_jsonl(records(), tmp_path / "validation.jsonl")
    argv = ["train", "--data", str(tmp_path), "--output_dir", str(tmp_path / "out"), "--encoder", encoder_folder]
    assert cli.main([*argv, "--mentions", "true"]) == 2
    assert "no entity of the data has a `mention`" in capsys.readouterr().err and not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------- what a sentence may say


def test_what_a_sentence_says_of_itself_is_read_and_written(tmp_path):
    first, *rest = told()
    first |= {"labels": ["PER:name"], "flat": True, "corpus": "news"}
    write_jsonl([first, *rest], tmp_path / "train.jsonl")
    sentences, report = read_file(tmp_path / "train.jsonl")
    assert sentences[0] == first and sentences[1:] == rest and report.faithful and not report.ignored
    data = load_nested_ner(str(tmp_path))["train"]
    assert data[0] == first and data[1]["labels"] is None and mention_kinds(data) == ["name", "nominal"]
    again = load_nested_ner(data)["train"]  # columns in memory
    assert list(again) == list(data)
    write_jsonl(again, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "train.jsonl").read_text()


def test_fields_that_only_have_the_name_are_left_aside_and_counted(tmp_path):
    row = {"tokens": ["a", "b"], "entities": [], "labels": ["O", "B-PER"], "flat": 3, "corpus": ["x"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (sentence,), report = read_file(tmp_path / "a.jsonl")
    assert sentence.keys() == {"id", "doc_id", "tokens", "entities"} and len(report.ignored) == 3
    row["entities"] = [{"start": 0, "end": 1, "label": "PER", "mention": 3}]
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with pytest.raises(ValueError, match="mention 3 of span"):
        read_file(tmp_path / "a.jsonl")


def test_joined_sentences_know_what_all_of_them_know():
    a, b = told()[:2]
    a |= {"labels": ["PER", "ORG"], "flat": False}
    b |= {"labels": ["ORG", "LOC"], "flat": True, "doc_id": a["doc_id"]}
    (joined,) = join_sentences([a, b], [2])
    assert joined["labels"] == ["ORG"] and joined["flat"] is True
    assert [e["mention"] for e in joined["entities"]] == [e["mention"] for s in (a, b) for e in s["entities"]]


def test_corpora_with_and_without_kinds_are_joined(data, tmp_path):
    (tmp_path / "plain").mkdir()
    for split in ("train", "validation"):
        write_jsonl(records(), tmp_path / "plain" / f"{split}.jsonl")
    corpora = {"told": load_nested_ner(str(data)), "plain": load_nested_ner(str(tmp_path / "plain"))}
    joined = join_corpora(corpora)["train"]
    assert (
        joined[0]["entities"][0]["mention"] is not None and joined[len(joined) - 1]["entities"][0]["mention"] is None
    )
    own = corpora["plain"].map(lambda s: {"labels": ["PER"]})
    with pytest.raises(ValueError, match="says of each sentence what it is annotated with"):
        join_corpora({"told": corpora["told"], "own": own})
