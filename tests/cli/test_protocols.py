"""Protocols of the papers as options of the commands: documents joined, train + dev, sizes counted, length ranges."""

import json
import math

import pytest
import torch
from approaches import ROWS
from tests_support import records

from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments, cli
from hf_spanner.building.subwords import size_embedding_rows, subword_counter
from hf_spanner.data import join_to_size
from hf_spanner.evaluation.groups import Bins
from hf_spanner.hub.record import count_parameters
from hf_spanner.loading import load_model

SMALL = ["--num_train_epochs", "1", "--learning_rate", "1e-3", "--use_cpu", "True", "--disable_tqdm", "True"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two documents of five sentences in every split."""
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "validation", "test"):
        rows = [{**r, "id": f"{doc}{r['id']}", "doc_id": doc} for doc in ("a", "b") for r in records()]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def train(data, folder, *flags) -> dict:
    assert cli.main(["train", "--data", str(data), "--output_dir", str(folder), *flags, *SMALL]) == 0
    return json.loads((folder / "training.json").read_text())


# ---------------------------------------------------------------------------------------------------- joined documents


def words(sentence) -> int:
    return len(sentence["tokens"])


def test_sentences_are_joined_as_long_as_they_fit_and_never_across_documents():
    rows = [
        {"doc_id": doc, "tokens": ["w"] * n, "entities": []} for doc, n in (("a", 3), ("a", 2), ("a", 4), ("b", 1))
    ]
    assert [words(s) for s in join_to_size(rows, 5, words)] == [5, 4, 1]
    assert [words(s) for s in join_to_size(rows, 9, words)] == [9, 1]
    assert [words(s) for s in join_to_size(rows, 1, words)] == [3, 2, 4, 1]  # what is too long alone stays alone
    lone = [{**row, "doc_id": None} for row in rows]
    assert [words(s) for s in join_to_size(lone, 9, words)] == [3, 2, 4, 1]
    with pytest.raises(ValueError, match="at least 1, such as 510"):
        list(join_to_size(rows, 0, words))


def test_entities_keep_their_words_when_sentences_are_joined():
    for joined in join_to_size([{**r, "doc_id": "d"} for r in records()], 20, words):
        assert words(joined) <= 20
    texts = [r["tokens"][e["start"] : e["end"]] for r in records() for e in r["entities"]]
    joined = list(join_to_size([{**r, "doc_id": "d"} for r in records()], 20, words))
    assert [s["tokens"][e["start"] : e["end"]] for s in joined for e in s["entities"]] == texts


def test_training_and_evaluation_read_documents_up_to_so_many_subwords(data, encoder_folder, tmp_path, capsys):
    flags = ["--approach", "span_ner", "--encoder", str(encoder_folder), "--max_span_length", "12"]
    record = train(data, tmp_path, *flags, "--join_subwords", "60", "--max_word_subwords", "2")
    model, tokenizer = load_model(str(tmp_path))
    assert model.config.max_word_subwords == 2
    count = subword_counter(tokenizer, 2)
    rows = [{**r, "doc_id": "a"} for r in records()]
    expected = 2 * len(list(join_to_size(rows, 60, count)))
    assert expected < 10 and record["sentences"] == {"train": expected, "validation": expected}
    printed = capsys.readouterr().out
    assert f"joined up to 60 sub-words: train {expected} of 10" in printed
    assert "only the first max_word_subwords=2 sub-words are read." in printed
    output = tmp_path / "scores.json"
    argv = ["evaluate", str(data), "--model", str(tmp_path), "--join-subwords", "60", "--output", str(output)]
    assert cli.main(argv) == 0
    assert f"(test, {expected} sentences)" in capsys.readouterr().out
    assert json.loads(output.read_text())["f1"] == pytest.approx(record["results"]["test"]["f1"])
    for command in (["report", str(tmp_path)], ["compare", f"a={tmp_path}", f"b={tmp_path}"]):
        argv = [command[0], str(data), *command[1:], "--join-subwords", "60", "--output", str(tmp_path / "out")]
        assert cli.main([*argv, "--resamples", "10"]) == 0
        told = json.loads((tmp_path / "out.json").read_text())
        summary = told["summary"] if command[0] == "report" else told["comparison"]["systems"]["b"]
        assert summary["data"]["sentences"] == expected
        assert summary["scores"]["f1"] == pytest.approx(record["results"]["test"]["f1"])
    capsys.readouterr()
    (tmp_path / "found.jsonl").write_text("")
    assert cli.main(["report", str(data), str(tmp_path / "found.jsonl"), "--join-subwords", "60"]) == 2
    assert "counts by the tokenizer of a model" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------- train + dev


def test_with_the_validation_data_trained_on_the_last_weights_are_kept(data, encoder_folder, tmp_path, capsys):
    flags = ["--approach", "seq_ner", "--encoder", str(encoder_folder), "--train_on", "train", "validation"]
    record = train(data, tmp_path, *flags)
    assert record["sentences"] == {"train": 20} and set(record["results"]) == {"test"}
    assert record["selected_by"] is None and record["history"] == []
    assert "held out" not in capsys.readouterr().out
    assert "none was chosen by its score" in (tmp_path / "README.md").read_text()


def test_data_without_validation_is_trained_on_whole(data, encoder_folder, tmp_path, capsys):
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text((data / f"{split}.jsonl").read_text())
    flags = ["--approach", "seq_ner", "--encoder", str(encoder_folder), "--train_on", "train", "validation"]
    assert train(tmp_path, tmp_path / "run", *flags)["sentences"] == {"train": 10}
    assert "held out" not in capsys.readouterr().out


def test_several_seeds_need_no_validation_data(data, encoder_folder, tmp_path, capsys):
    flags = ["--approach", "seq_ner", "--encoder", str(encoder_folder), "--train_on", "train", "validation"]
    argv = ["train", "--data", str(data), "--output_dir", str(tmp_path), *flags, "--seeds", "1", "2", *SMALL]
    assert cli.main(argv) == 0
    assert "has the model of seed-1, the first." in capsys.readouterr().out
    assert set(json.loads((tmp_path / "several.json").read_text())["mean"]) == {"test"}


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--train_on", "train", "test"], "name train and others to train on, each once, and not test"),
        (["--train_on", "train", "dev"], "names the split 'dev'; the data has train, validation, test"),
        (
            ["--train_on", "train", "validation", "--patience", "2"],
            "leaves nothing to wait for a better checkpoint by",
        ),
        (["--train_on", "train", "validation", "--folds", "2"], "--train_on whole: leave one of them out"),
        (
            ["--join_subwords", "60", "--eval_join", "2"],
            "--join_sizes and --eval_join by number: leave one of them out",
        ),
        (["--join_subwords", "0"], "at least 1, such as 510"),
        (["--size_embedding_quantile", "0.975"], "is for a new dspert or biaffine_ner model"),
        (["--length_bins", "1", "3-"], "Cannot read the length '3-' of 1 3-"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(data, encoder_folder, tmp_path, capsys, flags, message):
    argv = ["train", "--data", str(data), "--output_dir", str(tmp_path / "run"), *SMALL, *flags]
    assert cli.main([*argv, "--approach", "span_ner", "--encoder", str(encoder_folder)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run" / "training.json").exists()


# ----------------------------------------------------------------------------------------------------- size embeddings


def test_so_many_sizes_have_an_embedding_as_the_quantile_says():
    """Lengths 1, 1, 2, 8: the quantile 0.75 lies a quarter of the way from 2 to 8, at 3.5."""
    sentence = {"tokens": list("abcdefgh"), "entities": [{"start": 0, "end": n} for n in (1, 1, 2, 8)]}
    assert size_embedding_rows([sentence], 0.75, None) == 4 == math.ceil(2 + 0.25 * 6)
    assert size_embedding_rows([sentence], 1.0, None) == 8 and size_embedding_rows([sentence], 1.0, 5) == 5
    assert size_embedding_rows([sentence], 1.0, None, lambda part: 3 * len(part["tokens"])) == 24
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        size_embedding_rows([sentence], 0.0, None)
    with pytest.raises(ValueError, match="no gold entity"):
        size_embedding_rows([], 0.975, None)


@pytest.mark.parametrize("unit", ["word", "subword"])
def test_sizes_are_counted_in_the_unit_of_spans(data, encoder_folder, tmp_path, unit):
    flags = ["--approach", "biaffine_ner", "--encoder", str(encoder_folder), "--span_unit", unit, "--lstm_size", "8"]
    train(data, tmp_path, *flags, "--size_embedding_quantile", "1.0")
    model, tokenizer = load_model(str(tmp_path))
    count = words if unit == "word" else subword_counter(tokenizer)
    longest = max(count({"tokens": r["tokens"][e["start"] : e["end"]]}) for r in records() for e in r["entities"])
    assert model.config.size_embedding_rows == longest


# ------------------------------------------------------------------------------------------------------- length ranges


def test_lengths_fall_into_the_ranges_that_were_named():
    bins = Bins.parse(["1", "2-4", "5-"])
    assert [bins.of(n) for n in (1, 2, 4, 5, 99)] == ["1", "2-4", "2-4", "5-", "5-"]
    assert Bins.parse(["1-"]).of(7) == "1-"


@pytest.mark.parametrize(
    "ranges", ["", "1", "2 3-", "1 3-", "1-4 4-9 10-", "1- 2-", "4-1 2-", "1 x-", "1 2-x 3-", "-1 2-"]
)
def test_ranges_that_leave_out_or_repeat_a_length_are_refused(ranges):
    with pytest.raises(ValueError, match="such as 1 2 3 4 5-9 10-"):
        Bins.parse(ranges.split())


def test_every_command_scores_by_the_lengths_that_were_named(data, encoder_folder, tmp_path, capsys):
    ranges = ["1-4", "5-9", "10-"]
    flags = ["--approach", "span_ner", "--encoder", str(encoder_folder), "--max_span_length", "12"]
    record = train(data, tmp_path / "run", *flags, "--length_bins", *ranges)
    rows = record["results"]["test"]["groups"]["length"]
    assert {name: row["support"] for name, row in rows.items()} == {"1-4": 18, "5-9": 8, "10-": 2}
    model, out = str(tmp_path / "run"), str(tmp_path / "out")
    assert cli.main(["evaluate", str(data), "--model", model, "--length-bins", *ranges, "--output", out]) == 0
    assert json.loads((tmp_path / "out").read_text())["groups"]["length"] == rows
    assert cli.main(["report", str(data), model, "--output", out, "--length-bins", *ranges]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["summary"]["groups"]["length"] == rows
    argv = ["compare", str(data), f"a={model}", f"b={model}", "--output", out, "--resamples", "10"]
    assert cli.main([*argv, "--length-bins", *ranges]) == 0
    compared = json.loads((tmp_path / "out.json").read_text())["comparison"]
    assert compared["systems"]["b"]["groups"]["length"] == rows
    assert set(compared["differences"]["b"]["groups"]["length"]) == set(ranges)


# --------------------------------------------------------------------------------------------- decay, cost, the record


def test_all_parameters_decay_if_that_is_asked_for(tokenizer, tmp_path):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    for decay_all, rates in ((False, {0.0, 0.1}), (True, {0.1})):
        args = NestedNerTrainingArguments(
            str(tmp_path), weight_decay=0.1, decay_all=decay_all, head_learning_rate=1e-2, use_cpu=True
        )
        trainer = NestedNerTrainer(model, args, train_dataset=records(), processing_class=tokenizer)
        groups = trainer.create_optimizer().param_groups
        assert {group["weight_decay"] for group in groups} == rates
        assert len({group["lr"] for group in groups}) == 2
        assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_the_record_says_what_a_training_cost(data, encoder_folder, tmp_path):
    flags = ["--approach", "seq_ner", "--encoder", str(encoder_folder)]
    record = train(data, tmp_path, *flags)
    model, _ = load_model(str(tmp_path))
    assert record["parameters"]["all"] == sum(p.numel() for p in model.parameters())
    assert record["parameters"]["encoder"] == sum(p.numel() for p in model.encoder.parameters())
    assert record["training_seconds"] > 0 and [e["epoch"] for e in record["loss_by_epoch"]] == [1]
    assert record["training"]["decay_all"] is False
    card = (tmp_path / "README.md").read_text()
    assert f"Parameters: {record['parameters']['all']:,}" in card and "Training took" in card


def test_frozen_parameters_are_counted_but_not_as_trained():
    model = torch.nn.ModuleDict({"encoder": torch.nn.Linear(3, 2), "head": torch.nn.Linear(2, 1)})
    model["encoder"].requires_grad_(False)
    assert count_parameters(model) == {"all": 11, "trained": 3, "encoder": 8}
