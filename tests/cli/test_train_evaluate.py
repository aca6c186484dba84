"""From a folder of files to a saved model and its scores, by the commands a user types."""

import json
import re
import shutil

import pytest
from tests_support import records

from hf_spanner import cli, pipeline
from hf_spanner.loading import load_model


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split, times in (("train", 6), ("validation", 1), ("test", 1)):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records() * times))
    return folder


@pytest.fixture(scope="module")
def trained(data, encoder_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    recipe = tmp_path_factory.mktemp("recipe") / "mine.yaml"
    recipe.write_text(
        f"approach: bl_ner\nencoder: {encoder_folder}\nmax_span_length: 12\nmax_negatives: null\n"
        "learning_rate: 3.0e-3\nnum_train_epochs: 2\nwarmup_steps: 0\n"
    )
    code = cli.main(
        ["train", str(recipe), "--data", str(data), "--output_dir", str(folder), "--use_cpu", "True",
         "--num_train_epochs", "20", "--disable_tqdm", "True"]
    )  # fmt: skip
    assert code == 0
    return folder


def test_training_leaves_a_model_its_recipe_and_its_scores(trained, data):
    record = json.loads((trained / "training.json").read_text())
    assert len(record["history"]) == 20  # the flag overrides the recipe
    assert record["results"]["validation"]["f1"] > 0.7 and set(record["results"]) == {"validation", "test"}
    assert record["settings"] == {"max_span_length": 12, "max_negatives": None, "overlap": "nested"}
    assert "max_span_length: 12" in (trained / "recipe.yaml").read_text()
    assert {"torch", "transformers", "hf_spanner"} <= set(record["versions"])
    ner = pipeline(str(trained))
    assert [e["word"] for e in ner("New York", head="span")] == [e["word"] for e in ner("New York", head="seq")]


def test_evaluation_agrees_with_training_and_writes_what_it_is_asked_for(trained, data, tmp_path, capsys):
    code = cli.main(
        ["evaluate", str(data), "--model", str(trained), "--split", "test", "--output", str(tmp_path / "s.json"),
         "--predictions", str(tmp_path / "p.jsonl")]
    )  # fmt: skip
    assert code == 0
    scores = json.loads((tmp_path / "s.json").read_text())
    expected = json.loads((trained / "training.json").read_text())["results"]["test"]
    assert scores["f1"] == pytest.approx(expected["f1"]) and scores["support"] == 14
    assert "micro" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["tokens"] for row in rows] == [record["tokens"] for record in records()]
    assert sum(len(row["entities"]) for row in rows) == scores["predicted"]


def test_thresholds_and_heads_reach_the_evaluation(trained, data, tmp_path):
    for flags in (["--threshold", "1.0"], ["--threshold", "PER=1.0,place name=1.0,ORG=1.0"]):
        out = tmp_path / "s.json"
        assert cli.main(["evaluate", str(data), "--model", str(trained), "--output", str(out), *flags]) == 0
        assert json.loads(out.read_text())["predicted"] == 0
    assert cli.main(["evaluate", str(data), "--model", str(trained), "--head", "seq", "--output", str(out)]) == 0
    assert json.loads(out.read_text())["predicted"] > 0


def test_neighbouring_sentences_are_read_at_once_and_no_entity_is_lost(trained, data, tmp_path):
    flags = ["--output", str(tmp_path / "s.json"), "--predictions", str(tmp_path / "p.jsonl"), "--join", "3"]
    assert cli.main(["evaluate", str(data), "--model", str(trained), *flags]) == 0
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert len(rows) < len(records())
    assert [word for row in rows for word in row["tokens"]] == [word for r in records() for word in r["tokens"]]
    assert json.loads((tmp_path / "s.json").read_text())["support"] == 14


@pytest.mark.parametrize("lora", [False, True])
def test_a_trained_model_is_a_start_for_other_labels(trained, data, tmp_path, lora, capsys):
    if lora:
        pytest.importorskip("peft", reason="LoRA needs peft: pip install hf_spanner[peft]")
    mine = tmp_path / "mine"
    mine.mkdir()
    for split in ("train", "validation"):
        text = (data / f"{split}.jsonl").read_text()
        (mine / f"{split}.jsonl").write_text(text.replace("place name", "place").replace("PER", "person"))
    run = tmp_path / "run"
    flags = ["--lora_rank", "8", "--head_learning_rate", "1e-2"] if lora else []
    code = cli.main(
        ["train", "--model", str(trained), "--data", str(mine), "--output_dir", str(run), "--learning_rate", "3e-3",
         "--num_train_epochs", "10", "--use_cpu", "True", "--disable_tqdm", "True", *flags]
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "person starts from PER: " in out and "place starts from place name: " in out and "ORG goes on" in out
    record = json.loads((run / "training.json").read_text())
    assert record["results"]["validation"]["f1"] > 0.7
    model, _ = load_model(str(run))  # whole, and without a trace of LoRA
    assert model.config.labels == ["ORG", "person", "place"] and type(model).__name__ == "BlNerForNestedNer"
    assert not any("lora" in name for name in model.state_dict())


def test_corpora_of_different_labels_are_trained_and_scored_together(data, encoder_folder, tmp_path):
    other = tmp_path / "bio"
    other.mkdir()
    sentence = {"id": "b", "doc_id": "d", "tokens": ["the", "IL-2", "gene", "of", "London"]}
    sentence["entities"] = [{"start": 0, "end": 3, "label": "DNA"}, {"start": 1, "end": 2, "label": "protein"}]
    for split in ("train", "validation"):
        (other / f"{split}.jsonl").write_text((json.dumps(sentence) + "\n") * (6 if split == "validation" else 30))
    run = tmp_path / "run"
    code = cli.main(
        ["train", "--data", str(data), str(other), "--complete", str(data), "--resplit", "true",
         "--repeats", "1", "2", "--join_sizes", "1", "2", "--approach", "span_ner", "--multi_label", "true",
         "--word_splitter", "fine", "--encoder", str(encoder_folder), "--max_negatives", "null",
         "--loss_reduction", "sentence",
         "--learning_rate", "3e-3", "--num_train_epochs", "20", "--eval_strategy", "no", "--save_strategy", "no",
         "--load_best_model_at_end", "False", "--output_dir", str(run), "--use_cpu", "True", "--disable_tqdm", "True"]
    )  # fmt: skip
    assert code == 0
    results = json.loads((run / "training.json").read_text())["results"]
    assert set(results) == {"validation", f"validation of {data.name}", "validation of bio", "test"}
    assert results["validation of bio"]["support"] == 12 and results["validation of bio"]["f1"] > 0.7
    assert results["validation"]["support"] == 12 + results[f"validation of {data.name}"]["support"]
    out = tmp_path / "s.json"
    argv = ["evaluate", str(other), "--split", "validation", "--resplit", "fine", "--model", str(run)]
    assert cli.main([*argv, "--output", str(out)]) == 0
    assert json.loads(out.read_text())["support"] == 12
    assert cli.main([*argv, "--data-labels", "--output", str(out)]) == 0
    assert set(json.loads(out.read_text())["per_type"]) >= {"DNA", "protein"}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["evaluate", "DATA", "--model", "MODEL", "--threshold", "high"], "Cannot read the threshold 'high'"),
        (["evaluate", "DATA", "--model", "MODEL", "--join", "0"], "sizes=[0] must be numbers of sentences"),
        (["evaluate", "nowhere", "--model", "MODEL"], "nowhere"),
        (["evaluate", "DATA", "--model", "nowhere"], "nowhere"),
        (["train", "--data", "DATA", "--approach", "crf", "--output_dir", "x"], "Unknown approach 'crf'"),
        (["train", "--data", "DATA", "--max_spam_length", "3", "--output_dir", "x"], "Did you mean --max_span_length"),
        (["train", "--data", "DATA", "--max_span_length", "abc", "--output_dir", "x"], "max_span_length='abc'"),
        (["train", "no-recipe.yaml", "--data", "DATA"], "There is no recipe 'no-recipe.yaml'"),
        (
            ["train", "--data", "DATA", "--model", "MODEL", "--approach", "sng", "--output_dir", "x"],
            "leave --approach",
        ),
        (["train", "--data", "DATA", "--model", "MODEL", "--lstm_size", "2", "--output_dir", "x"], "bl_ner knows no"),
        (
            ["train", "--data", "DATA", "--eval_join", "0", "--output_dir", "x"],
            "sizes=[0] must be numbers of sentences",
        ),
        (["train", "--data", "DATA", "--repeats", "1", "2", "--output_dir", "x"], "repeats=[1, 2] must be a number"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(trained, data, encoder_folder, capsys, argv, message):
    argv = [{"DATA": str(data), "MODEL": str(trained)}.get(word, word) for word in argv]
    if argv[0] == "train":
        argv += ["--encoder", encoder_folder]
    assert cli.main(argv) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_without_a_validation_split_documents_are_held_out_and_said(encoder_folder, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    rows = [{**row, "doc_id": f"{i // 3}"} for i, row in enumerate(records() * 6)]
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = cli.main(
        ["train", "--approach", "seq_ner", "--encoder", encoder_folder, "--data", str(data),
         "--output_dir", str(tmp_path / "run"), "--num_train_epochs", "1", "--use_cpu", "True",
         "--disable_tqdm", "True", "--fresh_layers", "1"]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0 and "No validation split: 3 of 30 training sentences are held out, whole documents." in out
    assert "the last 1 of the encoder's layers start at random" in out
    assert "are out of reach" in out and "overlap another entity (overlap='flat')" in out


def test_training_on_train_and_validation_holds_nothing_out_and_keeps_the_last_model(
    encoder_folder, data, tmp_path, capsys
):
    flags = ["--approach", "seq_ner", "--encoder", encoder_folder, "--data", str(data), "--use_cpu", "True"]
    flags += ["--num_train_epochs", "2", "--disable_tqdm", "True", "--fresh_layers", "1", "--learning_rate", "1e-4"]
    both = ["--train_on", "train", "validation", "--output_dir", str(tmp_path / "both")]
    assert cli.main(["train", *flags, *both]) == 0
    assert "no validation data: nothing is evaluated while training" in capsys.readouterr().out
    record = json.loads((tmp_path / "both" / "training.json").read_text())
    whole = sum(len((data / f"{split}.jsonl").read_text().splitlines()) for split in ("train", "validation"))
    assert record["sentences"] == {"train": whole} and list(record["results"]) == ["test"]
    assert record["best_checkpoint"] is None and record["history"] == [] and record["epochs"] == 2
    (tmp_path / "alone").mkdir()
    shutil.copy(data / "train.jsonl", tmp_path / "alone")
    flags[5] = str(tmp_path / "alone")
    assert cli.main(["train", *flags, "--eval_strategy", "no", "--output_dir", str(tmp_path / "run")]) == 0
    record = json.loads((tmp_path / "run" / "training.json").read_text())
    assert record["sentences"] == {"train": len((data / "train.jsonl").read_text().splitlines())}


def test_training_goes_on_from_a_trained_model(trained, data, tmp_path, capsys):
    flags = ["--model", str(trained), "--approach", "bl_ner", "--num_train_epochs", "1", "--warmup_steps", "0"]
    flags += ["--learning_rate", "1e-6", "--use_cpu", "True", "--disable_tqdm", "True", "--output_dir", str(tmp_path)]
    assert cli.main(["train", "--data", str(data), *flags]) == 0
    before, after = (
        json.loads((f / "training.json").read_text())["results"]["test"]["f1"] for f in (trained, tmp_path)
    )
    assert after == pytest.approx(before, abs=0.1)
    flags += [
        "--max_steps",
        "1",
        "--eval_join",
        "3",
        "--overwrite",
    ]  # scored on joined sentences, none of their entities lost
    capsys.readouterr()
    assert cli.main(["train", "--data", str(data), *flags]) == 0
    (said,) = re.findall(r"^test \((\d+) sentences\)", capsys.readouterr().out, re.MULTILINE)
    assert int(said) < len(records())
    assert json.loads((tmp_path / "training.json").read_text())["results"]["test"]["support"] == 14


def test_a_finished_model_is_not_overwritten_unless_that_is_asked_for(trained, data, encoder_folder, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    before = (run / "model.safetensors").read_bytes()
    argv = ["train", "--approach", "bl_ner", "--encoder", encoder_folder, "--data", str(data), "--max_steps", "1"]
    argv += ["--use_cpu", "True", "--disable_tqdm", "True", "--output_dir", str(run)]
    assert cli.main(argv) == 2
    assert f"{run} holds a finished model (training.json): --overwrite replaces it, or" in capsys.readouterr().err
    assert cli.main([*argv, "--resume"]) == 0
    assert f"The training in {run} is finished (training.json): there is nothing to" in capsys.readouterr().out
    assert cli.main([*argv, "--resume", "--overwrite"]) == 0, "what is finished needs neither"
    (run / "training.json").rename(tmp_path / "training.json")
    assert cli.main(argv) == 2
    error = capsys.readouterr().err
    assert "holds an unfinished training (checkpoint-" in error and "--resume goes on with it" in error
    assert cli.main([*argv, "--resume", "--overwrite"]) == 2
    assert "--overwrite begins anew and --resume goes on: leave one of them out." in capsys.readouterr().err
    assert (run / "model.safetensors").read_bytes() == before
    assert cli.main([*argv, "--overwrite"]) == 0
    assert "is trained in anew (--overwrite)" in capsys.readouterr().out
    assert (run / "model.safetensors").read_bytes() != before
    assert [path.name for path in run.glob("checkpoint-*")] == ["checkpoint-1"]
