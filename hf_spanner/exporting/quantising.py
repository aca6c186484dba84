"""Weights in eight bits: how each kind of layer is rounded is chosen by measuring what it costs.

All layers begin rounded, with a scale for each output channel of the weights and smoothed activations. If F1 falls
by more than is allowed, the kinds of layers that do most harm get activations with scaled rows, which costs little; if
that is not enough, single precision.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .smoothing import OPERATORS, scale_rows, with_weights

ELSEWHERE = "elsewhere"  # operators of which the graph does not say where they come from
PLAN = dict[str, str]  # by kind of layer what is done about it: one of
ROWS, FLOAT32 = "scaled rows", "float32"


@dataclass
class Choice:
    """What is done about which kinds of layers, and what was measured (F1) to choose it."""

    full: float  # F1 in single precision
    alone: dict[str, float] = field(default_factory=dict)  # all in eight bits but this kind
    steps: list[tuple[PLAN, float]] = field(default_factory=list)  # the plans that were tried, and F1 with each

    @property
    def plan(self) -> PLAN:
        """The one that was chosen: the last that was tried."""
        return self.steps[-1][0]

    def told(self) -> list[str]:
        """For people, a line each."""
        lines = [f"F1 {100 * self.full:.2f} in single precision, {100 * self.steps[0][1]:.2f} with all in eight bits."]
        for (before, _), (plan, f1) in zip(self.steps, self.steps[1:], strict=False):
            (kind,) = (kind for kind in plan if plan[kind] != before.get(kind))
            without = 100 * self.alone[kind]
            lines.append(f"{kind}: {plan[kind]} (left out of int8: {without:.2f}); F1 is now {100 * f1:.2f}.")
        return lines


def choose(kinds: Collection[str], score: Callable[[PLAN], float], full: float, most_lost: float) -> Choice:
    """Do more about the kinds that do most harm, one by one, until no more than `most_lost` of F1 is lost.

    Args:
        kinds: of layers.
        score: F1 with a plan.
        full: F1 when all are in single precision.
    """
    choice = Choice(full, steps=[({}, score({}))])
    if full - choice.steps[0][1] <= most_lost:
        return choice
    choice.alone = {kind: score({kind: FLOAT32}) for kind in kinds}
    worst_first = sorted(kinds, key=lambda kind: -choice.alone[kind])
    for remedy in (ROWS, FLOAT32):
        for kind in worst_first:
            plan = {**choice.plan, kind: remedy}
            choice.steps.append((plan, score(plan)))
            if full - choice.steps[-1][1] <= most_lost:
                return choice
    return choice


def kinds_of(graph: Path, modules: Mapping[str, str]) -> dict[str, list[str]]:
    """The operators with weights that can be had in eight bits, by the kind of layer that they belong to."""
    import onnx

    kinds: dict[str, list[str]] = {}
    for node in with_weights(onnx.load(str(graph)).graph):
        kinds.setdefault(modules.get(node.name) or ELSEWHERE, []).append(node.name)
    return dict(sorted(kinds.items()))


def quantise(graph: Path, to: Path, kinds: Mapping[str, Collection[str]], plan: PLAN) -> None:
    """Write a (smoothed) graph in eight bits as a plan says."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    names = {
        what: [name for kind in kinds if plan.get(kind) == what for name in kinds[kind]] for what in (ROWS, FLOAT32)
    }
    scaled = to.with_suffix(".rows.onnx")
    scale_rows(graph, scaled, names[ROWS])
    with quiet():
        quantize_dynamic(
            scaled,
            to,
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=list(OPERATORS),
            nodes_to_exclude=names[FLOAT32],
        )
    scaled.unlink()


def fuse(graph: Path) -> None:
    """Join operators as ONNX Runtime's own optimiser for transformers does; what it does not know stays as it is."""
    from onnxruntime.transformers import optimizer

    with quiet():
        fused: Any = optimizer.optimize_model(str(graph), model_type="bert", opt_level=0)
        fused.save_model_to_file(str(graph))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what the tools of ONNX Runtime say about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
