"""Boundary smoothing: the authors' numbers, and cases worked by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, make_batch, read_oracle

import hf_spanner
from hf_spanner.modeling.boundary_smoothing import smooth_targets

CASES = read_oracle("boundary_smoothing.json")["cases"]


def smooth(entities, num_words=6, max_span=None, labels=2, epsilon=0.1, size=1, **kwargs):
    """The targets of one sentence, `(T, K, m + 1)`."""
    entities = torch.tensor([entities or [(-1, -1, -1)]])
    targets = smooth_targets(
        entities, torch.tensor([num_words]), num_words, max_span or num_words, labels, epsilon, size, **kwargs
    )
    return targets[0]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_targets_equal_the_authors(case):
    labels = case["labels"][1:]
    entities = [(start, end, labels.index(label)) for label, start, end in case["chunks"]]
    length, epsilon, size = case["seq_len"], case["sb_epsilon"], case["sb_size"]
    mine = smooth(entities, length, labels=len(labels), epsilon=epsilon, size=size)
    mine = torch.stack([mine[start, end - start - 1] for start, end in case["diagonal_spans"]])
    assert torch.allclose(mine, torch.tensor(case["diagonal"]), atol=1e-6)


def test_an_entity_inside_a_sentence_gives_a_quarter_of_epsilon_to_each_neighbour():
    targets = smooth([(2, 4, 1)])
    assert targets[2, 1].tolist() == pytest.approx([0.1, 0.0, 0.9])
    for start, end in [(1, 4), (3, 4), (2, 3), (2, 5)]:
        assert targets[start, end - start - 1].tolist() == pytest.approx([0.975, 0.0, 0.025])
    assert (targets[..., 1:].sum() - 1).abs() < 1e-6  # nothing is lost and nothing is added


def test_what_falls_on_no_span_returns_to_the_entity():
    # One word inside: the two spans that shrink it are empty.
    assert smooth([(2, 3, 0)])[2, 0].tolist() == pytest.approx([0.05, 0.95, 0.0])
    # The only word: all four neighbours are illegal.
    assert smooth([(0, 1, 0)], num_words=1, epsilon=0.3, size=2)[0, 0].tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_adjacent_entities_keep_a_mixed_target():
    targets = smooth([(3, 4, 0), (4, 5, 1)], num_words=8, epsilon=0.2, size=2)
    assert targets[3, 0].tolist() == pytest.approx([0.1, 0.8875, 0.0125])
    assert targets[4, 0].tolist() == pytest.approx([0.1, 0.0125, 0.8875])


def test_two_labels_on_one_span_share_it_unless_they_do_not_exclude_each_other():
    both = [(0, 1, 0), (0, 1, 1)]
    assert smooth(both, num_words=1)[0, 0].tolist() == pytest.approx([0.0, 0.5, 0.5])
    assert smooth(both, num_words=1, normalise=False)[0, 0].tolist() == pytest.approx([0.0, 1.0, 1.0])


def test_the_same_entity_twice_is_cut_to_one():
    assert smooth([(2, 4, 0), (2, 4, 0)])[2, 1].tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_mass_on_spans_past_the_cap_is_lost():
    targets = smooth([(1, 4, 0)], max_span=3)
    assert targets[1, 2].tolist() == pytest.approx([0.1, 0.9, 0.0])
    assert targets[..., 1:].sum().item() == pytest.approx(0.95)  # [0, 4) and [1, 5) are off the grid


def test_an_entity_past_the_cap_leaves_crumbs_unless_told_not_to():
    targets = smooth([(1, 5, 0)], max_span=3)
    assert targets[1, 2].tolist() == pytest.approx([0.975, 0.025, 0.0])
    assert targets[2, 2].tolist() == pytest.approx([0.975, 0.025, 0.0])
    assert targets[..., 1:].sum().item() == pytest.approx(0.05)
    assert smooth([(1, 5, 0)], max_span=3, keep_long=False)[..., 1:].sum() == 0


def test_the_sentence_ends_at_its_own_length_not_at_the_paddings():
    entities = torch.tensor([[[1, 2, 0]], [[-1, -1, -1]]])
    targets = smooth_targets(entities, torch.tensor([2, 5]), 5, 3, 1, 0.1)
    assert targets[0, 1, 0].tolist() == pytest.approx([0.025, 0.975], abs=1e-6)  # only [0, 2) is a span
    assert targets[0, 1, 1].tolist() == [1.0, 0.0]
    assert targets[1, ..., 0].eq(1).all()


def test_no_epsilon_gives_hard_targets():
    targets = smooth([(2, 4, 1)], epsilon=0.0)
    assert targets[2, 1].tolist() == [0.0, 0.0, 1.0]
    assert targets[..., 1:].sum() == 1


@pytest.mark.parametrize("bad", [{"epsilon": 1.0}, {"epsilon": -0.1}, {"size": 0}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ValueError, match=str(next(iter(bad.values())))):
        smooth([(0, 1, 0)], **bad)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_targets_are_distributions(data):
    length = data.draw(st.integers(1, 8))
    entity = st.tuples(st.integers(0, length - 1), st.integers(1, length), st.integers(0, 1)).filter(
        lambda e: e[0] < e[1]
    )
    entities = data.draw(st.lists(entity, max_size=6))
    epsilon, size = data.draw(st.floats(0.0, 0.5)), data.draw(st.integers(1, 3))
    max_span = data.draw(st.integers(1, length))
    targets = smooth(entities, length, max_span, epsilon=epsilon, size=size)
    assert (targets >= 0).all()
    assert torch.allclose(targets.sum(-1), torch.ones(length, max_span), atol=1e-6)


def test_every_span_approach_can_be_smoothed(tokenizer):
    """The loss of SpanNER with ε is the cross entropy with the soft targets."""
    from approaches import ROWS

    row = next(row for row in ROWS if row.name == "span_ner")
    torch.manual_seed(0)
    model = row.make(tokenizer, max_negatives=None, boundary_smoothing=0.2, smoothing_size=2)
    batch = make_batch(tokenizer)
    with torch.no_grad():
        output = model(**batch)
    batch_size, length, max_span, _ = output.logits.shape
    soft = smooth_targets(batch["entities"], batch["num_words"], length, max_span, len(LABELS), 0.2, 2)
    inside = hf_spanner.modeling.spans.span_mask(batch["num_words"], length, max_span)
    expected = -(soft * output.logits.log_softmax(-1)).sum(-1)[inside].mean()
    assert output.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_smoothing_with_one_sigmoid_a_label(tokenizer):
    from approaches import ROWS

    row = next(row for row in ROWS if row.name == "span_ner-multi_label")
    model = row.make(tokenizer, boundary_smoothing=0.1)
    loss = model(**make_batch(tokenizer)).loss
    assert torch.isfinite(loss)
    with pytest.raises(ValueError, match="boundary_smoothing=1.5"):
        row.make(tokenizer, boundary_smoothing=1.5)
