"""What reading costs: every approach can be measured, longer texts cost more, and the table and plot hold it all."""

import json

import pytest

from hf_spanner.auto import NAMES
from hf_spanner.benchmarks.cost_curves import (
    CURVES,
    Point,
    cost_curves,
    cost_table,
    has_cap,
    make_model,
    make_tokenizer,
    measure,
    points,
    relative_times,
    save_cost,
)


@pytest.mark.parametrize("approach", NAMES)
def test_every_approach_reads_texts_longer_than_its_window(approach):
    model = make_model(approach, cap=3, size=32, layers=1)
    seconds, mib = measure(model, make_tokenizer(), Point("length", 700, 1, 700, 8, 3))
    assert seconds > 0 and mib >= 0


def test_every_point_of_every_curve_is_there():
    assert {point.curve for point in points([10], [1], [2])} == set(CURVES)
    assert [has_cap(name) for name in ("span_ner", "biaffine_ner", "diffusion_ner")] == [True, False, False]


def test_one_run_makes_a_table_and_a_plot(tmp_path):
    said = []
    approaches = ["span_ner", "biaffine_ner"]
    rows = cost_curves(approaches, [5, 2000], [1, 64], [2, 20], repeats=1, size=32, layers=1, said=said.append)
    assert len(rows) == 2 * 4 + 2 and len(said) == 6, "a model without a cap takes no part in its curve"
    by = {(row["approach"], row["curve"], row["x"]): row for row in rows}
    for name in approaches:
        short, long = by[name, "length", 5], by[name, "length", 2000]
        assert long["seconds"] > short["seconds"] and long["mib"] > short["mib"] + 1
    first = {curve: next(row for row in rows if row["curve"] == curve) for curve in CURVES}
    for row, time in zip(rows, relative_times(rows), strict=True):
        unit = first[row["curve"]]
        assert time == pytest.approx(row["seconds"] / row["texts"] * unit["texts"] / unit["seconds"])
    table = cost_table(rows)
    assert table.count("\n") == 7 and "| – |" in table
    pytest.importorskip("matplotlib", reason="the extra [plots] is not installed")
    files = save_cost(rows, tmp_path, "a title")
    assert [file.name for file in files] == [f"cost_curves.{ending}" for ending in ("md", "json", "png", "svg")]
    assert table in files[0].read_text() and json.loads(files[1].read_text())["rows"] == rows
