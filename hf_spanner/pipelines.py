"""The old name of `hf_spanner.loading`, which cards have printed; gone with the next release."""

import warnings

from .loading import load_config, load_model, load_tokenizer, pipeline

__all__ = ["load_config", "load_model", "load_tokenizer", "pipeline"]

warnings.warn(
    "hf_spanner.pipelines is now hf_spanner.loading: import its names from there.",
    DeprecationWarning,
    stacklevel=2,
)
