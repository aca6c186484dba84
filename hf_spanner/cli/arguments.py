"""Command lines made of a YAML recipe and flags: one flat list of names for run, training and model settings."""

import dataclasses
import difflib
import json
import sys
from typing import Any

from transformers import HfArgumentParser
from transformers.configuration_utils import PreTrainedConfig

from ..auto import approach
from ..foreign import check_size
from ..loading import load_config
from ..training.recipes import read_recipe
from .options import OneSentence, read_yaml
from .train_help import asked_for_help


class TrainParser(OneSentence, HfArgumentParser):
    """The parser of `hf-spanner train` and of what takes the same flags."""


def parse_with_recipe(
    argv: list[str] | None, *dataclass_types: Any, command: str = "train"
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Parse `[recipe.yaml] --name value ...` into dataclasses and the settings of an approach's configuration.

    The recipe's entries come first, so that flags override them. What is in no dataclass must be a field of the
    configuration of `--approach`, or of the `--model` to go on from; its value is read as YAML (`--max_negatives
    null`, `--threshold 0.5`), and a list may have several (`--windows 1 2 4`).

    Returns:
        The dataclasses, the configuration settings, and the recipe as a dict (for saving beside the model).
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    recipe: dict[str, Any] = {}
    if argv and argv[0].endswith((".yaml", ".yml")):
        name = argv.pop(0)
        try:
            recipe = check_size(read_recipe(name), name)
        except RecursionError:
            raise ValueError(f"{name} is nested too deeply to be a recipe.") from None
        argv = _as_flags(recipe) + argv
    parser = TrainParser(dataclass_types, prog=f"hf-spanner {command}", allow_abbrev=False, add_help=False)
    if (told := asked_for_help(parser, argv)) is not None:
        print(told)
        raise SystemExit(0)
    *parsed, rest = parser.parse_args_into_dataclasses(args=argv, return_remaining_strings=True)
    run = parsed[0]
    if run.model is None and run.encoder is None and run.approach is None:
        run.model = "default"
    run.approach = choose_approach(run.approach, run.model)
    settings = _config_settings(rest, parsed[0].approach, parser)
    if "learning_rate" in recipe:  # it is complete: what it leaves out is as it always was
        parsed[1].unset = set()
    return parsed, settings, recipe


def choose_approach(name: str | None, model: str | None) -> str:
    """The approach asked for: a trained model has its own, else `span_ner` unless another is named."""
    if model is None:
        return name or "span_ner"
    own = load_config(model).model_type
    if name not in (None, own):
        raise ValueError(f"{model} is a {own} model and cannot go on as {name}: leave --approach {name} out.")
    return own


def _as_flags(recipe: dict[str, Any]) -> list[str]:
    flags = []
    for name, value in recipe.items():
        flags.append(f"--{name}")
        if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
            flags.extend(map(str, value))
        elif isinstance(value, (dict, list)) or value is None:
            flags.append(json.dumps(value))
        else:
            flags.append(str(value))
    return flags


def _config_settings(rest: list[str], approach_name: str, parser: HfArgumentParser) -> dict[str, Any]:
    """`--name value` pairs left over, as fields of the approach's configuration."""
    config_class = approach(approach_name).config_class
    not_settings = {"encoder_config", *(field.name for field in dataclasses.fields(PreTrainedConfig))}
    fields = {field.name: field for field in dataclasses.fields(config_class) if field.name not in not_settings}
    settings: dict[str, Any] = {}
    position = 0
    while position < len(rest):
        flag, sep, value = rest[position].partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in fields:
            known = fields.keys() | {option.removeprefix("--") for a in parser._actions for option in a.option_strings}
            near = difflib.get_close_matches(name, known, n=3)
            hint = f" Did you mean {' or '.join('--' + n for n in near)}?" if near else ""
            raise ValueError(f"{approach_name} knows no setting {flag!r}.{hint}")
        position += 1
        is_list = "list" in str(fields[name].type)
        values = [value] if sep else []
        while position < len(rest) and not rest[position].startswith("--") and (not values or (is_list and not sep)):
            values.append(rest[position])
            position += 1
        if not values:
            raise ValueError(f"{flag} needs a value.")
        read = [read_yaml(value, flag) for value in values]
        one = len(read) == 1 and (not is_list or read[0] is None or isinstance(read[0], list))
        settings[name] = read[0] if one else read
    return settings
