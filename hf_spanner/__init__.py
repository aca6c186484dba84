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

__version__ = "0.1.0"

# `modeling/` stands beside this folder in the source tree and inside it once installed. Where Python finds the source
# tree first, look for the sub-package `hf_spanner.modeling` there.
_here = Path(__file__).resolve().parent
if not (_here / "modeling").is_dir() and (_here.parent / "modeling").is_dir():
    __path__.append(str(_here.parent))

from .auto import APPROACHES, AutoModelForNestedNer, register_all  # noqa: E402
from .modeling.boundary_smoothing import smooth_targets  # noqa: E402
from .modeling.configuration_nested_ner import NestedNerConfig  # noqa: E402
from .modeling.decoding import Entity  # noqa: E402
from .modeling.modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel  # noqa: E402
from .modeling.pipeline_nested_ner import NestedNerPipeline  # noqa: E402
from .pipelines import pipeline  # noqa: E402
from .tokenization import load_tokenizer  # noqa: E402

register_all()

# Names that pull in datasets, accelerate or the Trainer are imported when first used: reading text needs none of them.
_LAZY = {
    "NestedNerCollator": ".training.features",
    "NestedNerDataset": ".training.features",
    "NestedNerTrainer": ".training.trainer",
    "NestedNerTrainingArguments": ".training.trainer",
    "load_nested_ner": ".data",
    "load_metric": ".metrics",
    "score_entities": ".metrics",
    "read_vectors": ".vectors",
    "train_glove": ".glove",
}

__all__ = [
    "APPROACHES",
    "AutoModelForNestedNer",
    "Entity",
    "NestedNerConfig",
    "NestedNerOutput",
    "NestedNerPipeline",
    "NestedNerPreTrainedModel",
    "load_tokenizer",
    "pipeline",
    "smooth_targets",
    *_LAZY,
]


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
