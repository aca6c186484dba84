"""Saved models that are complete: with the code that runs them, and never as pickles."""

import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from transformers.modeling_utils import PreTrainedModel

from .configuration_nested_ner import code_fields_kept
from .folders import remove_other_code, whole_or_not_at_all
from .pipeline_nested_ner import NestedNerPipeline  # transformers copies what a model's files import: it comes along

_HUB = ("cache_dir", "local_files_only", "revision", "subfolder", "token")  # which file of a repository is meant
Saved = TypeVar("Saved", bound="SelfContainedModel")


class SelfContainedModel(PreTrainedModel):
    """A model whose saved folder, and so its repository on the Hub, runs without this package."""

    # The name under which a repository offers the class; what saves the files that define it beside the weights.
    _auto_class = "AutoModelForTokenClassification"
    is_graph = False  # whether ONNX Runtime runs it: there is no code to save, and it stays on the CPU
    # How `push_to_hub` adds tokenizer, card, recipe and results; hf_spanner sets it, a repository's own code has none.
    publish: Callable[..., Any] | None = None
    # What looks at a folder or repository before anything of it is loaded; set by hf_spanner, too.
    check_folder: Callable[..., None] | None = None
    # How a folder with a graph for ONNX Runtime in place of weights is loaded; set by hf_spanner, too.
    open_graph: Callable[..., Any] | None = None

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, **kwargs: Any
    ) -> None:
        """Save weights, configuration, and the code of model and pipeline: the folder runs without this package.

        Whatever happens meanwhile, the folder never looks complete before it is.
        """
        if not is_main_process:
            return super().save_pretrained(save_directory, is_main_process=False, **kwargs)
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", os.path.basename(os.path.normpath(save_directory)))
        with code_fields_kept(self.config), whole_or_not_at_all(save_directory) as folder:
            self.config.auto_map = {"AutoModel": _reference(type(self))}
            self.config.custom_pipelines = {
                "nested-ner": {"impl": _reference(NestedNerPipeline), "pt": [self._auto_class], "type": "text"}
            }
            super().save_pretrained(folder, **kwargs)
            remove_other_code(save_directory, inspect.getfile(type(self)), needed=folder)

    @classmethod
    def from_pretrained(
        cls: type[Saved], pretrained_model_name_or_path: str | os.PathLike[str] | None, *args: Any, **kwargs: Any
    ) -> Saved:
        """As always, but from safetensors alone: a pickle of weights could run code, and is refused."""
        if kwargs.setdefault("use_safetensors", True) is not True:
            raise ValueError("use_safetensors=False is refused: other weights than safetensors may run code.")
        if cls.check_folder is not None and pretrained_model_name_or_path is not None:
            hub = {name: kwargs[name] for name in _HUB if name in kwargs}
            cls.check_folder(os.fspath(pretrained_model_name_or_path), **hub)
        if cls.open_graph is not None and getattr(kwargs.get("config"), "onnx", None) is not None:
            return cls.open_graph(pretrained_model_name_or_path, **kwargs)
        loaded: Any = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        model, *_ = loaded if isinstance(loaded, tuple) else (loaded,)  # a tuple with `output_loading_info=True`
        if away := [name for name in model.put_aside() if not name.startswith(model.may_be_put_aside)]:
            raise ValueError(
                f"device_map leaves no room for {away[0]!r} where it is computed with. Of a {model.config.model_type} "
                f"model {' and '.join(model.may_be_put_aside) or 'nothing'} may be put aside until its turn comes: "
                "load it with dtype='bfloat16', or give a device_map that says where each part goes."
            )
        return loaded

    @property
    def may_be_put_aside(self) -> tuple[str, ...]:
        """The parts whose weights are read in their own forward pass alone, so that they can be fetched for it."""
        return ("encoder",)

    def put_aside(self) -> list[str]:
        """The parts that a `device_map` keeps on a disk, or before a GPU, until their turn comes."""
        places = getattr(self, "hf_device_map", {})
        aside = {"disk"} if self.device.type == "cpu" else {"disk", "cpu"}
        return [name for name, place in places.items() if place in aside]

    @property
    def device(self) -> torch.device:
        """Where a batch goes; of a model that a `device_map` has spread over several, where it begins."""
        places = getattr(self, "hf_device_map", {}).values()
        if not places:
            return super().device
        return torch.device(next((place for place in places if place not in ("cpu", "disk")), "cpu"))

    def push_to_hub(self, repo_id: str, **kwargs: Any) -> Any:
        """Upload what `save_pretrained` saves; with hf_spanner also tokenizer, card, recipe and results."""
        if self.publish is None:
            return super().push_to_hub(repo_id, **kwargs)  # type: ignore[arg-type]
        return self.publish(repo_id, **kwargs)


def _reference(cls: type) -> str:
    """How a repository's config.json names a class: `file.Class`."""
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"
