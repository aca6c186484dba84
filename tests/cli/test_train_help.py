"""`hf-spanner train --help` on one screen, and `--help-all`."""

import dataclasses
import re

import pytest

from hf_spanner import cli
from hf_spanner.auto import APPROACHES
from hf_spanner.cli.arguments import TrainParser, parse_with_recipe
from hf_spanner.cli.train import RunArguments
from hf_spanner.cli.train_help import USED, explained, settings_of
from hf_spanner.training import NestedNerTrainingArguments

TYPES = (RunArguments, NestedNerTrainingArguments)
NEEDED = ("data", "model", "approach", "encoder", "output_dir", "learning_rate", "max_minutes", "patience", "resume")


def shown(capsys, *argv: str) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(["train", *argv])
    assert end.value.code == 0
    return capsys.readouterr().out


def names(text: str) -> list[str]:
    return re.findall(r"^  (?:-h, )?--([\w-]+)", text, re.MULTILINE)


def test_the_help_is_one_screen(capsys):
    text = shown(capsys, "--help")
    lines = text.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 100
    assert lines[0].startswith("usage: hf-spanner train [RECIPE.yaml] --data")
    assert {*NEEDED, "max_span_length", "help-all"} <= {*names(text)}
    assert "approaches: seq_ner, span_ner," in text and "litbank" in text
    assert shown(capsys, "-h") == text


def test_the_help_shows_options_that_exist_with_their_defaults(capsys, tmp_path):
    text = shown(capsys, "--help")
    options = {field.name: field for kind in TYPES for field in dataclasses.fields(kind)}
    settings = {name: default for name, _, default in settings_of(APPROACHES["span_ner"].config_class)}
    listed = [name for name in names(text) if name not in ("help", "help-all")]
    assert listed == [name for part in USED.values() for name in part if name in options or name in settings]
    assert f"[{settings['max_span_length']}]" in text
    for name in listed:  # each is understood
        values = {"bool": "true", "str": "x", "int": "3", "float": "0.5"}
        kind = str(options[name].type) if name in options else "int"
        value = next((value for part, value in values.items() if part in kind), "1")
        argv = ["--data", "x", "--output_dir", str(tmp_path / "x"), f"--{name}", value]
        if name in ("model", "approach", "bf16"):  # an "x" of those is refused after parsing
            TrainParser(TYPES, allow_abbrev=False).parse_args(argv)
        else:
            (run, args), found, _ = parse_with_recipe(argv, *TYPES)
            assert name in found or hasattr(run, name) or hasattr(args, name)


def test_all_options_and_the_settings_of_the_approach_are_shown_on_request(capsys):
    text = shown(capsys, "--help-all", "--approach", "dspert")
    every = {field.name for kind in TYPES for field in dataclasses.fields(kind) if field.init}
    assert every <= {*names(text)}
    options, _, settings = text.partition("settings of dspert")
    assert "--span_depth" in settings and "the number of span Transformer blocks" in settings
    assert "--span_depth" not in options and max(map(len, text.splitlines())) <= 101
    assert {*names(shown(capsys, "--help"))} <= {*names(text)}


def test_the_approach_of_a_recipe_is_the_one_explained(capsys):
    assert "settings of dspert" in shown(capsys, "genia/dspert.yaml", "--help-all")
    assert "settings of sng" in shown(capsys, "genia/dspert.yaml", "--approach", "sng", "--help-all")
    assert "settings of cnn_ner" in shown(capsys, "--approach=cnn_ner", "--help-all")


def test_an_approach_that_does_not_exist_is_named(capsys):
    assert cli.main(["train", "--help-all", "--approach", "crf"]) == 2
    assert "Unknown approach 'crf'" in capsys.readouterr().err


@pytest.mark.parametrize("name", APPROACHES)
def test_every_setting_of_every_approach_is_explained(name):
    unexplained = [setting for setting, text, _ in settings_of(APPROACHES[name].config_class) if not text]
    assert unexplained == []


def test_explanations_come_from_docstrings():
    text = """A thing.

    Args:
        one, two: of several
            lines: all of them.
        three: `"x"`.

    Example:
        four: no
    """
    assert explained(text) == {"one": "of several lines: all of them.", "two": "of several lines: all of them.",
                               "three": '`"x"`.'}  # fmt: skip
    assert explained("Nothing.") == {}
