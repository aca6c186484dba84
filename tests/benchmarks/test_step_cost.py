"""What a step costs is counted, not guessed."""

import torch

from hf_spanner.benchmarks.host_syncs import SMALL, some_batch
from hf_spanner.benchmarks.step_cost import Cost, draw, model_on, per_text, times_by_length


class Square(torch.nn.Module):
    """x ↦ W x, W 8 × 8, whose every figure is known."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return type("Output", (), {"loss": self.layer(x).sum()})


def test_a_cost_is_what_one_works_out_by_hand():
    cost = Cost.of(Square(), {"x": torch.ones(5, 8)})
    assert cost.parameters == 64
    assert cost.operations == 2 * 5 * 8 * 8 * 2  # forward, and the gradient of W; x wants none
    assert cost.kept == 5 * 8 * 4  # x, for the gradient of W; W itself is no activation


def test_a_text_costs_the_same_in_any_batch():
    fixed, more = per_text("span_ner", SMALL, words=20)
    model = model_on("span_ner", SMALL)
    batch = some_batch(1, 20)
    four = Cost.of(model, {name: torch.cat([value] * 4) for name, value in batch.items()})
    assert abs(four.operations - (fixed.operations + 4 * more.operations)) < 0.02 * four.operations
    assert abs(four.kept - (fixed.kept + 4 * more.kept)) < 0.1 * four.kept


def test_times_are_by_approach_and_length_and_can_be_drawn(tmp_path):
    times = times_by_length(["seq_ner", "sng"], [5, 10], texts=1, repeats=1)
    assert {name: list(row) for name, row in times.items()} == {"seq_ner": [5, 10], "sng": [5, 10]}
    draw(times).savefig(tmp_path / "plot.svg")
    assert "words in a text" in (tmp_path / "plot.svg").read_text() or (tmp_path / "plot.svg").stat().st_size > 1000
