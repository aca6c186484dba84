"""The arguments of a training: those of transformers with the defaults that suit NER, and a few more."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from transformers import TrainingArguments
from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from ..metrics.tasks import TASKS
from .settings import AtHand, Choice, choose
from .teachers import FLOOR, SURE

# What holds where nothing is given and nothing is chosen, as in a recipe that leaves it out.
FALLBACK = {
    "learning_rate": 5e-5,
    "num_train_epochs": 20.0,
    "per_device_train_batch_size": 8,
    "warmup_steps": 0.1,
    "max_grad_norm": 1.0,
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "load_best_model_at_end": True,
}
CHOSEN = "chosen from what is at hand if unset"


@dataclass
class NestedNerTrainingArguments(TrainingArguments):
    """`TrainingArguments` for NER, with a learning rate for the new layers.

    What is not set is chosen by `hf_spanner.training.settings` when the trainer knows model and data.
    """

    head_learning_rate: float | None = field(
        default=None, metadata={"help": f"Learning rate of everything but the encoder; {CHOSEN}."}
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
    pad_to_multiple_of: int | None = field(
        default=None,
        metadata={"help": "Pad batches to a multiple of so many sub-words, words and entities, e.g. 8 on a GPU."},
    )
    teacher_cache: str | None = field(
        default=None, metadata={"help": "Where teachers' answers are kept; unset: with what comes from the Hub."}
    )
    teacher_floor: float = field(
        default=FLOOR, metadata={"help": "Less probable entities of teachers count as none, to keep answers small."}
    )
    teacher_sure: float = field(
        default=SURE,
        metadata={"help": "Where teachers' entities stand in for probabilities: less sure spans take no part."},
    )
    max_minutes: float | None = field(
        default=None,
        metadata={"help": "End within so many minutes, with the best checkpoint; the learning rate ends with it."},
    )
    learning_rate: float = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"Learning rate of the encoder; {CHOSEN}."}
    )
    weight_decay: float = field(default=0.01, metadata={"help": "Weight decay (none on biases and layer norms)."})
    decay_all: bool = field(
        default=False, metadata={"help": "Weight decay on all parameters, biases and layer norms too (DSpERT's code)."}
    )
    warmup_steps: float = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"Linear warm-up: steps, or below 1 a share of all steps; {CHOSEN}."}
    )
    max_grad_norm: float = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"Longest gradient; {CHOSEN}."}
    )
    per_device_train_batch_size: int = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"Sentences a step, on each device; {CHOSEN}."}
    )
    per_device_eval_batch_size: int = field(default=32, metadata={"help": "Sentences read at once."})
    num_train_epochs: float = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"Passes over the training data; {CHOSEN}."}
    )
    eval_strategy: str = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"When to evaluate on validation data: epoch, steps or no; {CHOSEN}."}
    )
    save_strategy: str = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"When to save a checkpoint; {CHOSEN}."}
    )
    patience: int | None = field(
        default=None,
        metadata={"help": "End after so many evaluations without a better score; chosen with the passes."},
    )
    logging_steps: float = field(default=50, metadata={"help": "Steps between two lines of the log."})
    save_total_limit: int | None = field(default=1, metadata={"help": "Checkpoints kept beside the best."})
    load_best_model_at_end: bool = field(  # type: ignore[assignment]
        default=None, metadata={"help": f"End with the best checkpoint, by validation F1; {CHOSEN}."}
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
            self.use_cpu = self.use_cpu or self.bf16  # or transformers would take bfloat16 for a GPU's
        if self.frozen_encoder_epochs and self.lr_scheduler_type != "linear":
            raise ValueError(
                f"frozen_encoder_epochs={self.frozen_encoder_epochs} needs lr_scheduler_type='linear', "
                f"not {self.lr_scheduler_type!r}: the schedule has two stages."
            )
        self.unset = {name for name in (*FALLBACK, "head_learning_rate", "patience") if getattr(self, name) is None}
        for name in self.unset & FALLBACK.keys():
            setattr(self, name, FALLBACK[name])
        if self.eval_strategy == "no" and "load_best_model_at_end" in self.unset:  # there is no best without a score
            self.load_best_model_at_end = False
            self.unset -= {"load_best_model_at_end"}
        self._check_ends()
        super().__post_init__()

    def _check_ends(self) -> None:
        """Refuse limits of time and patience that cannot be kept."""
        if self.max_minutes is not None and not 0 < self.max_minutes < math.inf:
            raise ValueError(
                f"max_minutes={self.max_minutes:g} must be a number of minutes above 0; leave it out for no limit."
            )
        if self.max_minutes is not None and self.frozen_encoder_epochs:
            raise ValueError(
                f"max_minutes={self.max_minutes:g} cannot be kept with "
                f"frozen_encoder_epochs={self.frozen_encoder_epochs:g}, whose schedule counts epochs: leave one out."
            )
        if self.patience is None:
            return
        if self.patience < 1:
            raise ValueError(
                f"patience={self.patience} must be at least 1 evaluation; leave it out to train to the end."
            )
        if self.eval_strategy == "no" or not self.load_best_model_at_end:
            raise ValueError(
                f"patience={self.patience} waits for a better checkpoint: it needs load_best_model_at_end=True and "
                "eval_strategy 'epoch' or 'steps'."
            )


LENGTH = {"num_train_epochs", "patience", "eval_strategy", "eval_steps", "save_strategy", "save_steps"}


def to_choose(args: NestedNerTrainingArguments, validation: Any) -> set[str]:
    """The arguments that nobody set; who says how long to train says with it how often to look."""
    names = set(args.unset)
    if args.max_steps > 0 or "num_train_epochs" not in names:
        names -= LENGTH | {"load_best_model_at_end"}
    elif {"eval_strategy", "save_strategy"} <= names:
        names |= {"eval_steps", "save_steps"}
    else:  # one of them is given, and the other must go with it
        names -= {"eval_strategy", "save_strategy"}
    if validation is None:
        names -= {"patience"}
    if args.patience is not None:  # which waits for a better checkpoint
        names -= {"load_best_model_at_end"}
    return names


def at_hand(args: NestedNerTrainingArguments, model: Any, train: Any, validation: Any) -> AtHand:
    """What a trainer knows of model and data."""
    config = model.config
    parts = validation.values() if isinstance(validation, dict) else [validation or ()]
    batch = args.train_batch_size * args.world_size * args.gradient_accumulation_steps
    return AtHand(
        approach=config.model_type,
        trained=bool(config.name_or_path),
        width=None if config.encoder_config is None else config.hidden_size,
        sentences=len(train),
        validation=sum(map(len, parts)),
        batch=len(train) if config.full_batch else batch,
    )


def refuse_arguments(args: Any, config: Any) -> None:
    """Refuse what transformers would take and these models would not feel."""
    if args.label_smoothing_factor:
        raise ValueError(
            f"label_smoothing_factor={args.label_smoothing_factor} is for one label a token: leave it out. Spans have "
            "boundary_smoothing, a setting of the model, which shares an entity's label with the spans around it."
        )
    if args.use_liger_kernel:
        raise ValueError(f"use_liger_kernel=True: Liger has no kernels for {config.model_type}; leave it out.")
    if args.neftune_noise_alpha is not None and config.encoder_config is None:
        raise ValueError(
            f"neftune_noise_alpha={args.neftune_noise_alpha} adds noise to an encoder's embeddings, and "
            f"{config.model_type} has no encoder: leave it out."
        )


def suit_stream(args: Any) -> None:
    """What goes without knowing how long the training data is, and a sentence for what does not."""
    if args.max_steps <= 0:
        raise ValueError(
            "train_dataset is a stream and nobody knows where it ends: say how far to go, max_steps=10_000."
        )
    if args.frozen_encoder_epochs:
        raise ValueError(
            f"frozen_encoder_epochs={args.frozen_encoder_epochs:g} counts epochs, and a stream has none: leave it out."
        )
    args.train_sampling_strategy = "random"  # as the stream comes: there is nothing to draw from


def suit_arguments(args: Any, model: Any, train: Any, validation: Any) -> Choice:
    """Fill in the arguments that nobody set, and change those where an approach has no choice.

    Plain `TrainingArguments` get the fields that they lack, and are otherwise left as they are.
    """
    for known in fields(NestedNerTrainingArguments):
        if not hasattr(args, known.name):
            setattr(args, known.name, known.default)
    args.unset = getattr(args, "unset", set())
    refuse_arguments(args, model.config)
    args.remove_unused_columns, args.label_names = False, ["entities"]
    if args.metric_for_best_model == "f1":
        args.metric_for_best_model = TASKS[model.task].metric  # there is no F1 where the spans are given
    if args.frozen_encoder_epochs:
        args.ddp_find_unused_parameters = True  # frozen parameters have no gradient to wait for
    if validation is None and {"eval_strategy", "load_best_model_at_end"} <= args.unset:
        args.eval_strategy, args.load_best_model_at_end = IntervalStrategy.NO, False
        args.unset -= {"eval_strategy", "load_best_model_at_end"}
    if train is None:
        return Choice()
    if not hasattr(train, "__len__"):
        suit_stream(args)
        return Choice()  # what to choose hangs on how many sentences there are
    choice = choose(at_hand(args, model, train, validation))
    choice.model = {}  # there is one
    choice.training = {name: value for name, value in choice.training.items() if name in to_choose(args, validation)}
    for name, value in choice.training.items():
        kind = {"eval_strategy": IntervalStrategy, "save_strategy": SaveStrategy}.get(name)
        setattr(args, name, kind(value) if kind else value)
    if "head_learning_rate" in choice.training:  # new layers learn no slower than old ones, whatever was given
        args.head_learning_rate = max(choice.training["head_learning_rate"], args.learning_rate)
        choice.training["head_learning_rate"] = args.head_learning_rate
    if model.config.full_batch:
        batches = math.ceil(len(train) / args.train_batch_size)
        args.gradient_accumulation_steps = math.ceil(batches / args.world_size)  # one step an epoch
    return choice
