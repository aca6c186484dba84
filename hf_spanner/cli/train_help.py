"""What `hf-spanner train --help` and `--help-all` print: the options that people use, on one screen, and all."""

import argparse
import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from ..auto import NAMES, approach
from ..modeling.configuration_nested_ner import NestedNerConfig

WIDTH, COLUMN = 100, 33
RECIPES = Path(__file__).resolve().parents[1] / "recipes"
USAGE = "hf-spanner train [RECIPE.yaml] --data DATA --output_dir FOLDER [--NAME VALUE ...]"
INTERNAL = {"encoder_config", "pad_token_id"}  # settings that follow from others
ABOUT = "Train a model as told by a recipe, a flat YAML file, and flags, which override it. [defaults]"

# What `--help` shows, as far as it exists; names, texts and defaults come from where an option is defined.
USED = {
    "what": ("data", "model", "approach", "encoder", "labels", "max_span_length", "max_train_sentences"),
    "how": (
        "learning_rate",
        "head_learning_rate",
        "per_device_train_batch_size",
        "num_train_epochs",
        "max_minutes",
        "patience",
        "teacher",
        "unlabelled",
        "lora_rank",
        "bf16",
        "seed",
        "seeds",
        "folds",
    ),
    "where": ("output_dir", "resume", "overwrite", "push_to_hub", "hub_model_id"),
}
HELP = {"-h, --help": "This text", "--help-all": "All options, and the settings of --approach (span_ner if unset)"}


def asked_for_help(parser: argparse.ArgumentParser, argv: list[str]) -> str | None:
    """The help that the arguments ask for, if they do."""
    name = _value_of("--approach", argv) or "span_ner"
    if "--help-all" in argv:
        return full_help(parser, name)
    return short_help(parser, name) if {"-h", "--help"} & {*argv} else None


def short_help(parser: argparse.ArgumentParser, approach_name: str) -> str:
    """The options that people use, a line each, on one screen."""
    known = {name: (text, default) for name, text, default in settings_of(approach(approach_name).config_class)}
    known |= {name: (text, default) for name, text, default in _options(parser)}
    lines = [
        f"usage: {USAGE}",
        "",
        ABOUT,
    ]
    for title, names in USED.items():
        lines += ["", f"{title}:", *(_row(f"--{name}", *known[name], short=True) for name in names if name in known)]
    lines += ["", "help:", *(_row(flag, text) for flag, text in HELP.items()), ""]
    recipes = sorted({path.parent.name for path in RECIPES.glob("*/*.yaml")} - {"papers"})
    return "\n".join(
        lines + [_wrapped("approaches: ", NAMES), _wrapped("recipes, as FOLDER/APPROACH.yaml: ", recipes)]
    )


def full_help(parser: argparse.ArgumentParser, approach_name: str) -> str:
    """All options of a training, and the settings of an approach."""
    lines = [f"usage: {USAGE}", "", ABOUT, "", "options:", *(_row(flag, text) for flag, text in HELP.items())]
    lines += [_row(f"--{name}", text, default) for name, text, default in _options(parser)]
    lines += ["", f"settings of {approach_name} (--approach NAME --help-all shows another's):"]
    settings = settings_of(approach(approach_name).config_class)
    return "\n".join(lines + [_row(f"--{name}", text, default) for name, text, default in settings])


def settings_of(config_class: type) -> list[tuple[str, str, Any]]:
    """Name, explanation and default of an approach's settings: the fields that it and its bases here declare."""
    ours = [base for base in reversed(config_class.__mro__) if issubclass(base, NestedNerConfig)]
    texts: dict[str, str] = {}
    for base in ours:
        texts |= explained(base.__doc__ or "")
    declared = {name for base in ours for name in base.__dict__.get("__annotations__", {})} - INTERNAL
    fields: tuple[dataclasses.Field, ...] = dataclasses.fields(config_class)
    return [(field.name, texts.get(field.name, ""), _default(field)) for field in fields if field.name in declared]


def explained(docstring: str) -> dict[str, str]:
    """The names and explanations under `Args:` in a docstring."""
    _, _, section = inspect.cleandoc(docstring).partition("Args:\n")
    section = re.split(r"\n(?=\S)|\n\n", section)[0]
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", section) if section else ():
        names, _, text = " ".join(entry.split()).partition(": ")
        found |= dict.fromkeys(names.split(", "), text)
    return found


def _options(parser: argparse.ArgumentParser) -> list[tuple[str, str, Any]]:
    """Name, explanation and default of a parser's options; `--no_x` belongs to `--x`."""
    return [
        (action.dest, (action.help or "").replace("%%", "%"), action.default)
        for action in parser._actions
        if any(flag == f"--{action.dest}" for flag in action.option_strings)
    ]


def _row(flag: str, text: str, default: Any = None, short: bool = False) -> str:
    """An option, its explanation and its default; in short, as much of that as one line holds."""
    shown = "" if default is None or default is False or default in ([], "") else f" [{_plain(default)}]"
    text = (text[:1].upper() if text[:1].isascii() else text[:1]) + text[1:]
    if short:
        text = _shortened(text, WIDTH - COLUMN - len(shown))
    margin, start = " " * COLUMN, f"  {flag} ".ljust(COLUMN)
    if len(start) > COLUMN:  # a long name has a line to itself
        return (
            f"{start.rstrip()}\n{textwrap.fill(text + shown, WIDTH, initial_indent=margin, subsequent_indent=margin)}"
        )
    return textwrap.fill(text + shown, WIDTH, initial_indent=start, subsequent_indent=margin)


def _shortened(text: str, room: int) -> str:
    """The first sentence, or the start of it, best up to a comma."""
    text = re.split(r"(?<=\.)\s", text.strip(), maxsplit=1)[0].rstrip(".")
    if len(text) <= room:
        return text
    breaks = [found.start() for found in re.finditer(r"[,;] | \(", text[: room - 3])]
    return f"{text[: breaks[-1]]} ..." if breaks else textwrap.shorten(text, room, placeholder=" ...")


def _plain(default: Any) -> str:
    return " ".join(map(str, default)) if isinstance(default, list) else str(getattr(default, "value", default))


def _wrapped(title: str, names: Any) -> str:
    return textwrap.fill(title + ", ".join(names), WIDTH, subsequent_indent="  ")


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _value_of(flag: str, argv: list[str]) -> str | None:
    """The last value of a flag, as it will be parsed."""
    values = [value for name, value in zip(argv, argv[1:]) if name == flag]
    values += [value.partition("=")[2] for value in argv if value.startswith(f"{flag}=")]
    return values[-1] if values else None
