"""What `import hf_spanner` does: transformers knows the approaches, and they know how the package publishes and loads.

Imported by the package itself, as soon as transformers is there.
"""

from typing import TYPE_CHECKING, Any

from .auto import register_all
from .foreign import check_folder, check_values
from .modeling.configuration_nested_ner import NestedNerConfig
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.pipeline_nested_ner import NestedNerPipeline

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo


def _publish(
    model_or_pipeline: NestedNerPreTrainedModel | NestedNerPipeline, repo_id: str, **kwargs: Any
) -> "CommitInfo":
    """What `push_to_hub` of a model or a pipeline does with the package; imported when it is used."""
    from .hub.publishing import publish

    return publish(model_or_pipeline, repo_id, **kwargs)


def _open_graph(cls: type[NestedNerPreTrainedModel], name: str, **kwargs: Any) -> NestedNerPreTrainedModel:
    """What `from_pretrained` does where a folder holds a graph in place of weights; imported when it is used."""
    from .exported import open_graph

    return open_graph(cls, name, **kwargs)


NestedNerPreTrainedModel.publish = NestedNerPipeline.publish = _publish
NestedNerPreTrainedModel.open_graph = classmethod(_open_graph)  # type: ignore
NestedNerPreTrainedModel.check_folder = staticmethod(check_folder)
NestedNerConfig.check_values = staticmethod(check_values)
register_all()
