"""What several commands read: a split of annotated data, and systems, that is trained models or prediction files."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import load_nested_ner, resplit_words
from ..evaluation import read_predictions
from ..inference import predict_sentences
from ..modeling.words import SPLITTERS
from ..pipelines import load_model


def load_split(
    source: str, split: str, format: str | None = None, resplit: str | None = None
) -> tuple[list[dict], Any, str]:
    """The sentences of a split, all of the data, and the split's name: of data with a single one, that one.

    With `resplit` words are cut as that word splitter cuts raw text.
    """
    data = load_nested_ner(source, format=format)
    if split not in data:
        if len(data) > 1:
            raise ValueError(f"{source} has no split {split!r}, only {sorted(data)}: choose one with --split.")
        split = next(iter(data))  # a single file is what it is
    if resplit is not None:
        data = {name: [resplit_words(sentence, resplit) for sentence in part] for name, part in data.items()}
    return list(data[split]), data, split


def training_sentences(args: argparse.Namespace, data: Any, split: str) -> list[dict] | None:
    """The training sentences, from --train or from the data; None if there are none apart from the split itself."""
    if args.train is not None:
        return load_split(args.train, "train", args.format, args.resplit)[0]
    return list(data["train"]) if "train" in data and split != "train" else None


def add_data_arguments(parser: argparse.ArgumentParser, split: str = "test") -> None:
    parser.add_argument("data", help="a file, a folder with splits, or a Hub data set")
    parser.add_argument("--split", default=split, help=f"which split to look at (default: {split})")
    parser.add_argument("--format", help="the data's format, if it cannot be told from the file")
    parser.add_argument("--resplit", choices=sorted(SPLITTERS), help="cut the data's words as this cuts raw text")
    parser.add_argument("--batch-size", type=int, default=32)


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_arguments(parser)
    parser.add_argument("--train", help="training data, for what training has shown (default: the data's train split)")
    parser.add_argument("--output", help="write FILE.html, FILE.json and FILE.md; the ending may be given or not")
    parser.add_argument("--title", help="what stands at the top")
    parser.add_argument("--resamples", type=int, default=10_000, help="of the bootstrap and the randomisation")
    parser.add_argument(
        "--representations", action="store_true", help="look at span representations too (Tables 4 and 5 of paper 000)"
    )


@dataclass
class System:
    """A trained model or a file of predictions, under the name that tables give it."""

    name: str
    place: str
    model: Any = None
    tokenizer: Any = None

    @classmethod
    def named(cls, text: str) -> System:
        """`name=place` or a place alone: a model's folder or Hub id, or a JSON Lines file of predictions."""
        name, equals, place = text.partition("=")
        if not equals:
            name, place = "", text
        path = Path(place)
        name = name or (path.stem if path.is_file() else path.name)
        system = cls(name, place)
        if not path.is_file():
            system.model, system.tokenizer = load_model(place)
            if system.model.task == "typing":
                raise ValueError(
                    f"{place} types spans that it is given and finds none: its typing accuracy is what `hf-spanner "
                    "evaluate` says."
                )
        return system

    def predict(self, sentences: list[dict], batch_size: int = 32) -> list[list]:
        """The entities of every sentence: the model's, or those of the file."""
        if self.model is None:
            return read_predictions(self.place, sentences)
        return predict_sentences(self.model, self.tokenizer, sentences, batch_size, progress=True)

    def represent(self, sentences: list[dict], batch_size: int = 16) -> dict[str, Any]:
        """What `describe_representations` says of the model."""
        from ..analysis.representations import describe_representations, span_representations

        if self.model is None:
            raise ValueError(f"{self.place} is a file of predictions: --representations needs the model.")
        return describe_representations(
            span_representations(self.model, self.tokenizer, sentences, batch_size, progress=True)
        )


def write_outputs(output: str, **contents: str) -> list[Path]:
    """Write `output` with each ending (html, json, md); returns the files."""
    stem = Path(output)
    if stem.suffix in (".html", ".json", ".md"):
        stem = stem.with_suffix("")
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = []
    for ending, content in contents.items():
        files.append(stem.with_name(f"{stem.name}.{ending}"))
        files[-1].write_text(content, encoding="utf-8")
    return files
