"""All that a table may ask of a run, each part measured once and kept as a JSON file beside the run's model.

`measure: scores.f1` names a section and a way through what it holds. The sections are the functions of `SECTIONS`, for
a trained model, and those of `WITHOUT_TRAINING`, for a corpus or a recipe.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.probabilities import gold_probabilities
from ..analysis.representations import describe_representations, span_representations
from ..benchmarks.reading_speed import count_spans
from ..data.describe import statistics
from ..data.loading import load_nested_ner
from ..data.reshaping import remove_overlaps
from ..evaluation.errors import list_errors, summarise_errors
from ..evaluation.groups import groupings, score_groupings, unseen_density
from ..evaluation.mentions import Mention, list_mentions, score_mentions
from ..evaluation.predicting import predict_sentences
from ..evaluation.predictions import read_predictions, write_predictions
from ..evaluation.scoring import score_predictions
from ..hub.record import RECORD, read_record
from ..loading import load_model
from .runs import Commands, Run
from .tables import Cell


class Reading:
    """A trained run, read on a split as a cell asks: what it finds, and whatever is measured of that."""

    def __init__(self, run: Run, cell: Cell, commands: Commands):
        self.run, self.cell, self.commands = run, cell, commands
        how = [f"{name}={value}" for name, value in sorted(cell.evaluate.items())]
        self.folder = run.folder / "reproduced" / ",".join([cell.split, *how])

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The splits as the training saw them."""
        return self.commands.data(self.run.argv())

    @property
    def split(self) -> str:
        return self.cell.split if self.cell.split in self.data else "validation"

    @cached_property
    def sentences(self) -> list[Any]:
        return list(self.data[self.split])

    @property
    def gold(self) -> list[Any]:
        return [sentence["entities"] for sentence in self.sentences]

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        return load_model(str(self.run.folder), device="auto")

    @cached_property
    def found(self) -> Sequence[Any]:
        """What the model finds: as it was written down, or read now and written down."""
        file = self.folder / "predictions.jsonl"
        if not file.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            found = predict_sentences(*self.loaded, self.sentences, **self.cell.evaluate)
            aside = file.with_suffix(".part")
            write_predictions(aside, self.sentences, found)
            aside.rename(file)
        return read_predictions(file, self.sentences)

    @cached_property
    def mentions(self) -> list[Mention]:
        return list_mentions(self.found, self.gold)

    def section(self, name: str) -> tuple[dict[str, Any], Path]:
        """A part of what can be measured, and the file that holds it."""
        if name in RECORDED:
            return RECORDED[name](read_record(self.run.folder / RECORD)), self.run.folder / RECORD
        if name not in SECTIONS:
            raise ValueError(f"There is no measure {name!r}: choose from {', '.join([*SECTIONS, *RECORDED])}.")
        file = self.folder / f"{name}.json"
        if not file.is_file():
            content = SECTIONS[name](self)
            file.parent.mkdir(parents=True, exist_ok=True)
            aside = file.with_suffix(".part")
            aside.write_text(json.dumps(content, indent=1), encoding="utf-8")
            aside.rename(file)
        return json.loads(file.read_text(encoding="utf-8")), file


def look_up(content: Any, measure: str) -> Any:
    """What stands at `section.key.key` in the content of the section; keys are matched whole, and may hold dots.

    The score of nothing, neither in the gold nor found, is None: it is not 0.
    """
    rest = measure.partition(".")[2]
    while rest:
        keys = (
            [key for key in content if rest == key or rest.startswith(f"{key}.")] if isinstance(content, dict) else []
        )
        if not keys:
            names = ", ".join(map(str, content))[:200] if isinstance(content, dict) else repr(content)
            raise LookupError(f"{measure!r} is not there: {rest!r} is none of {names or 'nothing'}.")
        key = max(keys, key=len)
        if key in ("precision", "recall", "f1") and content.get("support") == content.get("predicted") == 0:
            return None
        content, rest = content[key], rest[len(key) + 1 :]
    return content


def of_length(bounds: str) -> Callable[[Mention], bool]:
    """Whether a mention has so many words: `5`, `1-4`, `10-`."""
    low, dash, high = bounds.partition("-")
    return lambda mention: int(low) <= mention.end - mention.start <= (float(high or "inf") if dash else int(low))


# ------------------------------------------------------------------------------------------------ what a run has found


def _scores(reading: Reading) -> dict[str, Any]:
    return score_predictions(reading.loaded[0], reading.found, reading.sentences)


def _types(reading: Reading) -> dict[str, Any]:
    return reading.section("scores")[0]["per_type"]


def _lengths(reading: Reading) -> dict[str, Any]:
    """Scores of entities of exactly so many words, and of the ranges that the papers have."""
    longest = max((m.end - m.start for m in reading.mentions), default=1)
    ranges = [*map(str, range(1, max(longest, 25) + 1)), *RANGES]
    return {name: score_mentions(filter(of_length(name), reading.mentions)) for name in ranges}


RANGES = ("1-4", "5-9", "6-10", "5-", "6-", "10-", "11-", "20-")


def _groups(reading: Reading) -> dict[str, Any]:
    return score_groupings(reading.mentions, reading.sentences, list(reading.data["train"]))


def _errors(reading: Reading) -> dict[str, Any]:
    return summarise_errors(list_errors(reading.mentions))


def _cases(reading: Reading, number: int = 3) -> dict[str, Any]:
    """Sentences with most entities, in brackets: `[` and `]label` of what is found, `{` and `}label` of the gold."""
    order = sorted(range(len(reading.sentences)), key=lambda i: -len(reading.gold[i]))[:number]
    of = {i: [m for m in reading.mentions if m.sentence == i] for i in order}
    return {str(n): bracketed(reading.sentences[i]["tokens"], of[i]) for n, i in enumerate(order, 1)}


def bracketed(words: Sequence[str], mentions: Sequence[Mention]) -> str:
    """A sentence with its entities in brackets: `[` what is found `]label`, `{` what the gold has `}label`."""
    opening: list[list[str]] = [[] for _ in words]
    closing: list[list[str]] = [[] for _ in words]
    for mention in sorted(mentions, key=lambda m: (m.start - m.end, m.label)):  # the longest opens first, closes last
        for there, (left, right) in ((mention.gold, "{}"), (mention.predicted, "[]")):
            if there:
                opening[mention.start].append(left)
                closing[mention.end - 1].insert(0, f"{right}{mention.label}")
    return " ".join("".join(opening[i]) + word + "".join(closing[i]) for i, word in enumerate(words))


def _representations(reading: Reading) -> dict[str, Any]:
    return describe_representations(span_representations(*reading.loaded, reading.sentences))


def _probabilities(reading: Reading) -> dict[str, Any]:
    """What Figures 4 to 6 of SNG show, as numbers."""
    thoughts = gold_probabilities(*reading.loaded, _known(reading))
    right, of_gold = thoughts.right, thoughts.of_gold
    return {
        "entities": len(thoughts),
        "right": float(right.mean()),
        "median": {
            name: float(np.median(of_gold[chosen])) if chosen.any() else None
            for name, chosen in (("right", right), ("wrong", ~right))
        },
        "twice as probable": float((thoughts.probabilities.max(1) > 2 * of_gold).mean()),
    }


def _known(reading: Reading) -> list[Any]:
    """The sentences without entities of labels that training never had."""
    labels = set(reading.loaded[0].config.labels)
    return [{**s, "entities": [e for e in s["entities"] if e["label"] in labels]} for s in reading.sentences]


def _filter(reading: Reading) -> dict[str, Any]:
    return count_spans(*reading.loaded, reading.sentences)


def _unseen(reading: Reading) -> dict[str, Any]:
    return {"density": unseen_density(reading.sentences, list(reading.data["train"]))}


def _picture(kind: str) -> Callable[[Reading], dict[str, Any]]:
    """A picture of `hf-spanner pictures`: its files, and the numbers that some pictures write down."""

    def draw(reading: Reading) -> dict[str, Any]:
        model, folder = str(reading.run.folder), reading.folder / "pictures"
        data = ["--data", reading.run.data, "--split", reading.split, "--model", model]
        said = io.StringIO()
        try:
            with redirect_stdout(said), redirect_stderr(said):
                reading.commands.pictures([*data, "--output", str(folder), "--pictures", kind])
        except SystemExit as error:  # of the parser, which has said why
            raise ValueError(said.getvalue().strip()) from error
        files = {file.suffix[1:]: file.name for file in sorted(folder.glob(f"{kind}.*"))}
        numbers = folder / f"{kind}.json"
        return {
            "picture": f"pictures/{files['png']}",
            **(json.loads(numbers.read_text("utf-8")) if numbers.is_file() else {}),
        }

    return draw


SECTIONS: dict[str, Callable[[Reading], dict[str, Any]]] = {
    "scores": _scores,
    "types": _types,
    "length": _lengths,
    "groups": _groups,
    "errors": _errors,
    "cases": _cases,
    "representations": _representations,
    "probabilities": _probabilities,
    "filter": _filter,
    "unseen": _unseen,
    "pca": _picture("pca"),
    "violin": _picture("violin"),
    "volcano": _picture("volcano"),
    "scatter": _picture("representations"),
    "offsets": _picture("offsets"),
}


# ------------------------------------------------------------------------------------------------ what its record says


def _losses(record: Mapping[str, Any]) -> dict[str, Any]:
    rows = record.get("loss_by_epoch") or []
    points = [[row["epoch"], row["loss"]] for row in rows]
    return {"by_epoch": points, "first": points[0][1], "last": points[-1][1]} if points else {}


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    return dict(record)


RECORDED: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"record": _record, "losses": _losses}


# ---------------------------------------------------------------------------------------------- what needs no training


def describe_corpus(source: str) -> dict[str, Any]:
    """The statistics of a corpus by split, and of all: what the papers' tables of data sets count.

    `one label` has the same with one label a span, as the files of Locate and Label have them.
    """
    data = {str(split): list(part) for split, part in load_nested_ner(source).items()}
    result = _parts(data)
    if "train" in data and "test" in data:
        result["test"]["unseen words"] = unseen_density(data["test"], data["train"])
    return result | {"one label": _parts({k: remove_overlaps(part, "one_label")[0] for k, part in data.items()})}


def _parts(data: Mapping[str, list[Any]]) -> dict[str, Any]:
    whole = {
        "all": [sentence for part in data.values() for sentence in part],
        "train and validation": [*data.get("train", ()), *data.get("validation", ())],
    }
    return {name: _counts(part) for name, part in {**data, **whole}.items()}


def _counts(sentences: list[Any]) -> dict[str, Any]:
    counts = statistics(sentences)
    return {
        "sentences": counts.sentences,
        "words": counts.words,
        "types": len(counts.labels),
        "entities": counts.entities,
        "nested": counts.nested,
        "sentences with nesting": counts.sentences_with_nesting,
        "words a sentence": counts.mean_length,
        "nested or covering": counts.in_nesting,
        "share nested or covering": counts.nesting_percentage / 100,
    }


WITHOUT_TRAINING = ("statistics", "recipe")


def groups_of(reading: Reading, measure: str) -> list[bool] | None:
    """Which mentions a score is about, in the order of `reading.mentions`; None if it is not the score of mentions."""
    section, _, rest = measure.partition(".")
    *middle, _ = rest.split(".")
    if section == "scores" and not middle:
        return [True] * len(reading.mentions)
    if section == "length":
        return list(map(of_length(middle[0]), reading.mentions))
    if section == "groups":
        grouping, name = middle[0], ".".join(middle[1:])
        keys = groupings(reading.mentions, reading.sentences, list(reading.data["train"]))[grouping]
        return [key == name for key in keys]
    return None
