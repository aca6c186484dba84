"""The approaches, and their registration with the Auto classes of transformers."""

import os
from collections import OrderedDict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification
from transformers.models.auto.auto_factory import _BaseAutoModelClass, _LazyAutoMapping
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.pipelines import PIPELINE_REGISTRY

from .default import DefaultModel
from .modeling.configuration_nested_ner import NestedNerConfig
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.pipeline_nested_ner import NestedNerPipeline

# An approach is a line here: its `model_type`, and so its file, `modeling/modeling_NAME.py`.
NAMES = (
    "seq_ner",
    "span_ner",
    "bl_ner",
    "dspert",
    "biaffine_ner",
    "cnn_ner",
    "sng",
    "locate_and_label",
    "diffusion_ner",
)


def _model_class(name: str) -> type[NestedNerPreTrainedModel]:
    """The model of an approach: the class in its file whose configuration has its name."""
    for value in vars(import_module(f".modeling.modeling_{name}", __package__)).values():
        if not isinstance(value, type) or not issubclass(value, NestedNerPreTrainedModel):
            continue
        if value.config_class.model_type == name:
            return value
    raise ImportError(f"modeling_{name}.py has no model whose configuration has model_type = {name!r}.")


APPROACHES: dict[str, type[NestedNerPreTrainedModel]] = {name: _model_class(name) for name in NAMES}


class AutoModelForNestedNer(_BaseAutoModelClass):
    """Loads a model of any approach: `AutoModelForNestedNer.from_pretrained("me/span-ner-genia")`."""

    _model_mapping: Any = _LazyAutoMapping(CONFIG_MAPPING_NAMES, OrderedDict())

    if TYPE_CHECKING:  # as inherited, where they are known to return some object

        @classmethod
        def from_pretrained(
            cls, pretrained_model_name_or_path: str | os.PathLike[str], *model_args: Any, **kwargs: Any
        ) -> NestedNerPreTrainedModel: ...

        @classmethod
        def from_config(cls, config: NestedNerConfig, **kwargs: Any) -> NestedNerPreTrainedModel: ...


def approach(name: str) -> type[NestedNerPreTrainedModel]:
    """The model class of an approach by its `model_type`."""
    if name not in APPROACHES:
        raise ValueError(f"Unknown approach {name!r}: choose one of {sorted(APPROACHES)}.")
    return APPROACHES[name]


def register_all() -> None:
    """Make `AutoConfig`, `AutoModel…` and `pipeline("nested-ner")` know the approaches. Safe to call twice."""
    for model_type, model in APPROACHES.items():
        AutoConfig.register(model_type, model.config_class, exist_ok=True)
        for auto in (AutoModel, AutoModelForTokenClassification, AutoModelForNestedNer):
            auto.register(model.config_class, model, exist_ok=True)
    if "nested-ner" not in PIPELINE_REGISTRY.supported_tasks:
        PIPELINE_REGISTRY.register_pipeline(
            "nested-ner",
            pipeline_class=NestedNerPipeline,
            pt_model=AutoModelForTokenClassification,
            default=DefaultModel(),
            type="text",
        )
