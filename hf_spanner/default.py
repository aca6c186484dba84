"""The default model: a trained checkpoint that is installed with the package, under the name `default`."""

import logging
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "default_model"
NAME = "default"


def folder_of(name: str | Path | None) -> str:
    """Where a model is: `default` (or None) stands for the folder of the default model, all else for itself."""
    if name is not None and str(name) != NAME:
        return str(name)
    if not (FOLDER / "config.json").is_file():
        raise FileNotFoundError(
            f"The default model is missing from {FOLDER}: install hf_spanner again, or name a model, for example one "
            "trained with `hf-spanner train`."
        )
    return str(FOLDER)


class DefaultModel(dict[str, Any]):
    """What `transformers.pipeline("nested-ner")` finds when no model is named: the default model, looked up then.

    transformers would warn that no revision was named. There is none: the checkpoint is part of the installed version.
    """

    def __contains__(self, key: object) -> bool:
        return bool(key == "model")

    def __getitem__(self, key: str) -> tuple[str, None]:
        if key != "model":
            raise KeyError(key)
        folder = folder_of(NAME)
        logger = logging.getLogger("transformers.pipelines")

        def expected(record: logging.LogRecord) -> bool:
            ours = folder in record.getMessage() and record.getMessage().startswith("No model was supplied")
            if ours:
                logger.removeFilter(expected)
            return not ours

        logger.addFilter(expected)
        return folder, None
