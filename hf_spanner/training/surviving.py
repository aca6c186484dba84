"""A `Trainer` whose checkpoints are whole or absent, and whose training, if killed, goes on as it would have."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from transformers import Trainer

from ..modeling.folders import full_disk_said, whole_or_not_at_all
from . import checkpoints
from .budget import go_on_counting
from .callbacks import ExponentialMovingAverage
from .progress import no_other_bars
from .sampling import InOrderOfEpoch

logger = logging.getLogger(__name__)


class SurvivingTrainer(Trainer):
    """What any training here does about checkpoints; `train` of a subclass says which one it goes on from."""

    _resumed_from: str | None = None  # the checkpoint, if training goes on from one

    def _checkpoint_to_resume(self, asked: str | bool | None, folder: str) -> str | None:
        """The checkpoint that was named, or, for True, the last one that is whole; what was skipped is said."""
        if not asked:
            return None
        if asked is not True:
            fault = checkpoints.fault_of(Path(asked)) if checkpoints.is_listed(Path(asked)) else None
            if fault:
                raise ValueError(f"Nothing can go on from {asked}: {fault}; name another checkpoint.")
            return str(asked)
        found, skipped = checkpoints.newest_intact(folder, with_best=self.args.load_best_model_at_end)
        faults = "; ".join(f"{name}: {fault}" for name, fault in skipped.items())
        if found is None:
            why = f"none of its checkpoints is whole ({faults})" if skipped else "it has no checkpoint"
            raise ValueError(f"No training can go on in {folder}: {why}. Name a checkpoint, or begin anew.")
        if self.is_world_process_zero():
            level, but = (logging.WARNING, f"; skipped: {faults}") if skipped else (logging.INFO, "")
            logger.log(level, "Training goes on from %s of %s%s.", found.name, folder, but)
        return str(found)

    def _folder(self, trial: Any) -> str:
        """The folder of a training: `output_dir`, or a trial's own in it."""
        return super()._get_output_dir(trial)

    def _empty(self, folder: str) -> None:
        """Remove the checkpoints of a former search's trial of the same name: nothing tells them from the new ones."""
        if checkpoints.checkpoints_in(folder):
            logger.warning("%s holds checkpoints of a former search: they are removed.", folder)
            checkpoints.remove_all(folder)

    def _get_output_dir(self, trial) -> str:
        """Where the base class writes, counts and deletes checkpoints: aside. Whole ones move on from there."""
        return os.path.join(self._folder(trial), checkpoints.ASIDE)

    def _save_checkpoint(self, model, trial) -> None:
        """Save a checkpoint whole: under its name there is all of it or nothing, whatever happens meanwhile."""
        aside = Path(self._get_output_dir(trial)) / f"checkpoint-{self.state.global_step}"
        target = aside.parent.parent / aside.name
        with full_disk_said(target), checkpoints.removed_if_it_fails(aside.parent):
            super()._save_checkpoint(model, trial)
            if self.state.best_model_checkpoint == str(aside):
                self.state.best_model_checkpoint = str(target)
            if self.args.should_save:
                self.state.save_to_json(str(aside / checkpoints.STATE))
                for average in self._averages():
                    average.save(aside)
            self.accelerator.wait_for_everyone()  # each process has written the state of its random numbers
            if self.args.should_save:
                checkpoints.publish_checkpoint(aside, target)
                checkpoints.remove_old(target.parent, self.args.save_total_limit, self.state.best_model_checkpoint)
        if self.args.push_to_hub:
            self._push_from_checkpoint(str(target))

    def _init_training_state(self, *args, **kwargs):
        started = super()._init_training_state(*args, **kwargs)
        if self._resumed_from is not None and self.state.best_global_step:  # the folder may have moved
            best = Path(self._resumed_from).with_name(f"checkpoint-{self.state.best_global_step}")
            if best.is_dir():
                self.state.best_model_checkpoint = str(best)
        go_on_counting(self.callback_handler.callbacks, self.state, resumed=self._resumed_from is not None)
        return started

    def _averages(self) -> list[ExponentialMovingAverage]:
        return [
            callback for callback in self.callback_handler.callbacks if isinstance(callback, ExponentialMovingAverage)
        ]

    def _get_train_sampler(self, *args, **kwargs):
        """The usual one, in an order that hangs on seed and epoch alone: a training that goes on has the same."""
        sampler = super()._get_train_sampler(*args, **kwargs)
        if not hasattr(sampler, "generator"):
            return sampler
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return InOrderOfEpoch(sampler, seed, lambda: int((self.state.epoch or 0) + 1e-6))

    def _save(self, output_dir: str | None = None, state_dict=None) -> None:
        if not self.args.should_save:
            return super()._save(output_dir, state_dict)
        with no_other_bars(), whole_or_not_at_all(str(output_dir or self.args.output_dir)) as folder:
            super()._save(str(folder), state_dict)
