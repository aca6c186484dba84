"""What users of transformers do with any model, done with these: its own Trainer, its arguments, its data."""

import importlib.util
import itertools
import warnings

import datasets
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from approaches import ROWS, Row
from tests_support import records
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

import hf_spanner
from hf_spanner import (
    NestedNerCollator,
    NestedNerDataset,
    NestedNerMetrics,
    NestedNerTrainer,
    NestedNerTrainingArguments,
)

BY_NAME = {row.name: row for row in ROWS}
SHORT = {
    "max_steps": 2,
    "per_device_train_batch_size": 3,
    "per_device_eval_batch_size": 2,
    "use_cpu": True,
    "disable_tqdm": True,
    "report_to": "none",
    "save_strategy": "no",
}


OFTEN = {"eval_strategy": "steps", "eval_steps": 1}


def build(tokenizer, name: str = "span_ner", **settings):
    torch.manual_seed(0)
    return BY_NAME[name].make(tokenizer, **settings)


def ours(folder, tokenizer, data=None, model=None, validation=None, **settings):
    """`NestedNerTrainer` as short as it goes."""
    settings = {**SHORT, "eval_strategy": "no", "load_best_model_at_end": False, **settings}
    return NestedNerTrainer(
        model=model or build(tokenizer),
        args=NestedNerTrainingArguments(str(folder), **settings),
        train_dataset=records() if data is None else data,
        eval_dataset=records() if validation is None else validation,
        processing_class=tokenizer,
    )


def plain(folder, tokenizer, model, data=None, metrics=None, model_init=None, **settings) -> Trainer:
    """`transformers.Trainer` itself."""
    data = NestedNerDataset(records(), tokenizer, model.config) if data is None else data
    settings = {**SHORT, "label_names": ["entities"], "remove_unused_columns": False, **settings}
    return Trainer(
        model=model,
        model_init=model_init,
        args=TrainingArguments(str(folder), **settings),
        train_dataset=data,
        eval_dataset=data,
        data_collator=NestedNerCollator(tokenizer.pad_token_id),
        compute_metrics=metrics or NestedNerMetrics(model.config, data),
    )


# ------------------------------------------------------------------------------------------------ the Trainer itself


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_trainer_of_transformers_trains_evaluates_and_predicts(row: Row, tokenizer, tmp_path):
    torch.manual_seed(0)
    model = row.make(tokenizer, max_subwords=24)  # the long sentences have several windows
    trainer = plain(tmp_path, tokenizer, model)
    before = [parameter.clone() for parameter in model.parameters()]
    trainer.train()
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    scores = trainer.evaluate()
    truth = hf_spanner.evaluate(model, tokenizer, records())
    assert scores["eval_loss"] > 0
    for name in ("f1", "precision", "recall", "predicted", "support", "locate_f1"):
        assert scores[f"eval_{name}"] == pytest.approx(truth[name]), name
    predicted = trainer.predict(trainer.eval_dataset)
    assert predicted.predictions.shape[::2] == (len(trainer.eval_dataset), 6)
    assert predicted.label_ids.shape[::2] == (len(trainer.eval_dataset), 3)
    assert predicted.metrics["test_f1"] == scores["eval_f1"]


class Loop:
    """What people write by hand with accelerate."""

    def __init__(self, folder, tokenizer, model, bf16: bool):
        AcceleratorState._reset_state()  # it is one for a process
        accelerator = Accelerator(cpu=True, mixed_precision="bf16" if bf16 else "no")
        data = NestedNerDataset(records(), tokenizer, model.config)
        batches = DataLoader(data, 3, collate_fn=NestedNerCollator(tokenizer.pad_token_id))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.accelerator, self.tokenizer = accelerator, tokenizer
        self.model, self.optimizer, self.batches = accelerator.prepare(model, optimizer, batches)

    def train(self):
        self.model.train()
        for batch in self.batches:
            self.accelerator.backward(self.model(**batch).loss)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def evaluate(self):
        with self.accelerator.autocast():
            scores = hf_spanner.evaluate(self.accelerator.unwrap_model(self.model), self.tokenizer, records())
        return {f"eval_{name}": value for name, value in scores.items()}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["single", "autocast", "bfloat16"])
@pytest.mark.parametrize("loop", ["plain", "ours", "by hand"])
@pytest.mark.parametrize("approach", hf_spanner.APPROACHES)
def test_every_loop_trains_every_approach_in_every_precision(approach, loop, precision, tokenizer, tmp_path):
    model = build(tokenizer, approach)
    if precision == "bfloat16":
        model.bfloat16()
    before = [parameter.clone() for parameter in model.parameters()]
    loops = {"plain": plain, "ours": ours, "by hand": Loop}
    training = loops[loop](tmp_path, tokenizer, model=model, bf16=precision == "autocast")
    training.train()
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert training.evaluate()["eval_support"] == 14


def test_the_trainer_of_transformers_scores_the_typing_of_given_spans(tokenizer, tmp_path):
    model = build(tokenizer, "sng", spans="gold")
    truth = hf_spanner.evaluate(model, tokenizer, records())
    assert plain(tmp_path, tokenizer, model).evaluate()["eval_typing_accuracy"] == truth["typing_accuracy"]


def test_windows_can_be_scored_without_the_sentences_they_came_from(tokenizer, tmp_path):
    """As long as each sentence fits into one window the scores are the same."""
    model = build(tokenizer)
    trainer = plain(tmp_path, tokenizer, model, metrics=NestedNerMetrics(model.config))
    truth = hf_spanner.evaluate(model, tokenizer, records())
    assert trainer.evaluate()["eval_f1"] == pytest.approx(truth["f1"])
    assert truth["predicted"] > 0 and trainer.evaluate()["eval_support"] == truth["support"]


def test_predictions_of_logits_are_refused_with_the_remedy(tokenizer, tmp_path):
    trainer = plain(tmp_path, tokenizer, build(tokenizer))
    for item in trainer.eval_dataset.items:
        del item["places"]
    with pytest.raises(ValueError, match="whose batches name their `places`"):
        trainer.evaluate()


def test_the_trainer_of_transformers_searches_with_a_function_that_builds_models(tokenizer, tmp_path):
    pytest.importorskip("optuna")
    trainer = plain(tmp_path, tokenizer, None, data=NestedNerDataset(records(), tokenizer, build(tokenizer).config),
                    metrics=NestedNerMetrics(build(tokenizer).config), model_init=lambda: build(tokenizer),
                    eval_strategy="steps", eval_steps=2)  # fmt: skip
    best = trainer.hyperparameter_search(
        hp_space=lambda trial: {"learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-3)},
        compute_objective=lambda metrics: metrics["eval_f1"],
        direction="maximize",
        backend="optuna",
        n_trials=2,
    )
    assert 0 <= best.objective <= 1 and list(best.hyperparameters) == ["learning_rate"]


@pytest.mark.parametrize("trainer", [plain, ours])
@pytest.mark.parametrize(
    "how", [{"eval_do_concat_batches": False}, {"batch_eval_metrics": True}, {"eval_accumulation_steps": 1}], ids=str
)
def test_scores_are_the_same_however_batches_are_gathered(trainer, how, tokenizer, tmp_path):
    model = build(tokenizer)
    truth = hf_spanner.evaluate(model, tokenizer, records())
    scores = trainer(tmp_path, tokenizer, model=model, **how).evaluate()
    assert scores["eval_f1"] == pytest.approx(truth["f1"]) and scores["eval_support"] == truth["support"]


def test_a_second_evaluation_by_batch_starts_anew(tokenizer, tmp_path):
    trainer = ours(tmp_path, tokenizer, batch_eval_metrics=True)
    assert trainer.evaluate()["eval_support"] == trainer.evaluate()["eval_support"] == 14
    assert trainer.evaluate(records()[:2])["eval_support"] == 7


# -------------------------------------------------------------------------------------------- ours, as others are used


def test_plain_training_arguments_will_do(tokenizer, tmp_path):
    trainer = NestedNerTrainer(
        model=build(tokenizer),
        args=TrainingArguments(str(tmp_path), **SHORT),
        train_dataset=records(),
        eval_dataset=records(),
        processing_class=tokenizer,
    )
    trainer.train()
    assert trainer.state.global_step == 2 and "eval_f1" in trainer.evaluate()
    assert trainer.predict(records()).metrics["test_support"] == 14


def test_no_arguments_and_nothing_for_the_rest_will_do(tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = NestedNerTrainer(
        model=build(tokenizer),
        args=None,
        train_dataset=records(),
        processing_class=tokenizer,
        data_collator=None,
        compute_metrics=None,
        callbacks=None,
    )
    assert isinstance(trainer.data_collator, NestedNerCollator)
    assert trainer.evaluate(records())["eval_support"] == 14


@pytest.mark.parametrize(
    "how",
    [
        {"gradient_checkpointing": True},
        {"train_sampling_strategy": "group_by_length"},
        {"train_sampling_strategy": "random"},
        {"neftune_noise_alpha": 5.0},
        {"gradient_accumulation_steps": 2},
        {"optim": "sgd"},
        {"lr_scheduler_type": "cosine"},
        {"dataloader_num_workers": 1},
        {"include_for_metrics": ["inputs", "loss"]},
        {"prediction_loss_only": True},
        {"logging_nan_inf_filter": False, "logging_steps": 1},
        {"bf16": True},
        {"lr_scheduler_type": "reduce_lr_on_plateau", "metric_for_best_model": "f1", **OFTEN},
        {"save_strategy": "best", "metric_for_best_model": "eval_loss", "greater_is_better": False, **OFTEN},
        pytest.param({"torch_compile": True, "torch_compile_backend": "eager"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_training_arguments_offer_works(how, tokenizer, tmp_path):
    trainer = ours(tmp_path, tokenizer, **how)
    assert torch.isfinite(torch.tensor(trainer.train().training_loss))
    assert trainer.evaluate()["eval_loss"] > 0


class Greedy:
    """Makes a model run out of memory on batches of more than so many sentences."""

    def __init__(self, model, most: int):
        self.most, self.sizes = most, []
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        self.sizes.append(len(kwargs["input_ids"]))
        if self.sizes[-1] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")


def test_the_batch_is_made_smaller_until_it_fits(tokenizer, tmp_path):
    model = build(tokenizer)
    greedy = Greedy(model, most=1)
    settings = {"auto_find_batch_size": True, "per_device_train_batch_size": 4}
    ours(tmp_path, tokenizer, model=model, **settings).train()
    assert greedy.sizes[0] == 4 and greedy.sizes[-2:] == [1, 1]


@pytest.mark.parametrize(
    "name, how, sentence",
    [
        ("span_ner", {"label_smoothing_factor": 0.1}, "label_smoothing_factor=0.1 .*boundary_smoothing"),
        ("span_ner", {"use_liger_kernel": True}, "Liger has no kernels for span_ner"),
        ("sng", {"neftune_noise_alpha": 5.0}, "sng has no encoder"),
    ],
)
def test_what_would_have_no_effect_is_refused(name, how, sentence, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        ours(tmp_path, tokenizer, model=build(tokenizer, name), **how)


@pytest.mark.parametrize("package", ["tensorboard", "wandb", "trackio"])
def test_what_is_reported_arrives(package, tokenizer, tmp_path, monkeypatch):
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    ours(tmp_path, tokenizer, report_to=package, logging_steps=1).train()
    assert any(tmp_path.rglob("*tfevents*")) or any(tmp_path.rglob("*.wandb")) or package == "trackio"


# --------------------------------------------------------------------------------------------------------------- data


@pytest.mark.parametrize("form", [None, "torch", "numpy", "arrow"])
def test_sentences_of_a_dataset_may_have_any_format(form, tokenizer, tmp_path):
    data = datasets.Dataset.from_list(records()).map(lambda sentence: {"id": sentence["id"].upper()})
    data = data.with_format(form)
    trainer = ours(tmp_path, tokenizer, data=data, validation=data)
    trainer.train()
    truth = ours(tmp_path, tokenizer, model=trainer.model).evaluate()
    assert trainer.evaluate()["eval_f1"] == truth["eval_f1"] and truth["eval_support"] == 14


@pytest.mark.parametrize("form", [None, "torch", "numpy"])
@pytest.mark.parametrize("trainer", [plain, ours])
def test_encoded_windows_may_be_a_dataset_of_any_format(form, trainer, tokenizer, tmp_path):
    model = build(tokenizer)
    items = NestedNerDataset(records(), tokenizer, model.config).items
    data = datasets.Dataset.from_list(items).map(lambda item: {**item, "num_words": item["num_words"]})
    data = data.with_format(form)
    truth = ours(tmp_path, tokenizer, model=model).evaluate()
    given = {"data": data, "metrics": NestedNerMetrics(model.config)}
    given = given if trainer is plain else {"data": data, "validation": data}
    train = trainer(tmp_path, tokenizer, model=model, **given)
    assert train.evaluate()["eval_f1"] == truth["eval_f1"]
    train.train()


def endless():
    yield from itertools.cycle(records())


def test_an_endless_stream_is_trained_on_for_so_many_steps(tokenizer, tmp_path):
    stream = datasets.IterableDataset.from_generator(endless)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trainer = ours(tmp_path, tokenizer, data=stream, max_steps=5, eval_strategy="steps", eval_steps=2)
    trainer.train()
    evaluations = [entry for entry in trainer.state.log_history if "eval_support" in entry]
    assert trainer.state.global_step == 5 and evaluations[-1]["eval_support"] == 14
    assert trainer.reach == {"validation": trainer.reach["validation"]}


@pytest.mark.parametrize(
    "settings, model, sentence",
    [
        ({"max_steps": -1}, {}, "nobody knows where it ends: .* max_steps"),
        ({"frozen_encoder_epochs": 1.0}, {}, "frozen_encoder_epochs=1 counts epochs"),
        ({}, {"context_sentences": 1}, "context_sentences=1 cannot be read from a stream"),
    ],
)
def test_what_a_stream_cannot_give_is_said(settings, model, sentence, tokenizer, tmp_path):
    stream = datasets.IterableDataset.from_generator(endless)
    with pytest.raises(ValueError, match=sentence):
        ours(tmp_path, tokenizer, data=stream, model=build(tokenizer, **model), **settings)


def test_a_stream_that_ends_can_be_evaluated_on(tokenizer, tmp_path):
    stream = datasets.Dataset.from_list(records()).to_iterable_dataset()
    trainer = ours(tmp_path, tokenizer)
    assert trainer.evaluate(stream)["eval_support"] == 14
    encoded = datasets.Dataset.from_list(trainer.eval_dataset.items).to_iterable_dataset()
    assert trainer.evaluate(encoded)["eval_support"] == 14


def test_data_without_sentences_is_refused(tokenizer, tmp_path):
    for given in ({"data": []}, {"validation": []}, {"validation": {"dev": records(), "other": []}}):
        with pytest.raises(ValueError, match="There is no sentence in this data set"):
            ours(tmp_path, tokenizer, **given)
    with pytest.raises(ValueError, match="There is no sentence in this data set"):
        ours(tmp_path, tokenizer).evaluate([])


def test_sentences_without_gold_are_refused_with_what_reads_them(tokenizer, tmp_path):
    for sentence, name in (({"id": "s", "text": "London"}, "tokens"), ({"id": "s", "tokens": ["London"]}, "entities")):
        with pytest.raises(ValueError, match=f"Sentence 's' has no '{name}', only .*predict_sentences"):
            ours(tmp_path, tokenizer, data=[sentence])


def test_all_splits_in_place_of_one_are_refused(tokenizer, tmp_path):
    splits = datasets.DatasetDict(train=datasets.Dataset.from_list(records()))
    with pytest.raises(ValueError, match=r"train_dataset has the splits 'train'.*train_dataset=data\['train'\]"):
        ours(tmp_path, tokenizer, data=splits)
    with pytest.raises(ValueError, match=r"This data has the splits 'train'.*data\['train'\]"):
        NestedNerDataset(splits, tokenizer, build(tokenizer).config)
