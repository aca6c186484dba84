import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.modeling.pooling import pool_words
from hf_spanner.modeling.words import SPLITTERS, split_words


def words_of(text, splitter="compound"):
    return [text[s:e] for s, e in split_words(text, splitter)]


def test_compounds_numbers_and_abbreviations_stay_whole():
    assert words_of("The IL-2 gene's U.S. price: 3.5%, don't!") == [
        "The", "IL-2", "gene", "'s", "U.S.", "price", ":", "3.5", "%", ",", "don", "'t", "!",
    ]  # fmt: skip


def test_fine_cuts_hyphens_and_whitespace_cuts_nothing_else():
    assert words_of("New York-based, IL-2", "fine") == ["New", "York", "-", "based", ",", "IL", "-", "2"]
    assert words_of("New York-based, IL-2", "whitespace") == ["New", "York-based,", "IL-2"]


def test_accents_and_emoji_are_not_torn_apart():
    assert words_of("cafe\u0301 👨‍👩‍👧 हिन्दी 東京") == ["cafe\u0301", "👨‍👩‍👧", "हिन्दी", "東京"]


def test_an_unknown_splitter_is_named():
    with pytest.raises(ValueError, match="Unknown word splitter 'moses'"):
        split_words("a", "moses")


@given(st.text(), st.sampled_from(sorted(SPLITTERS)))
def test_words_are_ordered_disjoint_and_cover_every_visible_character(text, splitter):
    spans = split_words(text, splitter)
    assert all(0 <= s < e <= len(text) for s, e in spans)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    covered = {i for s, e in spans for i in range(s, e)}
    assert all(text[i].isspace() for i in range(len(text)) if i not in covered)


STATES = torch.tensor([[[9.0, 9.0], [1.0, 4.0], [3.0, 2.0], [5.0, -6.0], [8.0, 8.0]]])
WORD_IDS = torch.tensor([[-1, 0, 0, 2, -1]])  # word 1 has no sub-word


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("first", [[1.0, 4.0], [0.0, 0.0], [5.0, -6.0]]),
        ("mean", [[2.0, 3.0], [0.0, 0.0], [5.0, -6.0]]),
        ("max", [[3.0, 4.0], [0.0, 0.0], [5.0, -6.0]]),
    ],
)
def test_pooling_by_hand(how, expected):
    assert pool_words(STATES, WORD_IDS, 3, how).tolist() == [expected]


def test_pooling_keeps_rows_of_the_batch_apart():
    states = torch.randn(3, 4, 2)
    ids = torch.tensor([[0, 1, 1, -1], [0, 0, 0, 0], [-1, -1, -1, -1]])
    together = pool_words(states, ids, 2, "max")
    for i in range(3):
        assert torch.equal(pool_words(states[i : i + 1], ids[i : i + 1], 2, "max")[0], together[i])
    assert together[2].abs().sum() == 0


@pytest.mark.parametrize("how", ["first", "mean", "max"])
def test_pooling_passes_gradients_to_the_subwords_it_used(how):
    states = STATES.clone().requires_grad_()
    pool_words(states, WORD_IDS, 3, how).sum().backward()
    assert states.grad[0, 0].abs().sum() == 0 and states.grad[0, 4].abs().sum() == 0
    assert states.grad[0, 3].abs().sum() > 0


def test_an_unknown_pooling_is_named():
    with pytest.raises(ValueError, match="Unknown word pooling 'last'"):
        pool_words(STATES, WORD_IDS, 3, "last")
