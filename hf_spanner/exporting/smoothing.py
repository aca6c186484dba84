"""Graphs that give the same numbers, of which fewer are lost when they are rounded to eight bits.

Activations get one scale for a whole matrix. `smooth` lets the weights carry what a few of its columns have too much
(Xiao et al., 2023, SmoothQuant), `scale_rows` gives each of its rows, a word each, a length of its own.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ALPHA = 0.5  # how much of an activation's range the weights carry
OPERATORS = ("MatMul", "Gemm")


def with_weights(graph: Any) -> list[Any]:
    """The matrix products of an activation with weights."""
    weights = {value.name for value in graph.initializer}
    return [node for node in graph.node if node.op_type in OPERATORS and node.input[1] in weights]


def column_ranges(file: Path, batches: Iterable[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The largest number in each column of what is multiplied with weights, `(K,)` by its name, over some batches."""
    import onnx
    import onnxruntime

    model = onnx.load(str(file))
    names = sorted({node.input[0] for node in with_weights(model.graph)} - {x.name for x in model.graph.input})
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in known)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    inputs = [value.name for value in session.get_inputs()]
    ranges: dict[str, np.ndarray] = {}
    for batch in batches:
        for name, x in zip(names, session.run(names, {key: batch[key] for key in inputs}), strict=True):
            most = np.abs(x).reshape(-1, x.shape[-1]).max(0, initial=0.0)
            ranges[name] = np.maximum(ranges.get(name, 0.0), most)
    return ranges


def smooth(file: Path, to: Path, ranges: Mapping[str, np.ndarray], alpha: float = ALPHA) -> None:
    """Divide the columns of activations by a number each, and multiply the rows of the weights with it."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(file))
    graph = model.graph
    weights = {value.name: value for value in graph.initializer}
    users: dict[str, list[Any]] = {}
    for node in with_weights(graph):
        if node.input[0] in ranges:
            users.setdefault(node.input[0], []).append(node)
    divisions = {}
    for name, nodes in users.items():
        matrices = [(node, numpy_helper.to_array(weights[node.input[1]]), _is_turned(node)) for node in nodes]
        largest = np.maximum.reduce([np.abs(w).max(0 if turned else 1) for _, w, turned in matrices])  # (K,)
        scale = np.maximum(ranges[name], 1e-5) ** alpha / np.maximum(largest, 1e-5) ** (1 - alpha)
        scale = (scale / np.exp(np.log(scale).mean())).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(1 / scale, f"{name}_smoothing"))
        divisions[name] = helper.make_node(
            "Mul", [name, f"{name}_smoothing"], [f"{name}_smooth"], name=f"smooth_{name}"
        )
        for node, w, turned in matrices:
            carried = f"{node.input[1]}_of_{node.name}"
            w = w * (scale if turned else scale[:, None])
            graph.initializer.append(numpy_helper.from_array(w.astype(np.float32), carried))
            node.input[0], node.input[1] = f"{name}_smooth", carried
    nodes = []
    for node in graph.node:
        nodes += [node, *(divisions[output] for output in node.output if output in divisions)]
    _save(model, nodes, to)


def scale_rows(file: Path, to: Path, names: Collection[str]) -> None:
    """Multiply rows of length 1 with the weights, and what comes out with the rows' lengths."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(file))
    graph, nodes = model.graph, []
    graph.initializer.append(numpy_helper.from_array(np.array([-1], dtype=np.int64), "last_axis"))
    graph.initializer.append(numpy_helper.from_array(np.array(1e-12, dtype=np.float32), "no_length"))
    for node in graph.node:
        if node.name not in names or node.op_type != "MatMul":  # a Gemm adds a bias, which has no length
            nodes.append(node)
            continue
        x, y, own = node.input[0], node.output[0], node.name
        nodes += [
            helper.make_node("ReduceL2", [x, "last_axis"], [f"{own}_l2"], name=f"{own}_reduce", keepdims=1),
            helper.make_node("Max", [f"{own}_l2", "no_length"], [f"{own}_length"], name=f"{own}_max"),
            helper.make_node("Div", [x, f"{own}_length"], [f"{own}_rows"], name=f"{own}_divide"),
            node,
            helper.make_node("Mul", [f"{own}_product", f"{own}_length"], [y], name=f"{own}_multiply"),
        ]
        node.input[0], node.output[0] = f"{own}_rows", f"{own}_product"
    _save(model, nodes, to)


def _is_turned(node: Any) -> bool:
    return any(attribute.name == "transB" and attribute.i for attribute in node.attribute)


def _save(model: Any, nodes: list[Any], to: Path) -> None:
    import onnx

    used = {name for node in nodes for name in node.input}
    weights = [value for value in model.graph.initializer if value.name in used]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(weights)
    onnx.save(model, str(to))
