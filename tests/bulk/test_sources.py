"""What bulk prediction reads: every line and row of every kind of file, the bad ones with a reason."""

import gzip
import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.bulk.parts import blocks
from hf_spanner.bulk.reading import Reading
from hf_spanner.bulk.sources import Unreadable, open_source, stream_source, texts_source

READING = Reading()


def read(source):
    """(rows, {line: reason}) of a source."""
    rows, bad = [], {}
    for record in source:
        try:
            row = record.row()
            READING.text_of(row)
            rows.append(row)
        except Unreadable as error:
            bad[record.number] = str(error)
    return rows, bad


def test_every_line_of_a_text_file_is_a_text(tmp_path):
    file = tmp_path / "in.txt"
    file.write_bytes("\ufeffone\r\n\n  two\u2028three \n".encode() + b"na\xefve\nlast")
    rows, bad = read(open_source(str(file)))
    assert [row["text"] for row in rows] == ["one", "", "  two\u2028three ", "last"]
    assert bad == {4: "not UTF-8: byte 2 is 0xef"}


def test_json_lines_keep_their_other_fields_and_bad_ones_are_told_apart(tmp_path):
    lines = [
        b'{"id": 1, "text": "one", "more": {"a": [1.5, null]}}', b"", b'{"text": "two"', b"[1]", b'{"id": 4}',
        b'{"text": null}', b'{"text": 7}', b'{"text": "x", "text": "y"}', b'{"text": "na\xefve"}', b"[" * 100_000,
        b'{"text": "", "n": 1' + b"0" * 5000 + b"}", b'{"text": "e", "entities": []}', b'{"text": "last"}',
    ]  # fmt: skip
    file = tmp_path / "in.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n".join(lines)))
    rows, bad = read(open_source(str(file)))
    assert rows == [{"id": 1, "text": "one", "more": {"a": [1.5, None]}}, {"text": "last"}]
    assert bad.pop(11).startswith("broken JSON, Exceeds the limit")
    assert bad == {
        3: "broken JSON at column 15 (Expecting ',' delimiter)",
        4: "a JSON list, expected an object with named fields",
        5: "no 'text'",
        6: "'text' is null, expected a string",
        7: "'text' is int, expected a string",
        8: "broken JSON, an object has the field 'text' twice",
        9: "not UTF-8: byte 12 is 0xef",
        10: "broken JSON, lists or objects nested too deeply",
        12: "has 'entities' already",
    }


def test_rows_of_csv_may_span_lines_and_bad_ones_cost_no_other(tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(b'id;text\n1;one\n2;"two\nlines; and ""more"""\n3\n4;na\xefve\n\n5;"x"y\n6;last\n')
    rows, bad = read(open_source(str(file)))
    assert rows == [
        {"id": "1", "text": "one"},
        {"id": "2", "text": 'two\nlines; and "more"'},
        {"id": "6", "text": "last"},
    ]
    assert bad == {
        5: "1 cells, expected 2 as in the first line",
        6: "not UTF-8",
        8: "no row of a CSV file (';' expected after '\"')",
    }


def test_headings_that_stand_twice_are_refused(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text,id,text\na,b,c\n")
    with pytest.raises(ValueError, match="the heading 'text' stands twice"):
        read(open_source(str(file)))


def test_parquet_comes_row_by_row_with_its_columns(tmp_path):
    rows = [{"id": i, "text": None if i == 1 else f"text {i}", "raw": b"\xff"} for i in range(2500)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    source = open_source(str(tmp_path / "in.parquet"))
    assert source.total == 2500 and source.schema.names == ["id", "text", "raw"]
    there, bad = read(source)
    assert there == [row for row in rows if row["id"] != 1] and bad == {2: "'text' is null, expected a string"}
    assert source.done == 2500


def test_a_folder_is_read_file_by_file_and_says_where_a_text_stood(tmp_path):
    (tmp_path / "b.txt").write_text("three\nfour")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / ".hidden.txt").write_text("no")
    (tmp_path / "notes.pdf").write_text("no")
    source = open_source(str(tmp_path))
    assert read(source)[0] == [
        {"file": "a/a.txt", "line": 1, "text": "one"},
        {"file": "a/a.txt", "line": 2, "text": "two"},
        {"file": "b.txt", "line": 1, "text": "three"},
        {"file": "b.txt", "line": 2, "text": "four"},
    ]
    assert source.done == source.total
    assert read(open_source(str(tmp_path), "file"))[0] == [
        {"file": "a/a.txt", "text": "one\ntwo\n"},
        {"file": "b.txt", "text": "three\nfour"},
    ]


def test_data_sets_come_from_a_folder_or_the_hub(tmp_path, monkeypatch):
    rows = [{"id": i, "text": f"text {i}"} for i in range(5)]
    data = datasets.Dataset.from_list(rows)
    datasets.DatasetDict({"test": data}).save_to_disk(tmp_path / "saved")
    source = open_source(str(tmp_path / "saved"), split="test")
    assert read(source) == (rows, {}) and source.schema.names == ["id", "text"]
    asked = []

    def load(name, split, streaming):
        asked.append((name, split, streaming))
        return data.to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read(open_source("me/corpus", split="test")) == (rows, {}) and asked == [("me/corpus", "test", True)]


@pytest.mark.parametrize(
    "name, message",
    [
        ("nowhere.txt", "There is no file or folder 'nowhere.txt' to read."),
        ("me/nothing", "could not be loaded as a data set"),
        ("empty", "holds no file that ends in .txt, .jsonl"),
        ("in.docx", "ends in none of .txt, .jsonl"),
        ("in.parquet", "is damaged or no parquet file"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_is(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "in.docx").write_text("text")
    (tmp_path / "in.parquet").write_text("text")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_source(name)


@given(st.binary(max_size=200))
def test_no_line_is_lost_whatever_stands_in_it(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("fuzz") / "in.jsonl"
    for ending in ("txt", "jsonl", "csv"):
        path = file.with_suffix(f".{ending}")
        path.write_bytes(content)
        try:
            records = list(open_source(str(path)))
        except ValueError as error:  # what begins like gzip and is none; a heading that stands twice
            assert "gzip" in str(error) or "heading" in str(error)
            continue
        for record in records:
            assert isinstance(record.raw, bytes)
            try:
                assert isinstance(record.row(), dict)
            except Unreadable as error:
                assert str(error)
        lines = content.split(b"\n")
        lines = lines[:-1] if not lines[-1] else lines
        if ending == "txt":
            assert len(records) == len(lines)


def test_where_a_block_ends_depends_on_its_input_alone():
    texts = [f"text {i}" * (i % 5) for i in range(50)]
    whole = [[record.row()["text"] for record in block.records] for block in blocks(texts_source(texts), texts=8)]
    assert [text for block in whole for text in block] == texts and [len(block) for block in whole] == [8] * 6 + [2]
    by_size = list(blocks(texts_source(texts), texts=8, size=100))
    assert all(len(block.records) <= 8 for block in by_size) and len(by_size) > 7
    again = list(blocks(texts_source(texts[:20] + ["other"] + texts[21:]), texts=8))
    first = list(blocks(texts_source(texts), texts=8))
    assert [a.digest == b.digest for a, b in zip(first, again)] == [True, True, False, True, True, True, True]


def test_a_stream_is_read_no_further_than_asked():
    given = iter([b"one\n", b"two\n", b"three\n"])
    records = iter(stream_source(given, "standard input"))
    assert next(records).row() == {"text": "one"} and next(given) == b"two\n"
    assert json.dumps(next(records).row()) == '{"text": "three"}'
