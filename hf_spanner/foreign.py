"""Model folders from elsewhere: what is looked at before anything in them is believed.

Sizes and counts are bounded far above what any model needs and far below what hurts a machine; files that are read, or
copied when a model is published, lie in the folder and not behind a link out of it.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MB, GB = 2**20, 2**30
MOST_BYTES = {"config.json": 16 * MB, "training.json": 64 * MB, "recipe.yaml": MB, "README.md": 16 * MB}
MOST_BYTES_OF_A_TOKENIZER = 256 * MB  # of each of its files; the largest that are known have some 35
MOST_LABELS = 100_000
MOST_VALUES = 1_000_000  # of a JSON or YAML file, those that an alias repeats counted each time
DEEPEST = 100
# Whole numbers in a configuration: how many layers there are, how many steps are made, and all others.
MOST = ((re.compile(r"layers?$|depth$|heads$"), 1000), (re.compile(r"steps$"), 100_000), (re.compile(""), 10**7))
PATH_STEPS = re.compile(r"[/\\]")  # an absolute path begins with an empty step
TOKENIZER_FILES = re.compile(
    r"tokenizer.*|vocab.*|merges.*|added_tokens.*|special_tokens_map.*|.*\.spm|.*\.model|.*\.tiktoken|chat_template.*"
)


def check_folder(name: str, **hub: Any) -> None:
    """All that is looked at before a model is loaded: `from_pretrained` of our classes calls it, and so does
    `transformers.pipeline("nested-ner", ...)`, which loads the tokenizer after the model."""
    check_config(name, **hub)
    check_weights(name)
    check_tokenizer(name, **hub)


def check_config(name: str, **hub: Any) -> None:
    """Refuse a model whose config.json is no configuration, or one that would ask for more than a machine has."""
    if _find(name, "adapter_config.json", hub) is not None:  # it would name the model to load in its place
        raise ValueError(f"{name} is an adapter of another model (adapter_config.json): merge the two and save that.")
    if (file := _find(name, "config.json", hub)) is None:
        return  # transformers says why
    config = read_json(file, name)
    if not isinstance(config, dict):
        raise ValueError(f"The config.json of {name} is not a JSON object: this is no model that can be loaded.")
    check_values(config, name)


def check_values(config: Mapping[str, Any], name: str) -> None:
    """Refuse a configuration that would ask for more than a machine has, or whose labels are none."""
    labels = config.get("id2label") or {}
    number = len(labels) if isinstance(labels, (dict, list)) else 0
    said = config.get("num_labels")
    if said is not None and (not isinstance(said, int) or said < 1) or config.get("id2label") == {}:
        raise ValueError(f"The config.json of {name} names no labels (id2label, or num_labels={said!r}): mend it.")
    number = max(number, said or 0)
    if number > MOST_LABELS:
        raise ValueError(f"The config.json of {name} has {number:,} labels, more than {MOST_LABELS:,}: refused.")
    if isinstance(labels, dict) and {str(key) for key in labels} != {str(index) for index in range(len(labels))}:
        raise ValueError(f"The config.json of {name} does not number its labels from 0 on (id2label): mend it.")
    if isinstance(labels, dict) and not all(isinstance(label, str) and label for label in labels.values()):
        raise ValueError(f"The config.json of {name} has labels that are no names (id2label): mend it.")
    for key, value in _whole_numbers(config):
        most = next(most for pattern, most in MOST if pattern.search(key))
        if abs(value) > most:
            raise ValueError(f"The config.json of {name} has {key}={str(value):.20}, more than {most:,}: refused.")


def check_weights(name: str) -> None:
    """Refuse a folder whose weights are said to lie elsewhere. (Of a repository the Hub's own code refuses it.)"""
    if not (file := Path(name) / "model.safetensors.index.json").is_file():
        return
    index = read_json(file, name)
    shards = index.get("weight_map") if isinstance(index, dict) and isinstance(index.get("metadata"), dict) else None
    if not shards or not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        raise ValueError(f"{file.name} of {name} does not say where the weights are (weight_map): copy it again.")
    if outside := [shard for shard in shards.values() if PATH_STEPS.search(shard)]:
        raise ValueError(f"{name} names a file outside its folder, {outside[0]!r}: refused.")
    if others := [shard for shard in shards.values() if not shard.endswith(".safetensors")]:
        raise ValueError(
            f"{name} has weights in {others[0]!r}, which is no safetensors file: refused, it may run code."
        )


def check_tokenizer(name: str, **hub: Any) -> None:
    """Refuse a tokenizer that is far too large, or whose configuration names files outside its own folder."""
    if (folder := Path(name)).is_dir():
        for file in folder.iterdir():
            if TOKENIZER_FILES.fullmatch(file.name) and not file.is_dir():
                check_file(file, name, MOST_BYTES_OF_A_TOKENIZER)
    elif (words := _find(name, "tokenizer.json", hub)) is not None:
        check_file(words, name, MOST_BYTES_OF_A_TOKENIZER)
    settings = _find(name, "tokenizer_config.json", hub)
    config = read_json(settings, name, MOST_BYTES_OF_A_TOKENIZER) if settings else {}
    for key, value in config.items() if isinstance(config, dict) else ():
        for path in value if isinstance(value, list) else [value]:
            if re.search(r"_files?$", key) and isinstance(path, str) and (set(PATH_STEPS.split(path)) & {"", ".."}):
                raise ValueError(f"The tokenizer of {name} names a file outside its folder, {key}={path!r}: refused.")


def check_file(file: str | os.PathLike, name: str, most: int | None = None) -> Path:
    """A file of the model `name` that may be read: a plain file of a bearable size, and, in a folder, inside it."""
    file = Path(file)
    most = MOST_BYTES.get(file.name, 16 * MB) if most is None else most
    if Path(name).is_dir() and not _lies_in(file, Path(name)):
        raise ValueError(f"{file.name} of {name} is a link to {file.resolve()}, outside the folder: refused.")
    if not file.is_file():
        raise ValueError(f"{file.name} of {name} is no plain file: refused.")
    if (size := file.stat().st_size) > most:
        raise ValueError(f"{file.name} of {name} has {size / MB:,.0f} MB, more than {most / MB:,.0f}: refused.")
    return file


def read_json(file: str | os.PathLike, name: str, most: int | None = None) -> Any:
    """What a JSON file of the model `name` says."""
    file = check_file(file, name, most)
    try:
        return check_size(json.loads(file.read_text(encoding="utf-8")), f"{file.name} of {name}")
    except RecursionError:
        raise ValueError(f"{file.name} of {name} is nested more than {DEEPEST} deep: refused.") from None
    except ValueError as error:
        if type(error) is ValueError and "refused" in str(error):
            raise
        raise ValueError(f"{file.name} of {name} is not JSON ({error}): copy or download it again.") from error


def read_yaml(file: str | os.PathLike, name: str) -> Any:
    """What a YAML file of the model `name` says."""
    import yaml

    file = check_file(file, name)
    try:
        return check_size(yaml.safe_load(file.read_text(encoding="utf-8")), f"{file.name} of {name}")
    except RecursionError:
        raise ValueError(f"{file.name} of {name} is nested more than {DEEPEST} deep: refused.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file.name} of {name} is not plain YAML ({' '.join(str(error).split())}).") from error


def check_size(value: Any, where: str) -> Any:
    """The value, if it holds no more than `MOST_VALUES` and is no more than `DEEPEST` deep, aliases written out."""
    waiting, seen = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST:
            raise ValueError(f"{where} is nested more than {DEEPEST} deep: refused.")
        if seen + len(waiting) > MOST_VALUES:
            raise ValueError(f"{where} holds more than {MOST_VALUES:,} values: refused.")
        if isinstance(item, Mapping):
            waiting += [(part, depth + 1) for part in item.values()]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]
    return value


def _find(name: str, file: str, hub: Mapping[str, Any]) -> str | None:
    """A file of a folder or a repository; None if there is none, or the Hub cannot be asked."""
    from transformers.utils import cached_file

    quiet = ("gated_repo", "missing_entries", "connection_errors")
    return cached_file(name, file, **{f"_raise_exceptions_for_{what}": False for what in quiet}, **hub)


def _whole_numbers(config: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Every whole number in a configuration, with the name under which it stands; not those that stand for labels."""
    found: list[tuple[str, int]] = []
    for key, value in config.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and key not in ("id2label", "label2id"):
                found += _whole_numbers(item)
            elif isinstance(item, int) and not isinstance(item, bool) and not re.search("seed|token_id", str(key)):
                found.append((str(key), item))
    return found


def _lies_in(file: Path, folder: Path) -> bool:
    """Whether a file is in a folder, links followed. In the Hub's cache files are links to the blobs beside it."""
    folder = folder.resolve()
    allowed = [folder, *([folder.parents[1] / "blobs"] if folder.parent.name == "snapshots" else [])]
    return any(place in file.resolve().parents for place in allowed)
