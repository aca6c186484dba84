"""Discontinuous mentions as SNG has them: fragments that are typed one by one, and P and R that count mentions."""

import pytest

from hf_spanner.data import read_file
from hf_spanner.data.writers import write_jsonl
from hf_spanner.metrics import format_scores, score_typing

ANN = """T1\tADR 0 11\tPain in arm
T2\tADR 0 7;16 19\tPain in leg
T3\tADR 21 26\tDizzy
T4\tADR 16 19;21 26\tleg Dizzy
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("Pain in arm and leg. Dizzy.\n")
    (tmp_path / "a.ann").write_text(ANN)
    return tmp_path


def test_fragments_name_their_mentions_and_shared_ones_all_of_them(folder, tmp_path):
    (sentence,), report = read_file(folder, discontinuous="fragments")
    found = {" ".join(sentence["tokens"][e["start"] : e["end"]]): e.get("mention") for e in sentence["entities"]}
    assert found == {
        "Pain in arm": None, "Pain in": "fragment:T2", "leg": "fragment:T2+T4", "Dizzy": "fragment:whole+T4",
    }  # fmt: skip
    assert report.changed == {"discontinuous mention, taken as its fragments": 2} and not report.lost
    write_jsonl([sentence], tmp_path / "a.jsonl")
    assert read_file(tmp_path / "a.jsonl")[0][0]["entities"] == sentence["entities"]


def test_precision_and_recall_of_the_manuscript_count_mentions_by_hand(folder):
    (sentence,), _ = read_file(folder, discontinuous="fragments")
    gold = sentence["entities"]
    # "leg" is typed wrongly: T1 and T3 are right, of T2 and T4 a fragment is wrong.
    found = [{**e, "label": "Drug" if e.get("mention") == "fragment:T2+T4" else e["label"]} for e in gold]
    scores = score_typing([found], [gold])
    assert scores["discontinuous"] == {"support": 2, "right": 0}
    assert scores["paper_precision"] == 1.0 and scores["paper_recall"] == 2 / 4 and scores["paper_accuracy"] == 2 / 4
    assert scores["paper_f1"] == pytest.approx(2 / 3) and scores["typing_accuracy"] == 3 / 4
    assert "discontinuous mentions: 2, all fragments right: 0" in format_scores(scores)


def test_a_discontinuous_mention_that_is_right_costs_no_recall():
    gold = [[{"start": 0, "end": 1, "label": "A", "mention": "fragment:T1"}, {"start": 2, "end": 3, "label": "A",
             "mention": "fragment:T1"}, {"start": 4, "end": 5, "label": "B"}]]  # fmt: skip
    right = score_typing([[(0, 1, "A"), (2, 3, "A"), (4, 5, "B")]], gold)
    assert (right["paper_precision"], right["paper_recall"], right["paper_accuracy"]) == (1.0, 1.0, 1.0)
    wrong = score_typing([[(0, 1, "A"), (2, 3, "B"), (4, 5, "B")]], gold)
    assert (wrong["paper_precision"], wrong["paper_recall"], wrong["paper_accuracy"]) == (1.0, 0.5, 0.5)


def test_without_discontinuous_mentions_the_figures_stay_as_they_were():
    scores = score_typing([[(0, 1, "A"), (1, 2, "B")]], [[(0, 1, "A"), (1, 2, "A")]])
    assert "discontinuous" not in scores and scores["paper_f1"] == pytest.approx(2 / 3)
