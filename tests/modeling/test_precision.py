"""Every approach in half precision: it learns and it reads, under autocast and in bfloat16 throughout.

That it finds what it finds in single precision is in `test_matrix.py`, where there are trained models.
"""

import pytest
import torch
from approaches import ROWS, Row
from tests_support import HALF, LABELS, make_batch, prepared, without_gold

import hf_spanner


@pytest.mark.parametrize("how", HALF)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_half_precision_trains_with_a_loss_in_single_precision(row: Row, how: str, tokenizer):
    batch, losses = make_batch(tokenizer), {}
    for precision in ("float32", how):
        torch.manual_seed(0)
        model, context = prepared(row.make(tokenizer).train(), precision)
        torch.manual_seed(1)
        with context:
            output = model(**batch)
        output.loss.backward()
        losses[precision] = output.loss.item()
        assert output.loss.dtype == torch.float32
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    assert losses[how] == pytest.approx(losses["float32"], rel=0.02)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_model_loads_in_half_precision_and_reads(row: Row, tokenizer, tmp_path):
    torch.manual_seed(0)
    row.make(tokenizer).save_pretrained(tmp_path)
    model = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path, dtype=torch.bfloat16).eval()
    assert model.dtype == torch.bfloat16 and model.config.labels == LABELS
    with torch.no_grad():
        output = model(**without_gold(make_batch(tokenizer)))
    assert torch.isfinite(output.logits).all()
    assert len(model.decode(output)) == 5
