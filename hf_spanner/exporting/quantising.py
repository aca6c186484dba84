"""Weights in eight bits, in all layers but those that spoil the answers: which these are is measured, kind by kind.

Weights get a scale for each output channel; activations are rounded as they come, with a scale for each matrix. So a
kind of layer whose activations have outliers (in BERT and RoBERTa the feed-forward ones) loses everything else.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPERATORS = ("MatMul", "Gemm")
ELSEWHERE = "elsewhere"  # operators of which the graph does not say where they come from


@dataclass
class Choice:
    """Which kinds of layers stay in single precision, and what was measured (F1) to choose them."""

    full: float  # F1 in single precision
    alone: dict[str, float] = field(default_factory=dict)  # with this kind alone in eight bits
    steps: list[tuple[str | None, float]] = field(default_factory=list)  # what was put back, and F1 then

    @property
    def kept(self) -> list[str]:
        """What stays in single precision."""
        return [kind for kind, _ in self.steps if kind is not None]

    @property
    def f1(self) -> float:
        """F1 of the model that was chosen."""
        return self.steps[-1][1]

    def told(self) -> list[str]:
        """For people, a line each."""
        lines = [f"F1 {100 * self.full:.2f} in single precision, {100 * self.steps[0][1]:.2f} all in eight bits."]
        lines += [
            f"{kind} put back into single precision ({100 * self.alone[kind]:.2f} by itself): {100 * f1:.2f}"
            for kind, f1 in self.steps
            if kind is not None
        ]
        return lines


def choose(kinds: Collection[str], score: Callable[[Collection[str]], float], full: float, most_lost: float) -> Choice:
    """Put back what does most harm until no more than `most_lost` of F1 is lost.

    Args:
        kinds: of layers.
        score: F1 when these kinds are in single precision and the others in eight bits.
        full: F1 when all are in single precision.
    """
    choice = Choice(full, steps=[(None, score(()))])
    if full - choice.f1 <= most_lost:
        return choice
    choice.alone = {kind: score([other for other in kinds if other != kind]) for kind in kinds}
    for kind in sorted(kinds, key=lambda kind: choice.alone[kind]):
        choice.steps.append((kind, score([*choice.kept, kind])))
        if full - choice.f1 <= most_lost:
            break
    return choice


def kinds_of(graph: Path, modules: Mapping[str, str]) -> dict[str, list[str]]:
    """The operators with weights that can be had in eight bits, by the kind of layer that they belong to."""
    import onnx

    network = onnx.load(str(graph), load_external_data=False).graph
    weights = {value.name for value in network.initializer}
    kinds: dict[str, list[str]] = {}
    for node in network.node:
        if node.op_type in OPERATORS and node.input[1] in weights:
            kinds.setdefault(modules.get(node.name) or ELSEWHERE, []).append(node.name)
    return dict(sorted(kinds.items()))


def quantise(graph: Path, to: Path, leave_out: Collection[str]) -> None:
    """Write a graph with the weights of all operators but some in eight bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        quantize_dynamic(
            graph,
            to,
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=list(OPERATORS),
            nodes_to_exclude=list(leave_out),
        )
    finally:
        logging.disable(before)


def fuse(graph: Path) -> None:
    """Join operators as ONNX Runtime's own optimiser for transformers does; what it does not know stays as it is."""
    from onnxruntime.transformers import optimizer

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        fused: Any = optimizer.optimize_model(str(graph), model_type="bert", opt_level=0)
        fused.save_model_to_file(str(graph))
    finally:
        logging.disable(before)
