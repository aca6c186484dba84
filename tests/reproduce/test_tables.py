"""The papers' tables as data: all parse, and name recipes, settings and corpora that exist."""

import dataclasses
from pathlib import Path

import pytest

from hf_spanner.auto import approach
from hf_spanner.cli.train import RunArguments
from hf_spanner.data.corpora import corpus_names
from hf_spanner.reproduce.claims import read_claims
from hf_spanner.reproduce.ledger import read_ledger
from hf_spanner.reproduce.measures import RECORDED, SECTIONS, WITHOUT_TRAINING
from hf_spanner.reproduce.runner import SPEED
from hf_spanner.reproduce.runs import paper_recipe, read_budgets
from hf_spanner.reproduce.tables import PAPERS, make_table, read_table, table_names
from hf_spanner.training import NestedNerTrainingArguments
from hf_spanner.training.recipes import read_recipe

ROOT = Path(__file__).resolve().parents[2]
TABLES = [(paper, name) for paper in PAPERS for name in table_names(paper)]
DECODING = {"head", "threshold", "overlap"}


@pytest.mark.parametrize("paper, name", TABLES)
def test_a_table_names_recipes_settings_and_measures_that_exist(paper, name):
    table = read_table(paper, name)
    assert table.cells and table.title and len(table.cells) <= len(table.rows) * len(table.columns)
    training = {f.name for of in (RunArguments, NestedNerTrainingArguments) for f in dataclasses.fields(of)}
    for cell in table.cells:
        assert cell.corpus in corpus_names(), cell
        assert cell.section in {*SECTIONS, *RECORDED, *WITHOUT_TRAINING, SPEED}, cell
        if cell.section == "statistics":
            continue
        recipe = paper_recipe(cell)
        config = approach(recipe["approach"]).config_class
        fields = {f.name for f in dataclasses.fields(config)}
        assert set(cell.settings) <= fields | training, (cell.row, set(cell.settings) - fields - training)
        if cell.section == "recipe":
            assert cell.measure.partition(".")[2] in recipe, cell.measure
        own = set(cell.evaluate) - DECODING
        assert own <= set(approach(recipe["approach"]).inference_parameters), (cell.row, own)


@pytest.mark.parametrize("paper, name", TABLES)
def test_batches_are_drawn_at_random_unless_the_row_is_about_that(paper, name):
    trained = [cell for cell in read_table(paper, name).cells if cell.section not in WITHOUT_TRAINING]
    strategies = {paper_recipe(cell).get("train_sampling_strategy") for cell in trained}
    assert strategies <= ({"random", "group_by_length"} if name == "batching" else {"random"})
    assert read_budgets()["claims"].settings["train_sampling_strategy"] == "random"


def test_figures_of_the_papers_stand_where_they_are_printed():
    """One figure of each paper, looked up by hand."""

    def printed(paper, table, row, column):
        return read_table(paper, table).cell(row, column).printed

    assert printed("dspert", "table3", "DSpERT, L̃ = 12", "GENIA") == "81.46 ± 0.25"
    assert printed("bundling", "table3", "W17, BL-SpanNER", "F1") == "53.86"
    assert printed("sng", "table2", "GENIA", "Accuracy") == "91.76"
    assert printed("locate_and_label", "table3", "w/o regressor", "ACE04, L ≥ 10") == "29.33"
    assert printed("diffusion_ner", "table1", "GENIA", "F1") == "81.53"


def test_the_ledger_has_every_row_and_each_resolves():
    rows = read_ledger()
    assert len(rows) == 96 and sum(row.drawing for row in rows) == 4
    assert {paper: sum(row.paper == paper for row in rows) for paper in PAPERS} == {
        "dspert": 25, "bundling": 22, "sng": 10, "locate_and_label": 18, "diffusion_ner": 21,
    }  # fmt: skip
    for row in rows:
        assert row.drawing != bool(row.tables or row.tests), row
        assert all(name in table_names(row.paper) for name in row.tables), row
        assert all((ROOT / "tests" / name).is_file() for name in row.tests), row
    used = {(row.paper, name) for row in rows for name in row.tables}
    assert used == set(TABLES), "a table that no row of the ledger names"


def test_every_claim_names_two_cells_and_has_a_recipe_under_its_budget():
    claims, base = read_claims(), read_budgets()["claims"].base
    by_paper = {paper: {claim.name for claim in claims if claim.paper == paper} for paper in PAPERS}
    assert all(3 <= len(names) <= 6 for names in by_paper.values()), by_paper
    for claim in claims:
        for cell in (claim.larger, claim.smaller):
            read_recipe(f"{base}/{Path(cell.recipe).stem}.yaml")
        assert claim.larger != claim.smaller
    with pytest.raises(ValueError, match="There is no claim 'nothing'"):
        read_claims(only=["nothing"])


GOOD = {
    "title": "t",
    "corpus": "genia",
    "recipe": "{corpus}/dspert.yaml",
    "measure": "scores.f1",
    "settings": {"aggregation": "max", "span_depth": 2},
    "columns": {"F1": {}},
    "rows": {"a": {}},
}


def test_what_a_row_says_stands_on_what_its_column_and_the_table_say():
    changed = {
        "columns": {"F1": {"settings": {"span_depth": 4}}},
        "rows": {"a": {"settings": {"aggregation": "mean"}, "printed": [80.5]}},
    }
    table = make_table("dspert", "t", GOOD | changed)
    (cell,) = table.cells
    assert (cell.recipe, cell.settings, cell.printed) == (
        "genia/dspert.yaml",
        {"aggregation": "mean", "span_depth": 4},
        "80.50",
    )


def test_a_row_may_measure_something_else_in_each_column():
    """As the last row of a table by length does, which is about all of them."""
    table = read_table("locate_and_label", "table2")
    assert [cell.measure for cell in table.cells[-4:]] == [
        f"scores.{name}" for name in ("precision", "recall", "f1", "support")
    ]
    assert [cell.printed for cell in table.cells[-4:]] == ["87.46", "87.35", "87.41", "3035"]
    supports = [int(table.cell(row, "Support").printed) for row in table.rows]
    assert sum(supports[:-1]) == supports[-1], "the paper's rows by length are all of its entities"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kind": "poem"}, "there is no kind 'poem'"),
        ({"colour": "red"}, "'colour' is nothing a table has"),
        ({"rows": {"a": {"printed": [1, 2]}}}, "row 'a' prints 2 figures"),
        ({"rows": {"a": {"minus": "b"}}}, "row 'a' is minus 'b', which has no F1"),
        ({"rows": {"a": {"columns": ["G2"]}}}, "row 'a' prints 1 figures for the columns"),
        ({"rows": {"a": {"prints": [1]}}}, "row a: 'prints' is nothing"),
        ({"rows": {"a": {"measure": ["scores.f1", "scores.recall"]}}}, "row 'a' has 2 measures for the columns"),
        ({"measure": None, "corpus": None}, "has no corpus"),
    ],
)
def test_a_broken_table_is_explained(change, message):
    content = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        make_table("dspert", "t", content)


def test_a_wrong_name_is_answered_with_those_that_are_near():
    with pytest.raises(ValueError, match="dspert has no table 'tabel3'; did you mean .*table3"):
        read_table("dspert", "tabel3")
    with pytest.raises(ValueError, match="There is no paper 'bert'"):
        table_names("bert")
