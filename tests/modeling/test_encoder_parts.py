"""Vocabularies in eight bits, and encoders whose last layers start afresh."""

import pytest
import torch
from approaches import ROWS
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, make_batch, without_gold

import hf_spanner
from hf_spanner.modeling.encoders import Int8Embedding, last_layers

BY_NAME = {row.name: row for row in ROWS}


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(1, 20), st.floats(1e-6, 1e3), st.integers(0, 10**6))
def test_a_row_is_off_by_half_a_step_of_its_largest_number_at_most(rows, dim, size, seed):
    table = torch.nn.Embedding(rows, dim)
    with torch.no_grad():
        table.weight.copy_(size * torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed)))
    small = Int8Embedding.of(table)
    ids = torch.arange(rows)
    step = table.weight.abs().amax(1, keepdim=True) / 127
    assert ((small(ids) - table(ids)).abs() <= 0.501 * step + 1e-12).all()
    assert torch.equal(small.table()(ids), small(ids))
    again = Int8Embedding.of(small.table())  # what has been rounded is rounded to itself
    assert torch.allclose(again(ids), small(ids), rtol=1e-5, atol=0)


def test_a_row_of_zeros_stays_one():
    table = torch.nn.Embedding(2, 3)
    torch.nn.init.zeros_(table.weight)
    assert torch.equal(Int8Embedding.of(table)(torch.tensor([0, 1])), torch.zeros(2, 3))


@pytest.mark.parametrize("name", ["span_ner", "dspert", "biaffine_ner"])
def test_a_compact_model_saves_loads_reads_and_can_be_trained_again(name, tokenizer, tmp_path):
    model = BY_NAME[name].make(tokenizer)
    batch = without_gold(make_batch(tokenizer))
    with torch.no_grad():
        before = model(**batch).logits
        model.compact_embeddings()
        model.compact_embeddings()  # once is enough
        rounded = model(**batch).logits
    assert torch.allclose(before, rounded, atol=0.05) and not torch.equal(before, rounded)
    model.save_pretrained(tmp_path)
    loaded = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path).eval()
    assert loaded.config.int8_embeddings and loaded.encoder.get_input_embeddings().weight.dtype == torch.int8
    with torch.no_grad():
        assert torch.allclose(loaded(**batch).logits, rounded, atol=1e-6)
        loaded.restore_embeddings()
        assert torch.allclose(loaded(**batch).logits, rounded, atol=1e-6)
    loaded.train()(**make_batch(tokenizer)).loss.backward()
    assert loaded.encoder.get_input_embeddings().weight.grad.abs().sum() > 0
    assert not loaded.config.int8_embeddings


def test_a_model_without_an_encoder_has_no_vocabulary_to_compact(tokenizer):
    with pytest.raises(ValueError, match="A sng model has no encoder"):
        BY_NAME["sng"].make(tokenizer).compact_embeddings()


def test_fresh_layers_are_the_last_and_no_others(encoder_folder):
    build = hf_spanner.APPROACHES["span_ner"].from_encoder
    torch.manual_seed(0)
    old, new = (build(encoder_folder, labels=["A"], fresh_layers=n).encoder.state_dict() for n in (0, 1))
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed and all(name.startswith("encoder.layer.1.") for name in changed)
    with pytest.raises(ValueError, match="fresh_layers=3 is more than the encoder's 2 layers"):
        build(encoder_folder, labels=["A"], fresh_layers=3)


@pytest.mark.parametrize("compact", [False, True])
def test_an_approach_starts_from_the_encoder_that_another_was_trained_with(tokenizer, tmp_path, compact):
    trained = BY_NAME["biaffine_ner"].make(tokenizer)
    if compact:
        trained.compact_embeddings()
    trained.save_pretrained(tmp_path)
    other = hf_spanner.APPROACHES["dspert"].from_encoder(str(tmp_path), labels=LABELS[::-1], max_span_length=4)
    trained.restore_embeddings()
    before, after = trained.encoder.state_dict(), other.encoder.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert other.config.labels == LABELS[::-1] and not other.config.int8_embeddings
    other(**make_batch(tokenizer, labels=LABELS[::-1])).loss.backward()
    assert other.encoder.get_input_embeddings().weight.grad.abs().sum() > 0


def test_a_model_without_an_encoder_is_no_start(tokenizer, tmp_path):
    BY_NAME["sng"].make(tokenizer).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a sng model: it has no encoder to start from"):
        hf_spanner.APPROACHES["span_ner"].from_encoder(str(tmp_path), labels=["A"], max_span_length=4)


def test_layers_are_found_in_every_family(families):
    for encoder in families:
        assert len(last_layers(encoder, 1)) == 1


@pytest.fixture
def families():
    from tests_support import encoder_config
    from transformers import AutoModel

    names = ("bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert", "xlm-roberta")
    return [AutoModel.from_config(encoder_config(name, 30)) for name in names]
