"""What an inspection counts: worked by hand, and against brute force."""

import json
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner.data import load_nested_ner
from hf_spanner.data.boundaries import check_boundaries, write_text
from hf_spanner.data.consistency import find_inconsistencies, tally_texts
from hf_spanner.data.examples import read_rows
from hf_spanner.data.inspection import headlines, inspect, percentile
from hf_spanner.data.loading import load_with_reports


def sentence(text, *entities, doc=None, id="s"):
    """Words of a text, and entities as (start, end, label)."""
    spans = [{"start": start, "end": end, "label": label} for start, end, label in entities]
    return {"id": id, "doc_id": doc, "tokens": text.split(), "entities": spans}


def rows(*sentences):
    return read_rows(list(sentences))["train"]


def kinds(inspection):
    return [finding.kind for finding in inspection.findings]


def test_a_split_and_all_of_them_are_counted():
    data = {
        "train": [
            sentence("the mayor of New York", (0, 5, "PER"), (3, 5, "LOC"), doc="a"),
            sentence("it rains", doc="a"),
            sentence("", doc="b"),
        ],
        "test": [sentence("a b c d", (0, 3, "X"), (1, 4, "Y"), (1, 4, "Z"), doc="c")],
    }
    found = inspect(data)
    train, test, total = found.splits["train"], found.splits["test"], found.total
    assert (train.statistics.sentences, train.documents, train.statistics.words, train.statistics.entities) == (
        3, 2, 7, 2)  # fmt: skip
    assert (train.without_entity, train.empty, train.statistics.nested) == (2, 1, 1)
    assert train.lengths == {2: 1, 5: 1} and train.sentence_lengths == {0: 1, 2: 1, 5: 1}
    assert train.longest_entity.text == "the mayor of New York"
    assert test.statistics.crossing_pairs == 2 and test.statistics.same_span_pairs == 1
    assert total.statistics.sentences == 4 and total.documents == 3
    assert (train.statistics.overlap, total.statistics.overlap) == ("nested", "any")
    assert total.statistics.labels == {"PER": 1, "LOC": 1, "X": 1, "Y": 1, "Z": 1}


@pytest.mark.parametrize(("share", "expected"), [(50, 1), (97.5, 1), (98, 1), (98.5, 7), (99, 7), (99.5, 9), (100, 9)])
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(share, expected):
    assert percentile({9: 1, 1: 98, 7: 1}, share) == expected


def test_there_is_no_percentile_of_nothing():
    assert percentile({}, 50) is None and percentile({3: 0}, 50) is None


@given(st.lists(st.integers(1, 40), min_size=1), st.sampled_from([50, 90, 95, 97.5, 99]))
def test_a_percentile_reaches_its_share_and_the_value_before_does_not(values, share):
    result = percentile(Counter(values), share)
    assert 100 * sum(value <= result for value in values) >= share * len(values)
    assert 100 * sum(value < result for value in values) < share * len(values)


def test_entities_out_of_reach_by_cap():
    long = sentence(" ".join("abcdefghijkl"), (0, 12, "X"), (0, 9, "X"), (0, 6, "X"), (0, 1, "X"))
    found = inspect({"train": [long], "test": [long, long]}, max_span_length=6)
    assert {cap: counts["train"] for cap, counts in found.reach.items()} == {
        5: 3, 6: 2, 8: 2, 10: 1, 16: 0, 20: 0, 30: 0}  # fmt: skip
    assert found.reach[6]["test"] == 4 and found.cap_for_99 == 12
    assert "6 of 12 entities (50.0%) are longer than max_span_length=6 words" in " ".join(headlines(found))
    assert "out of reach" not in kinds(inspect([long], max_span_length=None))
    assert "out of reach" not in kinds(inspect([long], max_span_length=12))


def test_a_cap_has_to_be_a_number_of_words():
    with pytest.raises(ValueError, match="max_span_length=0 must be"):
        inspect([], max_span_length=0)


# ------------------------------------------------------------------------------------------------------------- repeats


def test_sentences_and_documents_in_two_splits():
    bonn, rain = sentence("Anna lives in Bonn", (3, 4, "LOC"), doc="d"), sentence("it rains", doc="e")
    data = {"train": [bonn, rain], "validation": [rain], "test": [bonn, bonn, sentence("He left Rome", (2, 3, "LOC"))]}
    pairs = {(one.first, one.second): one for one in inspect(data).repeats.shared}
    assert list(pairs) == [("train", "validation"), ("train", "test"), ("validation", "test")]
    leak = pairs["train", "test"]
    assert (leak.sentences, leak.annotated, leak.of_annotated) == (2, 2, 3)
    assert (leak.documents, leak.of_documents) == (["d"], 1)
    assert [one.text for one in leak.examples] == ["Anna lives in Bonn"] and leak.examples[0].split == "test"
    assert (pairs["train", "validation"].sentences, pairs["train", "validation"].annotated) == (1, 0)
    assert pairs["train", "validation"].documents == ["e"]
    assert pairs["validation", "test"].sentences == 0 and pairs["validation", "test"].documents == []


def test_a_leak_is_the_first_headline():
    same = [sentence(f"word{i} in Bonn", (2, 3, "LOC")) for i in range(600)]
    found = inspect({"train": same, "test": same[:50]})
    assert headlines(found)[0].startswith("50 of 50 annotated sentences of test (100.0%) stand in train too")


def test_headlines_are_of_different_kinds():
    bonn = [sentence(f"w{i} in Bonn", (2, 3, "LOC"), doc="d") for i in range(600)]
    found = inspect({"train": bonn, "validation": bonn[:9], "test": bonn[:9]})
    assert kinds(found)[:2] == ["leakage", "leakage"]
    assert len(headlines(found)) == 2 and "document" in headlines(found)[1]


@pytest.mark.parametrize(("doc", "sentences", "severity"), [("d", 3, 0.5), ("7", 3, 0.025), ("news", 300, 0.025)])
def test_ids_that_hardly_mean_documents_count_little(doc, sentences, severity):
    train = [sentence("in Bonn", (1, 2, "LOC"), doc=doc)]
    test = [sentence(f"w{i} Rome", (1, 2, "LOC"), doc=doc) for i in range(sentences)]
    found = inspect({"train": train, "test": test})
    assert [one.severity for one in found.findings if one.kind == "documents in two splits"] == [severity]


def test_train_is_the_split_that_others_are_held_against_wherever_it_stands():
    bonn = sentence("in Bonn", (1, 2, "LOC"))
    found = inspect({"extra": [bonn], "test": [bonn], "train": [bonn]})
    assert list(found.splits) == ["train", "test", "extra"]
    assert [(one.first, one.second) for one in found.repeats.shared][:2] == [("train", "test"), ("train", "extra")]


def test_a_sentence_twice_in_a_split_and_with_another_annotation():
    data = {
        "train": [sentence("in Bonn", (1, 2, "LOC")), sentence("in Bonn", (1, 2, "LOC")), sentence("in Rome"),
                  sentence(""), sentence("")],
        "test": [sentence("in Bonn"), sentence("in Rome")],
    }  # fmt: skip
    found = inspect(data)
    assert found.repeats.repeated == {"train": 1, "test": 0}  # nothing is repeated by an empty sentence
    assert found.repeats.conflicts == 1
    (conflict,) = found.repeats.examples
    assert conflict.sentences == 3
    assert [(one.split, len(one.entities)) for one in conflict.annotations] == [("train", 1), ("test", 0)]
    assert "two annotations" in kinds(found)


def test_the_order_of_entities_is_no_difference():
    one, two = (0, 1, "A"), (1, 2, "B")
    assert inspect([sentence("x y", one, two), sentence("x y", two, one)]).repeats.conflicts == 0


# -------------------------------------------------------------------------------------------------------------- labels


def test_labels_that_a_split_lacks():
    data = {
        "train": [sentence("a b", (0, 1, "A"), (1, 2, "B"))],
        "test": [sentence("c d", (0, 1, "A"), (1, 2, "C"), (0, 2, "C"))],
    }
    found = inspect(data)
    assert found.unlearnable == {"test": {"C": 2}} and found.unmeasured == {"test": ["B"]}
    assert headlines(found)[0] == "2 of 3 entities of test (66.7%) have a label that train lacks: C 2."
    assert "labels that test lacks" in kinds(found)


def test_labels_with_few_examples_are_named():
    many = [sentence(f"a{i} b", (0, 1, "MANY")) for i in range(600)]
    found = inspect([*many, sentence("c d", (0, 1, "FEW"))])
    text = next(finding.text for finding in found.findings if finding.kind == "rare labels")
    assert text.startswith("One label has fewer than 20 examples to learn from: FEW 1")
    assert "little data" in kinds(inspect(many[:100])) and "little data" not in kinds(found)


# --------------------------------------------------------------------------------------------------------- consistency


def tally(*sentences):
    return {" ".join(words): (dict(one.labels), one.missing) for words, one in tally_texts(rows(*sentences)).items()}


def test_words_that_are_annotated_here_and_not_there():
    counted = tally(
        sentence("in New York", (1, 3, "LOC")),
        sentence("New York is in New York", (4, 6, "LOC")),
        sentence("New York"),
    )
    assert counted == {"New York": ({"LOC": 2}, 2)}


def test_what_lies_inside_an_entity_or_a_longer_text_is_not_missing():
    counted = tally(
        sentence("the New York Times", (1, 4, "ORG")),  # York is inside an entity
        sentence("York", (0, 1, "LOC")),
        sentence("read the New York Times"),  # and here inside a text that is one elsewhere
        sentence("York and York"),
    )
    assert counted == {"New York Times": ({"ORG": 1}, 1), "York": ({"LOC": 1}, 2)}


def test_what_crosses_an_entity_is_not_missing_and_what_holds_one_is():
    counted = tally(
        sentence("a b", (0, 2, "X")),
        sentence("a b c", (1, 3, "Y")),  # "a b" crosses the entity "b c"
        sentence("a b", (1, 2, "Z")),  # "a b" holds the entity "b"
    )
    assert counted["a b"] == ({"X": 1}, 1)


def test_a_text_at_the_end_of_a_sentence_is_not_taken_for_a_longer_one():
    assert tally(sentence("a b", (0, 2, "X")), sentence("a", (0, 1, "X")), sentence("c a"))["a"] == ({"X": 1}, 1)


def test_two_labels_on_one_span_are_one_annotation():
    assert tally(sentence("Bonn", (0, 1, "B"), (0, 1, "A")))["Bonn"] == ({"A + B": 1}, 0)


def test_texts_of_many_words_are_left_alone():
    text = " ".join(f"w{i}" for i in range(11))
    assert tally(sentence(text, (0, 11, "X")), sentence(text)) == {}


def test_the_most_telling_come_first_with_both_sides_in_context():
    telling = [sentence(f"so {i} met Anna Smith there", (3, 5, "PER")) for i in range(9)]
    doubtful = [sentence(f"so {i} met Carl Jones there", *[(3, 5, "PER")] * (i < 4)) for i in range(7)]
    missed = sentence("then Anna Smith left Bonn", (4, 5, "LOC"), id="gap")
    found = find_inconsistencies(rows(*telling, *doubtful, missed), examples=10)
    assert [(one.text, one.annotated, one.missing) for one in found.missed] == [
        ("Anna Smith", 9, 1), ("Carl Jones", 4, 3)]  # fmt: skip
    assert (found.missing, found.sometimes, found.texts) == (4, 2, 3)
    (gap,) = found.missed[0].unusual
    assert (gap.id, gap.text, gap.tokens[gap.start : gap.end]) == ("gap", "Anna Smith", ["Anna", "Smith"])
    assert gap.entities == [{"start": 4, "end": 5, "label": "LOC"}]
    assert all(one.text == "Anna Smith" for one in found.missed[0].usual)
    assert len(find_inconsistencies(rows(*telling, *doubtful, missed), examples=1).missed) == 1


def test_common_words_and_numbers_do_not_flood_it():
    pronouns = [sentence(f"w{i} she", (1, 2, "PER")) for i in range(40)] + [sentence("if she")] * 5
    numbers = [sentence(f"w{i} 7", (1, 2, "NUM")) for i in range(10)] + [sentence("or 7")]
    starts = [sentence("She left", (0, 1, "PER"))] * 10 + [sentence("She")]
    letters = [sentence(f"w{i} I", (1, 2, "PER")) for i in range(10)] + [sentence("or I")]
    assert find_inconsistencies(rows(*pronouns, *numbers, *starts, *letters), 10).missed == []
    rare = [sentence("a cytokine", (1, 2, "protein"))] * 4 + [sentence("no cytokine")]
    assert [one.text for one in find_inconsistencies(rows(*rare), 10).missed] == ["cytokine"]
    half = [sentence("a cytokine", (1, 2, "protein"))] * 4 + [sentence("no cytokine")] * 3
    assert find_inconsistencies(rows(*half), 10).missed == []  # of a word, three out of four


def test_what_is_mostly_not_annotated_is_not_called_overlooked():
    found = find_inconsistencies(rows(*[sentence("Anna Smith", (0, 2, "PER"))] * 2, *[sentence("Anna Smith")] * 3), 10)
    assert (found.missed, found.missing, found.sometimes) == ([], 0, 1)


def test_the_same_words_with_another_label():
    england = [sentence(f"w{i} England", (1, 2, "LOC")) for i in range(5)]
    team = sentence("then England won", (1, 2, "ORG"), id="team")
    found = find_inconsistencies(rows(*england, team), 10)
    (one,) = found.disagreements
    assert (one.text, one.labels, found.relabelled) == ("England", {"LOC": 5, "ORG": 1}, 1)
    assert [example.id for example in one.unusual] == ["team"] and len(one.usual) == 3


words = st.sampled_from("a b c".split())


@st.composite
def small_sentences(draw):
    tokens = draw(st.lists(words, max_size=6))
    spans = [(i, j) for i in range(len(tokens)) for j in range(i + 1, len(tokens) + 1)]
    chosen = draw(st.lists(st.sampled_from(spans), max_size=3, unique=True)) if spans else []
    return sentence(" ".join(tokens), *((i, j, draw(st.sampled_from("XY"))) for i, j in chosen))


def spans_of(words):
    return [(i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]


@settings(max_examples=150, deadline=None)
@given(st.lists(small_sentences(), max_size=6))
def test_counts_of_texts_agree_with_brute_force(sentences):
    data = rows(*sentences)
    known = {row.words[e.start : e.end] for row in data for e in row.entities}
    missing, annotated = Counter(), Counter()
    for row in data:
        gold = {(e.start, e.end) for e in row.entities}
        annotated.update(row.words[i:j] for i, j in gold)
        here = {(i, j) for i, j in spans_of(row.words) if row.words[i:j] in known}
        for i, j in here - gold:
            inside = any(s <= i and j <= e and (s, e) != (i, j) for s, e in here | gold)
            crosses = any(s < i < e < j or i < s < j < e for s, e in gold)
            missing[row.words[i:j]] += not inside and not crosses
    tallies = tally_texts(data)
    assert {text: one.labels.total() for text, one in tallies.items()} == annotated
    assert {text: one.missing for text, one in tallies.items() if one.missing} == +missing


@settings(max_examples=100, deadline=None)
@given(st.lists(small_sentences(), max_size=5), st.lists(small_sentences(), max_size=5))
def test_repeats_agree_with_brute_force(train, test):
    found = inspect({"train": train, "test": test})
    here = [s["tokens"] for s in train if s["tokens"]]
    (shared,) = found.repeats.shared
    assert shared.sentences == sum(s["tokens"] in here for s in test)
    assert found.repeats.repeated["train"] == sum(here[i] in here[:i] for i in range(len(here)))
    different = {
        tuple(a["tokens"])
        for a in train + test
        for b in train + test
        if a["tokens"] == b["tokens"] != [] and key(a) != key(b)
    }
    assert found.repeats.conflicts == len(different)
    assert len(headlines(found)) <= 3
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def key(one):
    return {(e["start"], e["end"], e["label"]) for e in one["entities"]}


# ---------------------------------------------------------------------------------------------------------- boundaries


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Anna 's Eye - Tracking , ( Bonn ) .", "Anna's Eye-Tracking, (Bonn)."),
        ("CD28 -mediated -LRB- x -RRB-", "CD28-mediated -LRB- x -RRB-"),
        ("$ 5 and / or", "$5 and/or"),
    ],
)
def test_words_are_written_as_text(text, written):
    result, spans = write_text(text.split())
    assert result == written
    assert [result[start:end] for start, end in spans] == text.split()


def test_a_hyphen_alone_may_be_a_dash():
    assert write_text("Rome - today".split(), hyphens=False)[0] == "Rome - today"


def test_entities_that_the_splitter_spoils():
    data = rows(
        sentence("CD28 -mediated death .", (0, 1, "protein"), (2, 3, "event")),
        sentence("the U.S. army", (0, 3, "ORG")),
        sentence("Mr. Fox", (0, 2, "PER")),
    )
    found = check_boundaries(data, "compound")
    assert (found.spoilt, found.entities, found.estimated) == (1, 4, True)
    assert found.examples == ["protein 'CD28' in 'CD28-mediated'"]
    assert found.recut == 1  # Mr. is Mr and .
    assert found.spoilt_by == {"bert": 0, "compound": 1, "fine": 0, "whitespace": 2}  # death. is one word then
    assert check_boundaries(data, "fine").recut == 2  # and U.S. is four
    text = next(
        f.text for f in inspect([sentence("CD28 -mediated", (0, 1, "protein"))]).findings if "spoilt" in f.kind
    )
    assert text.startswith("About 1 of 1 entity (100.0%) begins or ends inside a word") and "'fine' spoils 0" in text


def test_whether_a_hyphen_joins_is_asked_of_the_data():
    cut = sentence("eye - tracking", (0, 1, "object"))
    assert check_boundaries(rows(cut), "compound").spoilt == 1
    kept = sentence("state-of-the-art Jean-Luc")
    assert check_boundaries(rows(cut, kept), "compound").spoilt == 0


def test_an_unknown_splitter_is_named():
    with pytest.raises(ValueError, match="Unknown word splitter 'coarse': choose one of"):
        inspect([], word_splitter="coarse")


def test_what_reading_text_spoilt_is_exact(tmp_path):
    (tmp_path / "train.txt").write_text("CD28-mediated death in Bonn", encoding="utf-8")
    (tmp_path / "train.ann").write_text("T1\tprotein 0 4\tCD28\nT2\tLOC 23 27\tBonn\n", encoding="utf-8")
    data, reports = load_with_reports(tmp_path, splitter="compound")
    found = inspect(data, reports=reports).boundaries
    assert (found.spoilt, found.entities, found.estimated) == (1, 2, False)
    assert "CD28" in found.examples[0] and found.spoilt_by == {}


# ---------------------------------------------------------------------------------------------------- data of any kind


@pytest.mark.parametrize("data", [[], {}, {"train": []}, {"train": [], "test": []}])
def test_nothing_at_all_is_said_to_be_nothing(data):
    found = inspect(data)
    assert headlines(found) == ["There is no sentence in the data: name another file or folder."]
    assert found.total.longest_entity is None and found.cap_for_99 is None
    json.dumps(found.as_dict())


def test_data_without_entities():
    assert headlines(inspect([sentence("it rains")])) == [
        "There is no entity in 1 sentence: is this the annotated file?"]  # fmt: skip
    data = {"train": [sentence("Bonn", (0, 1, "LOC"))], "test": [sentence("it rains")]}
    assert headlines(inspect(data))[0] == "There is no entity in test: nothing can be learnt or measured on it."


def test_empty_sentences_are_counted():
    assert "1 of 2 sentences (50.0%) is empty" in " ".join(headlines(inspect([sentence(""), sentence("a")])))


def test_one_split_has_nothing_to_compare():
    found = inspect([sentence("Bonn", (0, 1, "LOC"))])
    assert list(found.splits) == ["train"]
    assert (found.repeats.shared, found.unlearnable, found.unmeasured) == ([], {}, {})
    only_test = inspect({"test": [sentence("Bonn", (0, 1, "LOC"))]})
    assert only_test.unlearnable == {}  # nobody knows what a model will have been trained on


def test_a_dataset_and_the_lists_it_is_made_of_are_inspected_alike():
    data = load_nested_ner("sample")
    lists = {split: list(part) for split, part in data.items()}
    assert inspect(data).as_dict() == inspect(lists).as_dict()


def test_names_that_a_terminal_would_obey_are_shown():
    found = inspect([sentence("\x1b[31mBonn", (0, 1, "L\x1b]0;x\x07"))] * 3)
    assert "\x1b" not in "".join(finding.text for finding in found.findings)


def test_it_is_linear():
    """A text of one word that stands everywhere, and one sentence again and again."""
    many = [sentence("to be or not to be that is the question Anna asked", (10, 11, "PER"), (0, 6, "X"))] * 4000
    start = time.process_time()
    inspect({"train": many, "test": many})
    assert time.process_time() - start < 10
