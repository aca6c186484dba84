import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import read_oracle

from hf_spanner.data.tags import decode_tags, entities_to_tags
from hf_spanner.modeling.decoding import tag_entities
from hf_spanner.modeling.losses import Gold
from hf_spanner.modeling.tagging import CRF, TaggingHead, bio_tags, bioes_tags

LABELS = ["A", "B"]
OUT, B_A, I_A, B_B, I_B = range(5)


def test_tags_of_nested_entities_are_those_of_the_outermost():
    entities = torch.tensor([[[0, 4, 0], [1, 2, 1], [5, 6, 1], [-1, -1, -1]]])
    assert bio_tags(entities, 7).tolist() == [[B_A, I_A, I_A, I_A, OUT, B_B, OUT]]


def test_of_crossing_or_equal_entities_the_longest_then_first_then_lowest_label_is_tagged():
    assert bio_tags(torch.tensor([[[0, 2, 0], [1, 4, 1]]]), 4).tolist() == [[OUT, B_B, I_B, I_B]]
    assert bio_tags(torch.tensor([[[1, 3, 0], [0, 2, 1]]]), 4).tolist() == [[B_B, I_B, OUT, OUT]]
    assert bio_tags(torch.tensor([[[0, 1, 1], [0, 1, 0]]]), 1).tolist() == [[B_A]]


def test_tags_become_entities_tolerantly():
    tags = [I_A, I_A, B_A, I_B, OUT, B_B, B_B, I_B]
    found = tag_entities(tags, [0.5, 1.0, 1, 1, 1, 1, 1, 0.0], LABELS)
    assert [e[:4] for e in found] == [
        (0, 2, "A", 0.75), (2, 3, "A", 1.0), (3, 4, "B", 1.0), (5, 6, "B", 1.0), (6, 8, "B", 0.5),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 1)), max_size=5))
def test_flat_entities_survive_tagging(pieces):
    entities, position = [], 0
    for gap, size, label in pieces:
        entities.append((position + gap, position + gap + size, label))
        position += gap + size
    rows = torch.tensor([entities or [[-1, -1, -1]]])
    tags = bio_tags(rows, max(position, 1))[0].tolist()
    found = tag_entities(tags, [1.0] * len(tags), LABELS)
    assert [(e.start, e.end, LABELS.index(e.label)) for e in found] == entities


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 1)), max_size=5))
def test_bioes_tags_are_those_of_the_data_readers(pieces):
    entities, position = [], 0
    for gap, size, label in pieces:
        entities.append((position + gap, position + gap + size, label))
        position += gap + size
    rows = torch.tensor([entities or [[-1, -1, -1]]])
    ids = bioes_tags(bio_tags(rows, max(position, 1)))[0].tolist()
    names = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BIES")]
    named = [(start, end, LABELS[label]) for start, end, label in entities]
    assert [names[i] for i in ids] == entities_to_tags(named, max(position, 1), "BIOES")


@given(st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_any_bioes_tags_are_read_as_the_data_readers_read_them(ids):
    names = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BIES")]
    found = tag_entities(ids, [1.0] * len(ids), LABELS, "BIOES")
    assert [e[:3] for e in found] == decode_tags([names[i] for i in ids], "BIOES")[0]


def test_bio_agrees_with_the_reference_implementation():
    for case in read_oracle("overlap_filter_metrics_crf_bio.json")["bio"]:
        if case["scheme"] != "BIO2":
            continue
        names = sorted({tag[2:] for tag in case["tags"] if tag != "O"})
        ids = [0 if t == "O" else 1 + 2 * names.index(t[2:]) + (t[0] == "I") for t in case["tags"]]
        found = tag_entities(ids, [1.0] * len(ids), names)
        assert sorted((e.label, e.start, e.end) for e in found) == sorted(map(tuple, case["chunks"])), case


def random_crf(num_tags):
    crf = CRF(num_tags)
    for p in crf.parameters():
        torch.nn.init.normal_(p)
    return crf


@torch.no_grad()
def brute_force(crf, emissions):
    """Scores of all tag sequences of one sentence."""
    length, num_tags = emissions.shape
    scores = {}
    for tags in itertools.product(range(num_tags), repeat=length):
        score = crf.start[tags[0]] + crf.end[tags[-1]] + sum(emissions[t, tag] for t, tag in enumerate(tags))
        scores[tags] = float(score + sum(crf.transitions[a, b] for a, b in itertools.pairwise(tags)))
    return scores


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10_000))
def test_crf_equals_brute_force(length, num_tags, seed):
    torch.manual_seed(seed)
    crf = random_crf(num_tags)
    emissions = torch.randn(2, length, num_tags)
    lengths = [length, max(1, length - 1)]
    mask = torch.arange(length) < torch.tensor(lengths).unsqueeze(1)
    gold = torch.randint(num_tags, (2, length))
    nll, best, marginals = crf.nll(emissions, gold, mask), crf.viterbi(emissions, mask), crf.marginals(emissions, mask)
    for b, n in enumerate(lengths):
        scores = brute_force(crf, emissions[b, :n])
        log_z = torch.logsumexp(torch.tensor(list(scores.values())), 0)
        assert nll[b].item() == pytest.approx(float(log_z) - scores[tuple(gold[b, :n].tolist())], abs=1e-4)
        assert scores[tuple(best[b, :n].tolist())] == pytest.approx(max(scores.values()), abs=1e-4)
        for t in range(n):
            for tag in range(num_tags):
                mass = sum(torch.exp(torch.tensor(s) - log_z) for tags, s in scores.items() if tags[t] == tag)
                assert marginals[b, t, tag].item() == pytest.approx(float(mass), abs=1e-4)


def test_crf_agrees_with_the_reference_implementation():
    case = read_oracle("overlap_filter_metrics_crf_bio.json")["crf"]
    state = case["state"]
    crf = CRF(len(state["sos_transitions"]))
    crf.load_state_dict(
        {
            "start": torch.tensor(state["sos_transitions"]),
            "end": torch.tensor(state["eos_transitions"]),
            "transitions": torch.tensor(state["transitions"]),
        }
    )
    emissions, tags = torch.tensor(case["emissions"]), torch.tensor(case["tags"])
    mask = torch.arange(emissions.size(1)) < torch.tensor(case["lens"]).unsqueeze(1)
    assert crf.nll(emissions, tags, mask).tolist() == pytest.approx(case["loss"], abs=1e-4)
    best = crf.viterbi(emissions, mask)
    for row, expected, n in zip(best.tolist(), case["decode"], case["lens"], strict=True):
        assert row[:n] == expected[:n]


def test_the_mean_loss_is_over_words_with_and_without_crf():
    torch.manual_seed(0)
    entities = torch.tensor([[[0, 1, 0]], [[-1, -1, -1]]])
    mask = torch.tensor([[True, True], [True, False]])
    head = TaggingHead(4, 2, 0.0, crf=False)
    logits = torch.zeros(2, 2, 5)
    assert head.loss(logits, Gold(entities), mask).item() == pytest.approx(torch.log(torch.tensor(5.0)).item())
    head = TaggingHead(4, 2, 0.0, crf=True)
    assert head.loss(logits, Gold(entities), mask).item() == pytest.approx(
        torch.log(torch.tensor(5.0)).item(), abs=1e-5
    )


def test_the_crf_loss_may_be_one_likelihood_a_sentence():
    """Eq. 10 of Ji et al. (2022): two and one words whose five tags are all alike are 2·log 5 and 1·log 5."""
    entities = torch.tensor([[[0, 1, 0]], [[-1, -1, -1]]])
    mask = torch.tensor([[True, True], [True, False]])
    for reduction in ("span", "sentence"):  # whatever the span head's loss is
        head = TaggingHead(4, 2, 0.0, crf=True, crf_loss="sentence")
        loss = head.loss(torch.zeros(2, 2, 5), Gold(entities), mask, reduction).item()
        assert loss == pytest.approx((2 + 1) * torch.log(torch.tensor(5.0)).item() / 2, abs=1e-5)


def test_the_loss_may_be_averaged_over_sentences():
    entities = torch.tensor([[[0, 1, 0]], [[-1, -1, -1]]])
    mask = torch.tensor([[True, True], [True, False]])
    logits = torch.randn(2, 2, 5)
    for crf in (False, True):
        head = TaggingHead(4, 2, 0.0, crf=crf)
        by_word, by_sentence = (head.loss(logits, Gold(entities), mask, how) for how in ("span", "sentence"))
        assert by_sentence.item() == pytest.approx(by_word.item() * 3 / 2, rel=1e-5)
