"""Claims: the rule of the verdict, the intervals behind it, and the page."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.cli.reproduce import COMMANDS
from hf_spanner.evaluation.comparison import SentenceCounts, f1_of
from hf_spanner.reproduce.claims import (
    interval_of_counts,
    interval_of_values,
    make_claims,
    read_claims,
    runs_of,
    verdict,
)
from hf_spanner.reproduce.runs import Place, read_budgets

SMALL = dataclasses.replace(read_budgets()["small"], sentences=(8, 6, 6))


@pytest.mark.parametrize(
    "interval, expected",
    [
        ((0.01, 0.2), "reproduced"),
        ((-0.2, -0.01), "contradicted"),
        ((-0.01, 0.3), "not at this scale"),
        ((0.0, 0.3), "not at this scale"),
        ((-0.3, 0.0), "not at this scale"),
        ((0.0, 0.0), "not at this scale"),
        (None, "open"),
    ],
)
def test_the_verdict_asks_where_the_whole_interval_lies(interval, expected):
    assert verdict(interval) == expected


@given(st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted))
def test_turning_a_claim_round_turns_its_verdict_round(interval):
    low, high = interval
    turned = {"reproduced": "contradicted", "contradicted": "reproduced"}
    there, back = verdict((low, high)), verdict((-high, -low))
    assert back == turned.get(there, there)


def counts(correct, predicted, support) -> SentenceCounts:
    return SentenceCounts(*(np.array(column) for column in (correct, predicted, support)))


def test_one_run_of_alike_sentences_has_an_interval_without_width():
    good, bad = counts([2] * 9, [2] * 9, [2] * 9), counts([1] * 9, [2] * 9, [2] * 9)
    assert interval_of_counts([good], [bad]) == pytest.approx((0.5, 0.5))
    assert interval_of_counts([good], [good]) == (0.0, 0.0)
    # runs that differ widen it: of two runs with 1.0 and 0.5 a resample's mean is 0.5, 0.75 or 1.0
    assert interval_of_counts([good, bad], [bad]) == pytest.approx((0.0, 0.5))


def test_the_interval_is_what_a_plain_loop_draws():
    draw = np.random.default_rng(5)

    def run(share):
        support = draw.integers(0, 4, 60)
        correct = draw.binomial(support, share)
        return support, counts(correct, correct + draw.integers(0, 2, 60), support)

    gold, a = run(0.8)
    sides = [[a, run(0.7)[1]._replace(support=gold)], [run(0.4)[1]._replace(support=gold)]]
    differences = []
    for _ in range(4000):
        rows = draw.integers(60, size=60)
        means = []
        for runs in sides:
            chosen = [runs[i] for i in draw.integers(len(runs), size=len(runs))]
            means.append(np.mean([f1_of(*(column[rows].sum() for column in one)) for one in chosen]))
        differences.append(means[0] - means[1])
    assert interval_of_counts(*sides) == pytest.approx(np.percentile(differences, [2.5, 97.5]), abs=0.015)


def test_the_interval_of_a_few_values_is_students():
    assert interval_of_values([0.7], [0.5, 0.6]) is None
    low, high = interval_of_values([0.7, 0.8, 0.9], [0.1, 0.2, 0.3])
    # means differ by 0.6, each variance 0.01, so s = sqrt(0.02 / 3) with 4 degrees of freedom: t = 2.776
    assert (low, high) == pytest.approx((0.6 - 2.776 * 0.08165, 0.6 + 2.776 * 0.08165), abs=1e-3)
    assert interval_of_values([0.5, 0.5], [0.4, 0.4]) == pytest.approx((0.1, 0.1))


def test_claims_are_trained_judged_and_written_and_a_second_call_trains_nothing(tmp_path):
    trained, page = [], tmp_path / "page.md"

    def train(argv):
        trained.append(argv)
        COMMANDS.train(argv)

    spies = dataclasses.replace(COMMANDS, train=train)
    place = Place(tmp_path / "out", SMALL, spies, say=lambda text: None)
    for _ in range(2):
        text = make_claims(place, [1], "sng", ["attention", "sure"], page=page)
    assert len(trained) == 2, "two networks; the sample stands in for both corpora"
    assert page.read_text() == text == (tmp_path / "out" / "claims.md").read_text()
    rows = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert [row["name"] for row in rows] == ["attention"] * 2 + ["sure"] * 2
    assert all(set(row["larger"]) == {"1"} for row in rows)
    by_name = {row["name"]: row for row in rows}
    assert by_name["attention"]["verdict"] == verdict(tuple(by_name["attention"]["interval"]))
    assert by_name["sure"]["interval"] is None and by_name["sure"]["verdict"] == "open"  # one run, and no count
    assert "--seeds 1 --budget small --sentences 8 6 6\n" in text and "Made with hf_spanner " in text
    assert text.count("| *open* |") == 2 and "## sng" in text and "91.76 > ?" in text
    page.unlink()
    plan = make_claims(place, [1, 2], "sng", ["attention"], dry_run=True, page=page)
    assert len(trained) == 2 and " | 1, 1 | *" in page.read_text()
    assert sorted(line.split(":")[0] for line in plan.splitlines()) == ["done", "done", "to train", "to train"]


def test_what_a_claim_is_about_is_all_that_its_trainings_differ_in(tmp_path):
    place = Place(tmp_path, SMALL, COMMANDS)
    (reading, _) = read_claims("locate_and_label", ["soft_nms"])
    assert len(runs_of(place, reading, 1)) == 1, "Soft-NMS has no part in training"
    (trained, _) = read_claims("locate_and_label", ["regressor"])
    full, without = (run.recipe for run in runs_of(place, trained, 1))
    assert {key for key in full | without if full.get(key) != without.get(key)} == {"use_regressor"}


def test_a_claim_on_two_corpora_is_judged_by_runs():
    (claim,) = read_claims("sng", ["genia_litbank"])
    assert claim.corpus == "genia and litbank" and claim.printed == ("91.76", "87.93")
