"""Trains a tiny model for a few steps, in one process or in several, and writes down how it went.

python tests/training/curve.py FOLDER TOKENIZER WRAPPER ROW

WRAPPER is "one" (a process alone), "ddp" (two, by the Trainer), or "fsdp" (two, by torch's FSDP2: accelerate has none
for CPUs). In all a step sees the same four sentences, and the loss is a mean over sentences, so that all losses agree;
but for diffusion_ner, whose every step has noise of its own.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from approaches import ROWS
from tests_support import records
from torch.distributed.fsdp import fully_shard
from transformers import AutoTokenizer

from hf_spanner import NestedNerCollator, NestedNerDataset, NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.training.parameters import parameter_groups

EXACT = {"dropout": 0.0, "encoder_dropout": 0.0, "loss_reduction": "sentence"}
DRAWS_NOTHING = {  # of what training otherwise draws at random; diffusion_ner always does, and has losses of its own
    "span_ner": {"max_negatives": None},
    "bl_ner": {"max_negatives": None},
    "sng": {"max_negatives": None},
    "locate_and_label": {"negative_ratio": None},
    "diffusion_ner": {"loss_reduction": "span"},
}
RATES = {"learning_rate": 1e-3, "head_learning_rate": 3e-3, "weight_decay": 0.01}
STEPS, BATCH = 6, 4


def by_trainer(model, tokenizer, folder: Path, processes: int) -> dict:
    args = NestedNerTrainingArguments(
        str(folder / "out"),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH // processes,
        per_device_eval_batch_size=2,
        lr_scheduler_type="constant",
        warmup_steps=0,
        max_grad_norm=0.0,
        train_sampling_strategy="sequential",
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=STEPS,
        save_strategy="no",
        load_best_model_at_end=False,
        use_cpu=True,
        disable_tqdm=True,
        report_to="none",
        **RATES,
    )
    trainer = NestedNerTrainer(
        model=model,
        args=args,
        train_dataset=records()[:BATCH],
        eval_dataset=records(),
        processing_class=tokenizer,
    )
    trainer.train()
    history, (last,) = trainer.state.log_history, [e for e in trainer.state.log_history if "eval_f1" in e]
    return {
        "processes": args.world_size,
        "loss": [entry["loss"] for entry in history if "loss" in entry],
        "support": last["eval_support"],
        "predicted": last["eval_predicted"],
        "rates": sorted({group["lr"] for group in trainer.optimizer.param_groups}),
    }


def by_fsdp(model, tokenizer) -> dict:
    """Every layer of the encoder, and what is left, shared out among the processes."""
    dist.init_process_group("gloo")
    mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
    for module in list(model.modules()):
        if type(module).__name__ in model._no_split_modules:
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(parameter_groups(model, **RATES))
    items = NestedNerDataset(records(), tokenizer, model.config).items
    collate, rank, share = NestedNerCollator(tokenizer.pad_token_id), dist.get_rank(), BATCH // dist.get_world_size()
    losses = []
    for _ in range(STEPS):
        loss = model.train()(**collate(items[rank * share : (rank + 1) * share])).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    with torch.no_grad():  # every process takes part
        found = model.eval()(**collate(items)).predictions
    result = {
        "processes": dist.get_world_size(),
        "loss": losses,
        "found": found.isfinite().all().item(),
        "rates": sorted({group["lr"] for group in optimizer.param_groups}),
    }
    dist.destroy_process_group()
    return result


def main(folder: str, tokenizer_folder: str, wrapper: str, row: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    torch.manual_seed(0)
    (chosen,) = [one for one in ROWS if one.name == row]
    model = chosen.make(tokenizer, **{**EXACT, **DRAWS_NOTHING.get(chosen.approach, {})})
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    if wrapper == "fsdp":
        result = by_fsdp(model, tokenizer)
    else:
        result = by_trainer(model, tokenizer, Path(folder), 1 if wrapper == "one" else 2)
    (Path(folder) / f"{wrapper}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
