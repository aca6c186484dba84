"""CNN-NER: what the convolution over the grid sees, worked by hand. (The rest is the matrix's.)"""

import pytest
import torch
from tests_support import LABELS, encoder_config

from hf_spanner.modeling.modeling_cnn_ner import CnnNerConfig, GridConvolution
from hf_spanner.modeling.spans import span_mask


def layer_that_sees(start: int, size: int) -> GridConvolution:
    """A convolution that adds to each span the span `start` words further on and `size` words longer."""
    layer = GridConvolution(1, 3)
    layer.norm = torch.nn.Identity()
    with torch.no_grad():
        layer.conv.weight.zero_()
        layer.conv.bias.zero_()
        layer.conv.weight[0, 0, 1 + start, 1 + size] = 1.0
    return layer


def test_a_span_is_judged_beside_its_neighbours_and_keeps_its_own_features():
    grid = torch.zeros(1, 4, 3, 1)
    grid[0, 1, 1] = 2.0  # [1, 3)
    mask = span_mask(torch.tensor([4]), 4, 3).unsqueeze(-1).float()
    with torch.no_grad():
        out = layer_that_sees(1, -1)(grid, mask)  # one word later and one shorter: the same end
    seen = torch.nn.functional.gelu(torch.tensor(2.0))
    assert out[0, 1, 1].item() == 2.0  # the span itself, by the residual connection
    assert out[0, 0, 2].item() == pytest.approx(seen.item())  # [0, 3) sees [1, 3)
    assert out.count_nonzero() == 2


def test_cells_that_are_no_spans_give_and_get_nothing():
    mask = span_mask(torch.tensor([2]), 3, 3).unsqueeze(-1).float()
    torch.manual_seed(0)
    layer = GridConvolution(4, 3)
    torch.nn.init.constant_(layer.norm.bias, 0.5)  # a trained norm makes something of nothing
    grid = torch.randn(1, 3, 3, 4) * mask
    with torch.no_grad():
        out = layer(grid, mask)
        assert (out * (1 - mask) == 0).all()
        alone = layer(grid[:, :2, :2], mask[:, :2, :2])
    assert torch.allclose(out[:, :2, :2], alone, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel_size": 2}, "kernel_size=2 must be odd"),
        ({"grid_size": 0}, "grid_size=0 must be at least 1"),
        ({"grid_layers": 0}, "grid_layers=0 must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    encoder = encoder_config("bert", 20).to_dict()
    with pytest.raises(ValueError, match=message):
        CnnNerConfig(encoder_config=encoder, labels=LABELS, **settings)
