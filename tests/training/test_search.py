"""Models that a function builds, plain arguments, searches for hyper-parameters, and models inside wrappers."""

import pytest
import torch
from approaches import ROWS
from tests_support import LABELS, encoder_config, records
from torch import nn
from transformers import TrainingArguments

from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.modeling.modeling_dspert import DspertConfig, DspertForNestedNer
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer
from hf_spanner.training.callbacks import ExponentialMovingAverage
from hf_spanner.training.checkpoints import checkpoints_in


def build(model_class=SpanNerForNestedNer, config_class=SpanNerConfig, **settings):
    settings = {"max_span_length": 12, "max_subwords": 64, "dropout": 0.0, **settings}
    return model_class(config_class(encoder_config=encoder_config("bert", 200).to_dict(), labels=LABELS, **settings))


QUICK = {
    "num_train_epochs": 2,
    "per_device_train_batch_size": 4,
    "learning_rate": 3e-3,
    "use_cpu": True,
    "disable_tqdm": True,
    "report_to": "none",
}


def trainer(folder, tokenizer, args=None, **settings):
    args = args or NestedNerTrainingArguments(output_dir=str(folder), **QUICK)
    settings = {"train_dataset": records(), "eval_dataset": records(), **settings}
    return NestedNerTrainer(args=args, processing_class=tokenizer, **settings)


# --------------------------------------------------------------------------------------------- a function that builds


@pytest.mark.parametrize("function", [lambda: build(), lambda trial: build()])
def test_a_function_builds_the_model_anew_for_each_training(tokenizer, tmp_path, function):
    train = trainer(tmp_path, tokenizer, model_init=function)
    first = train.model
    assert train.reach["train"].startswith("train: 1 of 14")
    train.train()
    assert train.model is not first and train.evaluate()["eval_support"] == 14


def test_the_function_is_called_once_before_training(tokenizer, tmp_path):
    calls = []
    trainer(tmp_path, tokenizer, model_init=lambda: calls.append(0) or build())
    assert len(calls) == 1


@pytest.mark.parametrize("both", [{}, {"model": build(), "model_init": lambda: build()}])
def test_a_model_or_a_function_is_needed_not_both(tokenizer, tmp_path, both):
    with pytest.raises(ValueError, match="`model`, or a `model_init`"):
        trainer(tmp_path, tokenizer, **both)


# ------------------------------------------------------------------------------------------------------ any arguments


def test_plain_arguments_of_transformers_will_do(tokenizer, tmp_path):
    plain = TrainingArguments(
        str(tmp_path), **QUICK, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
        metric_for_best_model="f1",
    )  # fmt: skip
    train = trainer(tmp_path, tokenizer, args=plain, model=build())
    train.train()
    history = [entry for entry in train.state.log_history if "eval_f1" in entry]
    assert len(history) == 2 and train.state.best_metric == max(entry["eval_f1"] for entry in history)
    assert train.evaluate()["eval_support"] == 14
    assert {group["lr"] for group in train.create_optimizer().param_groups} == {0.0}  # one rate, at its end


def test_plain_arguments_choose_what_a_typing_model_has(tokenizer, tmp_path):
    row = next(row for row in ROWS if row.name == "sng")
    plain = TrainingArguments(str(tmp_path), **QUICK, eval_strategy="epoch", metric_for_best_model="f1")
    train = trainer(tmp_path, tokenizer, args=plain, model=row.make(tokenizer, spans="gold", overlap="any"))
    train.train()
    assert "eval_typing_accuracy" in train.evaluate()


@pytest.mark.parametrize("evaluated", [False, True])
def test_no_arguments_will_do(tokenizer, tmp_path, monkeypatch, evaluated):
    monkeypatch.chdir(tmp_path)
    train = NestedNerTrainer(
        model=build(), train_dataset=records(), eval_dataset=records() if evaluated else None,
        processing_class=tokenizer,
    )  # fmt: skip
    assert isinstance(train.args, NestedNerTrainingArguments) and (train.args.eval_strategy != "no") is evaluated
    train.args.max_steps = 1
    train.train()


# ------------------------------------------------------------------------------------------------------------ searches


def rates(trial):
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "head_learning_rate": trial.suggest_float("head_learning_rate", 1e-3, 1e-1, log=True),
    }


def test_a_search_reports_its_best_trial_by_f1_and_keeps_trials_apart(tokenizer, tmp_path):
    pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")
    (tmp_path / "checkpoint-1").mkdir()  # of a training before
    (tmp_path / "checkpoint-1" / "checkpoint.json").write_text('{"saved": 1, "files": {}}')
    scores = iter([0.2, 0.5, 0.1, 0.3, 0.4, 0.35])  # the last of trial 1 is better, the best is of trial 0
    train = trainer(
        tmp_path, tokenizer, model_init=lambda: build(),
        compute_metrics=lambda _: {"f1": next(scores), "support": 1000},
    )  # fmt: skip
    train.args.num_train_epochs = 3
    best = train.hyperparameter_search(hp_space=rates, n_trials=2, backend="optuna")
    assert (best.run_id, best.objective) == ("0", 0.5) and train.hp_search_backend is None
    assert set(best.hyperparameters) == {"learning_rate", "head_learning_rate"}
    for number in range(2):  # each trial has its best checkpoint, and nothing else is left
        assert [path.name for path in (tmp_path / f"run-{number}").iterdir()] == ["checkpoint-4"]
    assert [path.name for path in checkpoints_in(tmp_path)] == ["checkpoint-1"]  # which no trial has removed


def test_a_second_search_does_not_mix_its_checkpoints_with_the_first(tokenizer, tmp_path, caplog):
    pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")
    for epochs in (2, 1):
        train = trainer(tmp_path, tokenizer, model_init=lambda: build())
        train.args.num_train_epochs, train.args.save_total_limit = epochs, None
        train.hyperparameter_search(hp_space=rates, n_trials=1, backend="optuna")
    assert [path.name for path in checkpoints_in(tmp_path / "run-0")] == ["checkpoint-2"]
    assert "run-0 holds checkpoints of a former search" in caplog.text


def test_a_pruned_trial_leaves_the_trainer_as_it_should_be(tokenizer, tmp_path):
    optuna = pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")

    class Second(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.number == 1

    train = trainer(tmp_path, tokenizer, model_init=lambda: build())
    best = train.hyperparameter_search(hp_space=rates, n_trials=2, backend="optuna", pruner=Second())
    assert best.run_id == "0" and not train.is_in_train and not (tmp_path / "_running.lock").exists()


def test_trials_may_change_how_sentences_are_read(tokenizer, tmp_path):
    """A wider span cap lets windows share more words: the sentences are encoded anew."""
    pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")
    long = {**records()[0], "tokens": records()[0]["tokens"] * 4}
    windows, reaches = {}, {}

    def function(trial):
        span = 4 if trial is None else trial.suggest_int("max_span_length", 12, 12)
        return build(max_span_length=span, max_subwords=24)

    train = trainer(tmp_path, tokenizer, model_init=function, train_dataset=[long], eval_dataset=[long])
    windows[4], reaches[4] = train.train_dataset.readings[0].windows, train.reach["train"]
    train.hyperparameter_search(hp_space=lambda trial: {}, n_trials=1, backend="optuna")
    windows[12] = train.train_dataset.readings[0].windows
    assert len(windows[12]) > len(windows[4]) and train.eval_dataset.readings[0].windows == windows[12]
    assert train.train_dataset.suits(build(max_span_length=12, max_subwords=24).config)


def test_trials_may_change_what_follows_from_arguments(tokenizer, tmp_path):
    pytest.importorskip("optuna", reason="a search needs optuna: pip install hf_spanner[tune]")
    mine = ExponentialMovingAverage(0.5)
    train = trainer(tmp_path, tokenizer, model_init=lambda: build(), callbacks=[mine])

    def decay(trial):
        return {"ema_decay": trial.suggest_float("ema_decay", 0.9, 0.99)}

    best = train.hyperparameter_search(hp_space=decay, n_trials=1, backend="optuna")
    mine_and_its = [callback.decay for callback in train._averages()]
    assert mine_and_its == [0.5, best.hyperparameters["ema_decay"]]


def test_a_search_without_a_function_says_what_to_pass(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="pass `model_init`"):
        trainer(tmp_path, tokenizer, model=build()).hyperparameter_search()


# ------------------------------------------------------------------------------------------------------------ wrappers


class FullySharded(nn.Module):
    """What FSDP with `use_orig_params` looks like from outside."""

    def __init__(self, module):
        super().__init__()
        self._fsdp_wrapped_module = module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._fsdp_wrapped_module, name)


def sharded_inside(model):
    model.span_transformer = FullySharded(model.span_transformer)
    model.encoder = FullySharded(model.encoder)
    return FullySharded(model)


def with_lora(model):
    peft = pytest.importorskip("peft", reason="LoRA needs peft: pip install hf_spanner[peft]")
    linear = [name for name, module in model.encoder.named_modules() if isinstance(module, nn.Linear)]
    heads = [name for name, _ in model.named_children() if name not in ("encoder", "span_transformer")]
    config = peft.LoraConfig(target_modules=[f"encoder.{name}" for name in linear], modules_to_save=heads)
    return peft.get_peft_model(model, config)


def in_parallel(model):
    """As `DistributedDataParallel` names it."""
    return nn.DataParallel(model)


@pytest.mark.parametrize("wrap", [torch.compile, in_parallel, FullySharded, sharded_inside, with_lora])
def test_no_wrapper_hides_the_encoder_from_its_learning_rate(tokenizer, tmp_path, wrap):
    inner = build(DspertForNestedNer, DspertConfig, lstm_size=32, ffn_size=32)
    train = trainer(tmp_path, tokenizer, model=inner)
    train.args.learning_rate, train.args.head_learning_rate = 1e-4, 1e-2
    pretrained = {id(p) for part in (inner.encoder, inner.span_transformer.blocks) for p in part.parameters()}
    wrapped = wrap(inner)
    pretrained |= {id(p) for p in inner.encoder.parameters()}  # LoRA's
    optimizer = train.create_optimizer(wrapped)
    rate = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert len(rate) == sum(p.requires_grad for p in wrapped.parameters()) and set(rate.values()) == {1e-4, 1e-2}
    assert {number for number, lr in rate.items() if lr == 1e-4} == pretrained & set(rate)


def test_parameters_that_fsdp_has_made_one_are_refused_two_learning_rates(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, model=build())
    train.args.head_learning_rate = 1e-2
    flat = FullySharded(build())
    flat.register_parameter("_flat_param", nn.Parameter(torch.zeros(3)))
    with pytest.raises(ValueError, match="fsdp_use_orig_params"):
        train.create_optimizer(flat)
