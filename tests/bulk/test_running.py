"""Bulk prediction from file to file: the same as the pipeline, whole, in order, with everything else of the input."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests_support import same_entities

import hf_spanner
from hf_spanner import cli
from hf_spanner.bulk.parts import Parts
from hf_spanner.bulk.reading import Reading
from hf_spanner.bulk.running import predict_bulk
from hf_spanner.bulk.sources import open_source

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path, texts, monkeypatch):
    """A folder with the texts as JSON Lines, two of them broken."""
    rows = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
    rows[5], rows[50] = "{", '{"id": 50}'
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bulk(output, tiny, source="in.jsonl", part=16, **settings):
    names = ("workers", "resume", "overwrite")
    running = {name: settings.pop(name) for name in names if name in settings}
    return predict_bulk(open_source(str(source)), str(output), Reading(tiny, **settings), part=part, **running)


def rows_of(file):
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def test_all_texts_come_out_in_order_with_their_columns_and_entities(place, tiny, texts):
    done = bulk("out.jsonl", tiny)
    rows = rows_of("out.jsonl")
    assert [row["id"] for row in rows] == [i for i in range(120) if i not in (5, 50)]
    expected = hf_spanner.pipeline(tiny)([row["text"] for row in rows])
    assert all(same_entities(row["entities"], entities) for row, entities in zip(rows, expected, strict=True))
    assert sum(map(len, expected)) > 100
    assert [(bad["line"], bad["content"]) for bad in rows_of("out.jsonl.bad.jsonl")] == [(6, "{"), (51, '{"id": 50}')]
    assert (done.texts, done.aside, done.before) == (120, 2, 0)
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "out.jsonl.bad.jsonl"]


@pytest.mark.parametrize("output", ["two.jsonl", "two.parquet"])
def test_two_processes_find_the_same_as_one(place, tiny, output):
    one = f"one{Path(output).suffix}"
    bulk(one, tiny)
    assert bulk(output, tiny, workers=2)[:3] == (120, 2, 0)
    assert Path(one).read_bytes() == Path(output).read_bytes()
    assert Path(f"{one}.bad.jsonl").read_bytes() == Path(f"{output}.bad.jsonl").read_bytes()


def test_parquet_keeps_the_types_of_its_columns(place, tiny, texts):
    moment = datetime.datetime(2024, 2, 29, 12, 30)
    rows = [{"text": text, "raw": b"\xff\x00", "at": moment, "tags": ["a", None]} for text in texts]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, "in.parquet")
    bulk("out.parquet", tiny, "in.parquet")
    out = pq.read_table("out.parquet")
    assert out.drop_columns("entities").equals(table)
    assert [field.name for field in out.schema.field("entities").type.value_type] == [
        "entity_group", "score", "word", "start", "end"
    ]  # fmt: skip
    for row in out.to_pylist():
        assert all(row["text"][e["start"] : e["end"]] == e["word"] for e in row["entities"])
    bulk("out.jsonl", tiny, "in.parquet")
    assert rows_of("out.jsonl")[1] | {"entities": []} == {
        "text": texts[1], "raw": "/wA=", "at": "2024-02-29T12:30:00", "tags": ["a", None], "entities": []
    }  # fmt: skip


def test_a_column_with_several_types_becomes_text_and_no_value_is_lost(place, tiny, caplog):
    values = [1, 2.5, None, "three", [4], {"five": 5}, True, 2**70]
    Path("mixed.jsonl").write_text("".join(json.dumps({"text": "x", "v": v}) + "\n" for v in values))
    bulk("out.parquet", tiny, "mixed.jsonl", part=2)
    assert pq.read_table("out.parquet")["v"].to_pylist() == [
        "1.0", "2.5", None, "three", "[4]", '{"five": 5}', "true", str(2**70)
    ]  # fmt: skip
    assert "'v' holds values of several types" in caplog.text
    rows = ({"text": "x", "id": 2**53 + 1}, {"text": "x"}, {"text": "x", "id": 7})
    Path("ids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bulk("ids.parquet", tiny, "ids.jsonl", part=1)
    assert pq.read_table("ids.parquet")["id"].to_pylist() == [2**53 + 1, None, 7]


def test_half_a_surrogate_pair_goes_into_json_and_is_set_aside_from_parquet(place, tiny):
    Path("half.jsonl").write_text('{"text": "New \\ud800 York"}\n{"text": "London", "x": [{"\\udfff": 1}]}\n')
    assert bulk("half.jsonl.jsonl", tiny, "half.jsonl").aside == 0
    assert rows_of("half.jsonl.jsonl")[0]["text"] == "New \ud800 York"
    assert bulk("half.parquet", tiny, "half.jsonl").aside == 2
    assert (
        rows_of("half.parquet.bad.jsonl")[1]["reason"] == "holds \\udfff, half a surrogate pair, which parquet cannot"
    )


def test_words_are_read_as_they_are_cut(place, tiny):
    rows = [{"words": ["New York", "met"]}, {"words": "the  mayor"}, {"words": ["a", 1]}]
    Path("words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert bulk("out.jsonl", tiny, "words.jsonl", text_column="words", words=True).aside == 1
    first, second = rows_of("out.jsonl")
    assert first["words"] == ["New York", "met"] and second["words"] == "the mayor"
    assert all({"start_word", "end_word"} <= set(e) for row in (first, second) for e in row["entities"])


def test_an_empty_input_makes_an_empty_output(place, tiny):
    Path("empty.txt").write_text("")
    for output in ("empty.jsonl", "empty.parquet"):
        assert bulk(output, tiny, "empty.txt")[:2] == (0, 0)
    assert Path("empty.jsonl").read_bytes() == b"" and pq.read_table("empty.parquet").num_rows == 0


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.fixture
def half_done(place, tiny):
    """An output half of whose parts are there, as a kill leaves them."""
    bulk("out.jsonl", tiny)
    whole = Path("out.jsonl").read_bytes()
    Path("out.jsonl").unlink()

    class Killed(BaseException):
        pass

    write, written = Parts.write, []

    def failing(self, block, *rest):
        if len(written) == 4:
            raise Killed
        written.append(block.number)
        write(self, block, *rest)

    Parts.write = failing
    try:
        with pytest.raises(Killed):
            bulk("out.jsonl", tiny)
    finally:
        Parts.write = write
    return whole


def test_a_run_goes_on_where_it_was_killed_and_ends_in_the_same_bytes(half_done, tiny):
    Path("out.jsonl.parts/.part-00000004-0.jsonl.1.saving").write_text("half of it")
    done = bulk("out.jsonl", tiny, resume=True, batch_size=16, workers=1)
    assert (done.texts, done.aside, done.before) == (120, 2, 64)
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "out.jsonl.bad.jsonl"]
    assert [row["id"] for row in rows_of("out.jsonl")] == [json.loads(line)["id"] for line in half_done.splitlines()]
    assert bulk("out.jsonl", tiny, resume=True)[:2] == (None, 2), "nothing is left to do"


def test_nothing_that_was_done_is_thrown_away_unasked(half_done, tiny):
    with pytest.raises(FileExistsError, match="holds parts of an earlier run: go on with --resume, or begin anew"):
        bulk("out.jsonl", tiny)
    assert bulk("out.jsonl", tiny, overwrite=True).before == 0
    assert Path("out.jsonl").read_bytes() == half_done
    with pytest.raises(FileExistsError, match="out.jsonl is there already: name another file, or replace it"):
        bulk("out.jsonl", tiny)


def test_other_settings_another_model_or_input_do_not_go_on(half_done, tiny, tmp_path, texts):
    with pytest.raises(ValueError, match=r"was begun with options \{\}, now it is \{\"threshold\": 0.9\}"):
        bulk("out.jsonl", tiny, resume=True, options={"threshold": 0.9})
    config = Path(tiny) / "config.json"
    before = config.read_text()
    try:
        config.write_text(before + " ")
        with pytest.raises(ValueError, match="was begun with model"):
            bulk("out.jsonl", tiny, resume=True)
    finally:
        config.write_text(before)
    with pytest.raises(ValueError, match="was begun with texts of a part 16, now it is 8"):
        bulk("out.jsonl", tiny, resume=True, part=8)
    lines = Path("in.jsonl").read_text().splitlines()
    for other, message in (
        (lines[:20] + lines[21:], "in.jsonl is not what out.jsonl.parts was begun with: it differs between line 17 "),
        (lines[:40], "it differs between line 33 of in.jsonl and line 40"),
        (lines[:32], "it ends earlier"),
    ):
        Path("in.jsonl").write_text("\n".join(other) + "\n")
        with pytest.raises(ValueError, match=message):
            bulk("out.jsonl", tiny, resume=True)
    Path("in.jsonl").write_text("\n".join(lines) + "\n")
    bulk("out.jsonl", tiny, resume=True)
    assert Path("out.jsonl").read_bytes() == half_done


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--input", "in.jsonl"], "--input needs --output FILE.jsonl or FILE.parquet"),
        (["--input", "in.jsonl", "--output", "out.csv"], "ends in neither .jsonl nor .parquet"),
        (["--input", "in.jsonl", "--output", "in.jsonl"], "is the input itself"),
        (["--input", "in.jsonl", "--output", "no/such/out.jsonl"], "its folder does not exist"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "--workers", "0"], "--workers 0 must be at least 1"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "--text-column", "body"], "has no column 'body', only 'id'"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "--entities-column", "id"], "has a column 'id' already"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "--resume", "--overwrite"], "give one of them"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "--whole-files"], "--whole-files is for these"),
        (["--input", "in.jsonl", "--output", "out.jsonl", "a text"], "give texts, --file or --input, one of them"),
        (["--resume", "a text"], "--resume is for --input"),
    ],
)
def test_mistakes_are_explained_before_the_model_is_loaded(place, capsys, flags, message):
    try:
        code = cli.main(["predict", "--model", "no/such/model", *flags])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
    assert not Path("out.jsonl.parts").exists()


def test_a_run_that_comes_to_nothing_leaves_nothing(place, tiny):
    with pytest.raises(ValueError, match="unknown label 'DOG'"):
        bulk("out.jsonl", tiny, options={"threshold": {"DOG": 0.5}})
    with pytest.raises(ValueError, match="There is no device 'gpu9'"):
        bulk("out.jsonl", tiny, device="gpu9")
    assert os.listdir() == ["in.jsonl"]


def test_the_command_says_what_it_did_and_what_was_set_aside(place, tiny, capsys):
    argv = ["predict", "--model", tiny, "--input", "in.jsonl", "--output", "out.jsonl"]
    assert cli.main(argv) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("out.jsonl: 120 texts, ")
    assert err.endswith(" 2 lines could not be read: see out.jsonl.bad.jsonl.\n")
    assert cli.main([*argv, "--resume"]) == 3
    assert capsys.readouterr()[1].startswith("out.jsonl was complete already. 2 lines")


def test_a_second_run_is_kept_out_of_the_parts_of_the_first(place, tiny):
    code = "from hf_spanner.lock import locked\nwith locked('out.jsonl.parts'):\n print(1, flush=True)\n input()"
    first = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    first.stdout.readline()
    with pytest.raises(BlockingIOError, match=f"is being written by process {first.pid} on .*name another --output"):
        bulk("out.jsonl", tiny)
    first.communicate(b"\n")
    assert bulk("out.jsonl", tiny).texts == 120


def test_processes_of_torchrun_divide_the_parts_and_the_first_joins_them(place, tiny):
    bulk("one.jsonl", tiny)
    code = (
        "import sys; from hf_spanner.bulk.running import predict_bulk; from hf_spanner.bulk.reading import Reading\n"
        "from hf_spanner.bulk.sources import open_source\n"
        f"predict_bulk(open_source('in.jsonl'), 'two.jsonl', Reading({tiny!r}), part=16)"
    )
    Path("run.py").write_text(code)
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "run.py"]
    done = subprocess.run(launched, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path("two.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    assert Path("two.jsonl.bad.jsonl").read_bytes() == Path("one.jsonl.bad.jsonl").read_bytes()
