"""How often training makes the host wait for a GPU: the counter, and that nobody adds to the counts."""

import pytest
import torch
from approaches import ROWS
from tests_support import make_batch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hf_spanner.auto import APPROACHES
from hf_spanner.benchmarks.host_syncs import count_host_syncs, small_model, some_batch, syncs_of_a_step

# The encoder asks once whether anything is padded, and (span_ner) the loss whether any entity is long; an LSTM, a list
# of spans, and matching need lengths, or costs, on the host.
MOST = {
    "biaffine_ner": 2,
    "bl_ner": 2,
    "cnn_ner": 1,
    "diffusion_ner": 4,
    "dspert": 2,
    "locate_and_label": 4,
    "seq_ner": 1,
    "sng": 0,
    "span_ner": 2,
}


@pytest.mark.parametrize("approach", sorted(APPROACHES))
def test_a_step_of_training_waits_no_more_often_than_it_must(approach):
    counts = {size: syncs_of_a_step(small_model(approach), some_batch(size)) for size in (2, 8)}
    assert all(count.total() <= MOST[approach] for count in counts.values()), counts


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_nor_do_its_variants(row, tokenizer):
    """Of sub-words the host must know how many there are, too."""
    model, batch = row.make(tokenizer), make_batch(tokenizer)
    batch["flat"] = torch.tensor([True, False, True, False, True])
    batch["annotated_labels"] = torch.ones(5, 3, dtype=torch.bool)
    if row.approach in ("locate_and_label", "diffusion_ner"):
        del batch["annotated_labels"]
    if row.approach == "diffusion_ner":
        del batch["flat"]
    syncs = syncs_of_a_step(model, batch)
    more = 1 if row.approach == "locate_and_label" else 0  # which sentences are flat decides about seeds
    assert syncs.total() <= MOST[row.approach] + more, syncs


def test_a_batch_without_a_mask_of_words_costs_one_more(tokenizer):
    batch = {key: x for key, x in some_batch(4).items() if key != "word_mask"}
    assert syncs_of_a_step(small_model("cnn_ner"), batch).total() == 2


@pytest.mark.parametrize(
    ("wait", "number"),
    [
        (lambda x: x.sum().item(), 1),
        (lambda x: bool(x.any()), 1),
        (lambda x: int(x.max()), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: x.to("cpu"), 1),
        (lambda x: x.cpu().tolist(), 1),  # it is there already
        (lambda x: x.nonzero(), 1),
        (lambda x: x[x > 1], 1),
        (lambda x: x.masked_select(x > 1), 1),
        (lambda x: x.unique(), 1),
        (lambda x: x.repeat_interleave(x), 1),
        (lambda x: x.bincount(), 1),
        (lambda x: torch.zeros(3, dtype=torch.long).copy_(x), 1),
        (lambda x: torch.where(x > 1, x, 0).sum(), 0),
        (lambda x: x.repeat_interleave(x, output_size=6), 0),
        (lambda x: torch.nn.functional.one_hot(x, 4), 0),
        (lambda x: pad_packed_sequence(pack_padded_sequence(x.unsqueeze(0).float(), [3], batch_first=True)), 0),
        (lambda x: x[torch.arange(3, device=x.device)], 0),
        (lambda x: x + torch.tensor([1, 2, 3]).to(x.device), 0),
        (lambda x: torch.tensor([1, 0, 1]).nonzero().to(x.device) + x, 0),  # the host's own affair
        (lambda x: (torch.arange(3, device=x.device) + x).tolist(), 1),
    ],
)
def test_what_waits_for_a_gpu_is_counted(wait, number):
    x = torch.tensor([1, 2, 3])
    with count_host_syncs() as syncs:
        wait(x)
    assert syncs.total() == number, syncs


def test_what_waits_in_the_backward_pass_is_counted():
    x = torch.rand(5, requires_grad=True)
    with count_host_syncs() as syncs:
        x[x > 0.5].sum().backward()
    assert syncs.total() == 2


def test_what_a_gpu_would_refuse_is_refused():
    x = torch.tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match="mixes the host's tensors with the device's"), count_host_syncs():
        x + torch.arange(3)
