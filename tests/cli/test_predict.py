"""`hf-spanner predict` with a toy model, from argument to output, and what it says of bad input."""

import io
import json
import shutil
import sys

import pytest
from toy import train_toy_model
from transformers import BertConfig, BertForTokenClassification

from hf_spanner import cli
from hf_spanner.data.sample import load_sample

TEXT = "The mayor of Rotterdam opened the new terminal on Monday."  # the first sentence of the sample, learnt by heart


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A bundled toy model, trained just long enough to know a few sentences."""
    folder = tmp_path_factory.mktemp("toy")
    train = load_sample()["train"][:6]
    train_toy_model(folder, {"train": train, "validation": train[:1]}, approach="bl_ner", epochs=80, dropout=0.0)
    return str(folder)


@pytest.fixture
def predict(model, capsys):
    def run(*argv, model=model):
        capsys.readouterr()
        code = cli.main(["predict", "--model", model, *argv])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def stdin(monkeypatch):
    def give(data: bytes):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def found(line):
    return [(e["entity_group"], e["word"]) for e in json.loads(line)["entities"]]


EXPECTED = [("PER", "The mayor of Rotterdam"), ("LOC", "Rotterdam"), ("DATE", "Monday")]


def test_piped_output_is_json_lines_and_nothing_else(predict):
    code, out, err = predict(TEXT, "")
    assert code == 0 and "Loading weights" not in err
    first, second = map(json.loads, out.splitlines())
    assert first["text"] == TEXT and found(out.splitlines()[0]) == EXPECTED
    assert all(TEXT[e["start"] : e["end"]] == e["word"] for e in first["entities"])
    assert second == {"text": "", "entities": []}


def test_texts_may_stand_before_and_after_options(predict):
    code, out, _ = predict("one", "--batch-size", "1", "two")
    assert code == 0 and [json.loads(line)["text"] for line in out.splitlines()] == ["one", "two"]


def test_the_view_draws_the_entities(predict, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = predict(TEXT, "--format", "view")
    assert code == 0
    assert out.splitlines() == [
        "The mayor of Rotterdam opened the new terminal on Monday.",
        "             └─ LOC ─┘                            └DATE┘",
        "└─ PER ──────────────┘",
        "",
    ]
    assert "\x1b[38;5;" in predict(TEXT, "--format", "view", "--color", "always")[1]


@pytest.mark.parametrize("text", ["", " \t\n ", "\u200b", "\ud800"])
def test_texts_without_words_have_no_entities(predict, text):
    code, out, _ = predict("--format", "view", "--", text)
    assert code == 0 and out.endswith("(no entities)\n\n")
    code, out, _ = predict("--", text)
    assert code == 0 and json.loads(out) == {"text": text, "entities": []}


def test_lines_of_standard_input_stay_aligned(predict, stdin):
    stdin(f"\ufeff{TEXT}\r\n\n   \n{TEXT}".encode())
    code, out, _ = predict("--lines", "--batch-size", "2")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["text"] for row in rows] == [TEXT, "", "   ", TEXT]
    assert [len(row["entities"]) for row in rows] == [3, 0, 0, 3]


def test_a_file_is_one_text_and_keeps_every_character(predict, tmp_path):
    file, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    file.write_bytes(f"{TEXT}\r\n\r\n{TEXT}\n".encode())
    code, out, _ = predict("--file", str(file), "--output", str(output))
    row = json.loads(output.read_text(encoding="utf-8"))
    assert (code, out) == (0, "") and row["text"].encode() == file.read_bytes()
    assert all(row["text"][e["start"] : e["end"]] == e["word"] for e in row["entities"]) and row["entities"]


def test_words_are_taken_as_they_are_cut(predict):
    code, out, _ = predict("--words", "The mayor  of Rotterdam opened the new terminal on Monday .")
    row = json.loads(out)
    assert code == 0 and row["text"] == "The mayor of Rotterdam opened the new terminal on Monday ."
    assert [(e["start_word"], e["end_word"]) for e in row["entities"]] == [(0, 4), (3, 4), (9, 10)]


def test_options_of_decoding_reach_the_model(predict):
    assert len(found(predict(TEXT, "--overlap", "flat")[1])) == 2
    assert {label for label, _ in found(predict(TEXT, "--threshold", "PER=1.0")[1])} == {"LOC", "DATE"}
    assert found(predict(TEXT, "--head", "seq")[1])[0][0] == "PER"


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--threshold", "half", TEXT], "Cannot read the threshold 'half'"),
        (["--threshold", "DOG=0.5", TEXT], "unknown label 'DOG'"),
        (["--batch-size", "0", TEXT], "must be at least 1"),
        (["--file", "nowhere.txt"], "There is no file 'nowhere.txt'"),
        (["--output", "no/such/place.jsonl", TEXT], "its folder does not exist"),
    ],
)
def test_bad_options_are_explained(predict, argv, message):
    code, out, err = predict(*argv)
    assert (code, out) == (2, "") and err.startswith("hf-spanner predict: ") and err.count("\n") == 1
    assert message in err


def test_text_in_another_encoding_is_refused_with_its_place(predict, tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes("fine\nnaïve\n".encode("latin-1"))
    code, _, err = predict("--file", str(file))
    assert code == 2 and f"{file} is not UTF-8: byte 7 is 0xef." in err


def test_a_line_in_another_encoding_is_set_aside_and_costs_no_other(predict, stdin):
    stdin("fine\nnaïve\n".encode("latin-1") + TEXT.encode())
    code, out, err = predict("--lines")
    assert code == 3 and [json.loads(line)["text"] for line in out.splitlines()] == ["fine", TEXT]
    assert err == "hf-spanner predict: standard input, line 2, is set aside: not UTF-8: byte 2 is 0xef.\n"


def test_lines_of_a_file_to_a_file_go_the_way_of_bulk_prediction(predict, tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.jsonl"  # its lines are texts, whatever it is called
    file.write_bytes("fine\nnaïve\n".encode("latin-1") + TEXT.encode())
    output.write_text("of an earlier run")
    code, out, err = predict("--file", str(file), "--lines", "--output", str(output))
    assert code == 3 and out == "" and "1 line could not be read: see" in err
    assert [json.loads(line)["text"] for line in output.read_text().splitlines()] == ["fine", TEXT]
    (bad,) = map(json.loads, (tmp_path / "out.jsonl.bad.jsonl").read_text().splitlines())
    assert bad == {
        "file": "in.csv", "line": 2, "reason": "not UTF-8: byte 2 is 0xef", "content": "na\\xefve"
    }  # fmt: skip


def test_the_input_is_never_overwritten(predict, tmp_path):
    file = tmp_path / "in.txt"
    file.write_text(TEXT)
    code, _, err = predict("--file", str(file), "--output", str(file))
    assert code == 2 and "is the input itself" in err and file.read_text() == TEXT


def test_missing_models_are_explained(predict, tmp_path):
    code, _, err = predict(TEXT, model=str(tmp_path / "nowhere"))
    assert code == 2 and "There is no model folder" in err
    code, _, err = predict(TEXT, model="nobody/nothing")
    assert code == 2 and "it is not wholly in the cache and the Hub cannot be reached" in err and err.count("\n") == 1
    code, _, err = predict(TEXT, model=str(tmp_path))
    assert code == 2 and "has no config.json" in err


def test_a_model_without_tokenizer_is_explained(predict, model, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("tokenizer*", "encoder"))
    code, _, err = predict(TEXT, model=str(folder))
    assert code == 2 and f"{folder} has no tokenizer" in err and err.count("\n") == 1


def test_a_checkpoint_of_another_task_is_explained(predict, tmp_path):
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertForTokenClassification(config).save_pretrained(tmp_path)
    code, _, err = predict(TEXT, model=str(tmp_path))
    assert code == 2 and "is a 'bert' checkpoint of another task" in err


def test_labels_are_chosen_and_renamed(predict):
    assert found(predict(TEXT, "--labels", "LOC,DATE")[1]) == EXPECTED[1:]
    assert found(predict(TEXT, "--label-map", "LOC=place, DATE=time")[1])[1:] == [
        ("place", "Rotterdam"),
        ("time", "Monday"),
    ]
    code, _, err = predict(TEXT, "--labels", "CITY")
    assert code == 2 and "labels names 'CITY'; this model knows DATE," in err
    code, _, err = predict(TEXT, "--label-map", "LOC")
    assert code == 2 and "write person=PER,place=LOC" in err


def test_labels_without_a_name_lists_those_of_the_model_with_examples(predict):
    code, out, _ = predict("--labels")
    assert code == 0 and [line.split()[0] for line in out.splitlines()][:3] == ["DATE", "LOC", "ORG"]
    code, out, _ = predict("--labels", model="default")
    assert code == 0 and "time" in out and any(line.startswith("protein") and "," in line for line in out.splitlines())


def test_a_page_holds_every_text_and_a_picture_one(predict, stdin, tmp_path):
    stdin(f"{TEXT}\n<b>\n".encode())
    page = tmp_path / "seen.html"
    assert predict("--lines", "--format", "html", "--output", str(page))[0] == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('role="figure"') == 2 and 'data-label="LOC"' in text and "<b>" not in text
    code, out, _ = predict("--format", "svg", TEXT)
    assert code == 0 and out.startswith("<svg") and ">LOC</text>" in out
    code, _, told = predict("--format", "svg", TEXT, TEXT)
    assert code == 2 and "draws one text, and there are 2" in told
