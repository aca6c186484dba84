"""The curves of a diffusion model: every point measured, said as Markdown and drawn."""

import pytest
import torch
from tests_support import LABELS, encoder_config, records

import hf_spanner
from hf_spanner.benchmarks.diffusion_curves import curves_table, sampling_curves, save_curves


def model_of(approach: str, **settings):
    torch.manual_seed(0)
    model_class = hf_spanner.APPROACHES[approach]
    encoder = encoder_config("bert", 200).to_dict()
    return model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, max_subwords=64, **settings))


@pytest.fixture(scope="module")
def rows(tokenizer):
    model = model_of("diffusion_ner", num_noisy_spans=6, num_steps=2, ffn_size=32, threshold=0.0)
    return sampling_curves(model, tokenizer, records(), steps=(1, 3), spans=(4, 8), seeds=(1, 2), repeats=1)


def test_every_point_has_its_scores_and_its_speed(rows):
    points = [(row["curve"], row["num_steps"], row["num_noisy_spans"], row["early_stop"]) for row in rows]
    assert points == [
        ("num_steps", 1, 6, False),
        ("num_steps", 3, 6, False),
        ("num_steps", 3, 6, True),
        ("num_noisy_spans", 2, 4, False),
        ("num_noisy_spans", 2, 8, False),
    ]
    assert all(len(row["f1"]) == 2 and row["speed"] > 0 for row in rows)


def test_the_table_says_mean_and_spread_over_seeds():
    row = {"num_steps": 5, "num_noisy_spans": 60, "early_stop": True, "f1": [0.70, 0.74], "speed": 1.0}
    line = curves_table([row]).splitlines()[-1]
    assert line == "| 5 | 60 | yes | 72.00 | 2.83 | 70.00 to 74.00 | 1.00 |"


def test_table_and_plot_are_written(rows, tmp_path):
    pytest.importorskip("matplotlib")
    files = save_curves(rows, tmp_path / "curves", "a title")
    assert [file.suffix for file in files] == [".md", ".png", ".svg"]
    assert files[0].read_text(encoding="utf-8").startswith("a title\n\n| γ | K |")
    assert all(file.stat().st_size > 2000 for file in files[1:])


def test_a_grid_has_every_number_of_steps_at_every_number_of_spans(tokenizer, tmp_path):
    pytest.importorskip("matplotlib")
    model = model_of("diffusion_ner", num_noisy_spans=6, num_steps=2, ffn_size=32, threshold=0.0)
    rows = sampling_curves(model, tokenizer, records(), (1, 3), (4, 8), seeds=(1,), repeats=1, grid=True)
    points = [(row["num_steps"], row["num_noisy_spans"]) for row in rows]
    assert points == [(1, 4), (3, 4), (1, 8), (3, 8)]
    assert all(len(row["f1"]) == 1 and row["speed"] > 0 and not row["early_stop"] for row in rows)
    table, *pictures = save_curves(rows, tmp_path)
    assert len(table.read_text(encoding="utf-8").splitlines()) == 2 + 4
    assert all(file.stat().st_size > 2000 for file in pictures)


def test_other_approaches_have_no_such_curves(tokenizer):
    with pytest.raises(ValueError, match="span_ner does not denoise spans"):
        sampling_curves(model_of("span_ner"), tokenizer, records())
