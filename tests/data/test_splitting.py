"""Data cut by document: whole ones, about the share that was asked for, nothing twice and nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data.splitting import documents, hold_out, make_folds

SIZES = st.lists(st.integers(1, 30), min_size=2, max_size=20)


def groups_of(sizes):
    ids = [name for name, size in enumerate(sizes) for _ in range(size)]
    return documents([{"doc_id": str(name)} for name in ids])


def test_sentences_without_a_document_stand_alone():
    rows = [{"doc_id": "a"}, {"doc_id": None}, {"doc_id": "a"}, {}]
    assert documents(rows) == [[0, 2], [1], [3]]


@given(SIZES, st.integers(0, 5), st.sampled_from([0.1, 0.3]))
def test_whole_documents_are_held_out(sizes, seed, share):
    groups = groups_of(sizes)
    kept, held = hold_out(groups, share, seed)
    assert kept and held and sorted(kept + held) == list(range(sum(sizes)))
    assert all(set(group) <= set(kept) or set(group) <= set(held) for group in groups)
    assert len(held) <= max(1, round(share * sum(sizes))) or len(held) == min(sizes)
    assert (kept, held) == hold_out(groups, share, seed)


@given(SIZES, st.integers(2, 5), st.integers(0, 5))
def test_folds_of_whole_documents(sizes, number, seed):
    groups = groups_of(sizes)
    if len(groups) < number:
        with pytest.raises(ValueError, match=f"do not make {number} folds"):
            make_folds(groups, number, seed)
        return
    folds = make_folds(groups, number, seed)
    assert len(folds) == number and all(folds)
    assert sorted(sum(folds, [])) == list(range(sum(sizes)))
    assert all(sum(set(group) <= set(fold) for fold in folds) == 1 for group in groups)
    assert max(map(len, folds)) - min(map(len, folds)) <= max(sizes)


def test_one_document_cannot_be_cut():
    with pytest.raises(ValueError, match="1 document cannot be cut in two"):
        hold_out([[0, 1, 2]], 0.1, 0)
