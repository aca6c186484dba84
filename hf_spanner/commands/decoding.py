"""How entities are chosen, on the command line: threshold, overlap, head, and an approach's own parameters."""

import argparse
from typing import Any

import yaml


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
        if "=" not in pair:
            raise ValueError(f"Cannot read the inference parameter {pair!r}: write NAME=VALUE, such as num_steps=1.")
    return {name.strip(): yaml.safe_load(value) for name, value in (pair.split("=", 1) for pair in pairs)}


def add_decoding_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threshold", help="least score: 0.5, or PER=0.4,ORG=0.6 (default: the model's)")
    parser.add_argument("--overlap", choices=["flat", "nested", "any"], help="default: the model's configuration")
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
    options = {"threshold": threshold, "overlap": args.overlap, "head": args.head, **parse_inference(args.set)}
    return {name: value for name, value in options.items() if value is not None}
