"""A text is read once; what is chosen afterwards is what the pipeline would have answered."""

import json
import zipfile

import pytest

import hf_spanner
from hf_spanner.demo.files import brat_annotations, write_brat, write_json
from hf_spanner.demo.finding import LEAST, choose, read
from hf_spanner.demo.views import page_bounds, rows, views

TEXT = (
    "Anna Weber of the University of Zurich told the mayor of New York that her company, the Bank of England, "
    "had bought aspirin for the patients of the city's hospital in May 2021."
)


@pytest.fixture(scope="module")
def ner():
    return hf_spanner.pipeline()


@pytest.fixture(scope="module")
def found(ner):
    return read(ner, TEXT)


def test_without_a_choice_it_is_the_pipelines_answer(ner, found):
    assert choose(found) == ner(TEXT) != []


@pytest.mark.parametrize("threshold", [LEAST, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_every_threshold_and_policy_gives_the_pipelines_answer(ner, found, threshold, overlap):
    kinds = ["name", "nominal", "pronoun"]
    expected = ner(TEXT, threshold=threshold, overlap=overlap, mentions=kinds)
    assert choose(found, threshold, mentions=kinds, overlap=overlap) == expected


def test_labels_and_kinds_of_mention_give_the_pipelines_answer(ner, found):
    for choice in (
        {"labels": ["person", "place"]},
        {"mentions": ["nominal"]},
        {"labels": ["place"], "mentions": ["name"]},
    ):
        assert choose(found, 0.3, **choice) == ner(TEXT, threshold=0.3, **choice)
    assert choose(found, 0.3, labels=[]) == []


def test_choosing_never_runs_the_model(ner):
    calls = []
    hook = ner.model.register_forward_hook(lambda *_: calls.append(1))
    try:
        found = read(ner, TEXT)
        assert len(calls) == 1
        for threshold in (None, 0.2, 0.7):
            choose(found, threshold, overlap="flat")
        assert len(calls) == 1
    finally:
        hook.remove()


def test_progress_counts_the_windows_of_a_long_text(ner):
    told = []
    found = read(ner, TEXT * 60, lambda *step: told.append(step), batch_size=2)
    windows = len(found.text.reading.windows)
    assert windows > 2 and told[-1] == (windows, windows) and [done for done, _ in told] == sorted(d for d, _ in told)
    places = [(e["start"], e["end"], e["entity_group"]) for e in choose(found)]
    assert places == [(e["start"], e["end"], e["entity_group"]) for e in ner(TEXT * 60)]


def test_a_threshold_below_what_was_kept_is_refused(found):
    with pytest.raises(ValueError, match="must lie between 0.05 and 1"):
        choose(found, 0.01)


def test_downloads_hold_all_and_brat_reads_back_the_same_entities(tmp_path, found):
    entities = choose(found)
    row = json.loads(write_json(tmp_path / "e.jsonl", TEXT, {"default": entities}).read_text())
    assert row == {"model": "default", "text": TEXT, "entities": entities}
    with zipfile.ZipFile(write_brat(tmp_path / "b.zip", TEXT, {"default": entities})) as archive:
        archive.extractall(tmp_path / "brat")
    data = hf_spanner.load_nested_ner(str(tmp_path / "brat"))["train"]
    read_back = {(" ".join(s["tokens"][e["start"] : e["end"]]), e["label"]) for s in data for e in s["entities"]}
    assert read_back == {(e["word"], e["entity_group"]) for e in entities}
    with zipfile.ZipFile(write_brat(tmp_path / "two.zip", TEXT, {"a": entities, "b": []})) as archive:
        assert sorted(archive.namelist()) == [
            "model1/text.ann",
            "model1/text.txt",
            "model2/text.ann",
            "model2/text.txt",
        ]


def test_brat_has_fragments_where_an_entity_goes_over_a_line_break():
    entity = {"entity_group": "big place", "start": 2, "end": 11}
    assert brat_annotations("a New\r\nYork b", [entity]) == "T1\tbig_place 2 5;7 11\tNew York\n"


def entity(label, start, end, score=0.5):
    return {"entity_group": label, "start": start, "end": end, "score": score, "word": "x" * (end - start)}


def test_of_two_models_what_one_finds_alone_stands_out():
    found = {"a": [entity("PER", 0, 3), entity("LOC", 4, 7)], "b": [entity("PER", 0, 3), entity("ORG", 4, 7)]}
    drawn = str(views("abc def", found, ["PER", "LOC", "ORG"], (0, 7)))
    assert drawn.count("✱ LOC") == 2 and drawn.count("✱ ORG") == 2 and "✱ PER" not in drawn  # a label and a title each
    assert "a: 2 entities, 1 found by it alone" in drawn
    assert [(row[1], row[-1]) for row in rows(found, (0, 7))] == [("PER", "a + b"), ("LOC", "a"), ("ORG", "b")]


def test_the_table_obeys_nothing_of_a_text():
    found = {"a": [{**entity("L\u2066", 0, 3), "word": "a\u202eb"}]}
    assert rows(found, (0, 3)) == [["a\\u202eb", "L\\u2066", "", 0.5, 0, 3]]


def test_a_long_text_is_shown_in_parts_that_hold_all_of_it():
    text = "word " * 5000
    bounds = page_bounds(text, 400)
    assert bounds[0][0] == 0 and bounds[-1][1] == len(text)
    assert all(a[1] == b[0] and b[1] - b[0] <= 400 for a, b in zip(bounds, bounds[1:]))
    assert page_bounds("x" * 1000, 400) == [(0, 400), (400, 800), (800, 1000)] and page_bounds("") == [(0, 0)]
    drawn = str(views(text, {"m": [entity("L", 390, 410)]}, ["L"], bounds[0]))
    assert len(drawn) < 20_000 and 'data-label="L"' in drawn
