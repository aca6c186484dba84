"""What the command lines share: parsers, and options for data, decoding and reports."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import yaml

from ..building.subwords import subword_counter
from ..data.reshaping import join_to_size, of_mentions
from ..data.schema import Sentence
from ..data.splits import load_split
from ..default import folder_of
from ..evaluation.groups import LENGTH, Bins
from ..harmless import harmless
from ..loading import load_config, load_tokenizer
from ..modeling.words import SPLITTERS


class OneSentence(argparse.ArgumentParser):
    """A parser that answers a mistake in one sentence, not with the list of all options."""

    def error(self, message: str) -> NoReturn:
        told = " ".join(harmless(message, keep="\n").split())
        self.exit(2, f"{self.prog}: {told.rstrip('.')}; see `{self.prog} --help`.\n")


def make_parser(command: str, description: str | None, epilog: str | None = None) -> OneSentence:
    """The parser of `hf-spanner COMMAND`; description and epilog are shown as they are written.

    A flag is never abbreviated: another command's, or a later release's, might mean something else.
    """
    return OneSentence(
        prog=f"hf-spanner {command}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def say(*parts: object) -> None:
    """Print; what comes from files, models and data can do nothing to the terminal."""
    print(*(harmless(part, keep="\n\t") for part in parts), flush=True)


def parse_with_data(
    parser: argparse.ArgumentParser, argv: list[str] | None, *others: str, explain: str = ""
) -> argparse.Namespace:
    """Parse a command that reads data: `--data DATA`, or DATA before the other arguments without a flag.

    Args:
        others: what those are called; the last one may end in "..." and then stands for a list. They are attributes of
            the result, in small letters.
        explain: what they are, for the help.
    """
    names = " ".join(others)
    parser.add_argument("--data", help="a file, a folder with splits, a Hub data set, or 'sample'")
    parser.add_argument(
        "places",
        nargs="*",
        metavar=f"[DATA] {names}".strip(),
        help=f"DATA comes first, if --data is not given. {explain}",
    )
    required = [f"{a.option_strings[0]} {a.dest.upper()}" for a in parser._actions if a.required and a.option_strings]
    parser.usage = " ".join(filter(None, [parser.prog, "[--data] DATA", names, *required, "[options]"]))
    args = parser.parse_intermixed_args(argv)  # flags may stand anywhere
    places = args.__dict__.pop("places")
    if args.data is None and places:
        args.data = places.pop(0)
    if not args.data:  # an empty name, such as "$DATA" where it is not set, would be the folder one stands in
        parser.error("the data is not named: --data DATA")
    listed = bool(others) and others[-1].endswith("...")
    if len(places) > len(others) and not listed:
        parser.error(
            f"the data is named twice, or there is one argument too many: --data {args.data}, and {', '.join(places)}"
        )
    if len(places) < len(others):
        parser.error(f"{others[len(places)].rstrip('.')} is missing")
    for index, name in enumerate(others):
        value = places[index:] if name.endswith("...") else places[index]
        setattr(args, name.rstrip(".").lower(), value)
    return args


def training_sentences(
    args: argparse.Namespace, data: Mapping[str, Any], split: str, splitter: str | None
) -> list[Sentence] | None:
    """The training sentences, from --train or from the data; None if there are none apart from the split itself."""
    if args.train is not None:
        return load_split(args.train, "train", args.format, args.resplit, splitter)[0]
    return list(data["train"]) if "train" in data and split != "train" else None


def add_data_arguments(parser: argparse.ArgumentParser, split: str = "test") -> None:
    parser.add_argument("--split", default=split, help=f"which split to look at (default: {split})")
    parser.add_argument("--format", help="the data's format, if it cannot be told from the file")
    parser.add_argument("--resplit", choices=sorted(SPLITTERS), help="cut the data's words as this cuts raw text")
    add_device_arguments(parser)


DTYPES = ("float32", "bfloat16", "float16")


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        help="windows of text read at once (default: 32); less if memory is short",
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="auto (a GPU if there is one), cpu, cuda:1, mps, or spread: over all there are, for large encoders",
    )
    parser.add_argument("--dtype", choices=DTYPES, help="of the model's numbers (default: as they were saved)")


def device_options(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for by the arguments of [`add_device_arguments`], for `load_model`."""
    return {"device": args.device, "dtype": args.dtype}


def looked_at(args: argparse.Namespace, sentences: list[Any]) -> tuple[list[Any], list[str] | None]:
    """The sentences with what --labels and --mentions leave of their entities, and the kinds of mention; of systems
    only entities with these labels and kinds are looked at."""
    labels, mentions = listed(args.labels), listed(args.mentions)
    if labels is not None:
        there = {e["label"] for s in sentences for e in s["entities"]}
        if unknown := [label for label in labels if label not in there]:
            raise ValueError(f"--labels names {unknown[0]!r}; the data has {', '.join(sorted(there))}.")
        sentences = [
            {**s, "labels": labels, "entities": [e for e in s["entities"] if e["label"] in labels]} for s in sentences
        ]
    return of_mentions(sentences, mentions), mentions


def listed(text: str | None) -> list[str] | None:
    """Names with commas between them, as a list."""
    return None if text is None else [name.strip() for name in text.split(",")]


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="LABEL,...", help="look at entities with these labels only")
    parser.add_argument(
        "--mentions", metavar="KIND,...", help="look at mentions of these kinds only: name, or name,nominal"
    )
    add_data_arguments(parser)
    parser.add_argument("--train", help="training data, for what training has shown (default: the data's train split)")
    parser.add_argument("--output", help="write FILE.html, FILE.json and FILE.md; the ending may be given or not")
    parser.add_argument("--title", help="what stands at the top")
    parser.add_argument("--resamples", type=int, default=10_000, help="of the bootstrap and the randomisation")
    parser.add_argument(
        "--representations", action="store_true", help="look at span representations too (Tables 4 and 5 of DSpERT)"
    )
    add_join_subwords(parser)
    add_length_bins(parser)


def add_join_subwords(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--join-subwords",
        type=int,
        metavar="N",
        help="read neighbouring sentences of a document at once, as many as have N sub-words together (DSpERT: 510)",
    )


def joined(sentences: list[Any], most: int | None, place: str) -> list[Any]:
    """The sentences as a model reads them that was trained with `--join_subwords`; its tokenizer counts."""
    if most is None:
        return sentences
    if Path(place).is_file():
        raise ValueError(f"--join-subwords {most} counts by the tokenizer of a model, and {place} is a file.")
    config = load_config(place)
    if config.encoder_config is None:
        raise ValueError(f"--join-subwords {most}: {place} has no encoder and reads whole words.")
    return list(
        join_to_size(sentences, most, subword_counter(load_tokenizer(folder_of(place)), config.max_word_subwords))
    )


def add_length_bins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--length-bins",
        nargs="+",
        metavar="WORDS",
        help="score entities by these lengths, such as 1 2 3 4 5-9 10- (default: 1 2 3 4 5 6-10 11-)",
    )


def length_bins(ranges: Sequence[str] | None) -> Bins:
    """The groups of lengths that were asked for, or the usual ones."""
    return LENGTH if ranges is None else Bins.parse(ranges)


REPORTERS = ("wandb", "tensorboard", "mlflow", "trackio", "comet_ml", "clearml", "swanlab", "dvclive", "codecarbon")


def check_reporters(names: Iterable[str]) -> None:
    """Refuse a `--report_to` whose package is not installed, before any work is done."""
    for name in names:
        if name in REPORTERS and not find_spec(name) and not (name == "tensorboard" and find_spec("tensorboardX")):
            raise ImportError(f"--report_to {name} needs {name}, which is not installed: `pip install {name}`.")


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


def parse_threshold(text: str) -> float | dict[str, float]:
    """`0.5` for all labels, or `PER=0.4,ORG=0.6` by label (labels may hold spaces)."""
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.rsplit("=", 1) for part in text.split(","))
        return {label.strip(): float(value) for label, value in pairs}
    except ValueError:
        raise ValueError(f"Cannot read the threshold {text!r}: write 0.5, or PER=0.4,ORG=0.6.") from None


def parse_inference(pairs: list[str]) -> dict[str, Any]:
    """`["num_steps=1", "seed=7"]` as a dict; values are read as YAML."""
    for pair in pairs:
        if "=" not in pair or not pair.partition("=")[0].strip():
            raise ValueError(f"Cannot read the inference parameter {pair!r}: write NAME=VALUE, such as num_steps=1.")
    return {name.strip(): read_yaml(value, name) for name, value in (pair.split("=", 1) for pair in pairs)}


def read_yaml(text: str, name: str) -> Any:
    """The value of a flag: `null`, `0.5`, `[1, 2]`, a word."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        raise ValueError(f"Cannot read {name} {text!r:.80}: write a number, a word, null, or a list [1, 2].") from None


def add_decoding_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threshold", help="least score: 0.5, or PER=0.4,ORG=0.6 (default: the model's)")
    parser.add_argument("--overlap", choices=["flat", "nested", "any"], help="default: the model's configuration")
    parser.add_argument(
        "--mentions", metavar="KIND,...", help="look for mentions of these kinds only: name, or name,nominal"
    )
    parser.add_argument("--head", choices=["span", "seq"], help="which head of a bundled model predicts")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an inference parameter of the approach, such as num_steps=1 or seed=7 of diffusion_ner; may be repeated",
    )


def decoding_options(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for by the arguments of [`add_decoding_arguments`], for the pipeline or `predict_sentences`."""
    threshold = None if args.threshold is None else parse_threshold(args.threshold)
    own = {"threshold": threshold, "overlap": args.overlap, "head": args.head, "mentions": listed(args.mentions)}
    options = own | parse_inference(args.set)
    return {name: value for name, value in options.items() if value is not None}
