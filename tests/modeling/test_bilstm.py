"""The LSTM that trains in linear time: torch's numbers, and its cost."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._python_dispatch import TorchDispatchMode

from hf_spanner.modeling.bilstm import BiLstm, run_lstm
from hf_spanner.modeling.spans import list_spans


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(any),
    sizes=st.integers(1, 3),
    seed=st.integers(0, 9),
)
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_are_those_of_torch(layers, lengths, sizes, seed):
    torch.manual_seed(seed)
    spans = list_spans(lengths, max(lengths), 1, sizes)
    lstm = nn.LSTM(3, 4, layers, bidirectional=True)
    vectors = torch.randn(len(spans.row), 3, requires_grad=True)
    weights = torch.randn(len(spans.row), 8)

    def gradients(states):
        return torch.autograd.grad((states * weights).sum(), [vectors, *lstm.parameters()])

    mine = run_lstm(lstm, vectors, spans.batch_sizes)
    theirs = lstm(PackedSequence(vectors, spans.batch_sizes))[0].data
    assert torch.allclose(mine, theirs, atol=1e-6)
    for a, b in zip(gradients(mine), gradients(theirs), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_without_gradients_it_is_torchs_own():
    lstm, spans = BiLstm(3, 8, 0.0), list_spans([4, 2], 4, 1, 2)
    vectors = torch.randn(len(spans.row), 3)
    with torch.no_grad():
        theirs = lstm(vectors, spans)
    assert torch.allclose(lstm(vectors, spans), theirs, atol=1e-6)


def test_between_layers_there_is_dropout_in_training_only():
    lstm, spans = nn.LSTM(3, 4, 2, dropout=0.9, bidirectional=True), list_spans([5], 5, 1, 1)
    vectors = torch.randn(5, 3)
    lstm.eval()
    assert torch.equal(run_lstm(lstm, vectors, spans.batch_sizes), run_lstm(lstm, vectors, spans.batch_sizes))
    lstm.train()
    assert not torch.equal(run_lstm(lstm, vectors, spans.batch_sizes), run_lstm(lstm, vectors, spans.batch_sizes))


class Written(TorchDispatchMode):
    """Counts the numbers that operators make."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.count += sum(x.numel() for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor))
        return result


def test_training_is_linear_in_the_length_of_the_text():
    """A text twice as long costs twice as much: counted in numbers written, which no busy machine changes."""
    lstm = BiLstm(8, 16, 0.0)

    def cost(length: int) -> int:
        spans = list_spans([length], length, 1, 4)
        vectors = torch.randn(len(spans.row), 8, requires_grad=True)
        with Written() as written:
            lstm(vectors, spans).sum().backward()
        return written.count

    short, long = cost(50), cost(200)
    assert long < 4.3 * short
