"""`torch.compile`: approaches that score a grid are one graph, forward and loss; the others still run.

What breaks a graph: a list of spans, whose length hangs on the sentences' (dspert, locate_and_label), matching
(diffusion_ner), and torch's LSTM (`lstm_size` of biaffine_ner and cnn_ner), which torch does not trace.
"""

import pytest
import torch
from approaches import ROWS
from tests_support import make_batch, without_gold

BY_NAME = {row.name: row for row in ROWS}
WHOLE = ["seq_ner", "span_ner", "span_ner-multi_label", "bl_ner", "biaffine_ner", "cnn_ner", "sng"]


def make(name: str, tokenizer):
    torch.manual_seed(0)
    settings = {"lstm_size": 0} if name == "biaffine_ner" else {}
    model = BY_NAME[name].make(tokenizer, dropout=0.0, **settings)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing compiled before; SNG keeps its weights in an LSTM that it never calls."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch._dynamo.config, "allow_rnn", True)


@pytest.mark.parametrize("name", WHOLE)
def test_a_grid_compiles_to_one_graph_for_reading(name, tokenizer):
    model, batch = make(name, tokenizer), without_gold(make_batch(tokenizer))
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    with torch.no_grad():
        for rows in (5, 3):
            part = {key: x[:rows] for key, x in batch.items()}
            assert torch.allclose(compiled(**part).logits, model(**part).logits, atol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_a_grid_compiles_to_one_graph_for_training(name, tokenizer):
    model, batch, gradients = make(name, tokenizer).train(), make_batch(tokenizer), []
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for run in (model, compiled):
        model.zero_grad()
        torch.manual_seed(1)
        run(**batch).loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.name not in WHOLE])
def test_the_others_compile_in_parts(name, tokenizer):
    model, batch = make(name, tokenizer).train(), make_batch(tokenizer)
    compiled = torch.compile(model, backend="eager", dynamic=True)
    losses = []
    for run in (model, compiled):
        torch.manual_seed(1)
        loss = run(**batch).loss
        loss.backward()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
