"""The nested NER metric: hand-worked cases, an independent brute force, the original's numbers, `evaluate` offline."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import read_oracle

from hf_spanner.metrics import METRIC_FOLDER, format_scores, load_metric, score_entities

RATIOS = ("precision", "recall", "f1")


def entity(start, end, label, **more):
    return {"start": start, "end": end, "label": label, **more}


def counts(row):
    return row["correct"], row["predicted"], row["support"]


# Hand-worked cases -----------------------------------------------------------------------------------------------


def test_a_mixed_case_worked_by_hand():
    gold = [[(0, 5, "PER"), (3, 5, "ORG"), (4, 5, "LOC")], [(0, 1, "PER")]]
    found = [[(0, 5, "PER"), (3, 5, "LOC"), (1, 2, "LOC")], []]
    scores = score_entities(found, gold)

    assert counts(scores) == (1, 3, 4)
    assert [scores[name] for name in RATIOS] == pytest.approx([1 / 3, 1 / 4, 2 / 7])
    # PER: 1 of 1 found, 1 of 2 gold. ORG: none found. LOC: two found, none right.
    assert {label: counts(row) for label, row in scores["per_type"].items()} == {
        "LOC": (0, 2, 1),
        "ORG": (0, 0, 1),
        "PER": (1, 1, 2),
    }
    assert [scores[f"macro_{name}"] for name in RATIOS] == pytest.approx([1 / 3, 1 / 6, (2 / 3) / 3])
    # (0, 5) and (3, 5) are located: 2 of 3 predicted spans, 2 of 4 gold spans.
    assert [scores[f"locate_{name}"] for name in RATIOS] == pytest.approx([2 / 3, 2 / 4, 4 / 7])
    # Of those two one label is right.
    assert [scores[f"type_{name}"] for name in RATIOS] == pytest.approx([1 / 2, 1 / 2, 1 / 2])


def test_two_labels_on_one_span_are_two_entities_and_one_location():
    gold = [[(2, 3, "protein"), (2, 3, "DNA")]]
    scores = score_entities([[(2, 3, "protein")]], gold)
    assert counts(scores) == (1, 1, 2)
    assert scores["locate_recall"] == 1.0
    assert (scores["type_precision"], scores["type_recall"]) == (1.0, 0.5)
    assert score_entities(gold, gold)["f1"] == 1.0


def test_entities_nested_four_deep_each_count():
    gold = [[(0, 8, "A"), (1, 7, "A"), (2, 6, "B"), (3, 4, "A")]]
    scores = score_entities([[(0, 8, "A"), (2, 6, "B"), (3, 4, "B"), (3, 5, "A")]], gold)
    assert counts(scores) == (2, 4, 4)
    assert counts(scores["per_type"]["A"]) == (1, 2, 3)
    assert scores["locate_f1"] == 0.75


def test_the_same_entity_predicted_twice_counts_once():
    twice = [[entity(0, 1, "A", score=0.9), entity(0, 1, "A", score=0.4)]]
    assert counts(score_entities(twice, [[(0, 1, "A")]])) == (1, 1, 1)


def test_the_same_entity_in_another_sentence_is_another_entity():
    assert counts(score_entities([[(0, 1, "A")], []], [[], [(0, 1, "A")]])) == (0, 1, 1)


@pytest.mark.parametrize("found, gold", [([], []), ([[]], [[]]), ([[(0, 1, "A")]], [[]]), ([[]], [[(0, 1, "A")]])])
def test_a_ratio_without_denominator_is_zero(found, gold):
    scores = score_entities(found, gold)
    assert all(scores[prefix + name] == 0.0 for prefix in ("", "macro_", "locate_", "type_") for name in RATIOS)


def test_dicts_and_tuples_score_the_same_and_extra_keys_are_ignored():
    gold = [[(0, 5, "PER"), (3, 5, "ORG")]]
    found = [[entity(0, 5, "PER", score=0.7, word="x"), entity(3, 5, "LOC")]]
    assert score_entities(found, gold) == score_entities([[(0, 5, "PER", 0.7), (3, 5, "LOC")]], gold)


def test_labels_add_rows_in_their_order_and_take_nothing_away():
    found, gold = [[(0, 1, "B"), (1, 2, "A")]], [[(0, 1, "B")]]
    plain, listed = score_entities(found, gold), score_entities(found, gold, labels=["never", "B"])
    assert list(listed["per_type"]) == ["never", "B", "A"]
    assert {**listed, "per_type": None} == {**plain, "per_type": None}


def test_sentences_that_do_not_pair_up_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match="predictions for 2 sentences but references for 1"):
        score_entities([[], []], [[]])


@pytest.mark.parametrize("bad", [{"start": 0, "end": 1}, (0, 1), ("zero", 1, "A"), 3])
def test_what_is_no_entity_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="is not an entity"):
        score_entities([[bad]], [[]])


# Properties ------------------------------------------------------------------------------------------------------

unhurried = settings(deadline=None)  # a busy machine is no failure

entities = st.tuples(st.integers(0, 4), st.integers(1, 3), st.sampled_from("ABC")).map(
    lambda e: (e[0], e[0] + e[1], e[2])
)
sentence_pairs = st.lists(st.tuples(st.lists(entities, max_size=6), st.lists(entities, max_size=6)), max_size=5)


def brute_force(found, gold, matches):
    """(correct, predicted, support) by comparing every distinct pair of one sentence, without any set."""

    def distinct(items):
        return [item for n, item in enumerate(items) if not any(matches(item, earlier) for earlier in items[:n])]

    correct = predicted = support = 0
    for found_here, gold_here in zip(found, gold):
        found_here, gold_here = distinct(found_here), distinct(gold_here)
        correct += sum(matches(f, g) for f in found_here for g in gold_here)
        predicted, support = predicted + len(found_here), support + len(gold_here)
    return correct, predicted, support


def ratios(correct, predicted, support):
    p = correct / predicted if predicted else 0.0
    r = correct / support if support else 0.0
    return pytest.approx([p, r, 2 * p * r / (p + r) if p + r else 0.0])


def same(a, b):
    return a == b


def same_span(a, b):
    return a[0] == b[0] and a[1] == b[1]


@unhurried
@given(sentence_pairs)
def test_every_score_agrees_with_brute_force(pairs):
    found, gold = [f for f, _ in pairs], [g for _, g in pairs]
    scores = score_entities(found, gold)

    def keep(sentences, others, wanted):
        return [[e for e in here if wanted(e, there)] for here, there in zip(sentences, others)]

    strict = brute_force(found, gold, same)
    assert counts(scores) == strict
    assert [scores[name] for name in RATIOS] == ratios(*strict)
    assert [scores[f"locate_{name}"] for name in RATIOS] == ratios(*brute_force(found, gold, same_span))

    def located(e, there):
        return any(same_span(e, other) for other in there)

    typed = brute_force(keep(found, gold, located), keep(gold, found, located), same)
    assert [scores[f"type_{name}"] for name in RATIOS] == ratios(*typed)

    occurring = sorted({e[2] for here in found + gold for e in here})
    assert list(scores["per_type"]) == occurring
    for label in occurring:

        def of_type(e, _, label=label):
            return e[2] == label

        row = scores["per_type"][label]
        expected = brute_force(keep(found, gold, of_type), keep(gold, found, of_type), same)
        assert counts(row) == expected
        assert [row[name] for name in RATIOS] == ratios(*expected)
    for name in RATIOS:
        mean = sum(scores["per_type"][label][name] for label in occurring) / max(1, len(occurring))
        assert scores[f"macro_{name}"] == pytest.approx(mean)


@unhurried
@given(sentence_pairs)
def test_swapping_predictions_and_references_swaps_precision_and_recall(pairs):
    found, gold = [f for f, _ in pairs], [g for _, g in pairs]
    one, other = score_entities(found, gold), score_entities(gold, found)
    for prefix in ("", "macro_", "locate_", "type_"):
        assert one[prefix + "precision"] == other[prefix + "recall"]
        assert one[prefix + "f1"] == other[prefix + "f1"]


@unhurried
@given(st.lists(st.lists(entities, min_size=1, max_size=6), min_size=1, max_size=5))
def test_gold_against_itself_is_perfect(gold):
    scores = score_entities(gold, gold)
    assert all(scores[prefix + name] == 1.0 for prefix in ("", "macro_", "locate_", "type_") for name in RATIOS)


@unhurried
@given(sentence_pairs)
def test_counts_of_the_types_add_up_to_the_total(pairs):
    scores = score_entities([f for f, _ in pairs], [g for _, g in pairs])
    rows = list(scores["per_type"].values())
    assert tuple(sum(column) for column in zip(*map(counts, rows))) == (counts(scores) if rows else ())


# The original implementation ---------------------------------------------------------------------------------------


def test_scores_equal_those_of_the_original_implementation():
    cases = read_oracle("overlap_filter_metrics_crf_bio.json")["prf"]
    assert cases

    def triples(sentences):
        return [[(start, end, label) for label, start, end in sentence] for sentence in sentences]

    for case in cases:
        scores = score_entities(triples(case["pred"]), triples(case["gold"]))
        micro, macro = case["ave"]["micro"], case["ave"]["macro"]
        assert counts(scores) == (micro["n_true_positive"], micro["n_pred"], micro["n_gold"])
        assert [scores[name] for name in RATIOS] == pytest.approx([micro[name] for name in RATIOS], abs=1e-12)
        assert [scores[f"macro_{name}"] for name in RATIOS] == pytest.approx(
            [macro[name] for name in RATIOS], abs=1e-12
        )
        assert scores["per_type"].keys() == case["types"].keys()
        for label, row in case["types"].items():
            assert [scores["per_type"][label][name] for name in RATIOS] == pytest.approx(
                [row[name] for name in RATIOS], abs=1e-12
            )


# The table -----------------------------------------------------------------------------------------------------------


def test_the_table_is_aligned_and_shows_every_number():
    scores = score_entities([[(0, 2, "PER")]], [[(0, 2, "PER"), (1, 2, "a-rather-long-type")]])
    assert format_scores(scores) == textwrap.dedent("""\
                            precision  recall      f1  support  predicted  correct
        PER                    1.0000  1.0000  1.0000        1          1        1
        a-rather-long-type     0.0000  0.0000  0.0000        1          0        0
        --------------------------------------------------------------------------
        micro                  1.0000  0.5000  0.6667        2          1        1
        macro                  0.5000  0.5000  0.5000
        locate                 1.0000  0.5000  0.6667
        type                   1.0000  1.0000  1.0000""")


def test_the_table_of_nothing_still_has_its_summary():
    assert "micro" in format_scores(score_entities([], []))


# evaluate ------------------------------------------------------------------------------------------------------------

GOLD = [
    [entity(0, 5, "PER"), entity(3, 5, "ORG"), entity(3, 5, "LOC")],
    [],
    [entity(0, 8, "A"), entity(1, 7, "A"), entity(2, 6, "A"), entity(3, 4, "A")],
]
FOUND = [
    [entity(0, 5, "PER", score=0.9, word="x"), entity(3, 5, "ORG", score=0.5)],
    [entity(1, 2, "LOC")],
    [entity(1, 7, "A")],
]

LOAD_ALONE = """
import json, sys
sys.modules["hf_spanner"] = None  # the folder must work where this package is not installed
import evaluate

folder, cases = sys.argv[1], json.load(sys.stdin)
at_once = evaluate.load(folder).compute(**cases)
metric = evaluate.load(folder)
for prediction, reference in zip(cases["predictions"], cases["references"]):
    metric.add_batch(predictions=[prediction], references=[reference])
in_batches = metric.compute(labels=["never"])
metric.add(prediction=cases["predictions"][0], reference=cases["references"][0])
json.dump([at_once, in_batches, metric.compute()], sys.stdout)
"""


def run_python(code, *arguments, stdin="", home):
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        cwd=home,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_folder_copied_elsewhere_loads_offline_with_empty_caches(tmp_path):
    folder = shutil.copytree(METRIC_FOLDER, tmp_path / "nested_ner", ignore=shutil.ignore_patterns("__pycache__"))
    cases = json.dumps({"predictions": FOUND, "references": GOLD})
    at_once, in_batches, one_sentence = json.loads(run_python(LOAD_ALONE, folder, stdin=cases, home=tmp_path))
    assert at_once == score_entities(FOUND, GOLD)
    assert in_batches == score_entities(FOUND, GOLD, labels=["never"])
    assert one_sentence == score_entities(FOUND[:1], GOLD[:1])


def test_importing_the_metrics_does_not_import_evaluate_or_datasets(tmp_path):
    # sys.path as here: the package may be installed or found beside the tests
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import hf_spanner.metrics; "
        "print([name for name in ('evaluate', 'datasets') if name in sys.modules])"
    )
    assert run_python(code, home=tmp_path).strip() == "[]"


def test_load_metric_computes_what_score_entities_does():
    assert load_metric(keep_in_memory=True).compute(predictions=FOUND, references=GOLD) == score_entities(FOUND, GOLD)


def test_the_loaded_metric_refuses_sentences_that_do_not_pair_up():
    with pytest.raises(ValueError, match="predictions for 3 sentences but references for 2"):
        load_metric(keep_in_memory=True).compute(predictions=FOUND, references=GOLD[:2])


def test_the_metric_can_be_combined_with_others():
    import evaluate

    gold, found = [(0, 2, "PER"), (1, 2, "LOC")], [(0, 2, "PER")]
    both = evaluate.combine([load_metric(), load_metric()], force_prefix=True)
    both.add(prediction=found, reference=gold)
    both.add_batch(predictions=[found], references=[gold])
    scores = both.compute()
    assert (
        scores["nested_ner_0_recall"] == scores["nested_ner_1_recall"] == 0.5 and scores["nested_ner_0_support"] == 4
    )
