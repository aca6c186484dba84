"""The pieces of a two-stage detector: hand-worked cases, properties, and the authors' numbers where they agree."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests_support import read_oracle

from hf_spanner.modeling.decoding import Entity
from hf_spanner.modeling.locate_and_label_spans import (
    Spans,
    boundary_loss,
    distinct,
    focal_loss,
    gold_spans,
    iou,
    join,
    overlap_loss,
    pair,
    sample_examples,
    seed_spans,
    shift,
    soft_nms,
    soft_weights,
)


@pytest.fixture
def oracle() -> dict:
    return read_oracle("locate_and_label_functions.json")


def spans_of(*triples) -> Spans:
    return Spans(*torch.tensor(triples, dtype=torch.long).view(-1, 3).unbind(-1))


def triples(spans: Spans) -> list[tuple[int, ...]]:
    return list(zip(*(field.tolist() for field in spans), strict=True))


def iou_of(a, b) -> float:
    return iou(*map(torch.tensor, (*a, *b))).item()


SPAN = st.tuples(st.integers(0, 9), st.integers(1, 6)).map(lambda x: (x[0], x[0] + x[1]))

# ---------------------------------------------------------------------------------------------------------------- IoU


def test_iou_is_the_authors(oracle):
    for case in oracle["iou"]:
        assert iou_of(case["a"], case["b"]) == pytest.approx(case["iou"], abs=1e-6)


@given(SPAN, SPAN)
def test_iou_counts_words_in_both_over_words_in_either(a, b):
    words_a, words_b = set(range(*a)), set(range(*b))
    assert iou_of(a, b) == pytest.approx(len(words_a & words_b) / len(words_a | words_b), abs=1e-6)
    assert iou_of(a, b) == iou_of(b, a)
    assert (iou_of(a, b) == 1) == (a == b)


# -------------------------------------------------------------------------------------------------------------- seeds


def test_seeds_are_the_authors(oracle):
    for case in oracle["eval_samples"]:
        seeds = seed_spans(torch.tensor([case["T"]]), [window + 1 for window in case["windows"]])
        assert sorted((s, e) for _, s, e in triples(seeds)) == sorted(map(tuple, case["spans"]))


def test_windows_are_cut_off_at_the_end_of_a_sentence_each_span_once():
    assert triples(seed_spans(torch.tensor([4]), [1, 3])) == [
        (0, 0, 1), (0, 0, 3), (0, 1, 2), (0, 1, 4), (0, 2, 3), (0, 2, 4), (0, 3, 4),
    ]  # fmt: skip


def test_sentences_shorter_than_every_window_have_seeds_and_empty_ones_none():
    assert triples(seed_spans(torch.tensor([2, 0, 1]), [5, 7])) == [(0, 0, 2), (0, 1, 2), (2, 0, 1)]
    assert triples(seed_spans(torch.tensor([0]), [1, 2])) == []


@given(st.lists(st.integers(0, 8), min_size=1, max_size=3), st.sets(st.integers(1, 5), min_size=1))
def test_seeds_are_what_a_loop_finds(lengths, sizes):
    expected = {(i, s, min(s + w, n)) for i, n in enumerate(lengths) for s in range(n) for w in sizes}
    assert triples(seed_spans(torch.tensor(lengths), list(sizes))) == sorted(expected)


def test_gold_spans_are_added_once():
    gold = gold_spans(torch.tensor([[[0, 4, 1], [0, 1, 0], [0, 1, 2]], [[-1, -1, -1]] * 3]))
    assert triples(gold) == [(0, 0, 1), (0, 0, 4)]
    seeds = seed_spans(torch.tensor([4, 1]), [1])
    assert triples(join(seeds, gold)) == [(0, 0, 1), (0, 0, 4), (0, 1, 2), (0, 2, 3), (0, 3, 4), (1, 0, 1)]
    assert triples(distinct(spans_of())) == []


# ------------------------------------------------------------------------------------------------ pairing and sampling


def test_pairing_is_the_authors(oracle):
    """Their threshold is strict, ours is not: none of their cases lies on it. They record weights as IoUs."""
    for case in oracle["train_samples"]:
        entities = torch.tensor([[(s, e, label) for label, s, e in case["entities"]] or [(-1, -1, -1)]])
        theirs = case["all_candidates"]
        spans = spans_of(*((0, s, e) for s, e in theirs["entity_spans_token"]))
        mine = pair(spans, entities, num_labels=3)
        positive = mine.iou >= case["iou_spn"]
        assert not (mine.iou == case["iou_spn"]).any()
        assert positive.tolist() == [label > 0 for label in theirs["entity_types"]]
        weights = soft_weights(mine.iou, case["iou_spn"], 1.0)
        assert torch.allclose(weights, torch.tensor(theirs["ious"]), atol=1e-6)
        offsets = torch.stack([mine.start - spans.start, mine.end - spans.end]) * positive
        assert offsets.tolist() == [theirs["l_offsets"], theirs["r_offsets"]]
        labels = mine.labels[positive]
        types = [label for label in theirs["entity_types"] if label > 0]
        assert all(row[label] for row, label in zip(labels, types, strict=True))


def test_a_span_is_paired_with_the_entity_that_it_overlaps_most():
    entities = torch.tensor([[[0, 5, 0], [3, 5, 1], [3, 5, 2]], [[-1, -1, -1]] * 3])
    paired = pair(spans_of((0, 0, 4), (0, 3, 5), (0, 6, 7), (1, 0, 1)), entities, num_labels=3)
    assert paired.iou.tolist() == pytest.approx([0.8, 1, 0, 0])
    assert paired.start.tolist() == [0, 3, 6, 0] and paired.end.tolist() == [5, 5, 7, 1]
    assert paired.labels.int().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_pairing_takes_nothing():
    assert pair(spans_of(), torch.full((2, 1, 3), -1), num_labels=2).labels.shape == (0, 2)


def test_partial_matches_weigh_less():
    overlap = torch.tensor([0.0, 0.4, 0.7, 1.0])
    assert soft_weights(overlap, 0.7, 1.0).tolist() == pytest.approx([1, 0.6, 0.7, 1])
    assert soft_weights(overlap, 0.7, 2.0).tolist() == pytest.approx([1, 0.36, 0.49, 1])
    assert soft_weights(overlap, 0.7, 0.0).tolist() == [1, 1, 1, 1]
    assert soft_weights(overlap, 1.0, 1.0).tolist() == pytest.approx([1, 0.6, 0.3, 1])


def test_the_sample_is_as_large_as_the_authors(oracle):
    for case in oracle["train_samples"]:
        entities = torch.tensor([[(s, e, label) for label, s, e in case["entities"]] or [(-1, -1, -1)]])
        seeds = seed_spans(torch.tensor([case["T"]]), [window + 1 for window in case["windows"]])
        seeds = join(seeds, gold_spans(entities))
        positive = pair(seeds, entities, 3).iou >= case["iou_spn"]
        chosen = sample_examples(positive, seeds.row, 1, case["neg_ratio"], 2)
        assert chosen.sum() == len(case["sampled"]["entity_types"]) and chosen[positive].all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40).map(sorted),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_each_sentence_has_its_share_of_negatives(spans, ratio, extra):
    row = torch.tensor([i for i, _ in spans], dtype=torch.long)
    positive = torch.tensor([p for _, p in spans], dtype=torch.bool)
    chosen = sample_examples(positive, row, 4, ratio, extra)
    assert chosen[positive].all()
    for i in range(4):
        of_row = row == i
        negatives = int((of_row & ~positive).sum())
        assert (chosen & of_row & ~positive).sum() == min(negatives, ratio * int((of_row & positive).sum()) + extra)


def test_negatives_are_drawn_evenly():
    torch.manual_seed(0)
    row, positive = torch.zeros(10, dtype=torch.long), torch.arange(10) < 1
    counts = sum(sample_examples(positive, row, 1, 3, 0).int() for _ in range(900))
    assert counts[0] == 900 and counts[1:].min() > 220 and counts[1:].max() < 380  # 300 each, on average


# ------------------------------------------------------------------------------------------------------------ shifting


def test_boundaries_move_by_rounded_offsets():
    spans = spans_of((0, 2, 4), (0, 2, 4), (0, 2, 4), (1, 0, 1))
    offsets = torch.tensor([[-1.4, 0.6], [-0.5, 0.5], [0.49, -0.51], [0.2, 2.2]])
    assert triples(shift(spans, offsets, torch.tensor([9, 3]))) == [(0, 1, 5), (0, 2, 5), (0, 2, 3), (1, 0, 3)]


@given(
    SPAN,
    st.tuples(*[st.floats(width=32) | st.integers(-12, 12).map(float)] * 2),
    st.integers(1, 4),
)
def test_no_offset_leads_out_of_the_sentence(span, offsets, more):
    length = span[1] - 1 + more
    span = (min(span[0], length - 1), min(span[1], length))
    ((_, start, end),) = triples(shift(spans_of((0, *span)), torch.tensor([offsets]), torch.tensor([length])))
    assert 0 <= start < end <= length


def test_a_span_turned_inside_out_keeps_a_word():
    assert triples(shift(spans_of((0, 2, 4)), torch.tensor([[3.0, -3.0]]), torch.tensor([9]))) == [(0, 5, 6)]


# -------------------------------------------------------------------------------------------------------------- losses


def test_focal_loss_is_the_authors(oracle):
    case = oracle["focal"]
    losses = focal_loss(torch.tensor(case["logits"]), torch.tensor(case["targets"]), case["gamma"])
    assert torch.allclose(losses, torch.tensor(case["loss"]).squeeze(1), atol=1e-5)


def test_focal_loss_without_focus_is_cross_entropy():
    torch.manual_seed(0)
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    assert torch.allclose(focal_loss(logits, targets, 0.0), expected)


def test_focal_loss_of_one_logit_is_that_of_a_sigmoid():
    logits, targets = torch.tensor([0.3, -2.0, 5.0]), torch.tensor([True, False, False])
    p = torch.where(targets, logits.sigmoid(), 1 - logits.sigmoid())
    assert torch.allclose(focal_loss(logits, targets, 2.0), -((1 - p) ** 2) * p.log(), atol=1e-6)


def test_focal_loss_of_a_sure_answer_has_a_finite_gradient():
    for gamma in (0.0, 0.5, 2.0):
        logits = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
        focal_loss(logits, torch.tensor([0, 0]), gamma).sum().backward()
        assert torch.isfinite(logits.grad).all()


def test_overlap_loss_is_the_authors(oracle):
    case = oracle["giou"]
    inputs, targets = torch.tensor(case["inputs"]), torch.tensor(case["targets"])
    assert torch.allclose(overlap_loss(*inputs.T, *targets.T), torch.tensor(case["giou"]), atol=1e-5)


@pytest.mark.parametrize("bad", [(9.0, 11.0), (-4.0, -1.0), (6.0, 2.0), (2.0, 30.0), (4.9, 5.1)])
def test_the_losses_pull_any_prediction_to_the_entity(bad):
    """Apart, inside out, far too long: gradient descent on the two losses always ends at the gold boundaries."""
    boundaries = torch.tensor(bad, requires_grad=True)
    gold = torch.tensor([3.0, 7.0])
    optimizer = torch.optim.SGD([boundaries], lr=0.2)
    for _ in range(300):
        optimizer.zero_grad()
        loss = boundary_loss(boundaries.unsqueeze(0), gold.unsqueeze(0)) + overlap_loss(*boundaries, *gold)
        loss.sum().backward()
        optimizer.step()
    assert (boundaries - gold).abs().max() < 0.4  # rounding does the rest


# ------------------------------------------------------------------------------------------------------------ Soft-NMS


def test_soft_nms_lowers_what_is_near_a_better_one():
    found = [Entity(0, 4, "A", 0.9), Entity(0, 3, "B", 0.8), Entity(6, 7, "A", 0.5)]
    expected = [Entity(0, 4, "A", 0.9), Entity(0, 3, "B", pytest.approx(0.4)), Entity(6, 7, "A", 0.5)]
    assert sorted(soft_nms(found, 0.5, 0.75)) == sorted(expected)
    assert soft_nms(found, 0.5, 0.76) == found  # IoU 3/4 is not near enough then


def test_the_order_is_that_of_the_scores_as_they_fall():
    """B is near A and C; once A has lowered B below C, it is C that lowers B again, not B that lowers C."""
    a, b, c = Entity(0, 10, "A", 0.9), Entity(0, 9, "B", 0.8), Entity(1, 9, "C", 0.7)
    assert iou_of(a[:2], b[:2]) == pytest.approx(0.9) and iou_of(b[:2], c[:2]) > 0.85 > iou_of(a[:2], c[:2])
    scores = {e.label: e.score for e in soft_nms([a, b, c], 0.5, 0.85)}
    assert scores == {"A": 0.9, "C": 0.7, "B": pytest.approx(0.2)}


def test_two_labels_on_one_span_are_not_rivals():
    found = [Entity(0, 4, "A", 0.9), Entity(0, 4, "B", 0.8)]
    assert soft_nms(found, 0.5, 0.6) == found


ENTITIES = st.lists(
    st.builds(lambda span, label, score: Entity(*span, label, score), SPAN, st.sampled_from("AB"), st.floats(0, 1)),
    max_size=12,
    unique_by=lambda entity: entity[:3],
)


@given(ENTITIES, st.floats(0.1, 1), st.floats(0, 1), st.randoms())
def test_the_order_of_the_input_is_irrelevant(entities, decay, threshold, random):
    shuffled = list(entities)
    random.shuffle(shuffled)
    assert soft_nms(shuffled, decay, threshold) == soft_nms(entities, decay, threshold)


@given(ENTITIES, st.floats(0, 1))
def test_a_decay_of_one_changes_nothing(entities, threshold):
    assert sorted(soft_nms(entities, 1.0, threshold)) == sorted(entities)


@given(ENTITIES, st.floats(0.1, 1), st.floats(0.01, 1))
def test_soft_nms_is_what_the_algorithm_says(entities, decay, threshold):
    """Algorithm 1, word by word: take the best of what is left, lower the rest, sort again."""
    left, expected = list(entities), []
    while left:
        left.sort(key=lambda e: (-e.score, *e[:3]))
        best = left.pop(0)
        expected.append(best)
        near = [e[:2] != best[:2] and iou_of(e[:2], best[:2]) >= torch.tensor(threshold) for e in left]
        left = [e._replace(score=e.score * decay) if n else e for e, n in zip(left, near, strict=True)]
    assert soft_nms(entities, decay, threshold) == expected
