"""To the Hub: a repository with all that belongs to a model, and from it back the parts that weights do not hold.

`model.push_to_hub`, `pipeline.push_to_hub`, `trainer.push_to_hub` and `hf-spanner push` all end in [`publish`].
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import CommitInfo, HfApi
from huggingface_hub.errors import EntryNotFoundError
from transformers.utils import cached_file

from ..errors import in_one_sentence
from ..foreign import check_file, check_tokenizer, read_yaml
from ..loading import load_model, load_tokenizer
from ..modeling.folders import modeling_files, write_whole
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.pipeline_nested_ner import NestedNerPipeline
from .cards import GENERATED, About, eval_results_files, make_card
from .record import RECIPE, RECORD, public, read_record, write_record
from .several import SUMMARY, summary_table

CARD = "README.md"


def publish(
    model: NestedNerPreTrainedModel | NestedNerPipeline,
    repo_id: str,
    *,
    tokenizer=None,
    record: Mapping[str, Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
    commit_message: str | None = None,
    commit_description: str | None = None,
    private: bool | None = None,
    token: bool | str | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    max_shard_size: int | str = "50GB",
    **about,
) -> CommitInfo:
    """Upload a model (or a pipeline's) with tokenizer, code, card, recipe, record and results.

    What is not given is taken from where the model was loaded. A card written by hand, there or on the Hub, is kept.

    Args:
        tokenizer, record, recipe: the model's; the record is that of `training_record`.
        commit_message, commit_description, private, token, revision, create_pr, max_shard_size: as in
            `transformers`' `push_to_hub`.
        **about: what the card should say: `language`, `license`, `datasets`, `base_model`, `tags`, `limits`.
    """
    if unknown := sorted(set(about) - set(About.names())):
        raise TypeError(
            f"push_to_hub knows no argument {unknown[0]!r}; of the card it takes {', '.join(About.names())}."
        )
    network: Any = model
    if isinstance(model, NestedNerPipeline):
        network, tokenizer = model.model, tokenizer or model.tokenizer
    api = HfApi(token=token)
    with tempfile.TemporaryDirectory() as folder, in_one_sentence(repo_id, revision, "pushing"):
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        if revision is not None and not revision.startswith("refs/pr"):
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        save_repository(
            folder, network, tokenizer, record, recipe, About(**about), name=repo_id, max_shard_size=max_shard_size
        )
        if is_handwritten(_download(api, repo_id, CARD, revision, token)):
            (Path(folder) / CARD).unlink()
        return api.upload_folder(
            repo_id=repo_id,
            folder_path=folder,
            commit_message=commit_message or f"Upload a {network.config.model_type} model",
            commit_description=commit_description,
            revision=revision,
            create_pr=create_pr,
            delete_patterns=list(other_code(folder)),
        )


def save_repository(
    folder: str | os.PathLike,
    model,
    tokenizer=None,
    record: Mapping[str, Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
    about: About | None = None,
    name: str | None = None,
    **saving,
) -> None:
    """Write what [`publish`] uploads to a folder: weights, configuration, code, tokenizer and what is beside them."""
    source = model.name_or_path
    tokenizer = tokenizer or tokenizer_at(source)
    read = record is None
    record = read_record(find(source, RECORD)) if record is None else record
    if recipe is None and (file := find(source, RECIPE)):
        recipe = read_yaml(file, source) or {}
        if not isinstance(recipe, dict):
            raise ValueError(f"{RECIPE} of {source} is not a recipe: expected lines of the form `name: value`.")
    if tokenizer is None:
        model.save_pretrained(folder, **saving)
    else:
        NestedNerPipeline(model=model, tokenizer=tokenizer, device=model.device).save_pretrained(folder, **saving)
    if (card := find(source, CARD)) and is_handwritten(check_file(card, source)):
        (Path(folder) / CARD).write_bytes(Path(card).read_bytes())
    try:
        write_companions(folder, model, tokenizer, public(record), public(recipe or {}), about, name)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if not read:
            raise
        raise ValueError(
            f"{RECORD} of {source} is not a record that hf_spanner wrote ({type(error).__name__}: {error}): mend it, "
            "delete it, or pass record={}."
        ) from error


def write_summary(folder: Path, summary: Mapping[str, Any], take_best: bool) -> None:
    """Keep the summary in a folder; with `take_best` also the best of the models, whose record and card have it."""
    write_whole(folder / SUMMARY, json.dumps(summary, indent=1))
    write_whole(folder / SUMMARY.replace(".json", ".md"), summary_table(summary) + "\n")
    if take_best:
        best = str(folder / summary["best"])
        model, tokenizer = load_model(best)
        record = {**read_record(Path(best) / RECORD), "several": dict(summary)}
        save_repository(folder, model, tokenizer, record, name=str(folder))


def write_companions(
    folder: str | os.PathLike,
    model,
    tokenizer,
    record: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    about: About | None = None,
    name: str | None = None,
) -> None:
    """What stands beside a saved model: record, recipe, results and card. A card written by hand is left alone."""
    folder = Path(folder)
    if recipe:
        (folder / RECIPE).write_text(yaml.safe_dump(dict(recipe), sort_keys=False), encoding="utf-8")
    for path, text in eval_results_files(record, about).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if not is_handwritten(folder / CARD):
        make_card(model, tokenizer, name or str(folder), record, about).save(folder / CARD)
    if record:  # last: a folder with it is finished
        write_record(folder, record)


def find(source: str, file: str) -> str | None:
    """A file beside the weights of a model loaded from `source`; None if there is none or it was never loaded."""
    if not source:
        return None
    try:
        return cached_file(
            source,
            file,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
    except OSError:
        return None


def tokenizer_at(source: str):
    """The tokenizer beside the weights of a model that was loaded from `source`; None if there is none."""
    if find(source, "tokenizer_config.json") is None:
        return None
    check_tokenizer(source)
    return load_tokenizer(source, trust_remote_code=False)


def is_handwritten(card: str | os.PathLike | None) -> bool:
    """Whether there is a card and it is not one of ours."""
    if not card:
        return False
    return Path(card).is_file() and GENERATED.encode() not in Path(card).read_bytes()


def other_code(folder: str | os.PathLike) -> set[str]:
    """The modelling files of other approaches: an earlier push may have left them in the repository."""
    return modeling_files() - {file.name for file in Path(folder).glob("*.py")}


def _download(api: HfApi, repo_id: str, file: str, revision: str | None, token) -> str | None:
    try:
        return api.hf_hub_download(repo_id, file, revision=revision, token=token)
    except EntryNotFoundError:
        return None
