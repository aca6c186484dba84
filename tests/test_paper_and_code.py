"""`docs/explanation/paper-and-code.md`: every switch that it names exists and takes the value given there."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

import hf_spanner
from hf_spanner import cli
from hf_spanner.cli.train import RunArguments
from hf_spanner.training import NestedNerTrainingArguments

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "paper-and-code.md"
APPROACHES = {  # whose settings a section speaks of
    "All of them": ("span_ner",),
    "DSpERT": ("dspert", "biaffine_ner"),
    "Bundling": ("bl_ner",),
    "SNG": ("sng",),
    "Locate": ("locate_and_label",),
    "DiffusionNER": ("diffusion_ner",),
}
FLAGS = {field.name for kind in (RunArguments, NestedNerTrainingArguments) for field in dataclasses.fields(kind)}


def switches() -> list[tuple[str, str]]:
    """(section, code) for all code in the last column of the tables."""
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title = section.split("\n")[0]
        rows = [line for line in section.splitlines() if line.startswith("|")]
        cells = [row.split("|")[-2] for row in rows[2:]]
        found += [(title, code) for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    return found


SWITCHES = switches()


def test_every_paper_has_its_switches():
    assert len(SWITCHES) > 35
    assert {name for name in APPROACHES for title, _ in SWITCHES if title.startswith(name)} == set(APPROACHES)


@pytest.mark.parametrize("title, code", SWITCHES, ids=[code for _, code in SWITCHES])
def test_a_switch_exists_and_takes_its_value(title, code, capsys):
    name, _, value = code.partition(" ")
    if name in ("evaluate", "compare", "pictures", "tune-threshold"):
        with pytest.raises(SystemExit):
            cli.main([name, "--help"])
        told = capsys.readouterr().out
        assert all(flag in told for flag in re.findall(r"--[\w-]+", value))
        if name == "evaluate" and "--set" in value:
            parameter = value.split()[1].partition("=")[0]
            assert parameter in hf_spanner.APPROACHES["locate_and_label"].inference_parameters
    elif name == "train" or name.startswith("--"):
        assert {flag.removeprefix("--") for flag in re.findall(r"--\w+", code)} <= FLAGS
    elif name.endswith(".yaml"):
        recipes = Path(hf_spanner.__file__).parent / "recipes"
        assert list(recipes.glob(name.replace("…", "*")))
    else:
        approaches = next(names for start, names in APPROACHES.items() if title.startswith(start))
        classes = [hf_spanner.APPROACHES[approach].config_class for approach in approaches]
        known = [kind for kind in classes if name in {field.name for field in dataclasses.fields(kind)}]
        assert known, f"{code}: no setting of {approaches}"
        if value:
            assert getattr(known[0](labels=["A"], **{name: yaml.safe_load(value)}), name) == yaml.safe_load(value)


def test_alpha_under_a_loss_by_sentence_is_what_the_page_says():
    """α·n·L_word + (1 - α)·L_span weighs the tags as α' L_word + (1 - α') L_span does, up to a factor."""
    alpha, words = 0.1, 20
    by_word = alpha * words / (alpha * words + 1 - alpha)
    assert by_word / (1 - by_word) == pytest.approx(words * alpha / (1 - alpha))
    assert f"{by_word:.2f}" in PAGE.read_text(encoding="utf-8")
