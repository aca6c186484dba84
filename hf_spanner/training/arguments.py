"""The arguments of a training: those of transformers with the defaults that suit NER, and a few more."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from transformers import TrainingArguments

from ..metrics.tasks import TASKS
from .dataset import NestedNerDataset


@dataclass
class NestedNerTrainingArguments(TrainingArguments):
    """`TrainingArguments` with the defaults that suit fine-tuning for NER, and a learning rate for the new layers."""

    head_learning_rate: float | None = field(
        default=None,
        metadata={"help": "Learning rate of everything but the encoder; the same as the encoder's if unset."},
    )
    frozen_encoder_epochs: float = field(
        default=0.0,
        metadata={"help": "First epochs in which the encoder stays as it is; the learning rate then starts anew."},
    )
    stage_one_lr_scale: float = field(
        default=1.0, metadata={"help": "What learning rates are multiplied with while the encoder is frozen."}
    )
    ema_decay: float | None = field(
        default=None, metadata={"help": "Average the weights over steps with this decay, e.g. 0.999; unset: do not."}
    )
    learning_rate: float = field(default=5e-5, metadata={"help": "Learning rate of the encoder."})
    weight_decay: float = field(default=0.01, metadata={"help": "Weight decay (none on biases and layer norms)."})
    warmup_steps: float = field(
        default=0.1, metadata={"help": "Linear warm-up: steps, or below 1 a share of all steps."}
    )
    num_train_epochs: float = field(default=20.0, metadata={"help": "Passes over the training data."})
    eval_strategy: str = field(default="epoch", metadata={"help": "When to evaluate on validation data."})
    save_strategy: str = field(default="epoch", metadata={"help": "When to save a checkpoint."})
    logging_steps: float = field(default=50, metadata={"help": "Steps between two lines of the log."})
    save_total_limit: int | None = field(default=1, metadata={"help": "Checkpoints kept beside the best."})
    load_best_model_at_end: bool = field(
        default=True, metadata={"help": "End with the best checkpoint, by validation F1."}
    )
    metric_for_best_model: str | None = field(default="f1", metadata={"help": "The metric that chooses it."})
    train_sampling_strategy: str = field(default="group_by_length", metadata={"help": "How batches are drawn."})
    remove_unused_columns: bool = field(
        default=False, metadata={"help": "Leave False: the data set makes its own columns."}
    )
    label_names: list[str] | None = field(
        default_factory=lambda: ["entities"], metadata={"help": "Leave as it is: the gold entities' key."}
    )

    def __post_init__(self) -> None:
        if not torch.accelerator.is_available():
            self.dataloader_pin_memory = False  # there is no device to pin memory for; torch would only warn
        if self.frozen_encoder_epochs and self.lr_scheduler_type != "linear":
            raise ValueError(
                f"frozen_encoder_epochs={self.frozen_encoder_epochs} needs lr_scheduler_type='linear', "
                f"not {self.lr_scheduler_type!r}: the schedule has two stages."
            )
        super().__post_init__()


def default_arguments(with_evaluation: bool) -> NestedNerTrainingArguments:
    """The arguments of a training that has been given none; the folder is that of transformers."""
    if with_evaluation:
        return NestedNerTrainingArguments("tmp_trainer")
    return NestedNerTrainingArguments("tmp_trainer", eval_strategy="no", load_best_model_at_end=False)


def suit_arguments(args: TrainingArguments, model: Any, train_dataset: NestedNerDataset | None) -> None:
    """Change the training arguments where an approach has no choice; plain ones get the fields that they lack."""
    for known in fields(NestedNerTrainingArguments):
        if not hasattr(args, known.name):
            setattr(args, known.name, known.default)
    args.remove_unused_columns, args.label_names = False, ["entities"]
    if args.metric_for_best_model == "f1":
        args.metric_for_best_model = TASKS[model.task].metric  # there is no F1 where the spans are given
    if getattr(args, "frozen_encoder_epochs", 0):
        args.ddp_find_unused_parameters = True  # frozen parameters have no gradient to wait for
    if model.config.full_batch and train_dataset is not None:
        batches = math.ceil(len(train_dataset) / args.train_batch_size)
        args.gradient_accumulation_steps = math.ceil(batches / args.world_size)  # one step an epoch
