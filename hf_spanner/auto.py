"""The approaches, and their registration with the Auto classes of transformers."""

from collections import OrderedDict

from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification
from transformers.models.auto.auto_factory import _BaseAutoModelClass, _LazyAutoMapping
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.pipelines import PIPELINE_REGISTRY

from .default import DefaultModel
from .modeling.modeling_biaffine_ner import BiaffineNerForNestedNer
from .modeling.modeling_bl_ner import BlNerForNestedNer
from .modeling.modeling_diffusion_ner import DiffusionNerForNestedNer
from .modeling.modeling_dspert import DspertForNestedNer
from .modeling.modeling_locate_and_label import LocateAndLabelForNestedNer
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.modeling_seq_ner import SeqNerForNestedNer
from .modeling.modeling_sng import SngForNestedNer
from .modeling.modeling_span_ner import SpanNerForNestedNer
from .modeling.pipeline_nested_ner import NestedNerPipeline

APPROACHES: dict[str, type[NestedNerPreTrainedModel]] = {
    model.config_class.model_type: model
    for model in (
        SeqNerForNestedNer,
        SpanNerForNestedNer,
        BlNerForNestedNer,
        DspertForNestedNer,
        BiaffineNerForNestedNer,
        SngForNestedNer,
        LocateAndLabelForNestedNer,
        DiffusionNerForNestedNer,
    )
}


class AutoModelForNestedNer(_BaseAutoModelClass):
    """Loads a model of any approach: `AutoModelForNestedNer.from_pretrained("me/span-ner-genia")`."""

    _model_mapping = _LazyAutoMapping(CONFIG_MAPPING_NAMES, OrderedDict())


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
