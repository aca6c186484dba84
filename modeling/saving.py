"""Saved folders that are complete: written whole or not at all, with the code that runs them, never as pickles."""

import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers.modeling_utils import PreTrainedModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from .configuration_nested_ner import CODE_FIELDS

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


def remove_other_code(folder: str | os.PathLike, source: str, needed: Path) -> None:
    """Remove what a model of another approach left in `folder`: the files beside `source` that are not needed."""
    if Path(folder).resolve() == Path(source).resolve().parent:
        return
    for file in Path(source).parent.glob("*.py"):
        if file.name != "__init__.py" and not (needed / file.name).exists():
            (Path(folder) / file.name).unlink(missing_ok=True)


class SelfContainedModel(PreTrainedModel):
    """A model whose saved folder, and so its repository on the Hub, runs without this package."""

    # The name under which a repository offers the class; what saves the files that define it beside the weights.
    _auto_class = "AutoModelForTokenClassification"
    # How `push_to_hub` adds tokenizer, card, recipe and results; hf_spanner sets it, a repository's own code has none.
    publish: Callable | None = None

    def save_pretrained(self, save_directory: str | os.PathLike, is_main_process: bool = True, **kwargs) -> None:
        """Save weights, configuration, and the code of model and pipeline: the folder runs without this package.

        Whatever happens meanwhile, the folder never looks complete before it is.
        """
        # Imported here and used by name: transformers copies what a model's file imports, so the pipeline comes along.
        from .pipeline_nested_ner import NestedNerPipeline

        if not is_main_process:
            return super().save_pretrained(save_directory, is_main_process=False, **kwargs)
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", os.path.basename(os.path.normpath(save_directory)))
        before = {name: getattr(self.config, name) for name in CODE_FIELDS if hasattr(self.config, name)}
        self.config.auto_map = {"AutoModel": _reference(type(self))}
        self.config.custom_pipelines = {
            "nested-ner": {"impl": _reference(NestedNerPipeline), "pt": [self._auto_class], "type": "text"}
        }
        try:
            with whole_or_not_at_all(save_directory) as folder:
                super().save_pretrained(folder, **kwargs)
                remove_other_code(save_directory, inspect.getfile(type(self)), needed=folder)
        finally:  # a model in memory has its classes; only the file needs to say where they are
            for name in CODE_FIELDS:
                delattr(self.config, name)
            self.config.update(before)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        """As always, but from safetensors alone: a pickle of weights could run code, and is refused."""
        if kwargs.setdefault("use_safetensors", True) is not True:
            raise ValueError("use_safetensors=False is refused: other weights than safetensors may run code.")
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    def push_to_hub(self, repo_id: str, **kwargs):
        """Upload what `save_pretrained` saves; with hf_spanner also tokenizer, card, recipe and results."""
        if self.publish is None:
            return super().push_to_hub(repo_id, **kwargs)
        return self.publish(repo_id, **kwargs)


def _reference(cls: type) -> str:
    """How a repository's config.json names a class: `file.Class`."""
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"
