"""What a training shows: a table with a row an evaluation, one live line on a terminal, and why it ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tqdm import tqdm
from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback, TrainerCallback
from transformers.trainer_utils import IntervalStrategy
from transformers.utils import logging

from .budget import TimeBudget

SCORES = {"precision": "P", "recall": "R", "f1": "F1"}
EVERY = 0.2  # seconds between two pictures of the live line


class ProgressTable(PrinterCallback):
    """Prints a row an evaluation (an epoch, if there are none) in place of all values that are logged.

    Args:
        loss: the mean training loss since it was last logged; None if that was just now.
        budget: the time budget of the training, if it has one.
    """

    def __init__(
        self,
        loss: Callable[[], float | None] = lambda: None,
        budget: Callable[[], TimeBudget | None] = lambda: None,
    ):
        self.loss, self.budget = loss, budget
        self.begun: float | None = None  # while a training runs
        self.first_step = 0
        self.logged: float | None = None  # the training loss
        self.best: float | None = None
        self.header: list[str] = []

    def on_train_begin(self, args, state, control, **kwargs):
        self.begun, self.first_step = monotonic(), state.global_step
        self.logged, self.best, self.header = None, state.best_metric, []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.logged = (logs or {}).get("loss", self.logged)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        if self.begun is not None:
            self._row(args, state, metrics or {})

    def on_epoch_end(self, args, state, control, **kwargs):
        if args.eval_strategy == IntervalStrategy.NO:
            self._row(args, state, {})

    def on_train_end(self, args, state, control, **kwargs):
        self.begun = None

    def elapsed(self) -> float:
        """Seconds of this training; with a time budget, those before it was resumed, too."""
        budget = self.budget()
        return monotonic() - (self.begun or monotonic()) if budget is None else budget.elapsed

    def left(self, args, state) -> float | None:
        """Seconds until the end at the pace so far, if no patience ends it before; None if there is no pace yet."""
        budget, done = self.budget(), state.global_step - self.first_step
        ends = [] if budget is None else [budget.left(args)]
        if done and self.begun is not None:
            ends.append((state.max_steps - state.global_step) * (monotonic() - self.begun) / done)
        return min(ends, default=None)

    def _row(self, args, state, metrics: Mapping[str, float]) -> None:
        if not is_shown(args, state):
            return
        loss = self.loss()
        row = {"epoch": f"{state.epoch or 0:.2f}", "step": f"{state.global_step:,}"}
        row["loss"] = number(self.logged if loss is None else loss)
        row |= scores(metrics, args.metric_for_best_model)
        row |= {"": "best" if self._is_best(args, metrics) else "", "time": duration(self.elapsed())}
        row["left"] = duration(self.left(args, state))
        if self.header != list(row):  # the first row, or another evaluation set's
            self.header = list(row)
            self.write(line(self.header, self.header))
        self.write(line(row.values(), self.header))

    def _is_best(self, args, metrics: Mapping[str, float]) -> bool:
        """Whether this is the best score so far, by the Trainer's own rule, which follows after the evaluation."""
        value = metrics.get(f"eval_{(args.metric_for_best_model or '').removeprefix('eval_')}")
        if value is None:
            return False
        better = self.best is None or (value > self.best if args.greater_is_better else value < self.best)
        self.best = value if better else self.best
        return better

    def write(self, text: str) -> None:
        print(text, flush=True)


class LiveProgressTable(ProgressTable, ProgressCallback):
    """The same with a line below that moves, where standard error is a terminal."""

    def __init__(self, *args: Any, **kwargs: Any):
        ProgressCallback.__init__(self)
        ProgressTable.__init__(self, *args, **kwargs)
        self.drawn = 0.0  # when
        self.batches = 0  # of the evaluation that runs

    def on_train_begin(self, args, state, control, **kwargs):
        super().on_train_begin(args, state, control, **kwargs)
        if is_shown(args, state) and is_terminal():
            shape = "{desc} |{bar}| {percentage:.0f}%"
            self.training_bar = tqdm(total=1.0, dynamic_ncols=True, bar_format=shape, leave=False)

    def on_step_end(self, args, state, control, **kwargs):
        self._draw(args, state)

    def on_prediction_step(self, args, state, control, eval_dataloader=None, **kwargs):
        if self.begun is not None:
            self.batches += 1
            self._draw(args, state, f"evaluating, batch {self.batches}")
        elif is_shown(args, state) and is_terminal():
            ProgressCallback.on_prediction_step(self, args, state, control, eval_dataloader, **kwargs)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self.batches = 0
        super().on_evaluate(args, state, control, metrics, **kwargs)
        ProgressCallback.on_evaluate(self, args, state, control, **kwargs)

    def on_train_end(self, args, state, control, **kwargs):
        super().on_train_end(args, state, control, **kwargs)
        if self.training_bar is not None:
            self.training_bar.close()
            self.training_bar = None

    def _draw(self, args, state, doing: str = "") -> None:
        if self.training_bar is None or monotonic() - self.drawn < EVERY:
            return
        budget, self.drawn = self.budget(), monotonic()
        self.training_bar.n = max(state.global_step / max(state.max_steps, 1), 0.0 if budget is None else budget.share)
        name = (args.metric_for_best_model or "").removeprefix("eval_")
        best = "" if self.best is None else f"best {SCORES.get(name, name)} {number(self.best)}"
        where, left = f"epoch {state.epoch or 0:.2f}, step {state.global_step:,}", duration(self.left(args, state))
        told = ", ".join(part for part in (where, doing, best, f"{left} left") if part)
        self.training_bar.set_description_str(told, refresh=False)
        self.training_bar.refresh()

    def write(self, text: str) -> None:
        with tqdm.external_write_mode(file=sys.stdout):
            print(text, flush=True)


@contextmanager
def no_other_bars() -> Iterator[None]:
    """Leave the bars of transformers out, of writing weights and the like: they would run through the table."""
    were_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_on:
            logging.enable_progress_bar()


def is_shown(args, state) -> bool:
    """Whether this process tells people about the training."""
    return state.is_world_process_zero and args.should_log and args.log_level not in ("error", "critical")


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def scores(metrics: Mapping[str, float], chosen: str | None) -> dict[str, str]:
    """The cells of an evaluation: loss, precision, recall and F1 if it has them, and the metric that chooses."""
    runtime = next((key for key in metrics if key.endswith("_runtime")), "eval_runtime")
    prefix = runtime.removesuffix("runtime")
    cells = {"data": prefix.removeprefix("eval_").rstrip("_")} if prefix != "eval_" else {}
    names = {"loss": "val loss", **SCORES}
    if chosen is not None:
        names.setdefault(chosen.removeprefix("eval_"), chosen.removeprefix("eval_"))
    return cells | {title: number(metrics[prefix + name]) for name, title in names.items() if prefix + name in metrics}


def line(cells: Iterable[str], header: list[str]) -> str:
    return "  ".join(cell.rjust(max(6, len(title)) if title else 4) for cell, title in zip(cells, header, strict=True))


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def duration(seconds: float | None) -> str:
    """`0:07`, `12:30`, `1:05:00`."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def ending(callbacks: Iterable[TrainerCallback], args, state, seconds: float) -> str:
    """How a training ended, where and why, and which checkpoint was the best."""
    name = (args.metric_for_best_model or "").removeprefix("eval_")
    name = SCORES.get(name, name)
    early, why = state.global_step < state.max_steps, ""
    for callback in callbacks if early else ():
        if isinstance(callback, TimeBudget) and callback.share >= 1:
            why = f"the time is up (max_minutes={args.max_minutes:g})"
        elif isinstance(callback, EarlyStoppingCallback):
            patience = callback.early_stopping_patience
            if callback.early_stopping_patience_counter >= patience:
                times = "evaluation" if patience == 1 else f"{patience} evaluations"
                why = f"no better {name} in the last {times} (patience={patience})"
    steps = f"step {state.global_step:,}" + (f" of {state.max_steps:,}" if early else "")
    told = f"Training ended at {steps}, epoch {state.epoch or 0:.2f}, after {duration(seconds)}"
    told += f": {why}." if why else "."
    if args.load_best_model_at_end and state.best_global_step:
        told += f" The best was step {state.best_global_step:,}, {name} {number(state.best_metric)}."
    return told
