"""The biaffine model: the authors' numbers, and the band against the full square."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, SENTENCES, encoder_config, make_batch, read_oracle, without_gold
from torch import nn

from hf_spanner.modeling.losses import Gold, grid_loss
from hf_spanner.modeling.modeling_biaffine_ner import BiaffineNerConfig, BiaffineNerForNestedNer, bilinear_band
from hf_spanner.modeling.modeling_nested_ner import NestedNerOutput
from hf_spanner.training import NestedNerDataset, unreachable


def tiny(vocab_size: int = 50, **settings) -> BiaffineNerForNestedNer:
    settings = {"lstm_size": 12, "affine_size": 6, "max_subwords": 128, **settings}
    encoder = encoder_config("bert", vocab_size).to_dict()
    return BiaffineNerForNestedNer(BiaffineNerConfig(encoder_config=encoder, labels=LABELS, **settings)).eval()


def test_scores_loss_and_entities_equal_the_authors():
    case = read_oracle("biaffine_shallow.pt")["biaffine_bs01"]
    hidden, num_words, labels = case["hidden"], case["seq_lens"], case["labels"][1:]
    encoder = {**encoder_config("bert", 40).to_dict(), "hidden_size": 8}
    config = BiaffineNerConfig(
        encoder_config=encoder,
        labels=labels,
        lstm_size=0,
        affine_size=6,
        size_embedding_dim=3,
        size_embedding_rows=case["max_size_id"] + 1,
        boundary_smoothing=case["sb_epsilon"],
        smoothing_size=case["sb_size"],
    )
    model = BiaffineNerForNestedNer(config).eval()
    names = {
        "affine_start.ff_blocks.0.proj_layer": "start",
        "affine_end.ff_blocks.0.proj_layer": "end",
        "size_embedding": "sizes",
    }
    weights = {}
    for name, value in case["state_dict"].items():
        module, _, leaf = name.rpartition(".")
        if not name.startswith("_"):
            weights[f"{names[module]}.{leaf}" if module else leaf] = value
    model.scorer.load_state_dict(weights)
    with torch.no_grad():
        logits = model.scorer(hidden, 7)
    for row, n in enumerate(num_words.tolist()):
        for start in range(n):
            for end in range(start + 1, n + 1):
                theirs = case["scores"][row, start, end - 1]
                assert torch.allclose(logits[row, start, end - start - 1], theirs, atol=1e-5)
    for row, chunks in enumerate(case["chunks"]):
        entities = torch.tensor([[(s, e, labels.index(label)) for label, s, e in chunks] or [(-1, -1, -1)]])
        loss, _ = grid_loss(logits[row : row + 1], num_words[row : row + 1], Gold(entities), model.config)
        assert loss.item() == pytest.approx(case["losses"][row].item(), rel=1e-5)
    found = model.decode(NestedNerOutput(logits=logits, num_words=num_words), overlap="nested")
    assert [{(e.label, e.start, e.end) for e in row} for row in found] == [set(map(tuple, c)) for c in case["decoded"]]


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 11), max_span=st.integers(1, 11), classes=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_band_equals_the_full_product(length, max_span, classes, seed):
    torch.manual_seed(seed)
    max_span = min(max_span, length)
    left, right = torch.randn(2, length, classes, 5), torch.randn(2, length, 5)
    band = bilinear_band(left, right, max_span)
    full = torch.einsum("bica,bja->bijc", left, right)
    assert band.shape == (2, length, max_span, classes)
    for i in range(length):
        for k in range(min(max_span, length - i)):
            assert torch.allclose(band[:, i, k], full[:, i, i + k], atol=1e-5)


def test_a_score_worked_by_hand():
    model = tiny(affine_size=1, lstm_size=0)
    scorer = model.scorer
    for parameter in scorer.parameters():
        nn.init.zeros_(parameter)
    nn.init.constant_(scorer.start.bias, 2.0)  # s = 2 and e = 3 for every word
    nn.init.constant_(scorer.end.bias, 3.0)
    with torch.no_grad():
        scorer.U[1] = 5.0
        scorer.W[1, :2] = torch.tensor([7.0, 11.0])
        scorer.b[1] = 0.5
        logits = scorer(torch.randn(1, 3, 32), 3)
    assert logits[0, 0, 1].tolist() == [0.0, 2 * 5 * 3 + 7 * 2 + 11 * 3 + 0.5, 0.0, 0.0]


def test_a_cap_leaves_the_scores_of_short_spans_alone(tokenizer):
    torch.manual_seed(0)
    free, capped = tiny(len(tokenizer)), tiny(len(tokenizer), max_span_length=3)
    capped.load_state_dict(free.state_dict())
    batch = without_gold(make_batch(tokenizer))
    with torch.no_grad():
        a, b = free(**batch).logits, capped(**batch).logits
    assert a.shape == (5, 15, 15, 4) and b.shape == (5, 15, 3, 4)
    assert torch.allclose(a[0, :12, :3], b[0, :12], atol=1e-5)


def test_over_subwords_the_scores_of_whole_words_leave_the_model(tokenizer):
    """The grid of sub-words, computed apart, at the cells where words begin and end; longer spans are none."""
    torch.manual_seed(0)
    model = tiny(len(tokenizer), span_unit="subword", max_span_length=6, lstm_size=0)
    batch = make_batch(tokenizer)
    with torch.no_grad():
        output = model(**batch)
        states = model.encoder(batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    for row, (words, _) in enumerate(SENTENCES):
        sizes = [len(tokenizer(word, add_special_tokens=False)["input_ids"]) for word in words]
        with torch.no_grad():
            grid = model.scorer(states[row : row + 1, 1 : 1 + sum(sizes)], min(6, sum(sizes)))[0]
        for start in range(len(words)):
            for end in range(start + 1, min(start + 6, len(words)) + 1):
                first, size = sum(sizes[:start]), sum(sizes[start:end])
                cell = output.logits[row, start, end - start - 1]
                if size <= 6:
                    assert torch.allclose(cell, grid[first, size - 1], atol=1e-5)
                else:
                    assert cell[0] == 0 and (cell[1:] < -1e30).all()
    assert torch.isfinite(output.loss) and model.reach().unit == "subword"
    assert len(model.decode(output, threshold=0.0)) == 5


def test_without_a_cap_everything_is_in_reach(tokenizer):
    tokens = ["a"] * 40
    records = [{"id": "a", "tokens": tokens, "entities": [{"start": 0, "end": 40, "label": "PER"}]}]
    for cap, lost in ((None, 0), (10, 1)):
        model = tiny(len(tokenizer), max_span_length=cap)
        assert sum(unreachable(NestedNerDataset(records, tokenizer, model.config), model).values()) == lost
        assert model.reach().longest == cap


def test_the_loss_is_summed_over_spans_and_averaged_over_sentences(tokenizer):
    model = tiny(len(tokenizer))
    for parameter in (model.scorer.U, model.scorer.W):
        nn.init.zeros_(parameter)
    batch = make_batch(tokenizer)
    spans = sum(n * (n + 1) / 2 for n in batch["num_words"].tolist())
    assert model(**batch).loss.item() == pytest.approx(spans / len(SENTENCES) * math.log(4), rel=1e-5)


def test_new_layers_start_as_in_the_paper():
    scorer = tiny().scorer
    flat = scorer.U.flatten(1)
    assert torch.allclose(flat @ flat.T, torch.eye(4), atol=1e-5)
    assert torch.allclose(scorer.W @ scorer.W.T, torch.eye(4), atol=1e-5)
    assert scorer.b.abs().sum() == 0
    with pytest.raises(ValueError, match="lstm_size=5 must be even"):
        tiny(lstm_size=5)


def test_one_word_texts_and_empty_ones(tokenizer):
    model = tiny(len(tokenizer)).train()
    loss = model(**make_batch(tokenizer, [(["London"], [(0, 1, "ORG")]), ([], [])])).loss
    loss.backward()
    assert torch.isfinite(loss)
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_bundled_with_a_tagging_head(tokenizer):
    model = tiny(len(tokenizer), bundle_weight=0.1)
    batch = make_batch(tokenizer)
    model(**batch).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    with torch.no_grad():
        output = model(**without_gold(batch))
    assert len(model.decode(output, head="span")) == len(model.decode(output, head="seq")) == len(SENTENCES)
