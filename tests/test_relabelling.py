"""New labels from old ones: what is matched, by hand; that every approach keeps what it knows is in the matrix."""

import pytest
import torch
from approaches import ROWS
from tests_support import LABELS

from hf_spanner.loading import load_model
from hf_spanner.relabelling import (
    LEAST_SHARE,
    Layout,
    Origin,
    _origin,
    find_origins,
    label_dimensions,
    relabel,
)


def test_rows_of_labels_by_hand():
    none_first = Layout(1, 1).rows([{2: 1.0}, None, {0: 1.0}], 4)  # none, then a row a label
    assert none_first.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    tags = Layout(1, 2).rows([{1: 1.0}, {0: 1.0}], 5)  # O, then B and I
    assert tags.argmax(1).tolist() == [0, 3, 4, 1, 2] and tags.sum() == 5
    mixed = Layout(0, 1).rows([{0: 0.25, 1: 0.75}, {1: 1.0}], 2)
    assert mixed.tolist() == [[0.25, 0.75], [0, 1]]


@pytest.fixture(scope="module")
def span_ner(tokenizer):
    torch.manual_seed(0)
    return next(row for row in ROWS if row.name == "span_ner").make(tokenizer)


def test_what_depends_on_labels_is_found(span_ner, tokenizer):
    assert label_dimensions(span_ner.config, type(span_ner)) == {
        "scorer.linear.weight": [Layout(1, 1), None],
        "scorer.linear.bias": [Layout(1, 1)],
    }
    tagger = next(row for row in ROWS if row.name == "seq_ner-crf").make(tokenizer)
    layouts = label_dimensions(tagger.config, type(tagger))
    assert layouts["tagger.crf.transitions"] == [Layout(1, 2), Layout(1, 2)]


def test_each_row_comes_from_where_it_should(span_ner):
    a, b = LABELS[:2]
    new = relabel(span_ner, [Origin("x", b, 0.9, 10), Origin("y", None, 0.0, 4), Origin(a, a, 1.0, 0)])
    before, after = span_ner.scorer.linear, new.scorer.linear
    for parameter in ("weight", "bias"):
        old, rows = getattr(before, parameter), getattr(after, parameter)
        assert torch.equal(rows[0], old[0]) and torch.equal(rows[1], old[2]) and torch.equal(rows[3], old[1])
    assert not any(torch.equal(after.weight[2], row) for row in before.weight)  # at random
    assert new.config.labels == ["x", "y", a] and span_ner.config.labels == LABELS
    for name, parameter in span_ner.named_parameters():
        if "scorer.linear" not in name:
            assert torch.equal(parameter, dict(new.named_parameters())[name])


def test_shares_are_counted_over_gold_spans(span_ner, tokenizer, monkeypatch):
    sentences = [
        {
            "tokens": ["a", "b"],
            "entities": [{"start": 0, "end": 1, "label": "x"}, {"start": 1, "end": 2, "label": "x"}],
        },
        {"tokens": ["c"], "entities": [{"start": 0, "end": 1, "label": "y"}]},
        {"tokens": ["d"], "entities": [{"start": 0, "end": 1, "label": LABELS[0]}]},
    ]
    seen = [{(0, 1): LABELS[1], (1, 2): LABELS[1], (0, 2): LABELS[0]}, {}]
    monkeypatch.setattr("hf_spanner.relabelling.best_of_spans", lambda *args: seen)
    origins = find_origins(span_ner, tokenizer, sentences, ["x", "y", "z", LABELS[0]])
    assert origins == [
        Origin("x", LABELS[1], 1.0, 2), Origin("y", None, 0.0, 1), Origin("z", None, 0.0, 0),
        Origin(LABELS[0], LABELS[0], 1.0, 0),
    ]  # fmt: skip
    lines = list(map(str, origins))
    assert lines[0] == f"x starts from {LABELS[1]}: 100% of its spans"
    assert lines[1] == f"y starts at random: no old label is seen in {LEAST_SHARE:.0%} of its 1 spans"
    assert lines[2] == "z starts at random: unseen" and lines[3] == f"{LABELS[0]} goes on as it is"


def test_a_type_with_kinds_is_a_mixture_of_them(span_ner):
    seen = {"PER:name": 2, "PER:nominal": 6, "ORG": 5}
    origin = _origin("x", seen, 16, ["name", "nominal"])
    assert origin == Origin("x", "PER", 0.5, 16, (("PER:name", 0.25), ("PER:nominal", 0.75)))
    assert str(origin) == "x starts from PER: 50% of its spans"
    assert _origin("x", {"ORG": 5}, 5, ["name", "nominal"]) == Origin("x", "ORG", 1.0, 5)
    assert _origin("x", {"PER:name": 1}, 20, ["name", "nominal"]).old is None
    a, b = LABELS[:2]
    new = relabel(span_ner, [Origin("x", a, 1.0, 4, ((a, 0.25), (b, 0.75)))])
    old, rows = span_ner.scorer.linear.weight, new.scorer.linear.weight
    torch.testing.assert_close(rows[1], 0.25 * old[1] + 0.75 * old[2])
    assert torch.equal(rows[0], old[0])


def test_a_model_loaded_for_other_labels_keeps_those_it_knows_wherever_they_stand(span_ner, tokenizer, tmp_path):
    """As many labels as before: the layers fit, and yet a new name must not get another label's weights."""
    span_ner.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    new = ["fresh", *LABELS[:-1]]
    loaded, _ = load_model(str(tmp_path), labels=new, dtype="bfloat16")
    assert loaded.config.labels == new and not loaded.training and loaded.dtype == torch.bfloat16
    before, after = span_ner.scorer.linear.weight.bfloat16(), loaded.scorer.linear.weight
    assert torch.equal(after[2:], before[1:-1])  # row 0 is none
    assert torch.equal(after[0], before[0]) and not torch.equal(after[1], before[1])
