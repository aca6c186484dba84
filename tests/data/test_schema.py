"""The form of a sentence, what is refused and with which words, and the report."""

import pytest

from hf_spanner.data import ReadReport, check_sentence, features


def sentence(entities=(), tokens=("The", "mayor", "of", "Bonn")):
    return {"id": "s1", "doc_id": None, "tokens": list(tokens), "entities": list(entities)}


def entity(start, end, label="PER"):
    return {"start": start, "end": end, "label": label}


def test_nested_crossing_and_doubly_labelled_spans_are_legal():
    check_sentence(sentence([entity(0, 4), entity(3, 4, "LOC"), entity(3, 4, "ORG"), entity(0, 2), entity(1, 3)]))


def test_a_sentence_without_words_is_legal_only_without_entities():
    check_sentence(sentence(tokens=()))
    with pytest.raises(ValueError, match=r"\[0, 1\).*out of range for 0 words"):
        check_sentence(sentence([entity(0, 1)], tokens=()))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (sentence([entity(2, 5)]), r"span \[2, 5\) of label 'PER' is out of range for 4 words"),
        (sentence([entity(-1, 2)]), r"span \[-1, 2\).*out of range"),
        (sentence([entity(3, 1)]), r"span \[3, 1\).*is reversed"),
        (sentence([entity(2, 2)]), r"span \[2, 2\).*is empty.*end_inclusive=True"),
        (sentence([entity(0, 1, "")]), r"label '' of span \[0, 1\) has to be a non-empty string"),
        (sentence([entity(0, 1, 3)]), r"label 3 of span"),
        (sentence([entity("0", 1)]), r"needs whole numbers"),
        (sentence([entity(0.0, 1)]), r"needs whole numbers"),
        (sentence([{"start": 0, "end": 1}]), r"has to be an object with 'start', 'end' and 'label'"),
        (sentence(tokens=("in", 1984)), r"token 1 is 1984, expected a string"),
        (sentence(tokens=("in", None)), r"token 1 is None, expected a string"),
        (sentence(tokens=("ok", "\ud83d")), r"token 1 is .*surrogate"),
        ({"id": "s1", "tokens": "a b", "entities": []}, r"'tokens' is 'a b', expected a list"),
        ({"id": "s1", "tokens": ["a"], "entities": None}, r"'entities' is None, expected a list; write \[\]"),
    ],
)
def test_a_bad_sentence_is_refused_with_place_value_and_remedy(record, message):
    with pytest.raises(ValueError, match=rf"train\.jsonl:7: .*{message}"):
        check_sentence(record, "train.jsonl:7")


def test_the_id_says_where_if_nothing_else_does():
    with pytest.raises(ValueError, match="^sentence 's1': "):
        check_sentence(sentence([entity(0, 9)]))


def test_a_label_outside_the_given_list_is_refused():
    check_sentence(sentence([entity(0, 1)]), labels={"PER"})
    with pytest.raises(ValueError, match=r"label 'PER' .* is not one of \['GPE', 'LOC'\]"):
        check_sentence(sentence([entity(0, 1)]), labels=["LOC", "GPE"])


def test_features_keep_entities_a_list_of_objects():
    from datasets import ClassLabel, Dataset, List, Value

    records = [sentence([entity(0, 4), entity(3, 4, "LOC")]), sentence()]
    assert isinstance(features()["entities"], List)
    assert features()["entities"].feature["label"] == Value("string")
    assert Dataset.from_list(records, features=features()).to_list() == records
    by_class = features(["LOC", "PER"])
    assert by_class["entities"].feature["label"] == ClassLabel(names=["LOC", "PER"])
    assert Dataset.from_list(records, features=by_class)[0]["entities"][1] == {"start": 3, "end": 4, "label": 0}


def test_a_report_without_losses_is_one_line():
    report = ReadReport("x.jsonl")
    report.keep("a", None, ["a", "b"], [entity(0, 1)])
    assert str(report) == "x.jsonl: 1 sentences, 2 words, 1 entities kept"
    assert report.faithful


def test_a_report_counts_every_loss_and_shows_three_examples():
    report = ReadReport("x.ann")
    report.keep("a", None, ["a"], [])
    for number in range(5):
        report.lose("discontinuous mention", f"T{number}")
    report.change("boundary inside a word", "T9")
    report.ignore("relation", count=2)
    report.ignore("event", count=0)
    assert str(report).splitlines() == [
        "x.ann: 1 sentences, 1 words, 0 entities kept",
        "  not kept: 5 × discontinuous mention (e.g. T0; T1; T2)",
        "  changed: 1 × boundary inside a word (e.g. T9)",
        "  ignored: 2 × relation",
    ]
    assert not report.faithful


def test_a_duplicate_is_kept_once_and_counted():
    report = ReadReport()
    kept = report.keep("a", None, ["New", "York"], [entity(0, 2), entity(0, 2, "LOC"), entity(0, 2)], "f:1")
    assert kept["entities"] == [entity(0, 2), entity(0, 2, "LOC")]
    assert report.lost == {"duplicate": 1} and report.examples["duplicate"] == ["f:1: PER 'New York'"]
