"""Folders that are written whole or not at all."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

DISK_FULL = re.compile(r"No space left on device|os error 28")


@contextmanager
def whole_or_not_at_all(folder: str | os.PathLike) -> Iterator[Path]:
    """A place to write to; what is there at the end moves to `folder`, `config.json` last; on an error nothing does.

    A folder without `config.json` is no model. While files are moved it has none, so whatever the moment at which the
    process is killed, the folder holds the model of before, or the new one, or none.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".saving-{os.getpid()}"  # inside, so that moving is renaming
    aside.mkdir()
    try:
        yield aside
        files = sorted(file.relative_to(aside) for file in aside.rglob("*") if file.is_file())
        if Path(CONFIG_NAME) in files:
            (folder / CONFIG_NAME).unlink(missing_ok=True)
            _remove_other_weights(folder, {file.name for file in files})
        for file in sorted(files, key=lambda file: file == Path(CONFIG_NAME)):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside / file, folder / file)
    except Exception as error:
        if DISK_FULL.search(str(error)):  # safetensors has an exception of its own for it
            raise OSError(f"The disk is full: {folder} was not saved; free some space and save again.") from error
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _remove_other_weights(folder: Path, new: set[str]) -> None:
    """One file and several shards of an earlier save must not stand beside each other: loading takes the wrong one."""
    stem, suffix = os.path.splitext(SAFE_WEIGHTS_NAME)
    if SAFE_WEIGHTS_NAME in new or SAFE_WEIGHTS_INDEX_NAME in new:
        shards = list(folder.glob(f"{stem}-[0-9]*-of-[0-9]*{suffix}"))
        for file in (folder / SAFE_WEIGHTS_NAME, folder / SAFE_WEIGHTS_INDEX_NAME, *shards):
            if file.name not in new:
                file.unlink(missing_ok=True)


# Files that earlier releases wrote beside a model, under names that are no more.
RETIRED = tuple(
    f"{name}.py"
    for name in "aggregation diffusion encoding set_prediction span_denoiser span_networks span_regression "
    "span_transformer subword_spans token_representation".split()
)


def modeling_files() -> set[str]:
    """The files of this folder and those that have been: of them a repository holds what its model needs."""
    here = Path(__file__).parent
    return {file.name for file in here.glob("*.py") if file.name != "__init__.py"} | set(RETIRED)


def remove_other_code(folder: str | os.PathLike[str], source: str, needed: Path) -> None:
    """Remove what a model of another approach left in `folder`: the files beside `source` that are not needed."""
    if Path(folder).resolve() == Path(source).resolve().parent:
        return
    for name in modeling_files():
        if not (needed / name).exists():
            (Path(folder) / name).unlink(missing_ok=True)
