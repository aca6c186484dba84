"""More padding than a batch needs, batches that are cut and joined on their way, and how the encoder attends."""

import pytest
import torch
from accelerate.utils.operations import concatenate, send_to_device, slice_tensors
from approaches import ROWS, Row
from tests_support import LABELS, SENTENCES, make_batch, records, without_gold

import hf_spanner
from hf_spanner import NestedNerCollator, NestedNerDataset


def padded(tokenizer, config, multiple: int | None) -> dict[str, torch.Tensor]:
    data = NestedNerDataset(records(), tokenizer, config)
    batch = NestedNerCollator(tokenizer.pad_token_id, multiple)([data[i] for i in range(len(data))])
    del batch["places"]
    return batch


def entities(model, batch) -> list:
    with torch.no_grad():
        found = model.decode(model(**without_gold(batch)), threshold=0.3, overlap="any")
    return [[(e[:3], pytest.approx(e.score, abs=1e-5)) for e in row] for row in found]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_padding_to_a_multiple_changes_shapes_and_no_results(row: Row, tokenizer):
    torch.manual_seed(0)
    model = row.make(tokenizer)
    batches = {multiple: padded(tokenizer, model.config, multiple) for multiple in (None, 8)}
    for key, dim in (("input_ids", 1), ("word_mask", 1), ("entities", 1)):
        assert batches[8][key].size(dim) % 8 == 0 and batches[None][key].size(dim) % 8, key
    assert batches[8]["word_mask"].sum(1).tolist() == batches[8]["num_words"].tolist()
    assert entities(model, batches[8]) == entities(model, batches[None])
    if getattr(model.config, "max_negatives", None) is None:  # nothing is drawn, from more or from fewer
        losses = []
        for batch in batches.values():
            torch.manual_seed(1)
            losses.append(model(**batch).loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_multiple_of_nothing_is_refused():
    with pytest.raises(ValueError, match="pad_to_multiple_of=0 must be at least 1"):
        NestedNerCollator(0, 0)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_batch_can_be_sent_sliced_and_joined_on_its_way_to_several_processes(row: Row, tokenizer):
    """Whoever dispatches batches broadcasts, slices and concatenates what is in them: there are tensors only."""
    torch.manual_seed(0)
    model, batch = row.make(tokenizer), make_batch(tokenizer)
    assert all(isinstance(x, torch.Tensor) and len(x) == len(SENTENCES) for x in batch.values())
    whole = entities(model, batch)
    part = slice_tensors(send_to_device(batch, "cpu"), slice(1, 4))
    assert entities(model, part) == whole[1:4]
    assert entities(model, concatenate([batch, batch])) == whole + whole
    assert torch.isfinite(model.train()(**part).loss)


@pytest.mark.parametrize("row", [row for row in ROWS if row.approach != "sng"], ids=str)
def test_the_encoder_attends_as_asked(row: Row, tokenizer, tmp_path):
    torch.manual_seed(0)
    row.make(tokenizer).save_pretrained(tmp_path)
    batch, logits = without_gold(make_batch(tokenizer)), {}
    for how in ("sdpa", "eager"):
        model = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path, attn_implementation=how).eval()
        assert model.encoder.config._attn_implementation == how
        with torch.no_grad():
            logits[how] = model(**batch).logits
    assert torch.allclose(logits["sdpa"], logits["eager"], atol=1e-4)


def test_a_new_model_attends_as_asked_too(encoder_folder):
    for how in ("sdpa", "eager"):
        model = hf_spanner.APPROACHES["span_ner"].from_encoder(encoder_folder, LABELS, attn_implementation=how)
        assert model.encoder.config._attn_implementation == how
