"""Scores that mean something: the line is fitted by hand-worked rules, rises, and travels with the model."""

import pytest
import torch
from approaches import ROWS
from hypothesis import given
from hypothesis import strategies as st
from tests_support import make_batch, without_gold

from hf_spanner import load_model
from hf_spanner.evaluation.calibration import FEWEST, calibration_error, fit_calibration
from hf_spanner.loading import load_for
from hf_spanner.modeling.decoding import Calibration, Entity

RISING = st.lists(st.integers(1, 99), max_size=6, unique=True).map(lambda row: [n / 100 for n in sorted(row)])
POINTS = st.tuples(RISING, RISING).map(lambda axes: [list(point) for point in zip(*axes, strict=False)])


@given(POINTS, st.floats(0, 1), st.floats(0, 1))
def test_the_line_rises_and_can_be_gone_back(points, a, b):
    rise = Calibration(points)
    assert rise(0) == 0 and rise(1) == 1 and 0 <= rise(a) <= 1
    assert rise.inverse(rise(a)) == pytest.approx(a, abs=1e-6)
    if a < b:
        assert rise(a) <= rise(b)


def test_a_line_that_falls_is_refused():
    with pytest.raises(ValueError, match="must rise from 0 to 1"):
        Calibration([[0.2, 0.5], [0.4, 0.4]])


def answers(score, right, number):
    """`number` sentences of one prediction each, `right` of them right."""
    found = [[Entity(0, 1, "X", score)]] * number
    gold = [[(0, 1, "X")]] * right + [[]] * (number - right)
    return found, gold


def test_shares_by_hand():
    low, high = answers(0.4, FEWEST // 4, FEWEST), answers(0.9, FEWEST // 2, FEWEST)
    found, gold = low[0] + high[0], low[1] + high[1]
    points = fit_calibration(found, gold, groups=2)
    assert points == [[0.4, 0.25], [0.9, 0.5]]
    assert calibration_error(found, gold, "any") == pytest.approx((0.15 + 0.4) / 2)
    assert calibration_error(found, gold, "any", points) == pytest.approx(0)


def test_groups_that_do_not_rise_become_one():
    low, high = answers(0.4, FEWEST // 2, FEWEST), answers(0.8, FEWEST // 4, FEWEST)
    assert fit_calibration(low[0] + high[0], low[1] + high[1], groups=2) == [[0.6, 0.375]]
    assert fit_calibration([], []) == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.name == row.approach], ids=str)
def test_entities_stay_and_scores_change(row, tokenizer, tmp_path):
    torch.manual_seed(0)
    model = row.make(tokenizer)
    batch = without_gold(make_batch(tokenizer))
    with torch.no_grad():
        output = model(**batch)
    before = model.decode(output, threshold=0.1, overlap="any")
    model.config.calibration = [[0.3, 0.05], [0.6, 0.5]]
    rise = Calibration(model.config.calibration)
    after = model.decode(output, threshold=rise(0.1), overlap="any")
    assert [[e[:3] for e in found] for found in after] == [[e[:3] for e in found] for found in before]
    for old, new in zip(sum(before, []), sum(after, []), strict=True):
        assert new.score == pytest.approx(rise(old.score))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model(str(tmp_path))[0].config.calibration == model.config.calibration


def test_training_on_and_other_labels_drop_a_calibration(tokenizer, tmp_path):
    """The line was fitted to scores that will be others; thresholds go back to raw scores."""
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    model.config.calibration, model.config.threshold = [[0.5, 0.2]], 0.2
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    goes_on, _, _ = load_for(str(tmp_path), model.config.labels, [])
    assert goes_on.config.calibration is None and goes_on.config.threshold == pytest.approx(0.5)
    model.config.threshold = dict.fromkeys(model.config.labels, 0.2)
    other = model.config.with_labels(["x"])
    assert other.calibration is None and other.threshold is None and other.labels == ["x"]
    assert model.config.calibration is not None  # the old one is as it was
