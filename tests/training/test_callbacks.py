"""Frozen first epochs, the schedule in two stages, and averaged weights."""

import json

import pytest
import torch
from tests_support import LABELS, encoder_config, records
from transformers import TrainerCallback

import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.training import ExponentialMovingAverage
from hf_spanner.training.callbacks import two_stage_schedule

BARE = {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False}


def model():
    torch.manual_seed(0)
    model_class = hf_spanner.APPROACHES["span_ner"]
    encoder = encoder_config("bert", 200).to_dict()
    settings = {
        "max_span_length": 12,
        "max_subwords": 64,
        "dropout": 0.0,
        "encoder_dropout": 0.0,
        "max_negatives": None,
    }
    return model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, **settings))


def trainer(folder, tokenizer, net=None, **settings):
    base = {
        "num_train_epochs": 2, "per_device_train_batch_size": 2, "learning_rate": 3e-3, "use_cpu": True,
        "disable_tqdm": True, "seed": 1,
    }  # fmt: skip
    return NestedNerTrainer(
        model=net or model(),
        args=NestedNerTrainingArguments(output_dir=str(folder), **{**base, **settings}),
        train_dataset=records(),
        eval_dataset=records(),
        processing_class=tokenizer,
    )


def weights(net, part: str) -> list[torch.Tensor]:
    return [p.detach().clone() for name, p in net.named_parameters() if name.startswith(part)]


def test_the_encoder_stays_as_it_is_while_it_is_frozen(tokenizer, tmp_path):
    net = model()
    encoder, head = weights(net, "encoder."), weights(net, "scorer.")
    train = trainer(tmp_path, tokenizer, net=net, frozen_encoder_epochs=2, num_train_epochs=2, **BARE)
    train.train()
    assert all(torch.equal(a, b) for a, b in zip(encoder, weights(net, "encoder."), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(head, weights(net, "scorer."), strict=True))
    assert all(p.requires_grad for p in net.parameters())  # whole again


def test_the_encoder_joins_in_after_its_frozen_epochs(tokenizer, tmp_path):
    net = model()
    encoder = weights(net, "encoder.encoder.")
    trainer(tmp_path, tokenizer, net=net, frozen_encoder_epochs=1, num_train_epochs=2, **BARE).train()
    assert not any(torch.equal(a, b) for a, b in zip(encoder, weights(net, "encoder.encoder."), strict=True))


def test_the_learning_rate_rises_and_falls_twice():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = two_stage_schedule(optimizer, first=(6, 2), second=(8, 4), first_scale=2.0)
    rates = []
    for _ in range(15):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0, 1, 2, 1.5, 1, 0.5, 0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0])


def test_the_trainer_starts_the_second_stage_when_the_encoder_joins_in(tokenizer, tmp_path):
    train = trainer(
        tmp_path,
        tokenizer,
        frozen_encoder_epochs=1,
        num_train_epochs=3,
        stage_one_lr_scale=2.0,
        logging_steps=1,
        **BARE,
    )
    train.train()
    rates = {entry["step"]: entry["learning_rate"] for entry in train.state.log_history if "learning_rate" in entry}
    steps = len(rates) // 3
    assert max(rates, key=rates.get) <= steps and max(rates.values()) == pytest.approx(2 * 3e-3)
    assert rates[steps + 1] == pytest.approx(0) and rates[3 * steps] < 1e-3


def test_two_stages_are_linear(tmp_path, tokenizer):
    with pytest.raises(ValueError, match="needs lr_scheduler_type='linear', not 'cosine'"):
        trainer(tmp_path, tokenizer, frozen_encoder_epochs=1, lr_scheduler_type="cosine")


def average_by_hand(snapshots: list[list[torch.Tensor]], decay: float) -> list[torch.Tensor]:
    mean = snapshots[0]
    for step, snapshot in enumerate(snapshots[1:], start=1):
        d = min(decay, (1 + step) / (10 + step))
        mean = [d * a + (1 - d) * b for a, b in zip(mean, snapshot, strict=True)]
    return mean


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.allclose(x, y, atol=1e-6) for x, y in zip(a, b, strict=True))


class Record(ExponentialMovingAverage):
    """Remembers the weights after every step, before the average is shown."""

    snapshots: list

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        super().on_train_begin(args, state, control, model=model, **kwargs)
        self.snapshots = [weights(model, "")]

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self.snapshots.append(weights(model, ""))
        super().on_step_end(args, state, control, model=model, **kwargs)


def with_record(train, decay: float) -> Record:
    record = Record(decay)
    train.remove_callback(ExponentialMovingAverage)
    train.add_callback(record)
    return record


def test_training_ends_with_the_average_of_the_weights(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, ema_decay=0.8, num_train_epochs=3, **BARE)
    record = with_record(train, 0.8)
    train.train()
    expected = average_by_hand(record.snapshots, 0.8)
    assert len(expected) == len(weights(train.model, ""))
    assert same(expected, weights(train.model, ""))


def test_evaluation_sees_the_average_and_training_goes_on_from_the_weights(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, ema_decay=0.8, num_train_epochs=3, load_best_model_at_end=False)
    record, seen = with_record(train, 0.8), []

    class Look(TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **kwargs):
            seen.append(("step", same(weights(model, ""), record.snapshots[-1])))

        def on_evaluate(self, args, state, control, model=None, **kwargs):
            seen.append(("evaluation", same(weights(model, ""), average_by_hand(record.snapshots, 0.8))))

    train.add_callback(Look())
    train.train()
    assert seen == [*[("step", True)] * 3, ("evaluation", True)] * 3


def test_the_best_checkpoint_is_an_average_and_scores_as_it_did(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, ema_decay=0.8, num_train_epochs=12, warmup_steps=0, learning_rate=6e-3)
    train.train()
    best = max(entry["eval_f1"] for entry in train.state.log_history if "eval_f1" in entry)
    assert best > 0 and train.evaluate()["eval_f1"] == pytest.approx(best)


def test_training_with_averages_goes_on_where_it_stopped(tokenizer, tmp_path):
    settings = {
        "ema_decay": 0.8, "num_train_epochs": 3, "save_total_limit": None, "load_best_model_at_end": False,
        "lr_scheduler_type": "constant",
    }  # fmt: skip
    whole = trainer(tmp_path, tokenizer, **settings)
    whole.train()
    first = min(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    assert json.loads((first / "trainer_state.json").read_text())["epoch"] == 1.0
    resumed = trainer(tmp_path, tokenizer, **settings)
    resumed.train(resume_from_checkpoint=str(first))
    assert same(weights(whole.model, ""), weights(resumed.model, ""))


def test_a_decay_out_of_range_is_named(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="ema_decay=1.5 must lie between 0 and 1"):
        trainer(tmp_path, tokenizer, ema_decay=1.5)
