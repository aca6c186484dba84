"""The same annotations over other words and over several sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data import join_sentences, resplit_words
from hf_spanner.modeling.words import split_words

WORDS = st.lists(st.text("ab-.,'3 ", min_size=1, max_size=6).map(str.strip).filter(bool), min_size=1, max_size=8)


@given(words=WORDS, splitter=st.sampled_from(["whitespace", "compound", "fine"]), data=st.data())
def test_entities_keep_their_characters_when_words_are_cut_further(words, splitter, data):
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    given = {"id": "1", "tokens": words, "entities": [{"start": start, "end": end, "label": "X"}]}
    cut = resplit_words(given, splitter)
    (entity,) = cut["entities"]
    squeeze = "".join
    assert squeeze(cut["tokens"]) == squeeze("".join(words).split())
    assert squeeze(cut["tokens"][entity["start"] : entity["end"]]) == squeeze("".join(words[start:end]).split())
    assert all(len(split_words(word, splitter)) <= 1 for word in cut["tokens"])
    assert given["tokens"] is words and cut["id"] == "1"


def sentence(doc, *words):
    return {"id": words[0], "doc_id": doc, "tokens": list(words), "entities": [{"start": 0, "end": 1, "label": "X"}]}


def test_only_neighbours_of_one_document_are_joined_and_nothing_is_lost():
    sentences = [
        sentence("a", "1"),
        sentence("a", "2", "3"),
        sentence("b", "4"),
        sentence(None, "5"),
        sentence(None, "6"),
    ]
    joined = list(join_sentences(sentences, [3]))
    assert [s["tokens"] for s in joined] == [["1", "2", "3"], ["4"], ["5"], ["6"]]
    assert [e["start"] for e in joined[0]["entities"]] == [0, 1]
    assert sum(len(s["entities"]) for s in joined) == len(sentences)


@given(lengths=st.lists(st.integers(1, 3), max_size=30), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_sizes_are_kept_to_and_the_draw_is_repeatable(lengths, sizes):
    sentences = [sentence("d", *map(str, range(i * 10, i * 10 + n))) for i, n in enumerate(lengths)]
    joined = list(join_sentences(sentences, sizes, seed=3))
    assert joined == list(join_sentences(sentences, sizes, seed=3))
    assert [word for s in joined for word in s["tokens"]] == [word for s in sentences for word in s["tokens"]]
    assert all(len(s["entities"]) in sizes for s in joined[:-1])


def test_a_size_of_no_sentence_is_refused():
    with pytest.raises(ValueError, match=r"sizes=\[0\]"):
        list(join_sentences([], [0]))


def test_part_of_speech_tags_follow_their_words():
    one = {**sentence("d", "IL-2", "gene"), "pos": ["NN", "NNS"]}
    assert resplit_words(one, "fine")["pos"] == ["NN", "NN", "NN", "NNS"]
    (joined,) = join_sentences([one, {**sentence("d", "."), "pos": ["."]}], sizes=[2])
    assert joined["pos"] == ["NN", "NNS", "."]
    (joined,) = join_sentences([one, {**sentence("d", "."), "pos": None}], sizes=[2])
    assert joined["pos"] is None
