"""What a training does when nobody tells it: the rules, by hand and as properties, and that all else is left alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import make_toy_encoder

from hf_spanner import APPROACHES, NestedNerTrainer, NestedNerTrainingArguments, load_tokenizer
from hf_spanner.cli.arguments import parse_with_recipe
from hf_spanner.cli.train import RunArguments
from hf_spanner.data.sample import load_sample
from hf_spanner.training import settings
from hf_spanner.training.recipes import read_recipe
from hf_spanner.training.settings import BATCH, EVALUATIONS, HABITS, PACES, AtHand, cap, choose

ROOT = Path(__file__).resolve().parents[2]


def at_hand(**known):
    return AtHand(
        **{"approach": "biaffine_ner", "trained": True, "width": 384, "sentences": 50, "validation": 400} | known
    )


def test_the_documentation_has_the_rules():
    assert settings.table() in (ROOT / "docs" / "reference" / "training.md").read_text(encoding="utf-8")


def test_fifty_sentences_by_hand():
    pace = PACES["trained small"]
    choice = choose(at_hand())
    steps = 7 * pace.passes + pace.steps  # 50 sentences are 7 batches of 8
    passes = -(-steps // 7)
    assert choice.training["num_train_epochs"] == passes
    often = min(2 * passes * 50 // 400, EVALUATIONS[1])  # as reading is a third of learning
    assert choice.training["eval_steps"] == choice.training["save_steps"] == -(-passes * 7 // often)
    assert (choice.training["learning_rate"], choice.training["head_learning_rate"]) == (pace.encoder, pace.head)
    assert choice.training["patience"] == settings.PATIENCE and "load_best_model_at_end" not in choice.training
    assert choice.model == {}  # it has its own


@pytest.mark.parametrize(
    "known, start",
    [
        ({}, "trained small"),
        ({"trained": False}, "fresh small"),
        ({"trained": False, "width": 768}, "fresh base"),
        ({"width": 1024}, "trained large"),
        ({"width": None}, "word vectors"),
    ],
)
def test_what_training_starts_from(known, start):
    assert at_hand(**known).start == start


def test_a_new_model_gets_what_suits_a_short_training():
    choice = choose(at_hand(trained=False, lengths=[1] * 98 + [17, 60], collapsed_layers=1))
    assert choice.model == {**HABITS["biaffine_ner"].model, "max_span_length": 17, "fresh_layers": 1}
    assert "max_span_length" not in choose(at_hand(approach="diffusion_ner", trained=False, lengths=[1])).model
    assert choose(at_hand(approach="unheard_of", trained=False)).model == {}


def test_few_validation_sentences_choose_no_checkpoint():
    training = choose(at_hand(validation=5)).training
    assert training["load_best_model_at_end"] is False and "patience" not in training


def test_where_validation_data_is_large_it_is_read_less_often():
    read = {size: choose(at_hand(validation=size)).training["eval_steps"] for size in (400, 10_000)}
    assert read[400] < read[10_000]


@given(
    st.sampled_from(sorted(HABITS)),
    st.booleans(),
    st.sampled_from([None, 128, 384, 768, 1024]),
    st.integers(1, 3_000_000),
    st.integers(0, 100_000),
)
def test_steps_have_a_floor_and_a_ceiling(approach, trained, width, sentences, validation):
    known = at_hand(approach=approach, trained=trained, width=width, sentences=sentences, validation=validation)
    training, pace = choose(known).training, PACES[known.start]
    a_pass = -(-sentences // BATCH)
    steps = training["num_train_epochs"] * a_pass
    assert steps >= min(pace.steps, settings.MOST_STEPS) and training["num_train_epochs"] >= 1
    assert steps < settings.MOST_STEPS + a_pass
    assert 1 <= training["eval_steps"] <= steps
    assert -(-steps // training["eval_steps"]) <= EVALUATIONS[1]
    assert set(choose(known).why) >= set(training)


@given(st.lists(st.integers(1, 100), min_size=1))
def test_the_cap_reaches_nearly_all_entities(lengths):
    chosen = cap(lengths)
    assert settings.LONGEST[0] <= chosen <= settings.LONGEST[1]
    if chosen < settings.LONGEST[1]:
        assert sum(length <= chosen for length in lengths) >= settings.REACHED * len(lengths)


# ------------------------------------------------------------------------------------------------- what is given stays


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.yaml"))


RECIPES = ROOT / "hf_spanner" / "recipes"


@pytest.mark.parametrize("name", names(RECIPES))
def test_recipes_of_the_package_are_complete_and_nothing_is_chosen(name, tmp_path):
    assert "learning_rate" in read_recipe(name)
    argv = [name, "--data", "sample", "--output_dir", str(tmp_path)]
    (_, args), _, _ = parse_with_recipe(argv, RunArguments, NestedNerTrainingArguments)
    assert not args.unset


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    data = load_sample()
    encoder = make_toy_encoder(
        tmp_path_factory.mktemp("encoder"), (" ".join(sentence["tokens"]) for sentence in data["train"]), seed=1
    )

    def trainer(folder, validation=data["validation"], **given):
        model = APPROACHES["span_ner"].from_encoder(
            encoder, labels=["PER", "ORG", "LOC", "DATE", "GENE", "PROTEIN", "WORK"]
        )
        return NestedNerTrainer(
            model=model,
            args=NestedNerTrainingArguments(str(folder), use_cpu=True, report_to="none", **given),
            train_dataset=data["train"],
            eval_dataset=validation,
            processing_class=load_tokenizer(encoder),
        )

    return trainer


def test_the_trainer_chooses_what_nobody_set(make, tmp_path):
    trainer = make(tmp_path)
    pace = PACES["fresh small"]
    assert (trainer.args.learning_rate, trainer.args.head_learning_rate) == (pace.encoder, pace.head)
    assert trainer.args.num_train_epochs == trainer.choice.training["num_train_epochs"]
    assert any("learning_rate" in line for line in trainer.choice.lines())


def test_what_is_given_stays(make, tmp_path):
    given = {"learning_rate": 3e-3, "num_train_epochs": 2, "per_device_train_batch_size": 4, "warmup_steps": 0}
    args = make(tmp_path, **given).args
    assert {name: getattr(args, name) for name in given} == given
    assert args.eval_strategy == args.save_strategy == "epoch" and args.patience is None  # who says how long, says all
    assert args.head_learning_rate == 3e-3  # no slower than the encoder


@pytest.mark.parametrize("given", [{"max_steps": 7}, {"num_train_epochs": 3}])
def test_a_given_length_is_not_shortened(make, tmp_path, given):
    args = make(tmp_path, **given).args
    assert args.patience is None and args.load_best_model_at_end


def test_one_strategy_given_the_other_is_not_chosen_against_it(make, tmp_path):
    args = make(tmp_path, eval_strategy="epoch", save_strategy="epoch").args
    assert (args.eval_strategy, args.save_strategy) == ("epoch", "epoch")


def test_without_validation_data_nothing_is_evaluated(make, tmp_path):
    args = make(tmp_path, validation=None).args
    assert args.eval_strategy == "no" and not args.load_best_model_at_end and args.patience is None
