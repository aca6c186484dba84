"""Paired tests, the comparison of systems, and prediction files that do not fit the data."""

import json
import time

import numpy as np
import pytest
from tests_support import records

from hf_spanner.evaluation import compare, compare_systems, found_by, holm, list_mentions, read_predictions, summarise
from hf_spanner.evaluation.comparison import SentenceCounts, bootstrap_f1, bootstrap_runs, compare_runs, f1_of
from hf_spanner.evaluation.summary import compare_mentions


def counts(correct, predicted, support):
    return SentenceCounts(*(np.array(column) for column in (correct, predicted, support)))


def random_system(rng, support, recall=0.8):
    correct = rng.binomial(support, recall)
    return counts(correct, correct + rng.binomial(2, 0.2, size=len(support)), support)


def test_counts_of_sentences():
    mentions = list_mentions([[(0, 1, "A"), (1, 2, "A")], [], []], [[(0, 1, "A")], [(0, 1, "B"), (0, 1, "A")], []])
    c = SentenceCounts.of(mentions, 3)
    assert [column.tolist() for column in c] == [[1, 0, 0], [2, 0, 0], [1, 2, 0]]
    assert f1_of(*map(np.sum, c)) == pytest.approx(2 * 1 / 5)


def test_two_systems_that_agree_everywhere_do_not_differ():
    system = random_system(np.random.default_rng(0), np.full(50, 3))
    result = compare_systems(system, system, resamples=200)
    assert result["difference"] == 0 and result["p_bootstrap"] == 1 and result["p_randomisation"] == 1
    assert result["interval"] == [0, 0]


def test_a_clear_difference_is_significant_and_has_a_sign():
    rng = np.random.default_rng(0)
    support = rng.poisson(2.5, 400)
    worse, better = random_system(rng, support, 0.6), random_system(rng, support, 0.9)
    result = compare_systems(worse, better, resamples=1000)
    assert result["difference"] > 0.1 and result["interval"][0] > 0
    assert result["p_bootstrap"] < 0.01 and result["p_randomisation"] < 0.01
    other_way = compare_systems(better, worse, resamples=1000)
    assert other_way["difference"] == pytest.approx(-result["difference"])


def test_drawing_sorts_of_sentences_is_drawing_sentences():
    """The distribution of resampled F1 is that of the slow way, which draws sentence by sentence."""
    rng = np.random.default_rng(1)
    system = random_system(rng, rng.poisson(2.0, 120))
    low, high = bootstrap_f1(system, resamples=20_000)
    drawn = rng.integers(0, 120, size=(20_000, 120))
    slow = np.percentile(f1_of(*(column[drawn].sum(1) for column in system)), [2.5, 97.5])
    assert [low, high] == pytest.approx(slow, abs=0.004)


def test_swapping_sorts_of_sentences_is_swapping_sentences():
    rng = np.random.default_rng(2)
    support = rng.poisson(2.0, 80)
    a, b = random_system(rng, support, 0.78), random_system(rng, support, 0.84)
    fast = compare_systems(a, b, resamples=20_000)["p_randomisation"]
    swap = rng.random((20_000, 80)) < 0.5
    f1 = [f1_of(*(np.where(swap, x[i], y[i]).sum(1) for i in range(2)), support.sum()) for x, y in ((a, b), (b, a))]
    observed = f1_of(*map(np.sum, b)) - f1_of(*map(np.sum, a))
    assert fast == pytest.approx(np.mean(np.abs(f1[0] - f1[1]) >= abs(observed)), abs=0.02)


def test_equally_good_systems_are_told_apart_in_about_one_of_twenty_cases():
    """Two systems with the same error rates, simulated 400 times: p < 0.05 must be rare, but not impossible."""
    rng = np.random.default_rng(0)
    significant = np.zeros(2)
    for seed in range(400):
        support = rng.poisson(2.5, 150)
        result = compare_systems(random_system(rng, support), random_system(rng, support), 500, seed)
        significant += [result["p_bootstrap"] < 0.05, result["p_randomisation"] < 0.05]
    rates = significant / 400
    assert (rates > 0.02).all() and (rates < 0.09).all(), rates  # 0.05 ± 3.6 standard errors


def test_runs_that_agree_are_compared_as_one():
    """Without any luck of seeds the bootstrap over runs is that over sentences."""
    rng = np.random.default_rng(3)
    support = rng.poisson(2.5, 300)
    a, b = random_system(rng, support, 0.7), random_system(rng, support, 0.75)
    one, several = compare_systems(a, b, resamples=4000), compare_runs([a] * 3, [b] * 3, resamples=4000)
    assert several["difference"] == pytest.approx(one["difference"])
    assert several["interval"] == pytest.approx(one["interval"], abs=1e-9)
    assert bootstrap_runs([a] * 3) == pytest.approx(bootstrap_f1(a), abs=1e-9)
    assert several["p_randomisation"] == pytest.approx(2 / 20)  # of 20 ways to deal six runs, the two that part them


def test_the_difference_is_that_of_the_means_over_runs():
    support = np.array([2, 2])
    f1 = {"low": counts([1, 0], [1, 1], support), "high": counts([2, 2], [2, 2], support)}
    assert [float(f1_of(*map(np.sum, run))) for run in f1.values()] == pytest.approx([1 / 3, 1.0])
    result = compare_runs([f1["low"], f1["low"]], [f1["low"], f1["high"]], resamples=200)
    assert result["difference"] == pytest.approx((1 / 3 + 1) / 2 - 1 / 3)
    # Six deals: the one high run falls to b in three, to a in three; the means always differ as much.
    assert result["p_randomisation"] == 1


@pytest.mark.parametrize("number, rate", [(2, 0.15), (5, 0.09)])
def test_systems_whose_runs_differ_by_luck_alone_are_seldom_told_apart(number, rate):
    """Every run is better or worse on all sentences; a test that forgets that would see differences everywhere."""
    rng, told, told_by_sentences = np.random.default_rng(4), 0, 0
    for _ in range(200):
        support = rng.poisson(2.0, 150)
        runs = [random_system(rng, support, rng.normal(0.75, 0.05)) for _ in range(2 * number)]
        told += compare_runs(runs[:number], runs[number:], resamples=200)["p_bootstrap"] < 0.05
        told_by_sentences += compare_systems(runs[0], runs[-1], resamples=200)["p_bootstrap"] < 0.05
    assert told / 200 <= rate < 0.3 < told_by_sentences / 200


def test_runs_of_one_system_are_pooled_and_their_scores_kept():
    gold = records()
    perfect, nothing = [s["entities"] for s in gold], [[] for _ in gold]
    references = [s["entities"] for s in gold]
    runs = {
        "a": [list_mentions(found, references) for found in (nothing, perfect)],
        "b": [list_mentions(found, references) for found in (perfect, perfect)],
    }
    comparison = compare_mentions(runs, gold, resamples=50)
    assert comparison["systems"]["a"]["runs"] == [0.0, 1.0] and comparison["systems"]["b"]["runs"] == [1.0, 1.0]
    assert comparison["systems"]["a"]["scores"]["support"] == 28 and comparison["tests"]["b"]["difference"] == 0.5
    assert "F1 of 2 runs: 0.5000 ± 0.7071" in comparison["systems"]["a"]["notes"][0]
    with pytest.raises(ValueError, match=r"different numbers of runs \(a 2, b 1\): name as many of each"):
        compare_mentions({"a": runs["a"], "b": runs["b"][:1]}, gold, resamples=50)


def test_ten_thousand_resamples_over_a_test_set_are_quick():
    rng = np.random.default_rng(0)
    support = rng.poisson(3.0, 1854)
    start = time.process_time()
    compare_systems(random_system(rng, support), random_system(rng, support))
    assert time.process_time() - start < 8  # about half a second; the limit is for slow machines


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


# ------------------------------------------------------------------------------------------------------- comparison

SENTENCES = records()
GOLD = [sentence["entities"] for sentence in SENTENCES]
OUTER = [[e for e in row if not any(o["start"] <= e["start"] and e["end"] <= o["end"] and o is not e for o in row)]
         for row in GOLD]  # fmt: skip


def test_a_comparison_says_who_finds_what():
    inner = [[e for e in row if e not in outer] for row, outer in zip(GOLD, OUTER, strict=True)]
    result = compare({"all": GOLD, "outer": OUTER, "inner": inner}, SENTENCES)
    total = sum(map(len, GOLD))
    assert result["baseline"] == "all" and result["by_none"] == 0 and result["by_all"] == 0
    assert result["only"] == {"all": [], "outer": [], "inner": []}  # each is found by two
    found = found_by({"all": list_mentions(GOLD, GOLD), "outer": list_mentions(OUTER, GOLD)})
    assert len(found) == total and sum(names == ["all"] for names in found.values()) == total - sum(map(len, OUTER))
    assert set(result["tests"]) == {"outer", "inner"} and "p_holm" in result["tests"]["outer"]
    assert result["differences"]["outer"]["groups"]["layer"]["inner"] == -1
    assert result["differences"]["inner"]["groups"]["layer"]["inner"] == 0
    assert result["differences"]["outer"]["groups"]["length"][">10"] == 0
    assert result["differences"]["outer"]["groups"]["sentence_length"][">40"] is None  # no such sentence
    assert json.loads(json.dumps(result)) == result


def test_entities_that_only_one_finds_are_listed():
    one = [[(0, 5, "PER")], [], [], [], []]
    other = [[(3, 5, "place name")], [(0, 2, "place name")], [], [], []]
    result = compare({"one": one, "other": other}, SENTENCES)
    assert result["only"]["one"] == [{"sentence": 0, "start": 0, "end": 5, "label": "PER"}]
    assert [e["sentence"] for e in result["only"]["other"]] == [0, 1]
    assert result["by_none"] == sum(map(len, GOLD)) - 3


def test_one_system_cannot_be_compared():
    with pytest.raises(ValueError, match="at least two systems"):
        compare({"one": GOLD}, SENTENCES)
    with pytest.raises(ValueError, match="same gold entities"):
        compare_systems(counts([1], [1], [1]), counts([1], [1], [2]))


# ---------------------------------------------------------------------------------------------------------- summary


def test_a_summary_is_json_and_says_what_is_odd():
    summary = summarise(GOLD, SENTENCES, train=SENTENCES)
    assert json.loads(json.dumps(summary)) == summary
    assert summary["scores"]["f1"] == 1 and summary["f1_interval"] == [1, 1] and summary["unseen_density"] == 0
    assert summary["notes"] == ["No calibration: the predictions have no scores, or scores that are no probabilities."]
    empty = summarise([[] for _ in SENTENCES], SENTENCES)
    assert empty["scores"]["f1"] == 0 and "no prediction at all" in empty["notes"][0]
    odd = summarise([[(0, 1, "WHO", 0.5)], [], [], [], []], SENTENCES)
    assert "WHO (1)" in odd["notes"][0] and odd["scores"]["per_type"]["WHO"]["predicted"] == 1
    single = summarise([[(0, 1, "X", 0.5)]], [{"tokens": ["a"], "entities": [{"start": 0, "end": 1, "label": "X"}]}])
    assert single["scores"]["f1"] == 1 and single["confusion"]["matrix"] == [[1, 0], [0, 0]]
    nothing = summarise([[]], [{"tokens": ["a"], "entities": []}])
    assert nothing["scores"]["f1"] == 0 and any("no gold entity" in note for note in nothing["notes"])
    with pytest.raises(ValueError, match="no sentence"):
        summarise([], [])


# --------------------------------------------------------------------------------------------------- prediction files


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_predictions_are_put_in_the_order_of_the_data(tmp_path):
    rows = [{**s, "entities": [{**e, "score": 0.5} for e in s["entities"]]} for s in SENTENCES]
    found = read_predictions(write(tmp_path / "p.jsonl", rows[::-1]), SENTENCES)
    assert [[(e["start"], e["end"], e["label"]) for e in row] for row in found] == [
        [(e["start"], e["end"], e["label"]) for e in row] for row in GOLD
    ]
    assert found[0][0]["score"] == 0.5


def test_predictions_without_ids_go_by_order(tmp_path):
    rows = [{"tokens": s["tokens"], "entities": []} for s in SENTENCES]
    bare = [{"tokens": s["tokens"], "entities": s["entities"]} for s in SENTENCES]
    assert read_predictions(write(tmp_path / "p.jsonl", rows), bare) == [[]] * 5
    with pytest.raises(ValueError, match="has 4 sentences, the data 5"):
        read_predictions(write(tmp_path / "p.jsonl", rows[1:]), bare)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "lacks 1 of the 5 sentences of the data, such as 's0'"),
        (lambda rows: [*rows, {**rows[0], "id": "new"}], "1 sentences that the data does not have, such as 'new'"),
        (lambda rows: [*rows, rows[0]], "'s0' is predicted twice"),
        (lambda rows: [{**rows[0], "tokens": ["other"], "entities": []}, *rows[1:]], "words are not those"),
        (lambda rows: [{**rows[0], "entities": [{"start": 0, "end": 99, "label": "A"}]}, *rows[1:]], "out of range"),
        (lambda rows: [{**rows[0], "entities": None}, *rows[1:]], "expected a list"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_the_data_is_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read_predictions(write(tmp_path / "p.jsonl", change(SENTENCES)), SENTENCES)


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere.jsonl"):
        read_predictions("nowhere.jsonl", SENTENCES)
