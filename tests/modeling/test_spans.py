import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner.modeling.spans import (
    at_ends,
    first_labels,
    max_of_spans,
    running_max,
    sample_negatives,
    span_mask,
    span_targets,
)

shapes = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(1, 9))
def test_the_mask_holds_exactly_the_spans_inside_each_sentence(num_words, max_span):
    length = max(*num_words, 1) if len(num_words) > 1 else max(num_words[0], 1)
    mask = span_mask(torch.tensor(num_words), length, max_span)
    for b, n in enumerate(num_words):
        expected = {(i, k) for i in range(length) for k in range(max_span) if i + k + 1 <= n}
        assert {tuple(c) for c in mask[b].nonzero().tolist()} == expected


@settings(deadline=None)
@given(shapes)
def test_maxima_and_ends_of_the_grid_equal_slicing(shape):
    length, max_span = shape
    x = torch.randn(2, length, 3)
    pooled = torch.stack(list(running_max(x, max_span)), dim=2)
    ends = at_ends(x, max_span)
    assert pooled.shape == ends.shape == (2, length, max_span, 3)
    for i in range(length):
        for k in range(min(max_span, length - i)):
            assert torch.equal(pooled[:, i, k], x[:, i : i + k + 1].amax(1))
            assert torch.equal(ends[:, i, k], x[:, i + k])


@settings(deadline=None)
@given(st.integers(1, 20), st.data())
def test_maxima_of_arbitrary_spans_equal_slicing(length, data):
    spans = data.draw(st.lists(st.tuples(st.integers(0, length - 1), st.integers(1, length)), min_size=1, max_size=8))
    spans = [(s, max(e, s + 1)) for s, e in spans]
    x = torch.randn(1, length, 2)
    starts, ends = (torch.tensor([column]) for column in zip(*spans, strict=True))
    expected = torch.stack([x[0, s:e].amax(0) for s, e in spans])
    assert torch.equal(max_of_spans(x, starts, ends)[0], expected)


def test_targets_hold_two_labels_and_leave_out_what_is_too_long_or_outside():
    entities = torch.tensor([[[0, 1, 0], [0, 1, 2], [1, 4, 1], [-1, -1, -1]]])
    targets = span_targets(entities, length=4, max_span=2, num_labels=3)
    assert targets[0, 0, 0].tolist() == [True, False, True]
    assert targets.sum() == 2
    assert first_labels(targets)[0, 0, 0] == 1 and first_labels(targets).sum() == 1


def test_every_span_of_the_grid_has_its_own_cell():
    length, max_span, num_labels = 5, 3, 2
    spans = [(i, i + k) for i in range(length) for k in range(1, max_span + 1) if i + k <= length]
    for row, (start, end) in enumerate(spans):
        for label in range(num_labels):
            entities = torch.full((len(spans), 1, 3), -1)
            entities[row, 0] = torch.tensor([start, end, label])
            targets = span_targets(entities, length, max_span, num_labels)
            assert targets.nonzero().tolist() == [[row, start, end - start - 1, label]]


@given(st.integers(1, 40), st.integers(1, 50))
def test_negatives_are_drawn_without_replacement_and_only_from_negatives(size, at_most):
    negatives = torch.rand(3, size) < 0.7
    drawn = sample_negatives(negatives, at_most)
    assert not (drawn & ~negatives).any()
    assert drawn.sum(1).tolist() == negatives.sum(1).clamp(max=at_most).tolist()


def test_negatives_are_drawn_uniformly():
    torch.manual_seed(0)
    negatives = torch.ones(4000, 8, dtype=torch.bool)
    share = sample_negatives(negatives, 2).float().mean(0)
    assert (share - 0.25).abs().max() < 0.03
