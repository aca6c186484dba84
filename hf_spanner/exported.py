"""Models that ONNX Runtime runs: what `hf-spanner export` writes is loaded, read with and saved like any other model.

A folder holds `model.onnx` in place of weights: the whole network, or, where what follows it hangs on the data
(`locate_and_label`, `diffusion_ner`), the encoder, with the rest in `head.safetensors`. Everything around the network,
from words to entities, is what the approach has in torch.
"""

import copy
import functools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import cached_file

from .foreign import check_file
from .modeling.folders import whole_or_not_at_all
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.tagging import TaggingHead
from .onnx import DATA, GRAPH, HEAD, INPUTS, MOST, OUTPUTS, check_classes, classes_of, open_session, part_of

ENCODER_OUTPUTS = ("last_hidden_state",)


class OnnxModel(NestedNerPreTrainedModel):
    """What a model of any approach becomes when ONNX Runtime runs it; `onnx_class` makes it one of an approach.

    It reads: training, hidden states and other devices than the CPU belong to the model that it was exported from.
    """

    is_graph = True
    _session: Any
    _files: dict[str, Path]

    def __init__(self, config: Any, files: Mapping[str, Path]):
        if part_of(config) == "encoder":
            super().__init__(config)
        else:
            PreTrainedModel.__init__(self, config)
            self.tagger = None
            if "seq" in config.heads:  # a CRF decodes with its own numbers
                self.tagger = TaggingHead(1, len(config.labels), 0.0, config.use_crf, config.tag_scheme)
                del self.tagger.classifier
        self._files, self._session = dict(files), open_session(files[GRAPH], torch.get_num_threads())
        known = INPUTS[:2] if part_of(config) == "encoder" else INPUTS
        outputs = ENCODER_OUTPUTS if part_of(config) == "encoder" else OUTPUTS
        self._classes = None if part_of(config) == "encoder" else classes_of(config)
        self._inputs = [value.name for value in self._session.get_inputs()]
        self._outputs = [value.name for value in self._session.get_outputs()]
        if not (
            set(self._inputs) <= set(known) and set(self._outputs) <= set(outputs) and outputs[0] in self._outputs
        ):
            raise ValueError(
                f"{GRAPH} of {files[GRAPH].parent} takes {self._inputs} and gives {self._outputs}: it is no graph of "
                "`hf-spanner export`, export the model again."
            )
        if self.state_dict() or HEAD in files:
            if HEAD not in files:
                raise FileNotFoundError(f"{files[GRAPH].parent} has no {HEAD}: export the model again.")
            self.load_state_dict(load_file(files[HEAD]))
        self.eval()

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def make_encoder(self, config: Any) -> nn.Module:
        return nn.Identity()

    def get_input_embeddings(self) -> nn.Module:
        raise ValueError("An exported model has no embeddings to look at: load the model that it was made from.")

    def train(self, mode: bool = True) -> Any:
        if mode:
            raise ValueError("An exported model cannot be trained: train the model that it was made from.")
        return super().train(mode)

    def to(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        if (device is not None and device.type != "cpu") or dtype not in (None, torch.float32):
            asked = device if device is not None and device.type != "cpu" else dtype
            raise ValueError(f"An exported model runs on the CPU as it was exported, not as {asked}: leave it out.")
        return self

    def run(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """The outputs of the graph, by name."""
        try:
            values = self._session.run(self._outputs, {name: inputs[name].numpy() for name in self._inputs})
        except Exception as error:
            why = " ".join(str(error).split())
            raise ValueError(f"{GRAPH} of {self.name_or_path} cannot be run on this text ({why:.300}).") from error
        if self._classes is not None:
            check_classes(values[self._outputs.index(OUTPUTS[0])], self._classes, str(self.name_or_path))
        return {name: torch.from_numpy(value) for name, value in zip(self._outputs, values, strict=True)}

    def run_encoder(self, input_ids: Any, attention_mask: torch.Tensor, **kwargs: Any) -> Any:
        if input_ids is None or any(kwargs.values()):
            asked = ", ".join(sorted(name for name, value in kwargs.items() if value is not None))
            raise ValueError(f"An exported model takes no {asked}: load the model that it was made from.")
        states: Any = self.run(input_ids=input_ids, attention_mask=attention_mask)
        return BaseModelOutput(**states)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the approach's own, without gold entities."""
        if kwargs.get("entities") is not None and self.config.task == "finding":
            raise ValueError("An exported model only reads, it has no loss: train the model that it was made from.")
        if part_of(self.config) == "encoder":
            return super().forward(*args, **kwargs)
        return self._forward(*args, **kwargs)

    def _forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        word_ids: torch.Tensor,
        num_words: torch.Tensor,
        word_mask: torch.Tensor | None = None,
        places: torch.Tensor | None = None,
        return_dict: bool = True,
        **kwargs: Any,
    ) -> Any:
        if asked := sorted(name for name, value in kwargs.items() if value is not None and value is not False):
            raise ValueError(f"An exported model takes no {asked[0]}: load the model that it was made from.")
        if word_mask is None:
            word_mask = torch.arange(max(int(num_words.max()), 1)) < num_words.unsqueeze(1)
        found = self.run(
            input_ids=input_ids,
            attention_mask=attention_mask,
            word_ids=word_ids,
            num_words=num_words,
            word_mask=word_mask,
        )
        if self.heads == ("seq",):
            found["tag_logits"] = found["logits"]
        output = get_type_hints(type(self).recognise)["return"](**found, num_words=num_words)
        if places is not None:
            output.predictions = self.placed_entities(output, places)
        return output if return_dict else output.to_tuple()

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> None:  # type: ignore[override]
        """Copy the graph and what belongs to it; the folder never looks complete before it is."""
        if set(kwargs) - {"max_shard_size"}:
            raise ValueError(f"An exported model is saved as it is, without {sorted(kwargs)[0]}.")
        with whole_or_not_at_all(save_directory) as folder:
            for name, file in self._files.items():
                shutil.copyfile(file, folder / name)
            save_config(self.config, folder)


def onnx_class(approach: Any) -> type[OnnxModel]:
    """The class of an approach's exported models: its own class, whose network (or encoder) is a graph."""
    return _onnx_class(approach)


@functools.cache
def _onnx_class(approach: Any) -> type[OnnxModel]:
    if issubclass(approach, OnnxModel):
        return approach
    return type(f"Onnx{approach.__name__}", (OnnxModel, approach), {"__module__": approach.__module__})


def open_graph(
    approach: type[NestedNerPreTrainedModel], name: str, config: Any, dtype: Any = None, **loading: Any
) -> OnnxModel:
    """The exported model in a folder or on the Hub; arguments are those of `from_pretrained`."""
    if str(dtype).removeprefix("torch.") not in ("None", "auto", "float32"):
        raise ValueError(f"dtype={dtype}: an exported model has the numbers it was exported with, leave it out.")
    part_of(config)  # checks it
    hub = {key: loading[key] for key in ("revision", "token", "cache_dir", "local_files_only") if key in loading}
    quiet = {f"_raise_exceptions_for_{what}": False for what in ("gated_repo", "missing_entries")}
    files = {}
    for file in (GRAPH, DATA, HEAD):
        if (path := cached_file(name, file, **quiet, **hub)) is not None:
            files[file] = check_file(path, str(name), MOST[file])
    if GRAPH not in files:
        raise FileNotFoundError(f"{name} has no {GRAPH}, though its config.json says so: export the model again.")
    model = onnx_class(approach)(config, files)
    model.config._name_or_path = model.name_or_path = str(name)
    return model


def save_config(config: Any, folder: Path) -> None:
    """Save the configuration of an exported model, without code."""
    config = copy.deepcopy(config)
    config._auto_class = None
    config.save_pretrained(folder)


def head_of(model: NestedNerPreTrainedModel, part: str, file: Path) -> None:
    """Save what torch computes behind a graph: all but the encoder, or, of a whole network, the CRF that decodes."""
    if part == "encoder":
        numbers = {name: x for name, x in model.state_dict().items() if not name.startswith("encoder.")}
    else:
        numbers = {name: x for name, x in model.state_dict().items() if name.startswith("tagger.crf.")}
    if numbers:
        save_file({name: x.contiguous() for name, x in numbers.items()}, file)
