"""Training in stages and with averaged weights: callbacks for any approach, and the schedule that goes with them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback

logger = logging.getLogger(__name__)

EPOCH = "mean_of_epoch"  # in the log history: an entry that `LossByEpoch` has made


class LossTerms:
    """Means of a loss's terms by name: added up on the device, read when they are asked for."""

    def __init__(self) -> None:
        self.sums: dict[str, Any] = {}
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0 and bool(self.sums)

    def add(self, losses: Mapping[str, torch.Tensor]) -> None:
        for name, term in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + term.detach().mean()
        self.count += 1

    def means(self, gather: Callable[[torch.Tensor], torch.Tensor] = lambda means: means) -> dict[str, float]:
        """`gather` brings together what several processes have, `(n, terms)`."""
        if not self:
            return {}
        means = gather((torch.stack(list(self.sums.values())).float() / self.count).unsqueeze(0)).mean(0)
        return dict(zip(self.sums, means.tolist(), strict=True))

    def clear(self) -> None:
        self.sums, self.count = {}, 0


class LossByEpoch(TrainerCallback):
    """Adds to the log history of a training, which checkpoints keep, each epoch's mean loss and the seconds so far.

    Of an epoch that was interrupted the mean is of what came after.
    """

    def __init__(self, mean: Callable[[], dict[str, float]]):
        self.mean = mean
        self.begun, self.before = monotonic(), 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        self.begun = monotonic()
        self.before = max((entry["seconds"] for entry in losses_by_epoch(state.log_history)), default=0.0)

    def on_epoch_end(self, args, state, control, **kwargs):
        if loss := self.mean():
            epoch = 1 + len(losses_by_epoch(state.log_history))
            entry = {"epoch": epoch, "seconds": round(self.seconds(), 1), **loss}
            state.log_history.append({"epoch": state.epoch, "step": state.global_step, EPOCH: entry})

    def seconds(self) -> float:
        """Of the training so far, evaluations included; what was done before an interruption counts."""
        return self.before + monotonic() - self.begun


def losses_by_epoch(log_history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What [`LossByEpoch`] has added: `epoch` (1, 2, ...), `seconds`, `loss` and, of several, its terms by name."""
    return [entry[EPOCH] for entry in log_history if EPOCH in entry]


class FreezeEncoder(TrainerCallback):
    """Keeps the pretrained encoder as it is for the first `epochs`, so that the new layers learn to read it first."""

    def __init__(self, epochs: float):
        self.epochs = epochs

    def on_epoch_begin(self, args, state, control, model=None, **kwargs):
        model.encoder.requires_grad_(state.epoch > self.epochs - 1e-6)

    def on_train_end(self, args, state, control, model=None, **kwargs):
        model.encoder.requires_grad_(True)


def two_stage_schedule(
    optimizer: torch.optim.Optimizer, first: tuple[int, int], second: tuple[int, int], first_scale: float = 1.0
) -> LambdaLR:
    """Linear warm-up and decay to zero, twice: while the encoder is frozen, and again with it.

    Args:
        first, second: the steps of a stage and how many of them warm up.
        first_scale: the factor of learning rates in the first stage (the authors of DiffusionNER double them).
    """

    def triangle(step: int, steps: int, warm_up: int) -> float:
        if step < warm_up:
            return step / max(warm_up, 1)
        return max(0.0, (steps - step) / max(steps - warm_up, 1))

    def factor(step: int) -> float:
        return first_scale * triangle(step, *first) if step < first[0] else triangle(step - first[0], *second)

    return LambdaLR(optimizer, factor)


class ExponentialMovingAverage(TrainerCallback):
    """Keeps an average of the weights over the steps: mean ← d·mean + (1 - d)·weights.

    Steps go on from the weights themselves; evaluation, checkpoints and the model that training ends with have the
    average. d grows to `decay` as (1 + step) / (10 + step), so that the first steps are soon forgotten. Beside each
    checkpoint the weights are kept in `raw_weights.safetensors`, for resuming.
    """

    file = "raw_weights.safetensors"

    def __init__(self, decay: float):
        if not 0 < decay < 1:
            raise ValueError(f"ema_decay={decay} must lie between 0 and 1, for example 0.999.")
        self.decay = decay
        self.average: dict[str, torch.Tensor] = {}
        self.raw: dict[str, torch.Tensor] | None = None  # the weights, while the model has the average
        self.resumed_from: str | None = None  # the checkpoint, if training goes on from one

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.average, self.raw = _copy(model), None
        if self.resumed_from is not None:  # what was loaded is the average
            file = Path(self.resumed_from) / self.file
            if file.is_file():
                _load(model, load_file(file))
            else:
                logger.warning("There is no %s: training goes on from the averaged weights.", file)

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        if self.raw is not None:
            _load(model, self.raw)
            self.raw = None

    @torch.no_grad()
    def on_step_end(self, args, state, control, model=None, **kwargs):
        decay = min(self.decay, (1 + state.global_step) / (10 + state.global_step))
        for name, parameter in model.named_parameters():
            self.average[name].lerp_(parameter.detach(), 1 - decay)
        self._show(control, model)

    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        self._show(control, model)

    def save(self, checkpoint: str | os.PathLike) -> None:
        """Add the weights to a checkpoint of the average."""
        if self.raw is not None:
            save_file(self.raw, Path(checkpoint) / self.file)

    def on_train_end(self, args, state, control, model=None, **kwargs):
        # The best checkpoint, if it was loaded, is an average already.
        if self.raw is None and not (args.load_best_model_at_end and state.best_model_checkpoint):
            _load(model, self.average)

    def _show(self, control, model) -> None:
        if self.raw is None and (control.should_evaluate or control.should_save):
            self.raw = _copy(model)
            _load(model, self.average)


def _copy(model) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@torch.no_grad()
def _load(model, weights: dict[str, torch.Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
