"""Packages that only some formats need: imported when they are, or a sentence that says what installs them."""

from importlib import import_module
from typing import Any


def needed(module: str, extra: str, what: str) -> Any:
    """The module, or an error that says what needs it and which extra of this package installs it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f"{what} needs {package}, which is not installed: `pip install hf_spanner[{extra}]`."
        ) from error
