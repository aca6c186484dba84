"""Protocols of papers that `hf-spanner train` can follow: what is trained on, joined and counted beforehand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datasets import concatenate_datasets
from transformers.trainer_utils import IntervalStrategy

from ..auto import approach
from ..building.subwords import size_embedding_rows, subword_counter
from ..data import join_to_size
from ..default import folder_of
from ..loading import load_config, load_tokenizer
from ..training import NestedNerTrainingArguments

if TYPE_CHECKING:
    from .train import RunArguments, Task

ENCODER = "bert-base-cased"


def keep_the_last(args: NestedNerTrainingArguments) -> None:
    """Arguments for a training without validation data: nothing is evaluated meanwhile, the last weights are kept."""
    if args.patience is not None:
        raise ValueError(
            "--train_on with validation leaves nothing to wait for a better checkpoint by: no --patience."
        )
    args.eval_strategy, args.load_best_model_at_end = IntervalStrategy.NO, False
    args.unset -= {"eval_strategy", "load_best_model_at_end", "patience"}


def trained_on(data, splits: Sequence[str]):
    """The data with several splits as its training data; of one without validation data that is all of train."""
    if unknown := [name for name in splits if name not in (*data, "validation")]:
        raise ValueError(f"--train_on names the split {unknown[0]!r}; the data has {', '.join(data)}.")
    if "test" in splits or "train" not in splits or len(set(splits)) < len(splits):
        raise ValueError(f"--train_on {' '.join(splits)}: name train and others to train on, each once, and not test.")
    rest = {name: part for name, part in data.items() if name not in splits}
    return type(data)({"train": concatenate_datasets([data[name] for name in splits if name in data]), **rest})


def joined_to_subwords(data, most: int, counter: Callable[[Mapping[str, Any]], int], say):
    """The data with neighbouring sentences of documents joined; what came of it is said."""
    joined = type(data)({split: like(part, list(join_to_size(part, most, counter))) for split, part in data.items()})
    sizes = ", ".join(f"{split} {len(part):,} of {len(data[split]):,}" for split, part in joined.items())
    say(f"joined up to {most} sub-words: {sizes} sentences")
    if alone := sum(doc is None for part in data.values() for doc in part["doc_id"]):
        say(f"{alone:,} sentences have no doc_id: they stay alone.")
    return joined


def count_sizes(task: Task, data: Any) -> list[str]:
    """Set the rows of a new model's size embeddings, if they are to be counted; returns a line that says so."""
    run, settings = task.run, task.settings
    if run.size_embedding_quantile is None:
        return []
    known = {f.name: f.default for f in dataclasses.fields(approach(str(run.approach)).config_class)}
    if run.model is not None or "size_embedding_rows" not in known or "size_embedding_rows" in settings:
        raise ValueError(
            f"--size_embedding_quantile {run.size_embedding_quantile:g} is for a new dspert or biaffine_ner model "
            "whose --size_embedding_rows are not given."
        )
    value = {name: settings.get(name, known[name]) for name in ("max_span_length", "span_unit")}
    sentences = [sentence for split in ("train", "validation") for sentence in data.get(split, ())]
    counter = subword_counter_of(task) if value["span_unit"] == "subword" else None
    rows = size_embedding_rows(sentences, run.size_embedding_quantile, value["max_span_length"], counter)
    settings["size_embedding_rows"] = rows
    share = f"{run.size_embedding_quantile:.1%} of the entities"
    return [f"size_embedding_rows {rows}: as many as sizes of {share}, and no more than max_span_length."]


def subword_counter_of(task: Task) -> Callable[[Mapping[str, Any]], int]:
    """What counts the sub-words of a sentence that the model of a training will read."""
    run = task.run
    start = approach(str(run.approach)).config_class
    if "encoder_config" not in start.sub_configs:
        raise ValueError(f"--join_subwords {run.join_subwords}: {run.approach} has no encoder and reads whole words.")
    saved = start if run.model is None else load_config(run.model)
    longest = task.settings.get("max_word_subwords", saved.max_word_subwords)
    return subword_counter(load_tokenizer(folder_of(run.model) if run.model else encoder_of(run)), longest)


def like(part, sentences: list):
    """Sentences as a data set with the columns of another."""
    return type(part).from_list(sentences, features=part.features)


def encoder_of(run: RunArguments) -> str:
    """The encoder of a new model."""
    return folder_of(run.encoder or ENCODER)
