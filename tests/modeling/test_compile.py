"""`torch.compile`: approaches that score a grid are one graph, forward and loss; the others still run. `torch.export`.

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


def exported(model, batch, **how):
    """What the graph of a model answers: its logits."""
    with torch.no_grad():
        return torch.export.export(model, (), batch, **how).module()


EXPORTED = ["seq_ner-crf", "span_ner", "bl_ner", "dspert", "dspert-subword", "biaffine_ner", "biaffine_ner-subword"]


@pytest.mark.parametrize("name", [*EXPORTED, "cnn_ner", "sng"])
def test_torch_export_writes_down_what_the_model_computes(name, tokenizer):
    model, batch = BY_NAME[name].make(tokenizer), without_gold(make_batch(tokenizer))
    logits = exported(model, batch)(**batch)["logits"]
    torch.testing.assert_close(logits, model(**batch).logits)


@torch.no_grad()
def test_without_a_mask_of_words_a_graph_has_as_many_as_sub_words(tokenizer):
    model, batch = BY_NAME["seq_ner"].make(tokenizer), without_gold(make_batch(tokenizer))
    expected = model(**batch).logits
    del batch["word_mask"]
    logits = exported(model, batch)(**batch)["logits"]
    assert logits.size(1) == batch["input_ids"].size(1)
    torch.testing.assert_close(logits[:, : expected.size(1)], expected)


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", ["seq_ner", "span_ner", "bl_ner", "cnn_ner", "sng"])
def test_a_graph_without_an_lstm_is_for_batches_of_any_shape(name, tokenizer):
    model, batch = BY_NAME[name].make(tokenizer), without_gold(make_batch(tokenizer))
    shapes = {key: dict.fromkeys(range(x.ndim), torch.export.Dim.DYNAMIC) for key, x in batch.items()}
    graph = exported(model, batch, dynamic_shapes=shapes)
    for rows in (5, 3):
        part = {key: x[:rows] for key, x in batch.items()}
        torch.testing.assert_close(graph(**part)["logits"], model(**part).logits)


@pytest.mark.parametrize("name", ["locate_and_label", "diffusion_ner"])
def test_what_hangs_on_what_is_found_is_no_graph(name, tokenizer):
    with pytest.raises(ValueError, match=f"{name} cannot be one graph: .*`hf-spanner export`"):
        exported(BY_NAME[name].make(tokenizer), without_gold(make_batch(tokenizer)))


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
