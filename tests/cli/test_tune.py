"""`hf-spanner tune`: from a folder of files to a recipe, also when it is interrupted."""

import json
import re
import shutil
import sys

import pytest
import yaml
from tests_support import LABELS, encoder_config, records

from hf_spanner import APPROACHES, NestedNerTrainer, cli
from hf_spanner.cli.tune import given
from hf_spanner.training import NestedNerTrainingArguments
from hf_spanner.training.search import can_have, fingerprint, make_space, span_lengths

optuna = pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    for split in ("train", "validation", "test"):
        label = "only in test" if split == "test" else "ORG"
        text = "".join(json.dumps(r) + "\n" for r in records())
        (folder / f"{split}.jsonl").write_text(text.replace("ORG", label))
    return folder


@pytest.fixture
def tune(data, encoder_folder, tmp_path):
    """The command in a folder of its own, with a tiny model."""

    def run(*flags, source=data):
        return cli.main(
            ["tune", "--data", str(source), "--output_dir", str(tmp_path / "search"), "--encoder", encoder_folder,
             "--approach", "span_ner", "--num_train_epochs", "1", "--use_cpu", "True", "--disable_tqdm=True",
             "--report_to", "none", *flags]
        )  # fmt: skip

    return run


def trials_in(folder):
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{folder / 'study.db'}")
    return [(trial.state.name, trial.params) for trial in study.get_trials()]


def test_a_search_ends_in_a_recipe_that_trains_to_the_same_score(tune, data, tmp_path, capsys):
    flags = ["--learning_rate", "1e-2", "--max_span_length", "9", "--num_train_epochs", "8", "--repeats", "4"]
    assert tune("--trials", "2", *flags) == 0
    said = capsys.readouterr().out
    assert re.search(r"trial +learning_rate +head_learning_rate +max_span_length +f1", said)
    rows = re.findall(r"^ +\d  .*(\d\.\d{4})(  best)?$", said, re.MULTILINE)
    assert len(rows) == 2 and max(rows)[1] and float(max(rows)[0]) > 0
    search = tmp_path / "search"
    assert {path.name for path in search.iterdir()} == {"study.db", "recipe.yaml"}  # no model, no checkpoint
    (state, first), _ = trials_in(search)
    assert state == "COMPLETE"  # what training would have used
    assert first == {"learning_rate": 1e-2, "head_learning_rate": 1e-2, "max_span_length": 9}
    about = optuna.load_study(study_name=None, storage=f"sqlite:///{search / 'study.db'}").user_attrs["about"]
    assert set(about["labels"]) == set(LABELS)  # and not the one that is in the test data alone

    text = (search / "recipe.yaml").read_text()
    assert text.startswith(f"# Found by `hf-spanner tune` on {data.name}, in 2 trials: validation f1 {max(rows)[0]}")
    assert f"optuna {optuna.__version__}" in text and str(data.parent) + "/" + data.name not in text
    recipe = yaml.safe_load(text)
    assert recipe["approach"] == "span_ner" and recipe["num_train_epochs"] == 8 and recipe["repeats"] == 4
    assert not {"data", "output_dir", "trials", "use_cpu", "disable_tqdm"} & set(recipe)
    assert {"learning_rate", "head_learning_rate", "max_span_length"} <= set(recipe)

    (tmp_path / "known").mkdir()
    for split in ("train", "validation"):
        shutil.copy(data / f"{split}.jsonl", tmp_path / "known")
    argv = ["train", str(search / "recipe.yaml"), "--data", str(tmp_path / "known"), "--output_dir"]
    assert cli.main([*argv, str(tmp_path / "model"), "--use_cpu", "True", "--disable_tqdm", "True"]) == 0
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["training"]["head_learning_rate"] == recipe["head_learning_rate"]
    assert record["settings"]["max_span_length"] == recipe["max_span_length"]
    assert f"{record['results']['validation']['f1']:.4f}" == max(rows)[0]


def test_time_ends_a_search_and_validation_data_is_held_out_and_said(tune, data, tmp_path, capsys):
    (tmp_path / "one").mkdir()
    rows = [{**json.loads(line), "doc_id": None} for line in (data / "train.jsonl").read_text().splitlines()]
    (tmp_path / "one" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tune("--trials", "50", "--minutes", "0.0001", source=tmp_path / "one") == 0
    assert "No validation split: 1 of 5 training sentences are held out." in capsys.readouterr().out
    assert [state for state, _ in trials_in(tmp_path / "search")] == ["COMPLETE"]  # the one under way is finished


def test_a_search_that_is_interrupted_or_killed_goes_on_with_the_same_command(tune, tmp_path, monkeypatch, capsys):
    evaluate, calls = NestedNerTrainer.evaluate, []
    ends = {2: KeyboardInterrupt, 3: SystemExit}  # of the latter Optuna knows as little as of a kill

    def interrupted(self, *args, **kwargs):
        calls.append(self.args.learning_rate)
        if end := ends.get(len(calls)):
            raise end
        return evaluate(self, *args, **kwargs)

    def states():
        return [state for state, _ in trials_in(tmp_path / "search")]

    monkeypatch.setattr(NestedNerTrainer, "evaluate", interrupted)
    assert tune("--trials", "2") == 130 and states() == ["COMPLETE", "FAIL"]
    assert "the same command goes on" in capsys.readouterr().out and not (tmp_path / "search/recipe.yaml").exists()
    with pytest.raises(SystemExit):
        tune("--trials", "2")
    assert "1 of 2 trials are there already" in capsys.readouterr().out and states()[-1] == "RUNNING"
    assert tune("--trials", "2") == 0 and states() == ["COMPLETE", "FAIL", "FAIL", "COMPLETE"]
    first, *same = (params for _, params in trials_in(tmp_path / "search"))
    assert same == [same[0]] * 3 != [first] * 3  # what was interrupted is tried again
    assert tune("--trials", "2") == 0 and len(calls) == 4  # nothing is left to do
    assert tune("--trials", "2", "--num_train_epochs", "2") == 2
    assert "holds a search with num_train_epochs=1.0, not 2.0" in capsys.readouterr().err


def test_a_search_of_something_else_is_refused_and_replaced_when_asked(tune, data, tmp_path, capsys):
    assert tune("--trials", "1") == 0
    other = tmp_path / "other" / data.name
    shutil.copytree(data, other)
    (other / "train.jsonl").write_text((data / "validation.jsonl").read_text() * 2)
    assert tune("--trials", "2", source=other) == 2
    assert re.search(rf"holds a search with data='{data.name} \(\w+\)', not '{data.name} ", capsys.readouterr().err)
    assert tune("--trials", "2", "--approach", "bl_ner") == 2
    assert "approach='span_ner', not 'bl_ner'" in capsys.readouterr().err
    (tmp_path / "search" / "study.db").write_text("nothing")
    assert tune("--trials", "1") == 2
    assert "study.db cannot be read" in capsys.readouterr().err
    assert tune("--trials", "1", "--overwrite", "True", source=other) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trials", "0"], "--trials 0 must be at least 1."),
        (["--minutes", "0"], "--minutes 0 must be more than 0"),
        (["--minutes", "-2"], "--minutes -2 must be more than 0"),
        (["--learning_rate", "0"], "--learning_rate 0 must be more than 0"),
        (["--push_to_hub", "True"], "leave --push_to_hub out"),
        (["--max_spam_length", "3"], "Did you mean --max_span_length"),
    ],
)
def test_faults_are_sentences_before_any_work(tune, tmp_path, capsys, flags, message):
    assert tune(*flags) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "search").exists()


def test_a_folder_with_a_model_is_not_searched_in(tune, tmp_path, capsys):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "config.json").write_text("{}")
    assert tune() == 2 and "name another output_dir" in capsys.readouterr().err


def test_optuna_is_named_if_it_is_missing(tune, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert tune() == 2
    assert "needs optuna, which is not installed: `pip install hf_spanner[tune]`" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ where it looks


def model_of(approach, **settings):
    model_class = APPROACHES[approach]
    encoder = encoder_config("bert", 200).to_dict()
    return model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, **settings))


@pytest.mark.parametrize(
    ("approach", "settings", "spans"),
    [
        ("span_ner", {"max_span_length": 9}, [9, 11]),
        ("cnn_ner", {"max_span_length": None}, [None, 11]),
        ("dspert", {"span_unit": "subword"}, []),  # which counts something else
        ("seq_ner", {}, []),  # a tagger has no such thing
    ],
)
def test_span_lengths_come_from_the_data_where_an_approach_has_one(approach, settings, spans):
    assert span_lengths(model_of(approach, **settings), records(), is_trained=False) == spans


def test_a_trained_model_keeps_the_span_length_its_weights_are_made_for():
    assert not can_have(model_of("span_ner"), 3, is_trained=True) and can_have(model_of("span_ner"), 3, False)
    assert can_have(model_of("biaffine_ner", lstm_size=16, affine_size=16), 3, is_trained=True)


def test_learning_rates_are_searched_around_those_of_the_training(tmp_path):
    args = NestedNerTrainingArguments(str(tmp_path), learning_rate=1e-4, head_learning_rate=1e-3)
    space = make_space(args, model_of("seq_ner"), records())
    assert space.rates == {"learning_rate": (2e-5, 5e-4), "head_learning_rate": (2e-4, 5e-3)}
    assert space.start == {"learning_rate": 1e-4, "head_learning_rate": 1e-3} and space.spans == []
    args.head_learning_rate = None
    space = make_space(args, model_of("seq_ner"), records())
    assert space.start["head_learning_rate"] == 1e-4 and space.rates["head_learning_rate"][1] == pytest.approx(5e-3)


def test_a_fingerprint_knows_every_entity():
    other = records()
    other[0]["entities"][0]["end"] -= 1
    assert fingerprint({"train": records()}) == fingerprint({"train": records()}) != fingerprint({"train": other})


def test_flags_become_entries_that_read_the_same():
    argv = ["r.yaml", "--labels", "PER", "on", "--learning_rate=1e-3", "--seed", "3", "--bf16", "--threshold", "null"]
    entries = {"labels": ["PER", "on"], "learning_rate": "1e-3", "seed": 3, "bf16": True, "threshold": "null"}
    assert given(argv) == entries and yaml.safe_load(yaml.safe_dump(given(argv))) == entries
