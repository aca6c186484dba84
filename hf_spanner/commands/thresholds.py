"""Thresholds and an approach's own inference parameters on the command line."""

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
