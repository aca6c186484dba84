"""Nested named entity recognition as Hugging Face models: one trainer, metric and pipeline for every approach.

```python
import hf_spanner
from transformers import pipeline

ner = pipeline("nested-ner", model="path-or-hub-id")
ner("the mayor of New York")
```

Importing the package registers its configurations and models with the Auto classes and the `nested-ner` pipeline, as
soon as transformers is imported.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

# `modeling/` stands beside this folder in the source tree and inside it once installed. Where Python finds the source
# tree first, look for the sub-package `hf_spanner.modeling` there.
_here = Path(__file__).resolve().parent
if not (_here / "modeling").is_dir() and (_here.parent / "modeling").is_dir():
    __path__.append(str(_here.parent))

# Every name is imported when it is first used: exported models are read without torch and transformers
# (`hf_spanner.onnx`), and texts without datasets, accelerate or the Trainer.
_LAZY = {
    "APPROACHES": ".auto",
    "AutoModelForNestedNer": ".auto",
    "Entity": ".modeling.decoding",
    "NestedNerCollator": ".training.dataset",
    "NestedNerConfig": ".modeling.configuration_nested_ner",
    "NestedNerDataset": ".training.dataset",
    "NestedNerMetrics": ".training.scores",
    "NestedNerOutput": ".modeling.modeling_nested_ner",
    "NestedNerPipeline": ".modeling.pipeline_nested_ner",
    "NestedNerPreTrainedModel": ".modeling.modeling_nested_ner",
    "NestedNerTrainer": ".training.trainer",
    "NestedNerTrainingArguments": ".training.arguments",
    "Predictor": ".bulk.predictor",
    "evaluate": ".evaluation.scoring",
    "load_metric": ".metrics",
    "load_model": ".loading",
    "load_nested_ner": ".data",
    "load_tokenizer": ".loading",
    "pipeline": ".loading",
    "predict_sentences": ".evaluation.predicting",
    "read_vectors": ".building.vectors",
    "render": ".rendering",
    "score_entities": ".metrics",
    "show": ".rendering",
    "smooth_targets": ".modeling.boundary_smoothing",
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

# What is read without transformers; everything else of the package needs it, or leads to it.
_LIGHT = {"onnx", "foreign", "modeling"} | {
    f"modeling.{file}" for file in ("decoding", "reading", "rules", "subwords", "texts", "word_inputs", "words")
}


class _Registrar(MetaPathFinder):
    """Has the approaches registered as soon as transformers is imported, or a module of ours that is not light.

    It looks at one import only, and registers when that is done: what is half imported cannot be asked for anything.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, module = name.partition(".")
        if name != "transformers" and (package != __name__ or module in _LIGHT):
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = partial(self.load, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec

    def load(self, load: Callable[[ModuleType], None], module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            load(module)
        except BaseException:  # it may be tried again
            sys.meta_path.insert(0, self)
            raise
        import_module(".registration", __name__)


if "transformers" in sys.modules:
    import_module(".registration", __name__)
else:
    sys.meta_path.insert(0, _Registrar())

if TYPE_CHECKING:  # what a type checker sees: each name with its type, and no name that does not exist
    from .auto import APPROACHES, AutoModelForNestedNer
    from .building.glove import train_glove
    from .building.vectors import read_vectors
    from .bulk.predictor import Predictor
    from .data import load_nested_ner
    from .evaluation.predicting import predict_sentences
    from .evaluation.scoring import evaluate
    from .loading import load_model, load_tokenizer, pipeline
    from .metrics import load_metric, score_entities
    from .modeling.boundary_smoothing import smooth_targets
    from .modeling.configuration_nested_ner import NestedNerConfig
    from .modeling.decoding import Entity
    from .modeling.modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel
    from .modeling.pipeline_nested_ner import NestedNerPipeline
    from .rendering import render, show
    from .training.arguments import NestedNerTrainingArguments
    from .training.dataset import NestedNerCollator, NestedNerDataset
    from .training.scores import NestedNerMetrics
    from .training.trainer import NestedNerTrainer
else:

    def __getattr__(name: str):
        if name in _LAZY:
            return getattr(import_module(_LAZY[name], __name__), name)
        if name in ("auto", "loading", "modeling"):  # there, with all files, wherever the package is
            import_module(".registration", __name__)
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
