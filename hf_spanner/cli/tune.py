"""`hf-spanner tune`: learning rates and span length chosen on validation data, and a recipe with the best of them."""

import dataclasses
import logging
import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from transformers import PrinterCallback, TrainerCallback
from transformers.trainer_utils import SaveStrategy
from transformers.utils import CONFIG_NAME
from transformers.utils import logging as transformers_logging

from .. import __version__
from ..data import label_names
from ..harmless import harmless
from ..hub.record import RECIPE, SETTINGS
from ..lock import locked
from ..metrics.tasks import TASKS
from ..modeling.folders import full_disk_said, write_whole
from ..training import NestedNerTrainer, NestedNerTrainingArguments
from ..training.checkpoints import checkpoints_in
from ..training.lora import add_lora
from ..training.search import STUDY, Space, fingerprint, finished, make_space, open_study, rounded, storage
from . import options
from .arguments import parse_with_recipe
from .options import read_yaml
from .train import ENCODER, RunArguments, Task, choose_settings, encoder_of, load_data, overlap_of, start_model

# Flags that say where, on which machine and how loudly, not what is trained: they stay out of the recipe.
NOT_OF_THE_RECIPE = (
    "data output_dir trials minutes resume overwrite use_cpu disable_tqdm report_to run_name logging_dir"
).split()


@dataclass(kw_only=True)
class TuneArguments(RunArguments):
    """What to search on what: as in `hf-spanner train`, whose values are where the search begins."""

    trials: int = field(
        default=20, metadata={"help": "How many trainings in all, with those of a search that was interrupted."}
    )
    minutes: float | None = field(
        default=None, metadata={"help": "Begin no training after so many minutes; the one under way is finished."}
    )


def main(argv: list[str] | None = None) -> int:
    """Search as told by a recipe and flags: `hf-spanner tune [recipe.yaml] --data FOLDER --output_dir DIR ...`."""
    argv = list(sys.argv[1:] if argv is None else argv)
    (run, args), settings, recipe = parse_with_recipe(argv, TuneArguments, NestedNerTrainingArguments, command="tune")
    import optuna

    logging.basicConfig(format="%(message)s", level=logging.INFO)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    options.check_reporters(args.report_to)
    check(run, args)
    folder = str(args.output_dir)
    with full_disk_said(folder, remedy="go on with the same command"), locked(folder):
        try:
            return tune(Task(run, args, settings, {**recipe, **given(argv)}, command=""))
        except KeyboardInterrupt:
            options.say("\nInterrupted: the same command goes on.")
            raise


def check(run: TuneArguments, args: NestedNerTrainingArguments) -> None:
    """Refuse what cannot be searched, or not here."""
    if run.trials < 1:
        raise ValueError(f"--trials {run.trials} must be at least 1.")
    if run.minutes is not None and not run.minutes > 0:
        raise ValueError(f"--minutes {run.minutes:g} must be more than 0: leave it out to search without a limit.")
    for name in ("learning_rate", "head_learning_rate"):
        if (rate := getattr(args, name)) is not None and not rate > 0:
            raise ValueError(f"--{name} {rate:g} must be more than 0: a search looks around it.")
    if args.world_size > 1:
        raise ValueError(f"A search runs in one process, not in {args.world_size}: start it without a launcher.")
    if run.seeds is not None or run.folds is not None:
        raise ValueError("A search trains each setting once: leave --seeds and --folds for `hf-spanner train`.")
    if args.push_to_hub:
        raise ValueError("A search keeps no model to push: leave --push_to_hub out, and train with the recipe.")
    folder = Path(str(args.output_dir))
    if (folder / CONFIG_NAME).exists() or checkpoints_in(folder):
        raise FileExistsError(f"{folder} holds a model or a training: name another output_dir for the search.")


def tune(task: Task) -> int:
    """Search, and write the recipe, in a folder that is ours."""
    import optuna

    run: Any = task.run  # TuneArguments
    args, settings, folder, say = task.args, task.settings, task.folder, task.say
    if run.overwrite:
        for name in (STUDY, RECIPE):
            (folder / name).unlink(missing_ok=True)
    transformers.set_seed(args.seed)
    data = load_data(task)
    if "validation" not in data:
        raise ValueError("A search needs validation data: leave --train_on and --eval_strategy out.")
    data = {split: data[split] for split in ("train", "validation")}  # of the test data a search knows nothing
    labels = run.labels or label_names(data)
    settings.setdefault("overlap", overlap_of(run, data["train"]))
    source = harmless(" and ".join(Path(name).name for name in run.data))
    say(f"{run.approach} on {source}: {len(data['train']):,} sentences, chosen on {len(data['validation']):,}")

    for line in choose_settings(task, data):
        say(line)
    start = Start(task, labels, data)
    trainer = NestedNerTrainer(
        model_init=start,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=start.tokenizer,
    )
    args.save_strategy = SaveStrategy.NO  # what is kept is a recipe; a trial is judged by its best evaluation
    used = {name: getattr(args, name) for name in (*SETTINGS, "seed")}
    trainer.remove_callback(PrinterCallback)
    for line in trainer.choice.lines():
        say(line)
    space = make_space(args, start.first, data["train"], is_trained=run.model is not None)
    start.space = space
    about = {
        "data": f"{source} ({fingerprint(data)})",
        "approach": run.approach,
        "start": origin_of(run.model or encoder_of(run)),
        "lora_rank": run.lora_rank,
        "labels": labels,
        **settings,
        **used,
    }
    study = open_study(folder, about, space)
    metric = TASKS[start.first.task].metric
    del start.first
    for line in described(space):
        say(line)
    done = len(finished(study))
    if done:
        say(f"{done} of {run.trials} trials are there already.")
    if done < run.trials:
        trainer.add_callback(Said(trainer, metric, say))
        trainer.hyperparameter_search(
            hp_space=space.suggest_rates,
            n_trials=run.trials - done,
            direction="maximize",
            backend="optuna",
            study_name=study.study_name,
            storage=storage(folder),
            load_if_exists=True,
            timeout=None if run.minutes is None else 60 * run.minutes,
            # Its first draws are random: a search that goes on must not draw the same again.
            sampler=optuna.samplers.TPESampler(n_startup_trials=5, seed=args.seed + len(study.trials)),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=steps_of(trainer) // 3),
        )
    say(f"\n{table(study, space, metric)}")
    write_recipe(
        folder / RECIPE, {**settings, **trainer.choice.training, **task.recipe}, run, study, space, source, metric
    )
    best = study.best_trial
    say(f"\nThe best is trial {best.number}, with validation {metric} {best.value:.4f}.")
    if not best.value:
        say("No trial has found anything: train for more epochs, or on more sentences.")
    say(f"Saved: hf-spanner train {folder / RECIPE} --data {' '.join(run.data)} --output_dir ...")
    return 0


class Start:
    """Builds the model that a trial begins with, as `hf-spanner train` would, for the settings that the trial has."""

    space: Space

    def __init__(self, task: Task, labels: list[str], data: Mapping[str, Any]) -> None:
        self.task, self.labels, self.data = task, labels, data
        self.first, self.tokenizer = self.build({})
        self.task = dataclasses.replace(task, quiet=True)
        vectors = task.folder / "vectors.txt.gz"
        if task.run.vectors == "train" and vectors.is_file():  # word vectors are trained once
            self.task.run = dataclasses.replace(task.run, vectors=str(vectors))

    def __call__(self, trial: Any = None) -> Any:
        if trial is None:
            return self.first
        with quietly():
            model, _ = self.build(self.space.suggest_settings(trial))
        transformers.set_seed(self.task.args.seed)  # as before a training whose model is built: it will end the same
        return model

    def build(self, chosen: dict[str, Any]) -> tuple[Any, Any]:
        task = dataclasses.replace(self.task, settings={**self.task.settings, **chosen})
        model, tokenizer, lines = start_model(task, self.labels, self.data)
        for line in lines:
            task.say(line)
        model.restore_embeddings()
        if task.run.lora_rank is not None:
            add_lora(model, task.run.lora_rank)
        return model, tokenizer


class Said(TrainerCallback):
    """Says what a trial tries and what comes of it."""

    def __init__(self, trainer: NestedNerTrainer, metric: str, say: Callable[[str], None]) -> None:
        self.trainer, self.metric, self.say = trainer, metric, say

    def on_train_begin(self, args, state, control, **kwargs):
        trial: Any = self.trainer._trial
        values = ", ".join(f"{name} {shown(value)}" for name, value in trial.params.items())
        self.say(f"trial {trial.number}: {values}")

    def on_train_end(self, args, state, control, **kwargs):
        trial: Any = self.trainer._trial
        if (value := getattr(self.trainer, "objective", None)) is not None:  # else it is evaluated after training
            self.say(f"trial {trial.number}: {self.metric} {value:.4f}")


@contextmanager
def quietly() -> Iterator[None]:
    """Without a bar and a report for each model that is loaded."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


def steps_of(trainer: NestedNerTrainer) -> int:
    """The steps of a training."""
    args = trainer.args
    if args.max_steps > 0:
        return args.max_steps
    batches = math.ceil(len(trainer.train_dataset) / args.train_batch_size)
    return math.ceil(math.ceil(batches / args.gradient_accumulation_steps) * args.num_train_epochs)


def origin_of(name: str) -> str:
    """What a training starts from: a name, or a folder wherever it is named from."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def described(space: Space) -> list[str]:
    lines = [f"{name}: {rounded(low):g} to {rounded(high):g}" for name, (low, high) in space.rates.items()]
    return [*lines, *([f"max_span_length: {', '.join(map(shown, space.spans))}"] if space.spans else [])]


def shown(value: Any) -> str:
    return f"{rounded(value):g}" if isinstance(value, float) else "any" if value is None else str(value)


def table(study: Any, space: Space, metric: str) -> str:
    """The trials as a table, the best marked."""
    names = list(space.start)
    rows = [["trial", *names, metric, ""]]
    for trial in finished(study):
        notes = "best" if trial.number == study.best_trial.number else ""
        if trial.state.name == "PRUNED":
            notes = "stopped early"
        values = [shown(trial.params[name]) if name in trial.params else "" for name in names]
        rows.append([str(trial.number), *values, "" if trial.value is None else f"{trial.value:.4f}", notes])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths)) + f"  {row[-1]}".rstrip() for row in rows
    )


# ---------------------------------------------------------------------------------------------------------- the recipe


def given(argv: list[str]) -> dict[str, Any]:
    """The flags of a command line, as entries of a recipe that says the same."""
    entries: dict[str, list[str]] = {}
    name = None
    for argument in argv[1:] if argv and argv[0].endswith((".yaml", ".yml")) else argv:
        if argument.startswith("--"):
            name, sep, value = argument[2:].partition("=")
            entries[name] = [value] if sep else []
        elif name is not None:
            entries[name].append(argument)
    values = {name: [plain(text) for text in texts] for name, texts in entries.items()}
    return {name: some if len(some) > 1 else some[0] if some else True for name, some in values.items()}


def plain(text: str) -> Any:
    """A number if it reads the same as the text, else the text."""
    value = read_yaml(text, "value") if text else text
    return value if str(value) == text else text


def write_recipe(
    file: Path, recipe: Mapping[str, Any], run: TuneArguments, study: Any, space: Space, source: str, metric: str
) -> None:
    """Write the recipe of the best trial: what was given, with what was found."""
    import optuna

    best = study.best_trial
    found = {name: rounded(value) if isinstance(value, float) else value for name, value in best.params.items()}
    begin = (
        {"model": run.model}
        if run.model is not None
        else {"approach": run.approach, "encoder": run.encoder or ENCODER}
    )
    if run.model is None and "encoder" not in recipe and list(space.rates) != ["learning_rate", "head_learning_rate"]:
        del begin["encoder"]  # there is none inside
    entries = {**begin, **{name: value for name, value in recipe.items() if name not in NOT_OF_THE_RECIPE}, **found}
    versions = {
        "hf_spanner": __version__,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "optuna": optuna.__version__,
        "Python": platform.python_version(),
    }
    header = [
        f"Found by `hf-spanner tune` on {source}, in {len(finished(study))} trials: "
        f"validation {metric} {best.value:.4f} (trial {best.number}).",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"hf-spanner train {file.name} --data {source} --output_dir ...",
    ]
    text = "".join(f"# {line}\n" for line in header)
    write_whole(file, text + yaml.safe_dump(entries, sort_keys=False, allow_unicode=True))
