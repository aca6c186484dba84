"""The record of a training: what was run on what, with which settings and versions, and what came out.

`training.json` beside a model is this record; its card is written from it.
"""

import json
import os
import platform
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

from ..default import folder_of
from ..foreign import read_json
from ..modeling.folders import write_whole

RECORD, RECIPE = "training.json", "recipe.yaml"
SETTINGS = (  # of the training arguments, those that a reader needs to train the same again
    "learning_rate",
    "head_learning_rate",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "num_train_epochs",
    "max_steps",
    "lr_scheduler_type",
    "warmup_steps",
    "weight_decay",
    "decay_all",
    "train_sampling_strategy",
    "max_grad_norm",
    "optim",
    "bf16",
    "fp16",
)


def training_record(trainer, results: Mapping[str, Any], **more) -> dict[str, Any]:
    """The record of what `trainer` did; `results` are scores by split, `more` is what only the caller knows."""
    from .. import __version__

    args, state, model = trainer.args, trainer.state, trainer.model
    parts = {"train": trainer.train_dataset, "validation": trainer.eval_dataset}
    data = {split: part for split, part in parts.items() if hasattr(part, "sentences")}
    train = data["train"].sentences if "train" in data else []
    sizes = {split: len(part.sentences) for split, part in data.items()}
    if texts := trainer.teaching.get("texts"):  # without annotation, behind the sentences that have some
        train, sizes = train[:-texts], {**sizes, "train": len(train) - texts}
    return {
        "approach": model.config.model_type,
        "training": {name: getattr(args, name) for name in SETTINGS},
        "training_seconds": trainer.training_seconds and round(trainer.training_seconds, 3),
        "parameters": count_parameters(trainer.whole_model()),
        "seed": args.seed,
        "processes": args.world_size,
        "epochs": args.num_train_epochs,
        "selected_by": args.metric_for_best_model if args.load_best_model_at_end else None,
        "best_checkpoint": Path(state.best_model_checkpoint).name if state.best_model_checkpoint else None,
        "history": [entry for entry in state.log_history if "eval_loss" in entry],
        "loss_by_epoch": trainer.loss_by_epoch,
        "sentences": sizes,
        "reach": list(trainer.reach.values()),
        "labels": label_examples(train),
        "example": example_sentence(train),
        **({"teaching": trainer.teaching} if trainer.teaching else {}),
        "results": dict(results),
        "versions": {
            "hf_spanner": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        **more,
    }


def count_parameters(model: Any) -> dict[str, int]:
    """How many numbers a model is made of, in all, and how many of them are trained and are the encoder's.

    Another figure than a paper's may be the pooler, which is not built here: 0.59M of a base encoder.
    """
    sizes = {name: (p.numel(), p.requires_grad) for name, p in model.named_parameters()}
    return {
        "all": sum(size for size, _ in sizes.values()),
        "trained": sum(size for size, is_trained in sizes.values() if is_trained),
        "encoder": sum(size for name, (size, _) in sizes.items() if name.startswith("encoder.")),
    }


def label_examples(sentences: Iterable[Mapping], number: int = 3, longest: int = 8) -> dict[str, dict[str, Any]]:
    """For each label how often it occurs and its most frequent mentions, those of at most `longest` words; of one with
    kinds of mention, those of the first: names and no pronouns."""
    mentions: dict[str, Counter] = defaultdict(Counter)
    first: dict[str, str] = {}
    counts: Counter = Counter()
    for sentence in sentences:
        for entity in sentence["entities"]:
            counts[entity["label"]] += 1
            kind = entity.get("mention") or ""
            if kind < first.setdefault(entity["label"], kind):
                first[entity["label"]] = kind
                mentions[entity["label"]].clear()
            if kind == first[entity["label"]] and entity["end"] - entity["start"] <= longest:
                mentions[entity["label"]][" ".join(sentence["tokens"][entity["start"] : entity["end"]])] += 1
    return {
        label: {
            "count": counts[label],
            "examples": [
                text for text, _ in sorted(mentions[label].items(), key=lambda row: (-row[1], row[0]))[:number]
            ],
        }
        for label in sorted(counts)
    }


def example_sentence(sentences: Iterable[Mapping], longest: int = 25) -> dict[str, Any] | None:
    """The first sentence of a readable length with an entity inside another; failing that, with an entity at all."""
    second = None
    for sentence in sentences:
        spans = {(entity["start"], entity["end"]) for entity in sentence["entities"]}
        if spans and 4 <= len(sentence["tokens"]) <= longest:
            chosen = {
                "tokens": list(sentence["tokens"]),
                "entities": [dict(entity) for entity in sentence["entities"]],
            }
            if any(a != b and b[0] <= a[0] and a[1] <= b[1] for a in spans for b in spans):
                return chosen
            second = second or chosen
    return second


def write_record(folder: str | os.PathLike, record: Mapping[str, Any]) -> None:
    write_whole(Path(folder) / RECORD, json.dumps(record, indent=1, default=str))


def read_record(file: str | os.PathLike | None) -> dict[str, Any]:
    """The record in a file, empty if there is none."""
    if not file or not Path(file).is_file():
        return {}
    record = read_json(file, str(Path(file).parent))
    if not isinstance(record, dict):
        raise ValueError(f"{file} is not the record of a training, a JSON object: mend it or delete it.")
    return record


def public(value: Any) -> Any:
    """The record as others may read it: a path on this machine becomes the name at its end."""
    if isinstance(value, Mapping):
        return {key: public_command(item) if key == "command" else public(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [public(item) for item in value]
    return Path(value).name if isinstance(value, str) and is_private_path(value) else value


def public_command(command: str) -> str:
    return shlex.join(public(shlex.split(command)))


def base_model(source: str | None, otherwise: str | None = None) -> str | None:
    """The Hub id of what a training started from; a model that was trained here passes on what it was built on."""
    record = {} if source is None else read_record(Path(folder_of(source)) / RECORD)
    return record.get("base_model") if record else hub_id(source, otherwise)


def hub_id(name: str | None, otherwise: str | None = None) -> str | None:
    """The name if it is one of the Hub and no folder here; a folder called like `otherwise` stands for that name."""
    if name is None:
        return None
    if Path(name).exists() or is_private_path(name):
        return otherwise if otherwise and Path(otherwise).name == Path(name).name else None
    return name if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) else None


def is_private_path(text: str) -> bool:
    return text.startswith(("/", "~", "../", "..\\")) or os.path.isabs(text)
