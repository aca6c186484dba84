"""Flat annotation: of what lies inside or across its entities nothing is known, and nothing is learnt."""

import pytest
import torch
from approaches import ROWS
from hypothesis import given
from hypothesis import strategies as st
from tests_support import LABELS, make_batch

from hf_spanner.modeling.losses import Gold
from hf_spanner.modeling.spans import cut_spans, cuts, inner_labels

SPANS = st.integers(0, 7).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, 8)))


def tensor(spans, padding=1):
    return torch.tensor([[(start, end, 0) for start, end in spans] + [(-1, -1, -1)] * padding])


def test_by_hand():
    """[a [b c d] e]: places inside b c d are 2 and 3; spans that begin or end there are unknown."""
    assert cuts(tensor([(1, 4)]), 5).tolist() == [[False, False, True, True, False, False]]
    cells = cut_spans(tensor([(1, 4)]), 5, 3)[0]
    known = {(i, i + k + 1) for i in range(5) for k in range(3) if i + k + 1 <= 5 and not cells[i, k]}
    assert known == {(0, 1), (1, 4), (4, 5)}
    assert not cut_spans(tensor([(2, 3)]), 5, 3).any()  # there is nothing inside one word


@given(st.lists(SPANS, max_size=4), st.integers(1, 8))
def test_it_is_what_overlaps_and_does_not_contain(entities, max_span):
    cells = cut_spans(tensor(entities), 8, max_span)[0]
    for start in range(8):
        for size in range(1, min(max_span, 8 - start) + 1):
            end = start + size
            expected = any(start < e and end > s and not (start <= s and e <= end) for s, e in entities)
            assert bool(cells[start, size - 1]) == expected


def test_only_flat_sentences_are_so():
    gold = Gold(torch.cat([tensor([(0, 3)]), tensor([(0, 3)])]), flat=torch.tensor([True, False]))
    unknown = gold.unknown(4, 3)
    assert unknown[0].any() and not unknown[1].any()
    assert Gold(tensor([(0, 3)])).unknown(4, 3) is None


@pytest.mark.parametrize("row", [row for row in ROWS if row.approach not in ("seq_ner", "diffusion_ner")], ids=str)
def test_no_approach_learns_from_what_is_inside(row, tokenizer):
    """The gradient of the loss with respect to logits is zero for unknown spans, and the loss is smaller for it."""
    torch.manual_seed(0)
    model = row.make(tokenizer, dropout=0.0, **({} if row.approach != "span_ner" else {"max_negatives": None}))
    words = "the head of the office of the mayor of New York is in London".split()
    sentences = [(words, [(0, 11, "PER")])]
    batch = make_batch(tokenizer, sentences)
    model.train()
    losses = {}
    for flat in (None, False, True):
        torch.manual_seed(1)
        given = {} if flat is None else {"flat": torch.tensor([flat])}
        losses[flat] = sum(loss for name, loss in model(**batch, **given).losses.items() if name != "tags").item()
    assert losses[None] == pytest.approx(losses[False], rel=1e-5)
    if model.config.loss_reduction == "sentence":
        assert losses[True] < losses[False]
    assert losses[True] != pytest.approx(losses[False], rel=1e-6)


def taught(tokenizer, entities):
    """Of each span of a flat sentence the labels that learn from it ("none" is in all of them)."""
    row = next(row for row in ROWS if row.name == "biaffine_ner")
    torch.manual_seed(0)
    model = row.make(tokenizer, boundary_smoothing=0.0)
    batch = make_batch(tokenizer, [("the mayor of New York".split(), entities)])
    output = model(**batch, flat=torch.tensor([True]))
    (gradient,) = torch.autograd.grad(output.loss, output.logits)
    learnt: dict[tuple[int, int], set[str]] = {}
    for i, k, label in gradient[0].nonzero().tolist():
        learnt.setdefault((i, i + k + 1), set()).add("none" if label == 0 else LABELS[label - 1])
    return learnt


def test_what_is_inside_teaches_only_that_it_does_not_have_the_same_label(tokenizer):
    learnt = taught(tokenizer, [(0, 5, "PER")])
    assert learnt.pop((0, 5)) == {"none", *LABELS}
    assert len(learnt) == 14 and all(labels == {"none", "PER"} for labels in learnt.values())


def test_labels_of_what_is_around_by_hand():
    entities = torch.tensor([[(0, 3, 1), (1, 2, 0), (-1, -1, -1)]])
    found = inner_labels(entities, 4, 3, 2)[0]
    cells = {(i, i + k + 1, label) for i, k, label in found.nonzero().tolist()}
    assert cells == {(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 2, 1), (1, 3, 1)}  # not (1, 2) in itself, nor (0, 3)


def test_an_approach_that_cannot_says_so(tokenizer):
    row = next(row for row in ROWS if row.name == "diffusion_ner")
    model = row.make(tokenizer).train()
    with pytest.raises(ValueError, match="diffusion_ner cannot leave spans inside flat entities out of its loss"):
        model(**make_batch(tokenizer), flat=torch.tensor([True] * 5))


def test_gold_inside_gold_is_learnt_all_the_same(tokenizer):
    learnt = taught(tokenizer, [(0, 5, "PER"), (3, 5, "place name")])
    assert learnt[0, 5] == learnt[3, 5] == {"none", *LABELS}
    assert learnt[0, 1] == {"none", "PER"} and learnt[3, 4] == {"none", "PER", "place name"}
