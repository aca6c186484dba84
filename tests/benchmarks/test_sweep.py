"""The sweep: draws that can be drawn again, and a table that marks what validation chooses."""

import json

from tests_support import records

from hf_spanner.benchmarks.sweep import draw, identity, public_start, read_rows, spread, table
from hf_spanner.data import write_jsonl


def rows_of(folder, split):
    return [json.loads(line)["id"] for line in (folder / f"{split}.jsonl").read_text().splitlines()]


def test_a_draw_is_random_and_the_same_for_a_seed(tmp_path):
    data = tmp_path / "corpus"
    data.mkdir()
    numbered = [{**row, "id": str(i)} for i, row in enumerate(records() * 4)]
    write_jsonl(numbered, data / "train.jsonl")
    write_jsonl(numbered[:10], data / "validation.jsonl")
    first, again, other = (draw(str(data), 5, seed, tmp_path / str(i), None, None) for i, seed in enumerate((1, 1, 2)))
    assert first.name == "corpus-5-1" and len(rows_of(first, "train")) == 5
    assert rows_of(first, "train") == rows_of(again, "train") != rows_of(other, "train")
    assert rows_of(first, "validation") + rows_of(first, "test") == [str(i) for i in range(10)]  # cut in two
    whole = draw(str(data), None, 1, tmp_path / "whole", 2, 3)
    assert [len(rows_of(whole, split)) for split in ("train", "validation", "test")] == [20, 2, 3]


def test_the_table_marks_the_best_on_validation(tmp_path):
    common = {"corpus": "c", "size": 50, "start": "--model default"}
    rows = [
        {**common, "seed": 1, "settings": "", "validation": 50.0, "test": 70.0},
        {**common, "seed": 2, "settings": "", "validation": 52.0, "test": 72.0},
        {**common, "seed": 1, "settings": "--learning_rate 1e-4", "validation": 49.0, "test": 80.0},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_rows(file) == rows and read_rows(tmp_path / "none.jsonl") == []
    assert len({identity(row) for row in rows}) == 3
    lines = table(rows).splitlines()
    assert lines[2] == "| c | 50 | `--model default` | none: chosen | 2 | **51.0 ± 1.4** | 71.0 ± 1.4 |"
    assert lines[3].endswith("`--learning_rate 1e-4` | 1 | 49.0 | 80.0 |")
    assert spread([1.0]) == "1.0"


def test_folders_of_a_machine_are_not_shown():
    assert (
        public_start(["--approach", "span_ner", "--encoder", "/home/me/minilm"])
        == "--approach span_ner --encoder minilm"
    )
