"""Training: sentences as model inputs, what a model cannot reach in them, and the Trainer."""

from .arguments import NestedNerTrainingArguments
from .callbacks import ExponentialMovingAverage, FreezeEncoder
from .dataset import NestedNerCollator, NestedNerDataset
from .reach import unreachable
from .scores import NestedNerMetrics
from .trainer import NestedNerTrainer

__all__ = [
    "ExponentialMovingAverage",
    "FreezeEncoder",
    "NestedNerCollator",
    "NestedNerDataset",
    "NestedNerMetrics",
    "NestedNerTrainer",
    "NestedNerTrainingArguments",
    "unreachable",
]
