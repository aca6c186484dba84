"""The old name of `hf_spanner.building.vectors`, which cards have printed; gone with the next release."""

import warnings

from .building.vectors import WordVectors, read_vectors

__all__ = ["WordVectors", "read_vectors"]

warnings.warn(
    "hf_spanner.vectors is now hf_spanner.building.vectors: import its names from there.",
    DeprecationWarning,
    stacklevel=2,
)
