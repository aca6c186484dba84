"""A training that ends by the clock (`max_minutes`), with a learning rate that comes to its end when the time does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

import torch
from accelerate.utils import broadcast
from torch.optim.lr_scheduler import LambdaLR
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import IntervalStrategy, SaveStrategy


class TimeBudget(TrainerCallback, ExportableState):
    """Ends training in order, with an evaluation and a checkpoint, before `max_minutes` are over.

    `share` is how much of the time for steps is gone. That time leaves out the last evaluation and checkpoint: they
    are taken to last as the longest so far. Before the first one an evaluation is taken to read as fast as the fastest
    step did; from a single step nothing is guessed, for the first may be slow by itself. The first process
    looks at its clock for all, so that all have one learning rate and one last step.
    """

    def __init__(self, eval_windows: int = 0):
        self.eval_windows = eval_windows  # how much an evaluation reads; 0 if there is none
        self.share = 0.0
        self.before = 0.0  # seconds until the checkpoint that training goes on from
        self.pause = 0.0  # seconds of the longest evaluation with its checkpoint
        self._begun: float | None = None  # when this training began, while it runs
        self._evaluated = False  # since the last step
        self._step_began = self._step_ended = 0.0
        self._seconds, self._steps, self._fastest = 0.0, 0, float("inf")  # of all steps

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before it was resumed included."""
        return self.before + (0.0 if self._begun is None else monotonic() - self._begun)

    def left(self, args: Any) -> float:
        """Seconds until the time is up."""
        return max(0.0, 60 * args.max_minutes - self.elapsed)

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"before": self.elapsed, "pause": self.pause}}

    def on_train_begin(self, args, state, control, **kwargs):
        self._begun = self._step_ended = monotonic()
        self.share, self._evaluated = 0.0, False
        self._seconds, self._steps, self._fastest = 0.0, 0, float("inf")

    def on_step_begin(self, args, state, control, **kwargs):
        self._step_began = monotonic()
        if self._evaluated:
            self.pause = max(self.pause, self._step_began - self._step_ended)
            self._evaluated = False

    def on_optimizer_step(self, args, state, control, **kwargs):  # the learning rate is set next
        self._step_ended = monotonic()
        seconds = self._step_ended - self._step_began
        self._seconds, self._steps = self._seconds + seconds, self._steps + 1
        self._fastest = min(self._fastest, seconds)
        self._look_at_the_clock(args)

    def on_step_end(self, args, state, control, **kwargs):
        self._stop_in_time(args, control)

    def on_evaluate(self, args, state, control, **kwargs):
        if self._begun is not None:  # else nothing is being trained
            self._evaluated = True
            self.pause = max(self.pause, monotonic() - self._step_ended)
            self._look_at_the_clock(args)
            self._stop_in_time(args, control)

    def on_train_end(self, args, state, control, **kwargs):
        self.before, self._begun = self.elapsed, None

    def _look_at_the_clock(self, args) -> None:
        seconds, step = 60 * args.max_minutes, self._seconds / max(self._steps, 1)
        windows = args.train_batch_size * args.gradient_accumulation_steps * args.world_size  # of a step
        guess = self._fastest * self.eval_windows / windows
        for_steps = seconds - (self.pause or guess) - step if self._steps > 1 else seconds - self.pause
        share = min(1.0, self.elapsed / for_steps) if for_steps > 0 else 1.0
        self.share = _of_the_first_process(max(self.share, share), args)  # it never falls

    def _stop_in_time(self, args, control) -> None:
        """As at the last step of all: what is done at the end of an epoch follows by itself."""
        if self.share >= 1 and not control.should_training_stop:
            control.should_training_stop = True
            control.should_evaluate |= args.eval_strategy == IntervalStrategy.STEPS and not self._evaluated
            control.should_save |= args.save_strategy == SaveStrategy.STEPS


def _of_the_first_process(value: float, args) -> float:
    return value if args.world_size == 1 else broadcast(torch.tensor(value, device=args.device)).item()


def fit_to_time(schedule: Any, budget: TimeBudget, steps: int) -> None:
    """Let a schedule of `steps` follow the share of the time, wherever that is ahead of the share of the steps.

    A schedule that asks for no step, such as one that waits for a plateau, stays as it is.
    """

    def fitted(factor: Callable[..., float]) -> Callable[[int], float]:
        return lambda step: factor(max(step, budget.share * steps))

    if isinstance(schedule, LambdaLR):
        schedule.lr_lambdas = [fitted(factor) for factor in schedule.lr_lambdas]


def go_on_counting(callbacks: Iterable[TrainerCallback], state: Any, resumed: bool) -> None:
    """Give back what the time budget and the patience had counted at a checkpoint; a new training counts from zero."""
    for callback in callbacks:
        if not isinstance(callback, ExportableState):
            continue
        kept = state.stateful_callbacks.setdefault(type(callback).__name__, callback.state())  # all have a place in it
        kind: type = type(callback)
        if kind in (TimeBudget, EarlyStoppingCallback) and isinstance(kept, dict):
            for name, value in (kept if resumed else kind().state())["attributes"].items():
                setattr(callback, name, value)
