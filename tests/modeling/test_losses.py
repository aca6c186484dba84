"""Losses that approaches share, worked by hand."""

import math

import pytest
import torch
from tests_support import LABELS, encoder_config, make_batch

import hf_spanner
from hf_spanner.modeling.losses import classification_loss, reduce_loss


def test_the_classification_loss_worked_by_hand():
    logits = torch.tensor([[0.0, math.log(2.0), 0.0], [0.0, 0.0, math.log(6.0)]])
    targets = torch.tensor([[True, False], [False, False]])  # the first label; none
    assert classification_loss(logits, targets, False).item() == pytest.approx(math.log(2) + math.log(8))
    soft = torch.tensor([[0.1, 0.9, 0.0], [1.0, 0.0, 0.0]])
    expected = 0.1 * math.log(4) + 0.9 * math.log(2) + math.log(8)
    assert classification_loss(logits, soft, False).item() == pytest.approx(expected)
    annotated = torch.tensor([[True, True], [True, False]])  # of the second span the second label is unknown
    assert classification_loss(logits, targets, False, annotated).item() == pytest.approx(2 * math.log(2))


def test_the_loss_of_one_sigmoid_a_label_worked_by_hand():
    logits = torch.tensor([[0.0, math.log(3.0)]])  # 1/2 and 3/4
    targets = torch.tensor([[True, False]])
    assert classification_loss(logits, targets, True).item() == pytest.approx(math.log(2) + math.log(4))
    annotated = torch.tensor([[True, False]])
    assert classification_loss(logits, targets, True, annotated).item() == pytest.approx(math.log(2))
    soft = torch.tensor([[0.2, 0.8, 0.0]])  # none, which no sigmoid is for, comes first
    expected = 0.8 * math.log(2) + 0.2 * math.log(2) + math.log(4)
    assert classification_loss(logits, soft, True).item() == pytest.approx(expected)


def test_a_sum_becomes_a_mean_over_spans_or_over_sentences():
    total, count = torch.tensor(12.0), torch.tensor(6)
    assert reduce_loss(total, count, 3, "span") == 2 and reduce_loss(total, count, 3, "sentence") == 4
    assert reduce_loss(total, torch.tensor(0), 3, "span") == 12


@pytest.mark.parametrize("approach", ["span_ner", "bl_ner", "dspert", "biaffine_ner"])
def test_one_sigmoid_a_label_starts_where_few_spans_have_any(approach, tokenizer):
    """Of a new model the loss of spans without entity is near 0 and not log 2 for each label."""
    torch.manual_seed(0)
    model_class = hf_spanner.APPROACHES[approach]
    encoder = encoder_config("bert", len(tokenizer)).to_dict()
    settings = {"multi_label": True, "max_span_length": 4, "loss_reduction": "span", "boundary_smoothing": 0.0}
    model = model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, **settings)).eval()
    assert (model.output_bias == -5).all()
    with torch.no_grad():
        output = model(**make_batch(tokenizer, [("it is not here".split(), [])]))
    span = output.losses["spans"].item() / (1 if approach != "bl_ner" else 1 - model.config.bundle_weight)
    assert span / len(LABELS) < math.log(2) / 3
