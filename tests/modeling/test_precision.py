"""Every approach in half precision: it learns and it reads, under autocast and in bfloat16 throughout."""

import copy

import pytest
import torch
from approaches import ROWS, Row
from tests_support import LABELS, learn, make_batch, without_gold

import hf_spanner

HOW = ["bfloat16", "autocast bfloat16", "autocast float16"]


def prepared(model, how: str):
    """The model as `how` says, and the context it runs in."""
    dtype = getattr(torch, how.split()[-1])
    if how.startswith("autocast"):
        return model, torch.autocast("cpu", dtype)
    return model.to(dtype), torch.autocast("cpu", enabled=False)


@pytest.mark.parametrize("how", HOW)
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


@pytest.fixture(scope="module")
def trained(request, tokenizer):
    """A model that has learnt a little."""
    torch.manual_seed(0)
    row: Row = request.param
    model = row.make(tokenizer)
    learn(model, make_batch(tokenizer), lambda: True, row.learning_rate, 60)
    return model


def entities(model, batch, context) -> dict[tuple, float]:
    with torch.no_grad(), context:
        found = model.decode(model(**without_gold(batch)), overlap="any")
    return {(row, *entity[:3]): entity.score for row, sentence in enumerate(found) for entity in sentence}


@pytest.mark.parametrize("trained", [row for row in ROWS if row.approach != "diffusion_ner"], ids=str, indirect=True)
def test_half_precision_finds_the_same_entities_but_for_those_near_the_threshold(trained, tokenizer):
    """Found by one and not by the other are at most entities of which the one is hardly sure."""
    batch = make_batch(tokenizer)
    threshold = trained.config.threshold
    limit = threshold if isinstance(threshold, float) else 0.5
    exact = entities(trained, batch, torch.autocast("cpu", enabled=False))
    for how in HOW:
        half = entities(*prepared(copy.deepcopy(trained), how)[:1], batch, prepared(copy.deepcopy(trained), how)[1])
        for key in exact.keys() | half.keys():
            if key in exact and key in half:
                assert half[key] == pytest.approx(exact[key], abs=0.05)
            else:
                assert abs(exact.get(key, half.get(key)) - limit) < 0.1, (how, key)


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
