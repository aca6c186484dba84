"""Offsets, representations and losses as pictures: what is counted by hand, and that it is drawn."""

import json

import pytest
import torch
from approaches import ROWS
from tests_support import make_batch, records, without_gold

from hf_spanner import cli
from hf_spanner.analysis.curves import draw_lines, draw_losses
from hf_spanner.analysis.figures import save_figure
from hf_spanner.analysis.offsets import BARS, boundary_offsets, draw_offsets
from hf_spanner.data import write_jsonl

BY_NAME = {row.name: row for row in ROWS}


def saved(name, tokenizer, folder, **settings):
    torch.manual_seed(0)
    model = BY_NAME[name].make(tokenizer, **settings)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


# ------------------------------------------------------------------------------------------------------------- offsets


def test_offsets_are_counted_by_whole_words_either_way(tokenizer, monkeypatch):
    """Seeds of one word of "New York": moved by (0, 1), so that the first becomes the whole and the second stays one
    word; then by (-2.6, 0.4), which is three words and none."""
    model = BY_NAME["locate_and_label"].make(tokenizer, windows=[1], use_filter=False, threshold=0.0)
    sentence = [{"tokens": ["New", "York"], "entities": []}]

    class Moves(torch.nn.Module):
        offsets = torch.tensor([[0.0, 1.0], [0.0, 1.0]])

        def forward(self, reader, spans, longest):
            return self.offsets[: len(spans.row)]

    model.regressor = moves = Moves()
    model.classifier.register_forward_hook(lambda m, i, output: torch.tensor([[0.0, 9, 0, 0]]).expand(len(output), -1))
    counts = boundary_offsets(model, tokenizer, sentence)
    assert counts["proposals"] == {"0": 2, "1": 2, "2": 0, "3": 0, "≥4": 0} == counts["entities"]
    moves.offsets = torch.tensor([[-2.6, 0.4], [0.0, -7.0]])
    counts = boundary_offsets(model, tokenizer, sentence)
    assert counts["proposals"] == {"0": 2, "1": 0, "2": 0, "3": 1, "≥4": 1}


def test_of_the_proposals_those_that_become_entities_are_a_part(tokenizer):
    torch.manual_seed(0)
    model = BY_NAME["locate_and_label"].make(tokenizer, threshold=0.3)
    counts = boundary_offsets(model, tokenizer, records())
    with torch.no_grad():
        kept = sum(model(**without_gold(make_batch(tokenizer, max_subwords=64))).num_kept.tolist())
    assert sum(counts["proposals"].values()) == 2 * kept > 0
    assert all(counts["entities"][bar] <= counts["proposals"][bar] for bar in BARS)
    assert sum(counts["entities"].values()) < 2 * kept


def test_a_model_without_a_regressor_moves_nothing(tokenizer):
    for model in (
        BY_NAME["span_ner"].make(tokenizer),
        BY_NAME["locate_and_label"].make(tokenizer, use_regressor=False),
    ):
        with pytest.raises(ValueError, match="moves no boundaries: it has no regressor"):
            boundary_offsets(model, tokenizer, records())


# ------------------------------------------------------------------------------------------------------------ pictures


def test_the_command_draws_offsets_and_representations(tokenizer, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    write_jsonl(records(), tmp_path / "test.jsonl")
    for name, picture in (("locate_and_label", "offsets"), ("dspert-subword", "representations")):
        saved(name, tokenizer, tmp_path / name)
        argv = ["pictures", tmp_path / "test.jsonl", "--model", tmp_path / name, "--output", tmp_path / "out"]
        assert cli.main([*map(str, argv), "--pictures", picture, "--title", "a model on data"]) == 0
        assert {f"{picture}.png", f"{picture}.svg"} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert set(json.loads((tmp_path / "out" / "offsets.json").read_text(encoding="utf-8"))["entities"]) == set(BARS)
    picture = (tmp_path / "out" / "representations.svg").read_text(encoding="utf-8")
    assert "a model on data" in picture and "of the variance" in picture and "PER: 4" in picture
    assert "Each point is one of 14 gold entities" in picture
    argv = ["pictures", tmp_path / "test.jsonl", "--model", tmp_path / "dspert-subword", "--output", tmp_path]
    assert cli.main([*map(str, argv), "--pictures", "offsets"]) == 2
    assert "dspert model moves no boundaries" in capsys.readouterr().err


def test_a_line_is_the_mean_of_the_runs_at_each_point_and_a_band_their_range():
    pytest.importorskip("matplotlib")
    figure = draw_lines({"span": [(0.5, [0.4, 0.6]), (0.1, [0.7, 0.7])], "seq": [(0.1, 0.3)]}, "α", "F1", scale=100)
    (axes,) = figure.axes
    span, seq = axes.get_lines()
    assert span.get_xdata().tolist() == [0.1, 0.5] and span.get_ydata() == pytest.approx([70, 50])
    assert seq.get_ydata() == pytest.approx([30]) and [line.get_label() for line in (span, seq)] == ["span", "seq"]
    (band,) = axes.collections
    assert band.get_paths()[0].get_extents().y0 == pytest.approx(40)
    with pytest.raises(ValueError, match="no point to draw"):
        draw_lines({"span": []}, "α", "F1")


def test_offsets_are_drawn_with_their_counts():
    pytest.importorskip("matplotlib")
    counts = dict(zip(BARS, (2162, 2440, 888, 368, 202), strict=True))
    figure = draw_offsets({"entities": counts, "proposals": counts}, "as in the paper")
    assert [text.get_text() for text in figure.axes[0].texts] == ["2,162", "2,440", "888", "368", "202"]


RECORD = {"loss_by_epoch": [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 0.5}]}


def test_losses_of_trainings_are_drawn_by_epoch(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (line,) = draw_losses({"a": RECORD}).axes[0].get_lines()
    assert line.get_xdata().tolist() == [1, 2] and line.get_ydata().tolist() == [2.0, 0.5]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.json").write_text(json.dumps(RECORD))
    argv = ["curves", f"first={tmp_path / 'a'}", str(tmp_path / "b"), "--output", str(tmp_path / "new" / "loss.png")]
    assert cli.main(argv) == 0
    assert {file.name for file in (tmp_path / "new").iterdir()} == {"loss.png", "loss.svg"}
    svg = (tmp_path / "new" / "loss.svg").read_text(encoding="utf-8")
    assert "first" in svg and "mean training loss" in svg
    capsys.readouterr()
    (tmp_path / "b" / "training.json").write_text("{}")
    for runs, message in (
        ([tmp_path / "c"], "holds no training.json"),
        ([tmp_path / "a", tmp_path / "a"], "Two runs have the same name"),
        ([tmp_path / "b"], "has no loss_by_epoch"),
    ):
        assert cli.main(["curves", *map(str, runs), "--output", str(tmp_path / "x")]) == 2
        assert message in capsys.readouterr().err


def test_figures_are_saved_in_the_formats_that_are_asked_for(tmp_path):
    pytest.importorskip("matplotlib")
    files = save_figure(draw_losses({"a": RECORD}), tmp_path / "new" / "loss", ["pdf"])
    assert files == [tmp_path / "new" / "loss.pdf"] and files[0].stat().st_size > 1000
