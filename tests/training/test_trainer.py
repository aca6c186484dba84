"""The Trainer on tiny models: what it optimises, keeps, resumes and counts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests_support import LABELS, encoder_config, records

import hf_spanner
from hf_spanner import NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer

ROOT = Path(__file__).resolve().parents[2]


def model(**settings):
    torch.manual_seed(0)
    encoder = encoder_config("bert", 200).to_dict()
    return SpanNerForNestedNer(
        SpanNerConfig(
            encoder_config=encoder,
            labels=LABELS,
            **{"max_span_length": 12, "max_subwords": 64, "dropout": 0.0, **settings},
        )
    )


def arguments(folder, **settings):
    base = {
        "num_train_epochs": 2,
        "per_device_train_batch_size": 2,
        "learning_rate": 3e-3,
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 1,
    }
    return NestedNerTrainingArguments(output_dir=str(folder), **{**base, **settings})


def trainer(folder, tokenizer, net=None, data=None, **settings):
    data = records() * 2 if data is None else data
    return NestedNerTrainer(
        model=net or model(),
        args=arguments(folder, **settings),
        train_dataset=data,
        eval_dataset=records(),
        processing_class=tokenizer,
    )


def test_batches_are_padded_as_asked_and_never_past_what_the_encoder_reads(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, pad_to_multiple_of=8, max_steps=1, eval_strategy="no", save_strategy="no")
    batch = next(iter(train.get_train_dataloader()))
    assert batch["input_ids"].size(1) % 8 == batch["word_mask"].size(1) % 8 == batch["entities"].size(1) % 8 == 0
    train.train()
    with pytest.raises(ValueError, match="pad_to_multiple_of=24 does not divide max_subwords=64.* such as 8"):
        trainer(tmp_path, tokenizer, pad_to_multiple_of=24)


def test_training_learns_keeps_the_best_and_saves_a_working_folder(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, num_train_epochs=25, save_strategy="epoch", warmup_steps=0)
    train.train()
    history = [entry["eval_f1"] for entry in train.state.log_history if "eval_f1" in entry]
    assert len(history) == 25 and max(history) > 0.8 > history[0]
    # the model in hand is the best one by validation F1
    assert train.evaluate()["eval_f1"] == pytest.approx(max(history))
    assert train.state.best_metric == pytest.approx(max(history))
    train.save_model()
    ner = hf_spanner.pipeline(str(tmp_path))
    assert ner("New York")[0]["word"] == "New York"


def test_encoder_and_head_have_their_own_learning_rates(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, learning_rate=1e-4, head_learning_rate=1e-2, weight_decay=0.05)
    optimizer = train.create_optimizer()
    by_parameter = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    named = dict(train.model.named_parameters())
    assert len(by_parameter) == len(named)
    for name, parameter in named.items():
        group = by_parameter[id(parameter)]
        assert group["lr"] == (1e-4 if name.startswith("encoder.") else 1e-2), name
        plain = name.endswith("bias") or "LayerNorm" in name
        assert group["weight_decay"] == (0.0 if plain else 0.05), name


@pytest.mark.skipif(torch.accelerator.is_available(), reason="here bfloat16 is the accelerator's")
def test_bfloat16_on_a_cpu_needs_no_second_flag(tmp_path):
    assert NestedNerTrainingArguments(str(tmp_path), bf16=True).device == torch.device("cpu")
    assert not NestedNerTrainingArguments(str(tmp_path)).use_cpu


def test_training_goes_on_where_it_stopped(tokenizer, tmp_path):
    """Three epochs at once, and one epoch plus two after a restart, end with the same weights."""
    settings = {
        "num_train_epochs": 3,
        "save_total_limit": None,
        "load_best_model_at_end": False,
        "lr_scheduler_type": "constant",
    }
    whole = trainer(tmp_path / "whole", tokenizer, **settings)
    whole.train()
    checkpoint = sorted((tmp_path / "whole").glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))[0]
    resumed = trainer(tmp_path / "resumed", tokenizer, **settings)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    for (name, a), (_, b) in zip(whole.model.named_parameters(), resumed.model.named_parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6), name


def test_the_trainer_scores_like_the_prediction_function(tokenizer, tmp_path):
    from hf_spanner.evaluation import evaluate

    train = trainer(tmp_path, tokenizer, num_train_epochs=6, warmup_steps=0)
    train.train()
    mine = train.evaluate()
    theirs = evaluate(train.model, tokenizer, records())
    for key in ("precision", "recall", "f1", "support", "predicted", "correct", "locate_f1"):
        assert mine[f"eval_{key}"] == pytest.approx(theirs[key])
    assert theirs["support"] == 14


def test_long_sentences_are_scored_whole(tokenizer, tmp_path):
    """Windows overlap, but their entities are counted once, and gold that no window holds stays in the gold."""
    sentence = records()[0]
    long = {
        "id": "x",
        "tokens": sentence["tokens"] * 8,
        "entities": sentence["entities"] + [{"start": 0, "end": 100, "label": "ORG"}],
    }
    train = trainer(tmp_path, tokenizer, net=model(max_subwords=32, max_span_length=6))
    scores = train.evaluate([long])
    assert scores["eval_support"] == len(long["entities"])


def test_gradient_accumulation_equals_one_large_batch(tokenizer, tmp_path):
    """The loss is a mean over a batch, so with equal batches both give the same step."""
    data = [records()[0]] * 4
    weights = []
    for batch, steps in ((4, 1), (1, 4)):
        net = model(max_negatives=None)
        train = trainer(
            tmp_path / str(batch),
            tokenizer,
            net=net,
            data=data,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=steps,
            num_train_epochs=1,
            optim="sgd",
            max_grad_norm=0,
            warmup_steps=0,
            eval_strategy="no",
            save_strategy="no",
            load_best_model_at_end=False,
        )
        for module in net.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        train.train()
        weights.append([p.detach().clone() for p in net.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*weights, strict=True))


def test_a_trainer_without_tokenizer_says_so(tmp_path):
    with pytest.raises(ValueError, match="processing_class"):
        NestedNerTrainer(model=model(), args=arguments(tmp_path), train_dataset=records())


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "validation", "test"):
        lines = records() * (8 if split == "train" else 1)
        if split == "test":
            lines = lines + records()[:2]  # an odd number: two processes cannot share it evenly
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


LAUNCHERS = {
    "python": [],
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"],
    # On a machine without GPUs accelerate needs to be told twice.
    "accelerate": ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes=2"],
}


def run_script(arguments_, launcher: str):
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
    }
    command = [sys.executable, *LAUNCHERS[launcher], "-m", "hf_spanner.cli", "train", *map(str, arguments_)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("launcher", ["torchrun", pytest.param("accelerate", marks=pytest.mark.slow)])
def test_two_processes_reach_the_f1_of_one_and_count_nothing_twice(launcher, encoder_folder, data_folder, tmp_path):
    common = [
        "--approach", "span_ner", "--encoder", encoder_folder, "--data", data_folder, "--use_cpu", "True",
        "--learning_rate", "3e-3", "--num_train_epochs", "15", "--max_span_length", "12", "--disable_tqdm", "True",
        "--warmup_steps", "0", "--per_device_eval_batch_size", "2",
    ]  # fmt: skip
    results, histories = {}, {}
    for processes, batch, how in ((1, 8, "python"), (2, 4, launcher)):  # the same batch in all
        folder = tmp_path / str(processes)
        run_script([*common, "--output_dir", folder, "--per_device_train_batch_size", batch], how)
        record = json.loads((folder / "training.json").read_text())
        assert record["processes"] == processes
        results[processes], histories[processes] = record["results"], record["history"]
    for split, support in (("validation", 14), ("test", 21)):
        assert results[1][split]["support"] == results[2][split]["support"] == support
    assert {entry["eval_support"] for entry in histories[2]} == {14}
    assert abs(results[1]["validation"]["f1"] - results[2]["validation"]["f1"]) < 0.15
    assert results[2]["validation"]["f1"] > 0.7


def test_two_processes_learn_from_teachers_that_one_of_them_asks(encoder_folder, data_folder, tmp_path):
    common = [
        "--encoder", encoder_folder, "--data", data_folder, "--use_cpu", "True", "--learning_rate", "3e-3",
        "--num_train_epochs", "2", "--max_span_length", "12", "--disable_tqdm", "True", "--eval_strategy", "no",
        "--save_strategy", "no", "--load_best_model_at_end", "False",
    ]  # fmt: skip
    run_script([*common, "--approach", "biaffine_ner", "--output_dir", tmp_path / "big"], "python")
    (tmp_path / "text.txt").write_text("the mayor of London\nthe head of the office of the mayor\n")
    taught_by = ["--teacher", tmp_path / "big", "--unlabelled", tmp_path / "text.txt", "--teacher_cache"]
    said = run_script(
        [*common, "--approach", "bl_ner", *taught_by, tmp_path / "cache", "--output_dir", tmp_path / "small"],
        "torchrun",
    )
    assert said.count("teach by their probabilities: 40 training sentences and 2 texts") == 1
    record = json.loads((tmp_path / "small" / "training.json").read_text())
    assert record["processes"] == 2 and record["sentences"]["train"] == 40
    (answers,) = (tmp_path / "cache").iterdir()
    assert sorted(file.name for file in answers.iterdir()) == ["00000.safetensors", "about.json"]


def test_a_data_set_of_splits_is_refused_with_the_remedy(tokenizer, tmp_path):
    from datasets import Dataset, DatasetDict

    splits = DatasetDict({"train": Dataset.from_list(records()), "test": Dataset.from_list(records())})
    with pytest.raises(ValueError, match=r"has the splits 'train', 'test': name the one .*data\['train'\]"):
        trainer(tmp_path, tokenizer, data=splits)


def test_the_terms_of_the_loss_are_logged_by_name(tokenizer, tmp_path):
    train = trainer(tmp_path, tokenizer, net=model(bundle_weight=0.3, max_span_length=3), logging_steps=2)
    train.train()
    logged = [entry for entry in train.state.log_history if "loss" in entry]
    assert len(logged) == 5
    for entry in logged:
        terms = {name: value for name, value in entry.items() if name.startswith("loss_")}
        assert set(terms) == {"loss_tags", "loss_spans", "loss_long"}
        assert sum(map(float, terms.values())) == pytest.approx(float(entry["loss"]), abs=2e-3)


def test_the_mean_loss_of_every_epoch_is_kept_and_survives_an_interruption(tokenizer, tmp_path):
    """Against the losses of the steps one by one, as they are logged."""
    settings = {"num_train_epochs": 3, "load_best_model_at_end": False, "logging_steps": 1, "save_total_limit": None}
    train = trainer(tmp_path, tokenizer, net=model(bundle_weight=0.3, max_span_length=3), **settings)
    train.train()
    steps = [entry for entry in train.state.log_history if "loss" in entry]
    by_epoch = train.loss_by_epoch
    assert [entry["epoch"] for entry in by_epoch] == [1, 2, 3] and len(steps) % 3 == 0
    for entry in by_epoch:
        own = steps[(entry["epoch"] - 1) * len(steps) // 3 :][: len(steps) // 3]
        assert entry["loss"] == pytest.approx(sum(float(e["loss"]) for e in own) / len(own), abs=1e-3)
        assert entry["loss"] == pytest.approx(sum(entry[name] for name in ("tags", "spans", "long")), rel=1e-5)
    seconds = [entry["seconds"] for entry in by_epoch]
    assert seconds == sorted(seconds) and train.training_seconds >= seconds[-1] - 0.1
    last = max(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    shutil.rmtree(last)
    resumed = trainer(tmp_path, tokenizer, net=model(bundle_weight=0.3, max_span_length=3), **settings)
    resumed.train(resume_from_checkpoint=True)
    assert [entry["epoch"] for entry in resumed.loss_by_epoch] == [1, 2, 3]
    assert resumed.loss_by_epoch[:2] == by_epoch[:2]
    assert resumed.training_seconds > seconds[1]  # what was done before counts


def test_resuming_takes_the_last_whole_checkpoint_and_names_the_others(tokenizer, tmp_path, caplog):
    settings = {"num_train_epochs": 3, "save_total_limit": None, "load_best_model_at_end": False}
    whole = trainer(tmp_path, tokenizer, **settings)
    whole.train()
    steps = sorted(int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*"))
    (tmp_path / f"checkpoint-{steps[2]}" / "scheduler.pt").unlink()
    resumed = trainer(tmp_path, tokenizer, **settings)
    resumed.train(resume_from_checkpoint=True)
    assert f"goes on from checkpoint-{steps[1]}" in caplog.text
    assert f"skipped: checkpoint-{steps[2]}: scheduler.pt is missing" in caplog.text
    for (name, a), (_, b) in zip(whole.model.named_parameters(), resumed.model.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    for step in steps:
        (tmp_path / f"checkpoint-{step}" / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="none of its checkpoints is whole .*model.safetensors has 0 of .*begin anew"):
        trainer(tmp_path, tokenizer, **settings).train(resume_from_checkpoint=True)
    with pytest.raises(ValueError, match=r"Nothing can go on from .*: model.safetensors has 0 of"):
        trainer(tmp_path, tokenizer).train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{steps[0]}"))
    with pytest.raises(ValueError, match="No training can go on in .*new: it has no checkpoint"):
        trainer(tmp_path / "new", tokenizer).train(resume_from_checkpoint=True)


def test_a_folder_that_has_moved_still_knows_its_best_checkpoint(tokenizer, tmp_path):
    settings = {"num_train_epochs": 3, "save_total_limit": None, "learning_rate": 1e-7}  # the first is the best
    trainer(tmp_path / "here", tokenizer, **settings).train()
    (tmp_path / "here").rename(tmp_path / "there")
    moved = trainer(tmp_path / "there", tokenizer, **settings)
    moved.train(resume_from_checkpoint=True)
    best = Path(moved.state.best_model_checkpoint)
    assert best.parent == tmp_path / "there" and best.name == f"checkpoint-{moved.state.best_global_step}"


def test_training_ends_with_the_best_checkpoint_and_what_others_put_beside_it(tokenizer, tmp_path):
    (tmp_path / "checkpoint-1-good").mkdir()
    train = trainer(tmp_path, tokenizer, num_train_epochs=3)
    train.train()
    best = Path(train.state.best_model_checkpoint).name
    assert {path.name for path in tmp_path.iterdir()} == {best, "checkpoint-1-good"}
