"""Reliability of scores, and thresholds that maximise F1."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner import Entity
from hf_spanner.evaluation import calibration, f1_at, list_mentions, tune_threshold, tune_thresholds


def test_calibration_by_hand():
    found = [(0, 1, "A", 0.9), (1, 2, "A", 0.95), (2, 3, "A", 0.32), (3, 4, "A", 1.0)]
    gold = [(0, 1, "A"), (2, 3, "A"), (3, 4, "A"), (7, 8, "A")]
    result = calibration(list_mentions([found], [gold]))
    assert result["bins"][3] == {"low": 0.3, "high": 0.4, "count": 1, "score": pytest.approx(0.32), "correct": 1.0}
    last = result["bins"][9]
    assert last["count"] == 3 and last["score"] == pytest.approx(0.95) and last["correct"] == pytest.approx(2 / 3)
    assert result["ece"] == pytest.approx((0.68 + 3 * (0.95 - 2 / 3)) / 4)
    assert result["bins"][0]["score"] is None


def test_no_calibration_without_probabilities():
    gold = [[(0, 1, "A")]]
    assert calibration(list_mentions([[]], gold)) is None
    assert calibration(list_mentions([[(0, 1, "A")]], gold)) is None  # no scores
    assert calibration(list_mentions([[(0, 1, "A", 2.6)]], gold)) is None  # a sum of three probabilities


@given(st.lists(st.tuples(st.integers(0, 1000).map(lambda i: i / 1000), st.booleans()), min_size=1, max_size=40))
def test_ece_is_what_a_loop_over_bins_computes(pairs):
    found = [(i, i + 1, "A", score) for i, (score, _) in enumerate(pairs)]
    gold = [(i, i + 1, "A") for i, (_, right) in enumerate(pairs) if right]
    expected = 0.0
    for low in range(10):
        members = [(s, r) for s, r in pairs if low <= s * 10 < low + 1 or (low == 9 and s == 1)]
        if members:
            expected += abs(np.mean([s for s, _ in members]) - np.mean([r for _, r in members])) * len(members)
    result = calibration(list_mentions([found], [gold]))
    assert result["ece"] == pytest.approx(expected / len(pairs), abs=1e-9)
    assert sum(row["count"] for row in result["bins"]) == len(pairs)


# --------------------------------------------------------------------------------------------------------- thresholds


def test_the_best_threshold_by_hand():
    found = [[Entity(0, 1, "A", 0.9), Entity(1, 2, "A", 0.6), Entity(2, 3, "B", 0.5), Entity(3, 4, "B", 0.3)]]
    gold = [[(0, 1, "A"), (2, 3, "B"), (3, 4, "B")]]
    best = tune_threshold(found, gold)
    assert best.f1 == pytest.approx(6 / 7) and best.threshold <= 0.3  # all four: three right
    each = tune_thresholds(found, gold, ["A", "B", "C"])
    assert each.f1 == 1 and 0.6 < each.threshold["A"] < 0.9 and each.threshold["B"] < 0.3
    assert each.threshold["C"] == best.threshold  # nothing is known of C


def test_nothing_to_find_and_nothing_found():
    assert tune_threshold([[]], [[]]).f1 == 0
    assert tune_thresholds([[]], [[(0, 1, "A")]], ["A"]).f1 == 0


def test_a_threshold_can_free_the_place_of_another_label():
    """B crosses A: only if A's threshold is above its score can B stand. That is measured, not assumed."""
    found = [[Entity(0, 3, "A", 0.6), Entity(2, 5, "B", 0.5)], [Entity(0, 1, "A", 0.9)]]
    gold = [[(2, 5, "B")], [(0, 1, "A")]]
    best = tune_thresholds(found, gold, ["A", "B"], "nested")
    assert best.f1 == f1_at(best.threshold, found, gold, "nested")
    assert best.f1 >= tune_threshold(found, gold, "nested").f1


scores = st.integers(6, 99).map(lambda i: i / 100)
entities = st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("AB"), scores).map(
    lambda t: Entity(t[0], t[0] + t[1], t[2], t[3])
)
rows = st.lists(st.lists(entities, max_size=5, unique_by=lambda e: e[:3]), min_size=1, max_size=3)


@settings(max_examples=60)
@given(rows, st.sampled_from(["any", "nested", "flat"]), st.data())
def test_no_other_threshold_is_better(found, overlap, data):
    gold = [[e[:3] for e in row if data.draw(st.booleans())] + [(9, 10, "A")] for row in found]
    tried = [0.055, *(e.score for row in found for e in row), 1.0]
    best = tune_threshold(found, gold, overlap)
    assert best.f1 == pytest.approx(f1_at(best.threshold, found, gold, overlap))
    assert best.f1 == pytest.approx(max(f1_at(t, found, gold, overlap) for t in tried))
    careful = tune_threshold(found, gold, overlap, tolerance=0.1)
    assert careful.threshold >= best.threshold and careful.f1 >= best.f1 - 0.1 - 1e-12
    generous = tune_threshold(found, gold, overlap, tolerance=-0.1)
    assert generous.threshold <= best.threshold and generous.f1 >= best.f1 - 0.1 - 1e-12
    each = tune_thresholds(found, gold, ["A", "B"], overlap)
    assert each.f1 == pytest.approx(f1_at(each.threshold, found, gold, overlap))
    assert each.f1 >= best.f1 - 1e-12
    if overlap == "any":
        pairs = itertools.product(sorted(set(tried)), repeat=2)
        assert each.f1 == pytest.approx(max(f1_at({"A": a, "B": b}, found, gold, overlap) for a, b in pairs))


def test_candidates_and_predictions_come_from_one_reading(tokenizer):
    """What `tune-threshold` compares is what the model would say in two passes, read in one."""
    from approaches import ROWS
    from tests_support import records

    from hf_spanner import predict_sentences
    from hf_spanner.evaluation.thresholds import FLOOR, predict_candidates

    torch.manual_seed(0)
    model = next(row for row in ROWS if row.name == "span_ner-multi_label").make(tokenizer, max_subwords=16)
    runs = []
    model.register_forward_hook(lambda *_: runs.append(1))
    candidates, default = predict_candidates(model, tokenizer, records(), "flat", batch_size=100)
    once = len(runs)
    again = predict_sentences(model, tokenizer, records(), batch_size=100, threshold=FLOOR, overlap="any")
    assert candidates == again and len(runs) == 2 * once
    assert default == predict_sentences(model, tokenizer, records(), batch_size=100, overlap="flat")
