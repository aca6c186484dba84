"""Every recipe parses, and those of Ji et al. (2022) say what the paper's Table 2 says."""

from pathlib import Path

import pytest

import hf_spanner
from hf_spanner.cli.arguments import parse_with_recipe, read_recipe
from hf_spanner.cli.train import RunArguments
from hf_spanner.training import NestedNerTrainingArguments

FOLDER = Path(hf_spanner.__file__).parent / "recipes"
# What is under papers/ is there to be extended.
RECIPES = sorted(
    file.relative_to(FOLDER).as_posix() for file in FOLDER.glob("*/*.yaml") if file.parent.name != "papers"
)

BERT, BIOBERT, SCIBERT = "bert-large-cased", "biobert_v1.0_pubmed_pmc", "scibert_scivocab_cased"
BUNDLING = {  # ε, batch size, encoder
    "ontonotes5": (10, 12, BERT),
    "conll03": (5, 32, BERT),
    "conllpp": (5, 32, BERT),
    "conll04": (10, 2, BERT),
    "ace04_flat": (10, 8, BERT),
    "ace05_flat": (10, 8, BERT),
    "bc5cdr": (7, 16, BIOBERT),
    "ncbi": (7, 16, BIOBERT),
    "scierc": (8, 12, SCIBERT),
    "wnut16": (6, 32, BERT),
    "wnut17": (6, 24, BERT),
}


DSPERT = {  # K, epochs, batch size, learning rate of the encoder: Table 7 (without the two Chinese sets)
    "ace04": (25, 50, 48, 2e-5),
    "ace05": (25, 50, 48, 2e-5),
    "genia": (18, 30, 16, 4e-5),
    "kbp17": (16, 50, 48, 2e-5),
    "conll03": (10, 50, 48, 2e-5),
    "ontonotes5": (16, 30, 16, 2e-5),
}


LOCATE_AND_LABEL = {  # learning rate, batch size, u, k, δ: Table 6
    "ace04": (3e-5, 8, 0.9, 0.6, 0.55),
    "ace05": (3e-5, 8, 0.8, 0.7, 0.5),
    "kbp17": (5e-5, 4, 0.9, 0.6, 0.5),
    "genia": (5e-6, 6, 0.9, 0.7, 0.45),
}
DIFFUSION_NER_CODE = [  # frozen epochs, epochs, batch size, learning rate, K, schedule
    ("ace04", 10, 100, 8, 2e-5, 60, "cosine"),
    ("ace05", 10, 100, 8, 2e-5, 60, "cosine"),
    ("genia", 5, 30, 4, 2e-5, 60, "cosine"),
    ("conll03", 10, 30, 8, 3e-5, 150, "linear"),
    ("ontonotes5", 15, 30, 8, 3e-5, 60, "linear"),
    ("msra", 10, 100, 8, 5e-6, 60, "cosine"),
]


def parse(recipe, folder, *flags):
    argv = [recipe, "--data", "data", "--output_dir", str(folder), *flags]
    return parse_with_recipe(argv, RunArguments, NestedNerTrainingArguments)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_parses_and_its_approach_takes_its_settings(recipe, tmp_path):
    (run, _), settings, _ = parse(recipe, tmp_path)
    variants = ("_typing", "_shallow", "_code", "_long", "_roberta")
    assert run.approach in {Path(recipe).stem, *(Path(recipe).stem.removesuffix(variant) for variant in variants)}
    config = hf_spanner.APPROACHES[run.approach].config_class(labels=["X"], **settings)
    assert {name: getattr(config, name) for name in settings} == settings


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_comment_names_the_command_that_runs_it(recipe):
    comment = [line for line in (FOLDER / recipe).read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert len(comment) == 2 and f"hf-spanner train {recipe} --data" in comment[1]


@pytest.mark.parametrize("name", BUNDLING)
@pytest.mark.parametrize("approach", ["seq_ner", "span_ner", "bl_ner"])
def test_recipes_of_bundling_have_its_values(name, approach, tmp_path):
    (run, args), settings, _ = parse(f"{name}/{approach}.yaml", tmp_path)
    length, batch, encoder = BUNDLING[name]
    assert run.encoder.split("/")[1] == encoder
    assert args.per_device_train_batch_size == batch
    assert (args.learning_rate, args.weight_decay, args.warmup_steps) == (5e-5, 0.01, 0.1)
    assert (args.num_train_epochs, args.max_grad_norm, args.head_learning_rate) == (20, 1.0, None)
    assert (settings["dropout"], settings["overlap"], settings["word_pooling"]) == (0.1, "flat", "max")
    if approach == "seq_ner":
        assert not {"max_span_length", "max_negatives", "bundle_weight"} & settings.keys()
    else:
        assert (settings["max_span_length"], settings["max_negatives"]) == (length, 100)
        assert settings.get("bundle_weight") == (0.1 if approach == "bl_ner" else None)


@pytest.mark.parametrize("name", [*DSPERT, "weibo", "resume"])
def test_recipes_of_dspert_have_its_values(name, tmp_path):
    (run, args), settings, _ = parse(f"{name}/dspert.yaml", tmp_path)
    chinese = name in ("weibo", "resume")
    length, epochs, batch, rate = DSPERT.get(name, (settings["max_span_length"], 50, 48, 2e-5))
    assert run.encoder == ("hfl/chinese-macbert-base" if chinese else "FacebookAI/roberta-base")
    assert (settings["max_span_length"], settings["span_unit"]) == (length, "subword")
    assert (args.num_train_epochs, args.per_device_train_batch_size, args.learning_rate) == (epochs, batch, rate)
    assert (args.head_learning_rate, args.warmup_steps, args.max_grad_norm) == (2e-3, 0.2, 5.0)
    config = hf_spanner.APPROACHES["dspert"].config_class(labels=["X"], **settings)
    assert (config.lstm_size, config.ffn_size, config.boundary_smoothing, config.smoothing_size) == (400, 300, 0.1, 1)
    assert (config.lstm_dropout, config.dropout, config.pre_logit_dropout, config.encoder_dropout) == (
        0.5,
        0.4,
        0.2,
        0.2,
    )


@pytest.mark.parametrize("approach", ["dspert", "biaffine_ner_roberta"])
@pytest.mark.parametrize("name", ["ace04", "genia", "conll03"])
def test_the_protocol_of_dspert_is_its_authors(approach, name, tmp_path):
    """Sub-words as spans, five of a word, decay on all parameters, documents joined where they are known."""
    (run, args), settings, _ = parse(f"{name}/{approach}.yaml", tmp_path)
    length, epochs, batch, rate = DSPERT[name]
    assert (args.num_train_epochs, args.per_device_train_batch_size, args.learning_rate) == (epochs, batch, rate)
    assert (settings["span_unit"], settings["max_word_subwords"], args.decay_all) == ("subword", 5, True)
    assert run.size_embedding_quantile == 0.975 and run.join_subwords == (None if name == "ace04" else 510)
    assert settings.get("max_span_length") == (length if approach == "dspert" else None)


OF_PAPERS = [
    recipe
    for recipe in RECIPES
    if "papers/" in (FOLDER / recipe).read_text(encoding="utf-8") and not recipe.startswith("race")
]


@pytest.mark.parametrize("recipe", OF_PAPERS)
def test_no_paper_draws_batches_of_similar_length(recipe, tmp_path):
    (_, args), _, _ = parse(recipe, tmp_path)
    assert args.train_sampling_strategy == "random"


def test_genia_and_conll03_are_trained_on_train_and_dev_where_the_papers_do_so(tmp_path):
    for name, splits in (
        ("ace04", ["train"]),
        ("genia", ["train", "validation"]),
        ("conll03", ["train", "validation"]),
    ):
        for approach in ("locate_and_label", "diffusion_ner", "diffusion_ner_code"):
            assert parse(f"{name}/{approach}.yaml", tmp_path)[0][0].train_on == splits
        assert parse(f"{name}/dspert.yaml", tmp_path)[0][0].train_on == ["train"]


@pytest.mark.parametrize("name, splits", [("ace04", ["train"]), ("genia", ["train", "validation"])])
def test_the_code_of_diffusion_ner_keeps_the_last_weights(name, splits, tmp_path):
    (run, args), settings, _ = parse(f"{name}/diffusion_ner_code.yaml", tmp_path)
    assert run.train_on == splits and args.load_best_model_at_end is False
    assert settings["context_separator"] is True and settings["time_embedding"] == "mlp"
    assert parse(f"{name}/diffusion_ner.yaml", tmp_path)[1]["time_embedding"] == "sinusoid"


@pytest.mark.parametrize("name", [*LOCATE_AND_LABEL, "conll03", "weibo"])
def test_recipes_of_locate_and_label_have_its_values(name, tmp_path):
    (_, args), settings, _ = parse(f"{name}/locate_and_label.yaml", tmp_path)
    rate, batch, u, k, delta = LOCATE_AND_LABEL.get(name, LOCATE_AND_LABEL["ace04"])
    assert (args.learning_rate, args.per_device_train_batch_size, args.num_train_epochs) == (rate, batch, 35)
    assert (settings["soft_nms_decay"], settings["soft_nms_iou"], settings["threshold"]) == (u, k, delta)
    config = hf_spanner.APPROACHES["locate_and_label"].config_class(labels=["X"], **settings)
    assert config.seed_sizes == (list(range(1, 11)) if name == "genia" else [*range(1, 8), 9, 11, 13, 15])
    assert (config.alpha1, config.alpha2, config.eta, config.gamma, config.dropout) == (0.7, 1.0, 1.0, 2.0, 0.5)
    assert (config.lambda1, config.lambda2, config.lambda3) == (1.0, 0.1, 1.0)
    assert (config.loss_reduction, config.all_sizes) == ("sentence", True)


def test_ablations_of_locate_and_label_are_flags(tmp_path):
    flags = "--use_filter false --use_regressor false --eta 0 --soft_nms_decay 1 --windows 1 2 4".split()
    _, settings, _ = parse("race/locate_and_label.yaml", tmp_path, *flags)
    ablated = {"use_filter": False, "use_regressor": False, "eta": 0, "soft_nms_decay": 1, "windows": [1, 2, 4]}
    assert settings.items() >= ablated.items()
    for value, expected in (("3", [3]), ("null", None), ("[2, 5]", [2, 5])):
        assert parse("race/locate_and_label.yaml", tmp_path, "--windows", value)[1]["windows"] == expected
    with pytest.raises(ValueError, match="--windows needs a value"):
        parse("race/locate_and_label.yaml", tmp_path, "--windows")


@pytest.mark.parametrize("name, frozen, epochs, batch, rate, spans, schedule", DIFFUSION_NER_CODE)
def test_recipes_of_diffusion_ner_have_its_values_and_those_of_its_code(
    name, frozen, epochs, batch, rate, spans, schedule, tmp_path
):
    def config(settings):
        return hf_spanner.APPROACHES["diffusion_ner"].config_class(labels=["X"], **settings)

    (run, args), settings, _ = parse(f"{name}/diffusion_ner.yaml", tmp_path)
    assert (args.learning_rate, args.per_device_train_batch_size, args.frozen_encoder_epochs) == (2e-5, 8, 5)
    paper = config(settings)
    assert (paper.num_noisy_spans, paper.timesteps, paper.num_steps, paper.scale, paper.eta) == (60, 1000, 5, 1.0, 0)
    assert (paper.span_state, paper.span_representation, paper.word_pooling) == ("left_right", "mean", "max")
    assert paper.threshold * 3 == pytest.approx(2.5)
    (run_code, args), settings, _ = parse(f"{name}/diffusion_ner_code.yaml", tmp_path)
    code = config(settings)
    assert run_code.encoder == run.encoder
    assert (args.frozen_encoder_epochs, args.num_train_epochs, args.per_device_train_batch_size) == (
        frozen,
        epochs,
        batch,
    )
    assert (args.learning_rate, args.stage_one_lr_scale, code.num_noisy_spans) == (rate, 2.0, spans)
    assert (code.schedule, paper.schedule, code.eta, code.expansion) == (schedule, schedule, 1.0, "repeat")
    pooling = ("mean", "mean") if name == "genia" else ("boundary", "max")
    assert (code.span_representation, code.word_pooling) == pooling


def test_a_recipe_stands_on_another_and_flags_stand_on_both(tmp_path):
    (tmp_path / "base.yaml").write_text("approach: span_ner\nmax_span_length: 4\nlearning_rate: 1.0e-3\n")
    (tmp_path / "mine.yaml").write_text("extends: base.yaml\nmax_span_length: 6\nseed: 1\n")
    (_, args), settings, recipe = parse(str(tmp_path / "mine.yaml"), tmp_path, "--seed", "7")
    assert (args.learning_rate, args.seed, settings["max_span_length"]) == (1e-3, 7, 6)
    assert recipe == {"approach": "span_ner", "max_span_length": 6, "learning_rate": 1e-3, "seed": 1}  # saved whole


@pytest.mark.parametrize(
    "content, message",
    [
        ("extends: nowhere.yaml", "extends 'nowhere.yaml', but there is no"),
        ("extends: mine.yaml", "extends itself"),
        ("- a\n- b", "not a recipe"),
        ("a: [", "not YAML"),
    ],
)
def test_a_broken_recipe_is_explained(tmp_path, content, message):
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_recipe(str(file))


def test_a_missing_recipe_is_guessed_at():
    with pytest.raises(FileNotFoundError, match="Did you mean .*litbank/span_ner.yaml"):
        read_recipe("litbank/spanner.yaml")
    with pytest.raises(FileNotFoundError, match="ace04_flat/, .*ace05_flat/"):
        read_recipe("qqqq.yaml")
