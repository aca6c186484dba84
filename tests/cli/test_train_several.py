"""`hf-spanner train` without flags, with several seeds, on folds: what it says, writes and refuses."""

import json

import pytest
from tests_support import records

from hf_spanner import cli, load_model
from hf_spanner.hub.several import summarise, summary_line, summary_table

QUICK = ["--max_steps", "2", "--use_cpu", "True", "--disable_tqdm", "True", "--max_span_length", "12"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Ten documents of three sentences each, and no validation split."""
    folder = tmp_path_factory.mktemp("data")
    rows = [{**row, "id": str(i), "doc_id": f"d{i // 3}"} for i, row in enumerate(records() * 6)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def train(encoder, data, folder, *flags):
    argv = ["train", "--approach", "span_ner", "--encoder", encoder, "--data", str(data), "--output_dir", str(folder)]
    return cli.main([*argv, *QUICK, *flags])


def test_several_seeds_end_in_the_best_model_with_mean_and_spread(encoder_folder, data, tmp_path, capsys):
    folder = tmp_path / "run"
    assert train(encoder_folder, data, folder, "--seeds", "1", "2") == 0
    out = capsys.readouterr().out
    summary = json.loads((folder / "several.json").read_text())
    assert set(summary["runs"]) == {"seed-1", "seed-2"}
    for name in summary["runs"]:
        own = json.loads((folder / name / "training.json").read_text())
        assert own["seed"] == int(name[-1])
        assert summary["runs"][name]["validation"]["f1"] == own["results"]["validation"]["f1"]
    record = json.loads((folder / "training.json").read_text())
    assert record["several"] == summary and f"seed-{record['seed']}" == summary["best"]
    assert summary_table(summary) in out and (folder / "several.md").read_text() == summary_table(summary) + "\n"
    assert summary_line(summary) in (folder / "README.md").read_text()
    model, _ = load_model(str(folder))
    best, _ = load_model(str(folder / summary["best"]))
    assert all((a == b).all() for a, b in zip(model.state_dict().values(), best.state_dict().values(), strict=True))
    # finished: not trained again, and not replaced
    assert train(encoder_folder, data, folder, "--seeds", "1", "2", "--resume") == 0
    assert "All trainings in" in capsys.readouterr().out
    assert train(encoder_folder, data, folder, "--seeds", "1", "2") == 2
    assert "holds a finished model" in capsys.readouterr().err


def test_an_interrupted_row_of_seeds_goes_on(encoder_folder, data, tmp_path, capsys):
    folder = tmp_path / "run"
    assert train(encoder_folder, data, folder / "seed-1", "--seed", "1") == 0
    before = (folder / "seed-1" / "training.json").read_bytes()
    assert train(encoder_folder, data, folder, "--seeds", "1", "2", "--resume") == 0
    assert "nothing to resume" in capsys.readouterr().out
    assert (folder / "seed-1" / "training.json").read_bytes() == before
    assert set(json.loads((folder / "several.json").read_text())["runs"]) == {"seed-1", "seed-2"}


def test_folds_test_every_sentence_once_and_no_document_twice(encoder_folder, data, tmp_path, capsys):
    folder = tmp_path / "run"
    assert train(encoder_folder, data, folder, "--folds", "2") == 0
    runs = json.loads((folder / "several.json").read_text())["runs"]
    assert list(runs) == ["fold-1", "fold-2"]
    records = [json.loads((folder / name / "training.json").read_text()) for name in runs]
    assert all({"train", "validation"} == set(record["sentences"]) for record in records)
    support = sum(record["results"]["test"]["support"] for record in records)
    gold = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    assert support == sum(len({(e["start"], e["end"], e["label"]) for e in row["entities"]}) for row in gold)
    assert not (folder / "config.json").exists()  # folds judge; they leave no model
    assert "mean ± sd" in capsys.readouterr().out


def test_summary_by_hand():
    def record(f1):
        return {"results": {"validation": {"f1": f1, "precision": 1.0, "recall": f1, "support": 3}}}

    summary = summarise({"seed-1": record(0.5), "seed-2": record(0.7), "seed-3": record(0.6)})
    assert summary["best"] == "seed-2"
    assert summary["mean"]["validation"]["f1"] == pytest.approx(0.6)
    assert summary["std"]["validation"]["f1"] == pytest.approx(0.1)
    assert "| **mean ± sd** | 60.0 ± 10.0 | 100.0 ± 0.0 | 60.0 ± 10.0 |" in summary_table(summary)
    assert summary_line(summary).startswith("f1 of 3 runs (seed-1, seed-2, seed-3), mean ± standard deviation: valid")


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--folds", "1"], "--folds 1 leaves nothing to train on"),
        (["--folds", "11"], "10 documents do not make 11 folds"),
        (["--seeds", "3"], "name two seeds or more"),
        (["--seeds", "3", "3"], "name two seeds or more, each once"),
        (["--seeds", "1", "2", "--folds", "2"], "leave one of them out"),
        (["--max_minutes", "0"], "max_minutes=0 must be a number of minutes above 0"),
    ],
)
def test_bad_numbers_write_nothing(encoder_folder, data, tmp_path, capsys, flags, message):
    assert train(encoder_folder, data, tmp_path / "run", *flags) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists() or not any((tmp_path / "run").rglob("*.json"))


@pytest.mark.parametrize(
    "files, message",
    [
        ({"train": []}, "has no sentence in its split 'train'"),
        ({"train": [0, 1], "validation": []}, "has no sentence in its split 'validation'"),
        ({"train": [0]}, "The data is one sentence"),
        ({"train": [0, 1]}, "2 sentences of one document"),
        ({"train": [0, 1], "validation": ["other"]}, "No label of validation is in train: other (1)"),
    ],
)
def test_bad_data_writes_nothing(encoder_folder, tmp_path, capsys, files, message):
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{**row, "doc_id": "d"} for row in records() if row["entities"]]
    for split, chosen in files.items():
        picked = [
            {"tokens": ["x"], "entities": [{"start": 0, "end": 1, "label": i}]} if isinstance(i, str) else rows[i]
            for i in chosen
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in picked))
    assert train(encoder_folder, folder, tmp_path / "run") == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_label_that_train_lacks_is_said_and_training_goes_on(encoder_folder, data, tmp_path, capsys):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.jsonl").write_text((data / "train.jsonl").read_text())
    row = {"tokens": ["x", "y"], "entities": [{"start": 0, "end": 1, "label": "NEW"}]}
    (folder / "validation.jsonl").write_text(json.dumps(row) + "\n" + (data / "train.jsonl").read_text())
    assert train(encoder_folder, folder, tmp_path / "run") == 0
    assert "validation has what train lacks and nobody can learn: NEW (1)." in capsys.readouterr().out
