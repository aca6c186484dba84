"""The old name of `hf_spanner.evaluation.predicting`, which cards have printed; gone with the next release."""

import warnings

from .evaluation.predicting import predict_sentences

__all__ = ["predict_sentences"]

warnings.warn(
    "hf_spanner.inference is now hf_spanner.evaluation.predicting: import its names from there.",
    DeprecationWarning,
    stacklevel=2,
)
