"""Cards: made for every approach, true to the record, and the code they print runs and prints what they say."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch
import yaml
from approaches import ROWS
from huggingface_hub import ModelCard, parse_eval_result_entries
from tests_support import LABELS, records

import hf_spanner
from hf_spanner.evaluation import score_groups
from hf_spanner.hub.cards import FOLDER, About, citation, eval_results_files, make_card
from hf_spanner.hub.record import example_sentence, hub_id, label_examples, public
from hf_spanner.metrics import score_entities, score_typing

GOLD = [record["entities"] for record in records()]
FOUND = [gold[:1] for gold in GOLD]


def record(**changes) -> dict:
    scores = {**score_entities(FOUND, GOLD, labels=LABELS), "groups": score_groups(FOUND, records())}
    return {
        "command": "hf-spanner train litbank/span_ner.yaml --data /home/me/litbank --output_dir ../runs/x",
        "settings": {"max_span_length": 12},
        "training": {"learning_rate": 1e-4, "max_steps": -1, "fp16": False},
        "seed": 7,
        "selected_by": "f1",
        "history": [{}, {}],
        "sentences": {"train": 5},
        "reach": ["train: 2 of 14 gold entities (14.3%) are out of reach: 2 second label on one span."],
        "labels": label_examples(records()),
        "example": example_sentence(records()),
        "data": "litbank",
        "results": {"test": scores},
        "versions": {"torch": "2.13.0"},
        **changes,
    }


def printed_code(card: ModelCard) -> str:
    return re.search(r"```python\n(.*?)```", card.text, flags=re.DOTALL)[1]


def run(code: str) -> list[str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "card", "exec"), {})
    return printed.getvalue().splitlines()


@pytest.mark.parametrize("row", {row.approach: row for row in reversed(ROWS)}.values(), ids=lambda row: row.approach)
def test_the_code_in_a_card_runs_as_printed_and_prints_what_the_card_says(row, tokenizer, tmp_path):
    for seed in range(10):  # a model with random weights may find nothing: take the first that does
        torch.manual_seed(seed)
        model = row.make(tokenizer, threshold=0.0)
        card = make_card(model, tokenizer, str(tmp_path), record())
        code = printed_code(card)
        if expected := [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]:
            break
    hf_spanner.NestedNerPipeline(model=model, tokenizer=tokenizer).save_pretrained(tmp_path)
    assert expected and run(code) == expected
    lines = [line for line in code.splitlines() if line and not line.startswith("#")]
    assert "trust_remote_code" not in code and len(lines) <= 5
    assert citation(row.approach) in card.text


def test_a_model_that_types_given_spans_has_code_for_that(tokenizer, tmp_path):
    row = next(row for row in ROWS if row.approach == "sng")
    model = row.make(tokenizer, spans="gold")
    hf_spanner.NestedNerPipeline(model=model, tokenizer=tokenizer).save_pretrained(tmp_path)
    scores = score_typing(GOLD, GOLD, labels=LABELS)
    card = make_card(model, tokenizer, str(tmp_path), record(results={"test": scores}))
    (found,) = run(printed_code(card))
    assert found.startswith("[[Entity(start=0, end=5, label=")
    assert card.data.metrics == ["accuracy"] and "| type (spans given) | accuracy | support |" in card.text
    named = {r.metric_type for r in card.data.eval_results}
    assert named == {"accuracy", "precision", "recall", "f1"}  # but for accuracy the manuscript's: paper_...


@pytest.fixture(scope="module")
def card(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    about = About(language="en", license="mit", datasets="me/litbank", base_model="acme/tiny", limits="Not for court.")
    return ModelCard(str(make_card(model, tokenizer, "me/x", record(), about)))  # as read back from the file


def test_the_header_says_what_the_hub_wants_to_know(card):
    data = card.data.to_dict()
    assert (data["library_name"], data["pipeline_tag"]) == ("transformers", "token-classification")
    assert (data["base_model"], data["datasets"], data["language"], data["license"]) == (
        "acme/tiny",
        ["me/litbank"],
        "en",
        "mit",
    )
    assert data["metrics"] == ["precision", "recall", "f1"] and "nested-ner" in data["tags"]
    (index,) = data["model-index"]
    measured = {m["name"]: m["value"] for result in index["results"] for m in result["metrics"]}
    scores = record()["results"]["test"]
    assert measured["f1"] == round(scores["f1"], 4) and measured["locate_recall"] == round(scores["locate_recall"], 4)
    assert measured["f1 (place name)"] == round(scores["per_type"]["place name"]["f1"], 4)
    assert measured["f1 (depth: 1)"] == round(scores["groups"]["depth"]["1"]["f1"], 4)
    assert {result["dataset"]["split"] for result in index["results"]} == {"test"}


def test_the_text_has_labels_tables_settings_reach_and_limits(card):
    assert "| `place name` | 7 | New York, London, England |" in card.text
    assert "| **all (micro)** | 100.0 | 28.6 | 44.4 | 14 |" in card.text
    assert "| depth in the gold | precision |" in card.text and "| length | precision |" in card.text
    assert "2 second label on one span" in card.text
    assert "Seed 7" in card.text and "chosen by `f1` on the validation data, out of 2" in card.text
    assert "| `max_span_length` | `12` |" in card.text and "max_steps" not in card.text
    assert "Not for court." in card.text and "Entities of more than 12 words are not found." in card.text
    assert "--data litbank --output_dir x" in card.text and "/home/me" not in card.text


def test_a_model_without_a_record_has_a_card_that_says_so(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    card = make_card(model, None, "me/x", {})
    assert "No result was recorded" in card.text and "was not recorded" in card.text
    assert "model-index" not in card.data.to_dict()


def test_results_files_have_the_form_that_the_hub_reads():
    files = eval_results_files(record(), About(datasets="me/litbank"))
    (entry,) = parse_eval_result_entries(yaml.safe_load(files[".eval_results/nested_ner_test.yaml"]))
    assert (entry.dataset_id, entry.task_id, entry.value) == ("me/litbank", "nested_ner_test", 44.44)
    assert eval_results_files(record()) == {}  # the form knows data sets of the Hub only


def test_every_approach_has_its_paper_and_the_papers_are_those_of_the_citation_file():
    papers = yaml.safe_load((FOLDER / "papers.yaml").read_text(encoding="utf-8"))
    cff = FOLDER.parent / "CITATION.cff"
    if not cff.is_file():
        pytest.skip("CITATION.cff lies in the source tree only")
    references = {
        reference["title"]: set(re.split(r"[:;]", reference["notes"])[1].replace(" ", "").split(","))
        for reference in yaml.safe_load(cff.read_text(encoding="utf-8"))["references"]
    }
    mine = {re.search(r"title = {(.*)}", paper["bibtex"])[1]: set(paper["approaches"]) for paper in papers}
    assert mine == references
    assert set(hf_spanner.APPROACHES) <= set().union(*mine.values())


def test_paths_of_this_machine_do_not_leave_it(tmp_path):
    assert public({"run": {"data": "/home/me/x", "encoder": "acme/tiny", "n": 3}, "files": ["../y", "~/z"]}) == {
        "run": {"data": "x", "encoder": "acme/tiny", "n": 3},
        "files": ["y", "z"],
    }
    assert hub_id("acme/tiny") == "acme/tiny" and hub_id(str(tmp_path)) is None
    assert hub_id("/models/tiny", otherwise="acme/tiny") == "acme/tiny"
    assert hub_id("/models/other", otherwise="acme/tiny") is None


def test_the_cards_in_the_repository_are_where_the_design_puts_them():
    assert (Path(FOLDER) / "template.md").is_file() and FOLDER.name == "model_cards"
