"""Adapting an encoder: it reads text of a domain and fills in words that are hidden from it.

Masked language modelling by what transformers has for it: the encoder's own kind of head, its collator, its Trainer.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainingArguments,
    set_seed,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING

from ..loading import load_tokenizer
from ..lock import locked
from ..modeling.encoders import encoder_config_of, load_encoder, max_positions
from ..modeling.folders import full_disk_said, write_whole
from ..modeling.reading import WordEncoder
from . import checkpoints
from .budget import TimeBudget, fit_to_time
from .surviving import SurvivingTrainer

RECORD = "adaptation.json"
HELD_OUT, FEWEST, MOST = 0.05, 8, 400  # of the windows, to measure on: a share, within bounds


class Windows(Dataset[dict[str, Any]]):
    """Texts one behind the other, cut into windows of whole words: nothing is left out, little is padded."""

    def __init__(self, texts: Iterable[Sequence[str]], tokenizer: PreTrainedTokenizerBase, length: int):
        self.words = WordEncoder(tokenizer, length)
        self.ids, self.begins = array("i"), bytearray()  # of each sub-word: its id, whether it begins a word
        self.starts = [0]  # of the windows
        for text in texts:
            for pieces in self.words.subwords(text):
                if len(self.ids) + len(pieces) - self.starts[-1] > self.words.capacity:
                    self.starts.append(len(self.ids))
                self.ids.extend(pieces)
                self.begins.extend([1, *[0] * (len(pieces) - 1)][: len(pieces)])
        self.starts.append(len(self.ids))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        first, last = self.starts[index], self.starts[index + 1]
        prefix, suffix = self.words.prefix, self.words.suffix
        # The collator takes sub-words whose offsets touch for one word.
        offsets, place = [], 0
        for begins in self.begins[first:last]:
            place += 1 + begins
            offsets.append((place - 1, place))
        special = [1] * len(prefix), [0] * (last - first), [1] * len(suffix)
        return {
            "input_ids": [*prefix, *self.ids[first:last], *suffix],
            "attention_mask": [1] * (len(prefix) + last - first + len(suffix)),
            "special_tokens_mask": [flag for part in special for flag in part],
            "offset_mapping": [*[(0, 0)] * len(prefix), *offsets, *[(0, 0)] * len(suffix)],
        }


class Masking:
    """Windows → a batch in which whole words are hidden; those that come with `labels` are only padded.

    Which words, hangs on the seed and the windows of the batch alone: a training that goes on hides the same, and each
    pass, which draws other batches, hides others.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, share: float, seed: int = 0):
        self.pad, self.seed = tokenizer.pad_token_id or 0, seed
        self.collate = DataCollatorForLanguageModeling(
            tokenizer, whole_word_mask=True, mlm_probability=share, mask_replace_prob=1.0, random_replace_prob=0.0
        )

    def __call__(self, items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        width = max(len(item["input_ids"]) for item in items)
        blanks = {"input_ids": self.pad, "attention_mask": 0, "special_tokens_mask": 1, "offset_mapping": (0, 0)}
        blanks["labels"] = -100
        padded = [{name: [*row, *[blanks[name]] * (width - len(row))] for name, row in item.items()} for item in items]
        if "labels" in items[0]:
            return {name: torch.tensor([item[name] for item in padded]) for name in padded[0]}
        ids = array("q", [self.seed, *(id for item in padded for id in item["input_ids"])])
        self.collate.generator = torch.Generator().manual_seed(zlib.crc32(ids.tobytes()))
        return dict(self.collate(padded))


def hidden_once(windows: Sequence[Mapping[str, Any]], masking: Masking) -> list[dict[str, Any]]:
    """Windows with words hidden that stay the same, to measure on."""
    batches = [masking([window]) for window in windows]
    return [{name: batch[name][0].tolist() for name in ("input_ids", "attention_mask", "labels")} for batch in batches]


def load_for_masking(encoder: str) -> tuple[Any, bool]:
    """An encoder under its own kind of masked language head, and whether the head came with it."""
    saved: Any = AutoConfig.from_pretrained(encoder, trust_remote_code=False)
    config = encoder_config_of(saved)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ValueError(f"{encoder} is a {config.model_type} encoder, for which transformers has no masked words.")
    if config is not saved:  # the encoder of a nested NER model
        model: Any = AutoModelForMaskedLM.from_config(config, dtype=torch.float32)
        model.base_model.load_state_dict(load_encoder(encoder, saved).state_dict())
        return model, False
    model, loaded = AutoModelForMaskedLM.from_pretrained(
        encoder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
    )
    return model, not loaded["missing_keys"]


class _AdaptingTrainer(SurvivingTrainer):
    def create_scheduler(self, num_training_steps: int, optimizer=None):
        schedule = super().create_scheduler(num_training_steps, optimizer)
        for callback in self.callback_handler.callbacks:
            if isinstance(callback, TimeBudget):
                fit_to_time(schedule, callback, num_training_steps)
        return schedule

    def go(self, resume: bool) -> None:
        """Train, from the last whole checkpoint if there is one and it is asked for."""
        folder = str(self.args.output_dir)
        checkpoints.remove_unfinished(folder)
        there = resume and bool(checkpoints.checkpoints_in(folder))
        self._resumed_from = self._checkpoint_to_resume(there, folder)
        super().train(self._resumed_from)


def adapt(
    encoder: str,
    texts: Iterable[Mapping[str, Any]],
    output_dir: str | Path,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    window: int = 128,
    batch_size: int = 32,
    learning_rate: float = 1e-4,
    mask: float = 0.15,
    seed: int = 42,
    resume: bool = False,
    save_steps: int = 500,
    bf16: bool = False,
    use_cpu: bool = False,
) -> dict[str, Any]:
    """Let an encoder read texts, and save it as one that `--encoder` takes; returns what is in `adaptation.json`.

    ```python
    >>> adapt("bert-base-cased", read_texts("text/"), "encoders/mine", minutes=60)["perplexity"]
    {'before': 21.3, 'after': 9.8}
    ```

    Args:
        encoder: a Hub id or folder, of an encoder or of a nested NER model, whose encoder is taken.
        texts: records with `tokens`, as `read_texts` gives them.
        steps: how many batches; one pass over the text if neither this nor `minutes` is given.
        minutes: the time it may take; the learning rate ends with it.
        window, batch_size: sub-words in a window, windows in a step.
        mask: the share of words that are hidden.
        resume: go on from the last checkpoint in `output_dir`.
    """
    if steps is not None and steps < 1 or minutes is not None and not 0 < minutes < math.inf:
        raise ValueError(f"steps={steps}, minutes={minutes}: one step or more, and a time above 0.")
    if not 0 < mask < 1:
        raise ValueError(f"mask={mask} is the share of hidden words: between 0 and 1.")
    folder, begun = Path(output_dir), monotonic()
    set_seed(seed)
    tokenizer = load_tokenizer(encoder)
    if tokenizer.mask_token is None:
        raise ValueError(f"The tokenizer of {encoder} has no mask token: this encoder cannot be adapted.")
    model, has_head = load_for_masking(encoder)
    if window > max_positions(model.base_model):
        raise ValueError(f"window={window} is more than the {max_positions(model.base_model)} positions of {encoder}.")
    windows = Windows((text["tokens"] for text in texts), tokenizer, window)
    if len(windows) < 2:
        raise ValueError(f"The text is one window of {window} sub-words: none is left to measure on. Name more text.")
    number = min(max(math.ceil(HELD_OUT * len(windows)), FEWEST), MOST, len(windows) // 2)
    held = set(random.Random(seed).sample(range(len(windows)), number))
    masking = Masking(tokenizer, mask, seed)
    measured: Any = hidden_once([windows[index] for index in sorted(held)], masking)
    read = torch.utils.data.Subset(windows, [index for index in range(len(windows)) if index not in held])
    if not any(label != -100 for item in measured for label in item["labels"]):
        raise ValueError("No word of the held-out text is hidden: name more text, or hide a larger share (mask).")

    args = TrainingArguments(
        str(folder), max_steps=steps or -1, num_train_epochs=1 if minutes is None else 1000,
        per_device_train_batch_size=batch_size, per_device_eval_batch_size=batch_size, learning_rate=learning_rate,
        warmup_steps=0.06, weight_decay=0.01, eval_strategy="no", save_steps=save_steps, save_total_limit=1,
        logging_steps=50, report_to="none", seed=seed, remove_unused_columns=False, label_names=["labels"],
        prediction_loss_only=True, bf16=bf16, use_cpu=use_cpu, dataloader_pin_memory=False, disable_tqdm=None,
    )  # fmt: skip
    budget = TimeBudget(len(measured))
    if minutes is not None:
        args.max_minutes = minutes  # type: ignore[attr-defined]
    trainer = _AdaptingTrainer(
        model=model,
        args=args,
        train_dataset=read,
        eval_dataset=measured,
        data_collator=masking,
        processing_class=tokenizer,
        callbacks=[budget] if minutes is not None else None,
    )
    trainer.remove_callback(PrinterCallback)
    began = monotonic()
    before = trainer.evaluate()["eval_loss"]
    budget.pause = monotonic() - began
    with (
        full_disk_said(folder, remedy="go on with --resume"),
        locked(folder) if args.should_save else contextlib.nullcontext(),
    ):
        trainer.go(resume)
        after = trainer.evaluate()["eval_loss"]
        record = {
            "encoder": encoder,
            "head": "the encoder's" if has_head else "new",
            "sub-words": len(windows.ids),
            "windows": {"read": len(read), "held out": len(measured), "length": window},
            "steps": trainer.state.global_step,
            "passes": round(trainer.state.epoch or 0, 3),
            "minutes": round((monotonic() - begun) / 60, 1),
            "settings": {"batch_size": batch_size, "learning_rate": learning_rate, "mask": mask, "seed": seed},
            "loss": {"before": before, "after": after},
            "perplexity": {"before": math.exp(min(before, 700)), "after": math.exp(min(after, 700))},
        }
        trainer.save_model()
        if args.should_save:
            write_whole(folder / RECORD, json.dumps(record, indent=1))
            checkpoints.remove_all(folder)
    return record
