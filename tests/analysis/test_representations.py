"""Representations of spans: each figure against pairs counted one by one."""

import numpy as np
import pytest
import torch
from approaches import ROWS
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, make_batch, records, without_gold

from hf_spanner.analysis.representations import (
    Representations,
    describe_representations,
    neighbours,
    span_representations,
)

WITH = [row for row in ROWS if row.approach in ("dspert", "span_ner", "bl_ner")]


@pytest.mark.parametrize("row", WITH, ids=lambda row: row.name)
def test_logits_are_the_output_layer_of_the_representations(row, tokenizer):
    model = row.make(tokenizer)
    batch = without_gold(make_batch(tokenizer, max_subwords=64))
    with torch.no_grad():
        output = model(**batch, output_span_representations=True)
        assert model(**batch).span_representations is None
        logits = model.output_layer(output.span_representations)
    n = int(batch["num_words"][0])
    for start, end in [(0, 1), (3, 5), (n - 1, n)]:
        cell = (0, start, end - start - 1)
        assert torch.allclose(logits[cell], output.logits[cell], atol=1e-4)


def test_a_model_without_representations_is_refused(tokenizer):
    for name in ("seq_ner", "biaffine_ner", "sng"):
        model = next(row for row in ROWS if row.name == name).make(tokenizer)
        with pytest.raises(ValueError, match=f"A {name} model has no span representations"):
            span_representations(model, tokenizer, records())


@settings(max_examples=60)
@given(st.integers(0, 8), st.integers(1, 6), st.integers(9, 14), st.integers(1, 8))
def test_neighbours_are_what_the_definition_says(start, size, num_words, max_span):
    end = min(start + size, num_words)
    cells, overlaps = neighbours(start, end, num_words, max_span)
    found = {(s, s + k + 1): o for (s, k), o in zip(cells.tolist(), overlaps.tolist(), strict=True)}
    for s in range(num_words):
        for e in range(s + 1, num_words + 1):
            a, b = set(range(s, e)), set(range(start, end))
            alpha = len(a & b) / len(a | b)
            near = abs(s - start) <= 5 and abs(e - end) <= 5 and e - s <= max_span and a != b
            assert ((s, e) in found) == near
            if near:
                assert found[s, e] == (0 if alpha == 0 else 1 if alpha <= 0.5 else 2)


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.mark.parametrize("name", ["dspert", "dspert-subword"])
def test_the_figures_are_those_of_all_pairs(name, tokenizer):
    """Tables 4 and 5 from the grid of representations, pair by pair: of spans within reach, and of no others."""
    torch.manual_seed(0)
    model = next(row for row in ROWS if row.name == name).make(tokenizer, max_span_length=6)
    data = records()
    figures = describe_representations(span_representations(model, tokenizer, data, batch_size=2))

    spans, entities = {}, []
    for i, sentence in enumerate(data):
        batch = without_gold(make_batch(tokenizer, [(sentence["tokens"], [])], max_subwords=64))
        with torch.no_grad():
            grid = model(**batch, output_span_representations=True).span_representations[0].numpy()
        n = len(sentence["tokens"])
        sizes = [1] * n
        if name == "dspert-subword":
            sizes = [len(tokenizer(word, add_special_tokens=False)["input_ids"]) for word in sentence["tokens"]]
        cells = [
            (s, k) for s in range(n) for k in range(grid.shape[1]) if s + k < n and sum(sizes[s : s + k + 1]) <= 6
        ]
        spans |= {(i, s, s + k + 1): grid[s, k] for s, k in cells}
        entities += [(i, e["start"], e["end"], e["label"]) for e in sentence["entities"]]
    reached = [e for e in entities if e[:3] in spans]
    assert figures["entities"] == len(reached) and figures["out_of_reach"] == len(entities) - len(reached) > 0

    by_overlap = {"none": [], "weak": [], "strong": []}
    for i, start, end, _ in reached:
        for (j, s, e), z in spans.items():
            if i == j and abs(s - start) <= 5 and abs(e - end) <= 5 and (s, e) != (start, end):
                a, b = set(range(s, e)), set(range(start, end))
                alpha = len(a & b) / len(a | b)
                name = "none" if alpha == 0 else "weak" if alpha <= 0.5 else "strong"
                by_overlap[name].append(cosine(z, spans[i, start, end]))
    for name, values in by_overlap.items():
        assert figures["overlap"][name]["pairs"] == len(values)
        assert figures["overlap"][name]["cosine"] == pytest.approx(np.mean(values), abs=1e-5)

    vectors = {label: [spans[e[:3]] for e in reached if e[3] == label] for label in LABELS}
    gold_spans = {e[:3] for e in reached}
    others = [z for key, z in spans.items() if key not in gold_spans]
    within = [np.mean([cosine(a, b) for i, a in enumerate(v) for b in v[:i]]) for v in vectors.values() if len(v) > 1]
    names = [label for label in LABELS if vectors[label]]
    between = [
        np.mean([cosine(a, b) for a in vectors[x] for b in vectors[y]]) for i, x in enumerate(names) for y in names[:i]
    ]
    to_negatives = [np.mean([cosine(a, b) for a in vectors[x] for b in others]) for x in names]
    assert figures["norm"] == pytest.approx(np.mean([np.linalg.norm(spans[e[:3]]) for e in reached]), abs=1e-4)
    assert figures["within"] == pytest.approx(np.mean(within), abs=1e-5)
    assert figures["between"] == pytest.approx(np.mean(between), abs=1e-5)
    assert figures["to_negatives"] == pytest.approx(np.mean(to_negatives), abs=1e-5)


def made(z, gold, weight, has_none=True) -> Representations:
    z = np.array(z, dtype=np.float32)
    zeros = np.zeros(3)
    return Representations(
        ["A", "B"], z, np.array(gold), zeros, zeros.astype(int), np.zeros(z.shape[1]), 0, np.array(weight), has_none
    )


def test_templates_by_hand():
    weight = [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]  # none, A, B
    figures = describe_representations(made([[3, 4], [1, 0]], [0, 1], weight))
    root = 0.5**0.5
    assert figures["weight_norm"] == pytest.approx((1 + 2 + 3 * 2**0.5) / 3)
    assert figures["weight_cosine"] == pytest.approx((0 + root + root) / 3)
    assert figures["weight_cosine_between"] == pytest.approx(root)
    assert figures["weight_cosine_to_none"] == pytest.approx(root / 2)
    assert figures["norm"] == pytest.approx(3) and figures["between"] == pytest.approx(0.6)
    assert figures["within"] is None and figures["to_negatives"] is None  # one entity a class, no other span
    assert figures["overlap"]["weak"] == {"cosine": None, "pairs": 0}


def test_a_single_type_has_nothing_between():
    figures = describe_representations(made([[3, 4], [6, 8], [4, 3]], [0, 0, 0], [[1.0, 0.0]], has_none=False))
    assert figures["between"] is None and figures["weight_cosine"] is None
    assert figures["within"] == pytest.approx((1 + 0.96 + 0.96) / 3)
    points = np.array(figures["pca"]["points"])
    assert np.linalg.norm(points[0] - points[1]) == pytest.approx(5, abs=1e-3)
    assert sum(figures["pca"]["shares"]) == pytest.approx(1)


def test_labels_that_the_model_does_not_know_are_left_out(tokenizer):
    model = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    only = [{"tokens": ["a"], "entities": [{"start": 0, "end": 1, "label": "other"}]}]
    with pytest.raises(ValueError, match="no gold entity that the model can represent"):
        span_representations(model, tokenizer, only)
