"""A model's graph for ONNX Runtime, for batches of every shape."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..exported import ENCODER_OUTPUTS
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.reading import Reader
from ..onnx import DATA, GRAPH, INPUTS, OUTPUTS

OPSET = 20  # the first with GELU
ONE_FILE = 1_500 * 2**20  # bytes of weights that go into the graph's own file; its format ends at 2 GB
# What of a model becomes a graph: where the network hangs on what it finds on the way, the encoder.
ENCODER_ALONE = ("locate_and_label", "diffusion_ner")
TEXTS = ("the mayor of New York met the head of the Bank of England in London .", "New York", "it is not here .")


def part_to_export(model: NestedNerPreTrainedModel) -> str:
    """Which part of a model becomes a graph, `"network"` or `"encoder"`; or a sentence why none can."""
    config = model.config
    if model.task == "typing":
        raise ValueError(
            f"This {config.model_type} model types spans that are given (spans='gold'), and there is no graph for "
            "lists of spans: it is read with torch. Models that find entities can be exported."
        )
    return "encoder" if config.model_type in ENCODER_ALONE else "network"


class _Network(nn.Module):
    """The tensors of a model's output, as a graph can give them."""

    def __init__(self, model: NestedNerPreTrainedModel):
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        word_ids: torch.Tensor,
        num_words: torch.Tensor,
        word_mask: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        output = self.model(input_ids, attention_mask, word_ids, num_words, word_mask=word_mask)
        values = {id(output[name]): output[name] for name in OUTPUTS if name in output}  # of seq_ner both are one
        return tuple(values.values())


class _Encoder(nn.Module):
    def __init__(self, model: NestedNerPreTrainedModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        encoded: Any = self.model.run_encoder(input_ids, attention_mask)
        states: torch.Tensor = encoded.last_hidden_state
        return states


def write_graph(model: NestedNerPreTrainedModel, tokenizer: Any, folder: Path) -> dict[str, str]:
    """Write `model.onnx` (and, of a large model, its data); returns of each operator which part of the model it is."""
    import onnxscript  # noqa: F401  (what torch.onnx needs; said here if it is missing)

    reader = Reader(model, tokenizer)
    batch = reader.collate([item for text in TEXTS for item in reader.cut(text.split()).items])
    batch_, subwords, words = (torch.export.Dim(name) for name in ("batch", "subwords", "words"))
    shapes = [{0: batch_, 1: subwords}] * 3 + [{0: batch_}, {0: batch_, 1: words}]
    part = part_to_export(model)
    names = INPUTS[:2] if part == "encoder" else INPUTS
    outputs = list(ENCODER_OUTPUTS if part == "encoder" else OUTPUTS[: 2 if model.is_bundled else 1])
    network = _Encoder(model) if part == "encoder" else _Network(model)
    with torch.no_grad(), _quiet():
        program: Any = torch.onnx.export(
            network.eval(),
            tuple(batch[name] for name in names),
            dynamo=True,
            input_names=list(names),
            output_names=outputs,
            dynamic_shapes=tuple(shapes[: len(names)]),
            opset_version=OPSET,
            verbose=False,
        )
    size = sum(x.nbytes for x in model.state_dict().values())
    program.save(folder / GRAPH, external_data=size > ONE_FILE)
    assert size <= ONE_FILE or (folder / DATA).exists()
    return {node.name: _module_of(node) for node in program.model.graph if node.name}


def _module_of(node: Any) -> str:
    """The path of the module that an operator comes from, its numbers left out: `encoder.layer.*.output.dense`."""
    scopes = str(node.metadata_props.get("pkg.torch.onnx.name_scopes", ""))
    inner = [part.strip(" '\"[]") for part in scopes.split(",")]
    path = next((part for part in reversed(inner) if part and "model" in part.split(".")), "")
    return ".".join("*" if step.isdigit() else step for step in path.split(".") if step != "model")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch and onnxscript say about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
