"""Kinds of errors, error rates and confusion."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.evaluation import confusion, list_errors, list_mentions, score_mentions, summarise_errors


def kinds(predicted, gold):
    return {(*e.mention.span, e.mention.label): e.kind for e in list_errors(list_mentions([predicted], [gold]))}


def test_the_running_example_of_bundling():
    gold = [(2, 3, "Weather"), (3, 5, "Date")]  # will it [rain] [this night]
    for wrong in [(1, 3, "Weather"), (0, 3, "Weather"), (2, 4, "Weather")]:
        assert kinds([wrong, (3, 5, "Date")], gold) == {wrong: "boundary", (2, 3, "Weather"): "boundary"}
    assert kinds([(2, 3, "Date"), (3, 5, "Date")], gold) == {(2, 3, "Date"): "type", (2, 3, "Weather"): "type"}
    assert kinds([(0, 1, "Date"), (3, 5, "Date")], gold) == {(0, 1, "Date"): "spurious", (2, 3, "Weather"): "missed"}


def test_a_wrong_type_is_tested_for_before_a_wrong_boundary():
    gold = [(0, 5, "PER"), (3, 5, "GPE")]
    assert kinds([(0, 5, "PER"), (3, 5, "ORG")], gold) == {(3, 5, "ORG"): "type", (3, 5, "GPE"): "type"}


def test_an_entity_found_inside_does_not_make_the_outer_one_a_boundary_error():
    assert kinds([(3, 5, "GPE")], [(0, 5, "PER"), (3, 5, "GPE")]) == {(0, 5, "PER"): "missed"}


def test_rates_are_counted_on_the_side_of_predictions():
    # One wrong type (FP and FN), one wrong boundary (FP and FN), one spurious, one missed: FP + FN = 6.
    gold = [(0, 1, "A"), (2, 4, "A"), (8, 9, "A")]
    found = [(0, 1, "B"), (2, 3, "A"), (6, 7, "A")]
    summary = summarise_errors(list_errors(list_mentions([found], [gold])))
    assert summary["wrong"] == {"type": 1, "boundary": 1, "spurious": 1}
    assert summary["missed"] == {"type": 1, "boundary": 1, "missed": 1}
    assert summary["type_error_rate"] == summary["boundary_error_rate"] == 1 / 6
    assert summarise_errors([])["type_error_rate"] == 0


def test_confusion_by_hand():
    gold = [(0, 1, "A"), (1, 2, "A"), (2, 3, "B"), (2, 3, "A"), (5, 6, "B")]
    found = [(0, 1, "A"), (1, 2, "B"), (2, 3, "C"), (7, 8, "B")]
    table = confusion(list_mentions([found], [gold]))
    assert table["labels"] == ["A", "B", "C", "none"]
    assert table["matrix"] == [
        [1, 1, 1, 0],  # of the two labels at [2, 3), the first by name is paired with the wrong one
        [0, 0, 0, 2],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
    ]


spans = st.tuples(st.integers(0, 5), st.integers(1, 4), st.sampled_from("ABC")).map(
    lambda t: (t[0], t[0] + t[1], t[2])
)
pairs = st.lists(st.tuples(st.lists(spans, max_size=6), st.lists(spans, max_size=6)), max_size=4)


@given(pairs)
def test_errors_and_confusion_add_up(pairs):
    mentions = list_mentions([p for p, _ in pairs], [g for _, g in pairs])
    scores = score_mentions(mentions)
    errors = list_errors(mentions)
    summary = summarise_errors(errors)
    assert sum(summary["wrong"].values()) == scores["predicted"] - scores["correct"]
    assert sum(summary["missed"].values()) == scores["support"] - scores["correct"]
    assert summary["type_error_rate"] * len(errors) == pytest.approx(summary["wrong"]["type"])
    table = confusion(mentions)
    gold = Counter(m.label for m in mentions if m.gold)
    predicted = Counter(m.label for m in mentions if m.predicted)
    for i, label in enumerate(table["labels"][:-1]):
        assert sum(table["matrix"][i]) == gold[label]
        assert sum(row[i] for row in table["matrix"]) == predicted[label]
        assert table["matrix"][i][i] == sum(m.correct for m in mentions if m.label == label)


@given(pairs)
def test_kinds_are_what_the_definitions_say(pairs):
    for predicted, gold in pairs:
        predicted, gold = set(predicted), set(gold)
        for (start, end, label), kind in kinds(list(predicted), list(gold)).items():
            is_gold = (start, end, label) in gold
            others = predicted if is_gold else gold
            same = any((s, e) == (start, end) for s, e, _ in others)
            rivals = predicted - gold if is_gold else gold
            touches = any(set(range(s, e)) & set(range(start, end)) for s, e, _ in rivals)
            assert kind == ("type" if same else "boundary" if touches else "missed" if is_gold else "spurious")
