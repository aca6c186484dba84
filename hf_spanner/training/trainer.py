"""`Trainer` for nested NER: two learning rates, predictions as entities, strict F1, the best checkpoint kept."""

import contextlib
import logging
import math
import shutil
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from huggingface_hub import CommitInfo
from torch.utils.data import Dataset, IterableDataset
from transformers import (
    EarlyStoppingCallback,
    PreTrainedTokenizerBase,
    PrinterCallback,
    ProgressCallback,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import EvalPrediction, TrainOutput

from ..auto import AutoModelForNestedNer
from ..evaluation.scoring import score_predictions
from ..hub.publishing import publish
from ..hub.record import training_record
from ..metrics.tasks import TASKS
from ..modeling.decoding import Entity
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from . import checkpoints
from .arguments import NestedNerTrainingArguments, suit_arguments
from .budget import TimeBudget, fit_to_time
from .callbacks import ExponentialMovingAverage, FreezeEncoder, two_stage_schedule
from .dataset import NestedNerCollator, NestedNerDataset, NestedNerStream, are_encoded
from .lock import locked
from .parameters import model_of, parameter_groups
from .progress import LiveProgressTable, ProgressTable, ending, is_shown
from .reach import reach_report
from .scores import NestedNerMetrics
from .surviving import SurvivingTrainer
from .teachers import taught

logger = logging.getLogger(__name__)


class NestedNerTrainer(SurvivingTrainer):
    """Trains any approach on sentences; give it records or a `datasets.Dataset`, it encodes them itself.

    ```python
    >>> trainer = NestedNerTrainer(
    ...     model=model,
    ...     args=NestedNerTrainingArguments("out", num_train_epochs=4, learning_rate=1e-4, head_learning_rate=1e-3),
    ...     train_dataset=data["train"], eval_dataset=data["validation"], processing_class=tokenizer,
    ... )
    >>> trainer.train()
    >>> trainer.evaluate(data["test"], metric_key_prefix="test")["test_f1"]
    ```

    With `teachers`, trained models, it learns their probabilities too, also on texts without annotation, `unlabelled`
    (see `teachers.py`).

    `model_init`, a function that builds a model (it may look at the trial), stands in for `model` and makes
    `hyperparameter_search` work. Plain `TrainingArguments` will do, with one learning rate; so will none.
    """

    args: NestedNerTrainingArguments
    model: Any  # a nested NER model, or what data parallelism, compilation or LoRA has wrapped around it
    processing_class: Any  # the tokenizer
    model_init: Any
    train_dataset: Any
    optimizer: Any
    hub_model_id: Any

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        args: TrainingArguments | None = None,
        *,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        model_init: Callable[..., torch.nn.Module] | None = None,
        teachers: Iterable[Any] = (),
        unlabelled: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        if processing_class is None:
            raise ValueError("NestedNerTrainer needs the tokenizer: pass `processing_class=load_tokenizer(...)`.")
        if (model is None) == (model_init is None):
            raise ValueError("NestedNerTrainer needs a `model`, or a `model_init` that builds one: pass one of them.")
        args = NestedNerTrainingArguments("tmp_trainer") if args is None else args
        self.processing_class = processing_class
        self.train_dataset = self.eval_dataset = None
        if model_init is not None:  # built once for now: its configuration says how sentences are encoded
            set_seed(args.seed)
            self.model_init = model_init
            first = self.call_model_init()
            kwargs["model_init"] = lambda: first
        else:
            first = model
            model_of(first).restore_embeddings()  # eight bits cannot be trained
        self.model = first  # needed by `encode` before the base class sets it
        self._metrics = NestedNerMetrics(model_of(first).config)  # of the evaluation that runs, or ran last
        self._terms: dict[str, Any] = {}  # of the loss by name, summed since they were last logged
        self._term_count = 0
        self._stages: list[TrainerCallback] = []  # of the training, as its arguments ask for them
        self.predictions: dict[
            str, tuple[list[list[Entity]], NestedNerDataset]
        ] = {}  # by split, of the model as it is: entities found and the data set
        self.record: dict[str, Any] = {}  # of the training; made from what the trainer knows if nobody sets it
        self.recipe: dict[str, Any] = {}
        self.teaching: dict[str, Any] = {}  # by whom, on what
        self.lessons: list[str] = []  # the same in words
        train_dataset = self._with_teachers(train_dataset, list(teachers), list(unlabelled), args)
        kwargs["data_collator"] = kwargs.get("data_collator") or collator_for(model_of(first), processing_class, args)
        kwargs["compute_metrics"] = kwargs.get("compute_metrics") or self.score
        train_dataset, eval_dataset = self.encode_training_data(train_dataset), self.encode(eval_dataset)
        self.choice = suit_arguments(args, model_of(first), train_dataset, eval_dataset)  # what nobody set
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            **kwargs,
        )
        self.model_init = model_init
        self._show_progress_as_a_table()
        self._add_stages()

    def _add_stages(self) -> None:
        """Add the callbacks that the arguments ask for, in place of those that they asked for before."""
        for callback in self._stages:
            self.remove_callback(callback)
        self._stages = []
        if self.args.max_minutes is not None:  # before the average, which is shown when an evaluation is due
            self._stages.append(TimeBudget(0 if self.args.eval_strategy == "no" else _windows(self.eval_dataset)))
        if self.args.patience is not None:
            self._stages.append(EarlyStoppingCallback(self.args.patience))
        if self.args.frozen_encoder_epochs:
            self._stages.append(FreezeEncoder(self.args.frozen_encoder_epochs))
        if self.args.ema_decay is not None:
            self._stages.append(ExponentialMovingAverage(self.args.ema_decay))
        for callback in self._stages:
            self.add_callback(callback)

    def encode(self, data: Any) -> Any:
        """Sentences as a `NestedNerDataset`; a dict of them (several evaluation sets) likewise.

        What is encoded already, such as the items of one that went through `datasets.map`, stays as it is. A stream is
        read to its end.
        """
        if data is None or isinstance(data, str):
            return data
        if isinstance(data, dict):
            return {name: self.encode(part) for name, part in data.items()}
        if isinstance(data, IterableDataset):
            data = list(data)
        if not isinstance(data, NestedNerDataset) and not are_encoded(data):
            data = NestedNerDataset(data, self.processing_class, model_of(self.model).config)
        if not len(data):
            raise ValueError("There is no sentence in this data set: pass one that has some, or None for none.")
        return data

    def encode_training_data(self, data: Any) -> Any:
        """As `encode`, but of a stream no more than is trained on; one data set alone."""
        if isinstance(data, dict):
            raise ValueError(
                f"train_dataset has the splits {', '.join(map(repr, data))}: name the one to train on, "
                "train_dataset=data['train']."
            )
        if isinstance(data, IterableDataset) and not isinstance(data, NestedNerStream):
            return NestedNerStream(data, self.processing_class, model_of(self.model).config)
        return data if isinstance(data, NestedNerStream) else self.encode(data)

    def _with_teachers(self, data: Any, teachers: list[Any], unlabelled: list[Any], args: TrainingArguments) -> Any:
        """The training sentences with what teachers say of them, and texts without annotation likewise."""
        if unlabelled and not teachers:
            raise ValueError(
                "Text without annotation teaches nothing by itself: name trained models, `teachers=[...]`."
            )
        if not teachers or data is None:
            return data
        if isinstance(data, NestedNerDataset):
            data = data.sentences
        if isinstance(data, (dict, IterableDataset)) or are_encoded(data):
            raise ValueError(
                "Teachers read sentences: pass `train_dataset` as a list or a `datasets.Dataset` of them."
            )
        settings: dict[str, Any] = {
            name: getattr(args, f"teacher_{name}", None) for name in ("cache", "floor", "sure")
        }
        settings = {name: value for name, value in settings.items() if value is not None}
        with args.main_process_first(desc="asking the teachers"):  # the others find the answers on disk
            lessons = taught(
                data,
                teachers,
                model_of(self.model),
                self.processing_class,
                unlabelled,
                batch_size=args.per_device_eval_batch_size,
                device=args.device,
                **settings,
            )
        self.teaching, self.lessons = lessons.record, lessons.lines
        return lessons.sentences

    # -------------------------------------------------------------------------------------------------------- search

    def hyperparameter_search(
        self,
        hp_space: Callable | None = None,
        compute_objective: Callable[[dict[str, float]], float] | None = None,
        n_trials: int = 20,
        direction: str | list[str] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """As in transformers, but by F1 (or what `metric_for_best_model` names), not by the sum of all metrics.

        A trial that keeps its best checkpoint is judged by that one. Trials write to folders `run-N` in `output_dir`.
        """
        if self.model_init is None:
            raise ValueError("A search builds a new model for each trial: pass `model_init` in place of `model`.")
        if direction is None:
            direction = "minimize" if self.args.greater_is_better is False else "maximize"
        try:
            return super().hyperparameter_search(
                hp_space, compute_objective or self.objective_of, n_trials, direction, *args, **kwargs
            )
        finally:
            self.hp_search_backend = None

    def objective_of(self, metrics: dict[str, float]) -> float:
        """What a trial is judged by, after an evaluation: the metric of the best checkpoint, or the last one's."""
        metric = self.args.metric_for_best_model or TASKS[model_of(self.model).task].metric
        value, best = metrics[f"eval_{metric.removeprefix('eval_')}"], self.state.best_metric
        if best is None or not self.args.load_best_model_at_end:
            return value
        return min(value, best) if self.args.greater_is_better is False else max(value, best)

    def call_model_init(self, trial: Any = None) -> Any:
        """A new model; the data is encoded anew if it would read it in another way than the last one."""
        model = super().call_model_init(trial)
        inner = model_of(model)
        inner.restore_embeddings()
        self.train_dataset = self._encoded_for(inner.config, self.train_dataset)
        self.eval_dataset = self._encoded_for(inner.config, self.eval_dataset)
        self.__dict__.pop("reach", None)  # it may be another's
        return model

    def _encoded_for(self, config: Any, data: Any) -> Any:
        if isinstance(data, dict):
            return {name: self._encoded_for(config, part) for name, part in data.items()}
        if isinstance(data, NestedNerStream):
            return NestedNerStream(data.stream, self.processing_class, config)
        if not isinstance(data, NestedNerDataset) or data.suits(config):
            return data
        return NestedNerDataset(data.sentences, self.processing_class, config)

    def _hp_search_setup(self, trial: Any) -> None:
        """The trial's values become arguments; what follows from the arguments follows from these."""
        super()._hp_search_setup(trial)
        if self.hp_search_backend is not None and trial is not None:
            before = self.args.gradient_accumulation_steps
            self.args.unset = set()  # the trial has its own
            suit_arguments(self.args, model_of(self.model), self.train_dataset, self.eval_dataset)
            if self.args.gradient_accumulation_steps != before:
                self.create_accelerator_and_postprocess()
            self._add_stages()

    # -------------------------------------------------------------------------------------------------- optimisation

    def create_optimizer(self, model=None):
        """AdamW (or what `optim` says) with four groups: encoder and head, each with and without weight decay."""
        model = self.model if model is None else model
        if self.optimizer is not None:
            return self.optimizer
        rates = self.args.learning_rate, self.args.head_learning_rate, self.args.weight_decay
        groups = parameter_groups(model, *rates, decayed=set(self.get_decay_parameter_names(model)))
        optimizer_class, kwargs = self.get_optimizer_cls_and_kwargs(self.args, model)
        self.optimizer = optimizer_class(groups, **kwargs)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer=None):
        """The usual one, or, with `frozen_encoder_epochs`, one that starts anew when the encoder joins in."""
        if self.lr_scheduler is None and self.args.frozen_encoder_epochs:
            batches = math.ceil(len(self.train_dataset) / (self.args.train_batch_size * self.args.world_size))
            epoch = math.ceil(batches / self.args.gradient_accumulation_steps)
            first = min(round(epoch * self.args.frozen_encoder_epochs), num_training_steps)
            second = num_training_steps - first
            self.lr_scheduler = two_stage_schedule(
                self.optimizer if optimizer is None else optimizer,
                (first, self.args.get_warmup_steps(first)),
                (second, self.args.get_warmup_steps(second)),
                self.args.stage_one_lr_scale,
            )
            self._created_lr_scheduler = True
        is_new, schedule = self.lr_scheduler is None, super().create_scheduler(num_training_steps, optimizer)
        if is_new and (budget := self._budget()) is not None:
            fit_to_time(schedule, budget, num_training_steps)
        return schedule

    def compute_loss(self, model, inputs, return_outputs: bool = False, num_items_in_batch=None):
        loss, output = super().compute_loss(model, {**inputs, "return_dict": True}, True, num_items_in_batch)
        if self.model.training:
            for name, term in output.get("losses", {}).items():  # added up on the device, read when they are logged
                self._terms[name] = self._terms.get(name, 0.0) + term.detach().mean()
            self._term_count += 1
        return (loss, output) if return_outputs else loss

    def log(self, logs: dict[str, float], *args, **kwargs) -> None:
        """With the training loss its terms by name, where there are several: their means since the last time."""
        if "loss" in logs and self._term_count:
            if len(self._terms) > 1:
                means = torch.stack(list(self._terms.values())).float() / self._term_count
                means = self.accelerator.gather(means.unsqueeze(0)).mean(0).tolist()
                logs |= {f"loss_{name}": mean for name, mean in zip(self._terms, means, strict=True)}
            self._terms, self._term_count = {}, 0
        super().log(logs, *args, **kwargs)

    def _recent_loss(self) -> float | None:
        """The mean training loss since it was last logged; None if that was just now."""
        return float(sum(self._terms.values())) / self._term_count if self._terms else None

    def _budget(self) -> TimeBudget | None:
        return next(
            (callback for callback in self.callback_handler.callbacks if isinstance(callback, TimeBudget)), None
        )

    def _show_progress_as_a_table(self) -> None:
        """In place of what the base class has just added; a notebook keeps its own."""
        default: TrainerCallback = self.callback_handler.callbacks[-1]
        if type(default) in (PrinterCallback, ProgressCallback):
            self.remove_callback(default)
            table = LiveProgressTable if isinstance(default, ProgressCallback) else ProgressTable
            self.add_callback(table(self._recent_loss, self._budget))

    # ---------------------------------------------------------------------------------------------------- evaluation

    def get_eval_dataloader(self, eval_dataset=None):
        return super().get_eval_dataloader(self.encode(eval_dataset))

    def get_test_dataloader(self, test_dataset: Dataset | Iterable):
        return super().get_test_dataloader(self.encode(test_dataset))

    def train(
        self, resume_from_checkpoint: str | bool | None = None, trial: Any = None, *args: Any, **kwargs: Any
    ) -> TrainOutput:
        """Train; with `resume_from_checkpoint=True` from the last checkpoint in `output_dir` that is whole, if any is.

        A training that was killed ends, once resumed, with the weights it would have had.
        """
        self._predictions_at: dict[int, dict] = {}
        self._terms, self._term_count = {}, 0
        folder, writes = self._folder(trial), self.args.should_save
        with locked(str(self.args.output_dir)) if writes else contextlib.nullcontext():
            if writes:
                checkpoints.remove_unfinished(folder)
            self._resumed_from = self._checkpoint_to_resume(resume_from_checkpoint, folder)
            if writes and self._resumed_from is None and folder != str(self.args.output_dir):
                self._empty(folder)
            for average in self._averages():
                average.resumed_from = self._resumed_from
            begun = monotonic()
            try:
                output = super().train(self._resumed_from, trial, *args, **kwargs)
            finally:
                self.is_in_train = False  # also of a trial that was pruned
            if is_shown(self.args, self.state):
                print(ending(self.callback_handler.callbacks, self.args, self.state, monotonic() - begun), flush=True)
            if writes and self.args.save_total_limit == 1 and self.state.best_model_checkpoint:
                checkpoints.remove_all(folder, but=self.state.best_model_checkpoint)
        # What is kept are the predictions of the model as it now is: that of the best step again, or of the last.
        best = self.args.load_best_model_at_end and self.state.best_global_step
        self.predictions = self._predictions_at.get(best or self.state.global_step, {})
        return output

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        metrics = super().evaluate(self.encode(eval_dataset), ignore_keys, metric_key_prefix)
        split = "validation" if metric_key_prefix == "eval" else metric_key_prefix
        found, data = self._metrics.found, self._metrics.data
        if data is not None and len(found) == len(data.sentences):  # and not scored by somebody else's function
            self.predictions = {**self.predictions, split: (found, data)}
        if self.is_in_train:
            self._predictions_at[self.state.global_step] = self.predictions
        return metrics

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """All scores of the model as it is, by the split it was evaluated on."""
        model = model_of(self.model)
        return {
            split: score_predictions(model, found, data.sentences, groups=True)
            for split, (found, data) in self.predictions.items()
        }

    @cached_property
    def reach(self) -> dict[str, str]:
        """A line for training and validation data: how many gold entities the model could never find, and why."""
        data = {"train": self.train_dataset, "validation": self.eval_dataset}
        model = model_of(self.model)
        return {
            split: reach_report(split, part, model)
            for split, part in data.items()
            if isinstance(part, NestedNerDataset)
        }

    def evaluation_loop(self, dataloader, *args, **kwargs):
        data = dataloader.dataset
        self._metrics = NestedNerMetrics(
            model_of(self.model).config, data if isinstance(data, NestedNerDataset) else None
        )
        return super().evaluation_loop(dataloader, *args, **kwargs)

    def score(self, prediction: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        """The scores of the evaluation that runs, from its gathered predictions."""
        return self._metrics(prediction, compute_result)

    # ----------------------------------------------------------------------------------------------------- to the Hub

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        if Path(checkpoint_folder).parent.name == checkpoints.ASIDE:
            return  # not before it has its name
        for file in Path(checkpoint_folder).glob("*.py"):  # the base class copies weights and configuration only
            shutil.copy(file, str(self.args.output_dir))
        super()._push_from_checkpoint(checkpoint_folder)

    @property
    def _is_shared_out(self) -> bool:
        """Whether each process has a part of the model alone, so that all must take part wherever it reads."""
        return self.is_fsdp_enabled or self.is_deepspeed_enabled

    def whole_model(self) -> NestedNerPreTrainedModel:
        """The model as one process alone can use it: itself, or, if several have parts of it, as it was saved."""
        if not self._is_shared_out:
            model: NestedNerPreTrainedModel = model_of(self.model)
            return model
        return AutoModelForNestedNer.from_pretrained(str(self.args.output_dir), trust_remote_code=False)

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        token: Any = None,
        revision: str | None = None,
        **about: Any,
    ) -> CommitInfo | None:
        """Upload model, tokenizer, code, card, recipe and results to `args.hub_model_id`; returns the commit.

        `about` goes to the card: `language`, `license`, `datasets`, `base_model`, `tags`, `limits`.
        """
        if self._is_shared_out:
            self.save_model()  # every process takes part
        if not self.is_world_process_zero():
            return None
        token = token or self.args.hub_token
        if self.hub_model_id is None:
            self.init_hf_repo(token=token)
        self._finish_current_push()
        return publish(
            self.whole_model(),
            self.hub_model_id,
            tokenizer=self.processing_class,
            record=self.record or training_record(self, self.results),
            recipe=self.recipe,
            commit_message=commit_message,
            private=self.args.hub_private_repo,
            token=token,
            revision=revision or self.args.hub_revision,
            **about,
        )


def collator_for(model: Any, tokenizer: Any, args: Any) -> NestedNerCollator:
    """What makes batches for a model, padded as the arguments ask for; plain `TrainingArguments` do not ask."""
    multiple, positions = getattr(args, "pad_to_multiple_of", None), model.config.max_subwords
    if multiple and positions % multiple:
        raise ValueError(
            f"pad_to_multiple_of={multiple} does not divide max_subwords={positions}: a long sentence would be padded "
            f"to more than the encoder reads. Choose a divisor, such as {math.gcd(multiple, positions)}."
        )
    return NestedNerCollator(tokenizer.pad_token_id, multiple)


def _windows(data: Any) -> int:
    """How many windows an evaluation reads; of several data sets, all of theirs."""
    return sum(map(_windows, data.values())) if isinstance(data, dict) else 0 if data is None else len(data)
