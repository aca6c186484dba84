"""Training: sentences as model inputs, what a model cannot reach in them, and the Trainer."""

from .callbacks import ExponentialMovingAverage, FreezeEncoder
from .features import NestedNerCollator, NestedNerDataset
from .reach import unreachable
from .trainer import NestedNerTrainer, NestedNerTrainingArguments

__all__ = [
    "ExponentialMovingAverage",
    "FreezeEncoder",
    "NestedNerCollator",
    "NestedNerDataset",
    "NestedNerTrainer",
    "NestedNerTrainingArguments",
    "unreachable",
]
