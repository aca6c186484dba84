from random import Random
from time import process_time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import read_oracle

from hf_spanner.modeling.decoding import (
    Entity,
    best_first,
    best_labels,
    entities_to_tensor,
    nesting,
    resolve_overlaps,
    span_candidates,
    tensor_to_entities,
    thresholds_of,
)

entity = st.builds(
    lambda s, n, label, score: Entity(s, s + n, label, score),
    st.integers(0, 8), st.integers(1, 5), st.sampled_from("AB"), st.sampled_from([0.1, 0.5, 0.5, 0.9]),
)  # fmt: skip
policies = st.sampled_from(["flat", "nested", "any"])


def allowed(a, b, policy):
    if policy == "any" or a.end <= b.start or b.end <= a.start:
        return True
    inside = (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end)
    return policy == "nested" and inside


@given(st.lists(entity, max_size=12), policies)
def test_kept_entities_are_compatible_and_dropped_ones_lose_to_a_better_one(entities, policy):
    kept = resolve_overlaps(entities, policy)
    assert all(allowed(a, b, policy) for i, a in enumerate(kept) for b in kept[:i])
    assert len({e[:3] for e in kept}) == len(kept)
    for lost in {e for e in entities if e[:3] not in {k[:3] for k in kept}}:
        assert any(best_first(k) < best_first(lost) and not allowed(k, lost, policy) for k in kept)


@given(st.lists(entity, max_size=8), policies, st.randoms())
def test_the_order_of_candidates_does_not_matter(entities, policy, random):
    shuffled = entities[:]
    random.shuffle(shuffled)
    assert resolve_overlaps(shuffled, policy) == resolve_overlaps(entities, policy)


def by_definition(entities, policy):
    """`resolve_overlaps` as it is defined: each against all that were kept before it."""
    kept = []
    for candidate in sorted(entities, key=best_first):
        if candidate[:3] not in {k[:3] for k in kept} and all(allowed(candidate, k, policy) for k in kept):
            kept.append(candidate)
    return sorted(kept, key=lambda e: (e.start, -e.end, e.label))


def nesting_by_definition(entities):
    result = []
    for index, e in enumerate(entities):
        around = [j for j in range(index) if entities[j].end >= e.end]
        parent = min(around, key=lambda j: (entities[j].end - entities[j].start, -j), default=None)
        result.append((0, None) if parent is None else (result[parent][0] + 1, parent))
    return result


wide = st.builds(
    lambda s, n, label, score: Entity(s, s + n, label, score),
    st.integers(0, 60), st.integers(1, 40), st.sampled_from("ABC"),
    st.one_of(st.floats(0, 1), st.sampled_from([0.25, 0.5])),
)  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.lists(entity, max_size=30), st.lists(wide, max_size=60)), policies)
def test_what_is_kept_is_what_the_definition_keeps_to_the_last_tie(entities, policy):
    assert resolve_overlaps(iter(entities), policy) == by_definition(entities, policy)


@settings(max_examples=300)
@given(st.lists(wide, max_size=60), policies)
def test_depths_and_parents_are_those_of_the_definition(entities, policy):
    entities = resolve_overlaps(entities, policy)
    assert nesting(entities) == nesting_by_definition(entities)


@pytest.mark.parametrize("policy", ["flat", "nested", "any"])
def test_twenty_thousand_entities_are_no_quadratic_matter(policy):
    random = Random(0)
    starts = [random.randrange(50_000) for _ in range(20_000)]
    entities = [Entity(s, s + random.randrange(1, 30), random.choice("ABC"), random.random()) for s in starts]
    begin = process_time()
    nesting(resolve_overlaps(entities, policy))
    assert process_time() - begin < 5  # a minute, if each were held against all


def test_ties_fall_by_start_then_end_then_label():
    tied = [Entity(1, 3, "A", 0.5), Entity(0, 2, "B", 0.5), Entity(0, 2, "A", 0.5)]
    assert resolve_overlaps(tied, "flat") == [Entity(0, 2, "A", 0.5)]
    assert resolve_overlaps(tied, "nested") == [Entity(0, 2, "A", 0.5), Entity(0, 2, "B", 0.5)]


def test_an_unknown_policy_is_named():
    with pytest.raises(ValueError, match="Unknown overlap policy 'crossing'"):
        resolve_overlaps([], "crossing")


def test_the_filter_agrees_with_the_reference_implementation():
    cases = read_oracle("overlap_filter_metrics_crf_bio.json")["filter"]
    for case in cases:
        # The reference breaks ties in its own order: give the candidates scores by their place in it.
        ranked = [Entity(s, e, label, 1 - i / 100) for i, (label, s, e) in enumerate(case["order"])]
        for level, policy in enumerate(("flat", "nested", "any")):
            kept = {(e.label, e.start, e.end) for e in resolve_overlaps(ranked, policy)}
            assert kept == {tuple(chunk) for chunk in case["kept"][str(level)]}, (case, policy)


def test_nesting_names_depth_and_nearest_parent():
    entities = [
        Entity(0, 11, "PER"),
        Entity(3, 11, "ORG"),
        Entity(6, 11, "PER"),
        Entity(9, 11, "LOC"),
        Entity(13, 15, "LOC"),
    ]
    assert nesting(entities) == [(0, None), (1, 0), (2, 1), (3, 2), (0, None)]
    two_labels = [Entity(0, 1, "A"), Entity(0, 1, "B")]
    assert nesting(two_labels) == [(0, None), (1, 0)]
    crossing = [Entity(0, 3, "A"), Entity(2, 5, "B")]
    assert nesting(crossing) == [(0, None), (0, None)]


def test_thresholds_are_checked_and_spread_over_the_labels():
    assert thresholds_of(None, ["A", "B"]) == [None, None]
    assert thresholds_of(0.5, ["A", "B"]) == [0.5, 0.5]
    assert thresholds_of({"B": 0.3}, ["A", "B"]) == [None, 0.3]
    with pytest.raises(ValueError, match="unknown label 'C'"):
        thresholds_of({"C": 0.5}, ["A", "B"])
    with pytest.raises(ValueError, match="between 0 and 1, not 1.5"):
        thresholds_of(1.5, ["A"])
    with pytest.raises(TypeError, match="not 'high'"):
        thresholds_of("high", ["A"])


def grid(cells, length=3, max_span=2, classes=3):
    probabilities = torch.tensor([0.9, 0.05, 0.05]).repeat(1, length, max_span, 1)[..., :classes]
    for (i, k), values in cells.items():
        probabilities[0, i, k] = torch.tensor(values)
    return probabilities.log(), torch.ones(1, length, max_span, dtype=torch.bool)


def test_a_candidate_must_beat_none_or_reach_its_threshold():
    logits, mask = grid({(0, 0): [0.3, 0.6, 0.1], (1, 1): [0.5, 0.1, 0.4]})
    (found,) = span_candidates(logits, mask, ["A", "B"], [None, None])
    assert [(e.start, e.end, e.label, round(e.score, 4)) for e in found] == [(0, 1, "A", 0.6)]
    (found,) = span_candidates(logits, mask, ["A", "B"], [0.7, 0.35])
    assert [(e.start, e.end, e.label, round(e.score, 4)) for e in found] == [(1, 3, "B", 0.4)]


def test_with_a_sigmoid_for_each_label_a_span_carries_two():
    logits = torch.full((1, 2, 1, 2), -3.0)
    logits[0, 1, 0] = torch.tensor([2.0, 1.0])
    (found,) = span_candidates(
        logits, torch.ones(1, 2, 1, dtype=torch.bool), ["A", "B"], [None, None], multi_label=True
    )
    assert [(e.start, e.end, e.label) for e in found] == [(1, 2, "A"), (1, 2, "B")]


@given(st.lists(st.lists(entity, max_size=4), min_size=1, max_size=4))
def test_entities_survive_the_trip_through_a_tensor(batch):
    names = {"A": 0, "B": 1}
    back = tensor_to_entities(entities_to_tensor(batch, names), {i: name for name, i in names.items()})
    assert [[e._replace(score=pytest.approx(e.score)) for e in row] for row in back] == batch


def test_of_several_labels_on_a_span_the_best_is_kept():
    entities = [Entity(0, 2, "A", 0.6), Entity(0, 2, "B", 0.8), Entity(0, 1, "A", 0.5), Entity(0, 2, "C", 0.8)]
    assert sorted(best_labels(entities)) == [Entity(0, 1, "A", 0.5), Entity(0, 2, "B", 0.8)]
