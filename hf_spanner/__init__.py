"""Nested named entity recognition as Hugging Face models: one trainer, metric and pipeline for every approach.

```python
import hf_spanner
from transformers import pipeline

ner = pipeline("nested-ner", model="path-or-hub-id")
ner("the mayor of New York")
```

Importing the package registers its configurations and models with the Auto classes and the `nested-ner` pipeline.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

# `modeling/` stands beside this folder in the source tree and inside it once installed. Where Python finds the source
# tree first, look for the sub-package `hf_spanner.modeling` there.
_here = Path(__file__).resolve().parent
if not (_here / "modeling").is_dir() and (_here.parent / "modeling").is_dir():
    __path__.append(str(_here.parent))

from .auto import APPROACHES, AutoModelForNestedNer, register_all  # noqa: E402
from .foreign import check_folder, check_values  # noqa: E402
from .loading import load_model, load_tokenizer, pipeline  # noqa: E402
from .modeling.boundary_smoothing import smooth_targets  # noqa: E402
from .modeling.configuration_nested_ner import NestedNerConfig  # noqa: E402
from .modeling.decoding import Entity  # noqa: E402
from .modeling.modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel  # noqa: E402
from .modeling.pipeline_nested_ner import NestedNerPipeline  # noqa: E402

register_all()


def _publish(
    model_or_pipeline: NestedNerPreTrainedModel | NestedNerPipeline, repo_id: str, **kwargs: Any
) -> "CommitInfo":
    """What `push_to_hub` of a model or a pipeline does with the package; imported when it is used."""
    from .hub.publishing import publish

    return publish(model_or_pipeline, repo_id, **kwargs)


def _open_graph(cls: type[NestedNerPreTrainedModel], name: str, **kwargs: Any) -> NestedNerPreTrainedModel:
    """What `from_pretrained` does where a folder holds a graph in place of weights; imported when it is used."""
    from .onnx import open_graph

    return open_graph(cls, name, **kwargs)


NestedNerPreTrainedModel.publish = NestedNerPipeline.publish = _publish
NestedNerPreTrainedModel.open_graph = classmethod(_open_graph)  # type: ignore
NestedNerPreTrainedModel.check_folder = staticmethod(check_folder)
NestedNerConfig.check_values = staticmethod(check_values)

# Names that pull in datasets, accelerate or the Trainer are imported when first used: reading text needs none of them.
_LAZY = {
    "NestedNerCollator": ".training.dataset",
    "NestedNerDataset": ".training.dataset",
    "NestedNerMetrics": ".training.scores",
    "NestedNerTrainer": ".training.trainer",
    "NestedNerTrainingArguments": ".training.arguments",
    "Predictor": ".bulk.predictor",
    "evaluate": ".evaluation.scoring",
    "load_metric": ".metrics",
    "load_nested_ner": ".data",
    "predict_sentences": ".evaluation.predicting",
    "read_vectors": ".building.vectors",
    "render": ".rendering",
    "score_entities": ".metrics",
    "show": ".rendering",
    "train_glove": ".building.glove",
}

__all__ = [
    "APPROACHES",
    "AutoModelForNestedNer",
    "Entity",
    "NestedNerCollator",
    "NestedNerConfig",
    "NestedNerDataset",
    "NestedNerMetrics",
    "NestedNerOutput",
    "NestedNerPipeline",
    "NestedNerPreTrainedModel",
    "NestedNerTrainer",
    "NestedNerTrainingArguments",
    "Predictor",
    "evaluate",
    "load_metric",
    "load_model",
    "load_nested_ner",
    "load_tokenizer",
    "pipeline",
    "predict_sentences",
    "read_vectors",
    "render",
    "score_entities",
    "show",
    "smooth_targets",
    "train_glove",
]

if TYPE_CHECKING:  # what a type checker sees: each name with its type, and no name that does not exist
    from huggingface_hub import CommitInfo

    from .building.glove import train_glove
    from .building.vectors import read_vectors
    from .bulk.predictor import Predictor
    from .data import load_nested_ner
    from .evaluation.predicting import predict_sentences
    from .evaluation.scoring import evaluate
    from .metrics import load_metric, score_entities
    from .rendering import render, show
    from .training.arguments import NestedNerTrainingArguments
    from .training.dataset import NestedNerCollator, NestedNerDataset
    from .training.scores import NestedNerMetrics
    from .training.trainer import NestedNerTrainer
else:

    def __getattr__(name: str):
        if name in _LAZY:
            return getattr(import_module(_LAZY[name], __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
