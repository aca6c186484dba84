"""Scores by groups of entities: hand-worked, against brute force, and always adding up to the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.evaluation import format_groups, label_consistency, score_groups, unseen_density
from hf_spanner.evaluation.groups import BUCKETS, groupings
from hf_spanner.evaluation.mentions import list_mentions
from hf_spanner.metrics import score_entities


def sentence(words, *entities):
    words = words.split() if isinstance(words, str) else words
    return {"tokens": words, "entities": [{"start": s, "end": e, "label": label} for s, e, label in entities]}


# [the mayor of [New York]] met [Bob], and, four deep, [a [b [c [d]]]]
GOLD = [
    sentence("the mayor of New York met Bob", (0, 5, "PER"), (3, 5, "GPE"), (6, 7, "PER")),
    sentence("a b c d", (0, 4, "A"), (1, 4, "A"), (2, 4, "A"), (3, 4, "A")),
]


def gold_of(sentences):
    return [s["entities"] for s in sentences]


def support(groups, by):
    return {name: row["support"] for name, row in groups[by].items() if row["support"]}


def test_entities_fall_into_the_groups_of_the_papers():
    groups = score_groups(gold_of(GOLD), GOLD)
    assert support(groups, "nesting") == {"flat": 1, "nested": 2, "covering": 2, "both": 2}
    assert support(groups, "length") == {"1": 2, "2": 2, "3": 1, "4": 1, "5": 1}
    assert support(groups, "depth") == {"1": 3, "2": 2, "3": 1, "4": 1}
    assert support(groups, "layer") == {"outermost": 3, "inner": 4}
    assert support(groups, "eLen") == {"XS": 2, "S": 2, "L": 2, "XL": 1}
    assert support(groups, "tLen") == {"XS": 7}
    assert support(groups, "eDen") == {"XL": 7}  # 3 / 7 and 4 / 4 entities a word
    assert "eCon" not in groups and "unseen" not in groups
    assert list(groups["length"]) == ["1", "2", "3", "4", "5", "6-10", ">10"]


def test_predictions_are_grouped_against_the_gold():
    wrong = [[(1, 2, "PER")], []]  # lies inside the mayor, who has New York inside
    groups = score_groups(wrong, GOLD)
    assert groups["nesting"]["nested"]["predicted"] == 1 and groups["nesting"]["nested"]["correct"] == 0
    assert groups["layer"]["inner"]["predicted"] == 1
    assert "length >10" in format_groups(groups)


@pytest.mark.parametrize(
    ("bucket", "values"),
    [
        ("eLen", {"XS": (1,), "S": (2,), "L": (3, 4), "XL": (5, 99)}),
        ("tLen", {"XS": (1, 7), "S": (8, 16), "L": (17, 31), "XL": (32, 99)}),
        ("eCon", {"XS": (0, 0.1), "S": (0.11, 0.5), "L": (0.51, 0.9), "XL": (0.91, 1)}),
        ("eDen", {"XS": (0, 0.01), "S": (0.011, 0.025), "L": (0.026, 0.05), "XL": (0.051, 1.5)}),
    ],
)
def test_the_intervals_of_table_5_of_bundling(bucket, values):
    for name, members in values.items():
        assert {BUCKETS[bucket].of(value) for value in members} == {name}


TRAIN = [
    sentence("New York and new york", (0, 2, "GPE")),  # twice, one of them an entity
    sentence("New York New York", (0, 2, "GPE"), (2, 4, "ORG"), (2, 4, "GPE")),  # back to back; one with two labels
    sentence("new"),
    sentence("york Bob", (1, 2, "PER")),  # not across sentences
]


def test_label_consistency_is_the_share_of_occurrences_with_the_label():
    consistency = label_consistency(TRAIN, {("new", "york"), ("bob",), ("alice",)})
    assert consistency(("new", "york"), "GPE") == 3 / 4
    assert consistency(("new", "york"), "ORG") == 1 / 4
    assert consistency(("bob",), "PER") == 1 and consistency(("bob",), "ORG") == 0
    assert consistency(("alice",), "PER") == 0


def test_consistency_and_unseen_words_need_training_data():
    found = [[(3, 5, "GPE"), (3, 5, "ORG"), (0, 5, "PER")], []]
    mentions = list_mentions(found, gold_of(GOLD))
    keys = groupings(mentions, GOLD, TRAIN)
    by_mention = {m[:4]: (con, new) for m, con, new in zip(mentions, keys["eCon"], keys["unseen"], strict=True)}
    assert by_mention[0, 3, 5, "GPE"] == ("L", "none")  # 3 of 4
    assert by_mention[0, 3, 5, "ORG"] == ("S", "none")  # 1 of 4, a wrong prediction by its own label
    assert by_mention[0, 0, 5, "PER"] == ("XS", "some")
    assert unseen_density(GOLD, TRAIN) == 8 / 11  # all but New, York and Bob
    assert unseen_density([], TRAIN) == 0


# ------------------------------------------------------------------------------------------------------ brute force

spans = st.tuples(st.integers(0, 6), st.integers(1, 9), st.sampled_from("AB")).map(lambda t: (t[0], t[0] + t[1], t[2]))
pairs = st.lists(st.tuples(st.lists(spans, max_size=5), st.lists(spans, max_size=5)), max_size=4)
words = st.lists(st.sampled_from(["a", "A", "b", "c"]), min_size=15, max_size=15)


@given(pairs, words)
def test_every_partition_adds_up_to_the_whole(pairs, words):
    predictions = [p for p, _ in pairs]
    sentences = [sentence(words, *gold) for _, gold in pairs]
    whole = score_entities(predictions, gold_of(sentences))
    groups = score_groups(predictions, sentences, train=sentences[:1])
    assert len(groups) == 10
    for by in groups.values():
        for count in ("support", "predicted", "correct"):
            assert sum(row[count] for row in by.values()) == whole[count]


def strictly_inside(a, b):
    return set(range(*a)) < set(range(*b))


def chain(span, gold):
    """The longest chain of gold spans around a span, itself included."""
    return 1 + max((chain(other, gold) for other in gold if strictly_inside(span, other)), default=0)


@given(pairs)
def test_nesting_is_what_the_definitions_say(pairs):
    mentions = list_mentions([p for p, _ in pairs], [g for _, g in pairs])
    keys = groupings(mentions, [sentence(["w"] * 15, *gold) for _, gold in pairs])
    for mention, depth, nesting in zip(mentions, keys["depth"], keys["nesting"], strict=True):
        gold = {(s, e) for s, e, _ in pairs[mention.sentence][1]}
        span = mention.span
        nested = any(strictly_inside(span, o) and any(strictly_inside(i, o) for i in gold) for o in gold)
        covering = any(strictly_inside(i, span) and any(strictly_inside(i, o) for o in gold) for i in gold)
        assert depth == str(chain(span, gold))
        assert nesting == {(0, 0): "flat", (1, 0): "nested", (0, 1): "covering", (1, 1): "both"}[nested, covering]


@given(
    st.lists(st.tuples(words, st.lists(spans, max_size=4)), max_size=3),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
)
def test_label_consistency_is_what_a_slow_search_counts(train, surface):
    surface = tuple(surface)
    sentences = [sentence(tokens, *entities) for tokens, entities in train]
    total = labelled = 0
    for tokens, entities in train:
        for start in range(len(tokens) - len(surface) + 1):
            if tuple(word.lower() for word in tokens[start : start + len(surface)]) == surface:
                total += 1
                labelled += (start, start + len(surface), "A") in entities
    expected = labelled / total if total else 0
    assert label_consistency(sentences, {surface, ("zzz",), (*surface, "a")})(surface, "A") == expected
