"""The race: two tiny entrants on one tiny corpus, from training to table and plot."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import records

from hf_spanner.benchmarks import race


def outcome(f1: dict[str, list[float]], reading: dict[str, float]) -> dict:
    scores = {"correct": 1, "predicted": 2, "support": 2}
    groups = {"length": {"1": scores, "6-10": scores, ">10": scores}, "depth": {"1": scores, "2": scores}}
    rows = [
        {"entrant": name, "seed": seed, "split": "test", "sentences": 9, "f1": value, "precision": 0.5, "recall": 0.25,
         "groups": groups, "cpu_seconds": 60.0 if name == "span_ner" else 120.0, "memory_mib": 512.0}
        for name, values in f1.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip
    best = {"best": "dspert", "second": "span_ner", "seeds": [0], "difference": 0.1, "interval": [0.05, 0.15],
            "p_bootstrap": 0.01}  # fmt: skip
    return {"corpus": "genia", "rows": rows, "reading": reading, "best": best}


def test_the_table_has_the_best_first_and_seeds_together():
    table = race.race_table([outcome({"span_ner": [0.5], "dspert": [0.6, 0.7]}, {"span_ner": 1.0, "dspert": 0.2})])
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    assert lines[0].startswith("| `race/dspert.yaml` | 65.0 ± 7.1 (2 seeds) | 50.0 | 25.0 | 50.0 | 0.0 | 50.0 | 50.0")
    assert lines[0].endswith("| 0.20 | 0.50 | 512 |") and lines[1].endswith("| 1.00 | 1.00 | 512 |")
    assert "`dspert` over `span_ner`: +10.0 points (95 %: +5.0 to +15.0; p = 0.010" in table


def test_the_plot_and_the_table_are_made_from_saved_results(tmp_path):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib: pip install hf_spanner[plots]")
    (tmp_path / "genia.json").write_text(json.dumps(outcome({"span_ner": [0.5], "dspert": [0.6]}, {"span_ner": 1.0})))
    assert "race/dspert.yaml" in race.write_race(tmp_path, tmp_path / "out")
    assert "span_ner" in (tmp_path / "out" / "race.svg").read_text()
    assert (tmp_path / "out" / "race.md").is_file() and (tmp_path / "out" / "race.png").is_file()
    with pytest.raises(ValueError, match="holds no result of a race"):
        race.write_race(tmp_path / "out", tmp_path)


@given(st.lists(st.floats(0, 1), max_size=10))
def test_names_beside_the_plot_stand_apart_and_in_order(heights):
    placed = race._apart(sorted(heights, reverse=True), 0.055)
    assert all(above - below >= 0.055 - 1e-9 for above, below in pairwise(placed))
    assert not placed or placed[-1] >= 0
    assert race._apart([0.9, 0.5, 0.1], 0.055) == [0.9, 0.5, 0.1]


def test_entrants_are_trained_scored_and_compared_and_what_is_done_is_not_repeated(
    encoder_folder, tmp_path, monkeypatch, capsys
):
    data = tmp_path / "tiny"
    data.mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in records())
    for split, times in {"train": 2, "validation": 1}.items():
        (data / f"{split}.jsonl").write_text(lines * times)
    folder = tmp_path / "race" / "tiny"
    rows = [race.run_entrant(name, str(data), folder, 42, str(encoder_folder)) for name in ("seq_ner", "span_ner")]
    assert [row["split"] for row in rows] == ["validation"] * 2 and rows[0]["support"] == sum(
        len(record["entities"]) for record in records()
    )
    assert all(row["cpu_seconds"] > 0 and row["memory_mib"] > 100 for row in rows)
    monkeypatch.setattr(race.subprocess, "Popen", None)  # a second training would fail
    assert race.run_entrant("seq_ner", str(data), folder, 42, None) == rows[0]
    verdict = race.compare_best(folder, str(data), rows)
    assert {verdict["best"], verdict["second"]} == {"seq_ner", "span_ner"} and verdict["seeds"] == [42]
    for copy in ("seq_ner-43", "span_ner-43", "dspert-42"):
        (folder / f"{copy}.jsonl").write_text((folder / "span_ner-42.jsonl").read_text())
    more = [{**row, "seed": 43} for row in rows] + [{**rows[0], "entrant": "dspert", "validation_f1": 1.0}]
    verdict = race.compare_best(folder, str(data), rows + more)
    assert {verdict["best"], verdict["second"]} == {"seq_ner", "span_ner"}, "one lucky seed of a third beats nobody"
    assert verdict["seeds"] == [42, 43]
    assert set(race.reading_speeds(folder, str(data), rows, sentences=2, repeats=1)) == {"seq_ner", "span_ner"}


def test_a_run_that_fails_says_where_to_look(tmp_path):
    with pytest.raises(RuntimeError, match="span_ner on nowhere stopped with exit code 2: see .*span_ner-1.log"):
        race.run_entrant("span_ner", "nowhere", tmp_path, 1, None)
