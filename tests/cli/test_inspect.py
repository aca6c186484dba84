"""`hf-spanner inspect`: what it prints, writes and refuses."""

import json
import re

import pytest
from tests_support import Checker, records

from hf_spanner import cli
from hf_spanner.data import write_jsonl
from hf_spanner.data.inspection import inspect
from hf_spanner.rendering.widths import text_width
from hf_spanner.report.inspection import inspection_page
from hf_spanner.report.inspection_text import around, clip, inspection_text

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path):
    """Two splits: a leak, an overlooked mention, a label that train lacks, two annotations of one sentence."""
    train, test = records(), [{**records()[0], "doc_id": "e"}]
    train += [
        {"id": f"m{i}", "doc_id": "d", "tokens": ["in", "New", "York", str(i)], "entities": []} for i in range(2)
    ]
    test.append({"id": "x", "doc_id": "e", "tokens": ["Oslo"], "entities": [{"start": 0, "end": 1, "label": "city"}]})
    test.append({"id": "y", "doc_id": "e", "tokens": ["New", "York"], "entities": []})
    write_jsonl(train, tmp_path / "data" / "train.jsonl")
    write_jsonl(test, tmp_path / "data" / "test.jsonl")
    return tmp_path / "data"


def run(*argv):
    return cli.main(["inspect", *map(str, argv)])


def test_it_prints_what_matters_and_the_figures(folder, capsys):
    assert run(folder) == 0
    out = capsys.readouterr().out
    assert "1. 1 of 2 annotated sentences of test (50.0%) stands in train too" in out
    assert "labels of test that train lacks: city 1" in out
    assert "max_span_length=10 ←" in out and "New York: place name 5, not annotated 3" in out
    assert re.search(r"sentences +7 +3 +10\n", out) and re.search(r"\n    place name +7 +3 +10\n", out)
    assert "annotated differently: 1" in out and "cut into words by 'compound'" in out
    assert max(map(text_width, out.splitlines())) <= 100


def test_the_data_may_be_named_by_a_flag_and_may_be_one_file(folder, capsys):
    assert run("--data", folder / "train.jsonl", "--format", "jsonl") == 0
    out = capsys.readouterr().out
    assert "Between the splits" not in out and out.startswith("train.jsonl\n")


def test_json_holds_everything(folder, tmp_path, capsys):
    assert run(folder, "--json", tmp_path / "new" / "i.json", "--max_span_length", "3") == 0
    record = json.loads((tmp_path / "new" / "i.json").read_text(encoding="utf-8"))
    assert record["out_of_reach"]["3"] == {"train": 6, "test": 3} and record["max_span_length"] == 3
    assert record["total"]["labels"]["city"] == 1 and record["labels_that_train_lacks"] == {"test": {"city": 1}}
    assert record["repeats"]["shared"][0]["annotated"] == 1 and record["overlap"] == "nested"
    assert record["consistency"]["missed"][0]["text"] == "New York"
    assert record["reading"]["train"]["entities"] == record["splits"]["train"]["entities"]
    assert "What matters" in capsys.readouterr().out


def test_json_on_standard_output_is_nothing_else(folder, capsys):
    assert run(folder, "--json", "-") == 0
    out = capsys.readouterr().out
    assert json.loads(out)["total"]["sentences"] == 10 and out.isascii()


def test_the_page_is_whole_and_asks_for_nothing(folder, tmp_path):
    assert run(folder, "--html", tmp_path / "i.html") == 0
    page = (tmp_path / "i.html").read_text(encoding="utf-8")
    found = Checker(page)
    assert all(address.startswith(("#", "data:")) for address in found.addresses)
    assert not re.search(r"https?://|@import|url\(", page)
    assert {"svg", "table", "article"} <= set(found.tags)
    for name in ("What it holds", "Between the splits", "Annotated here, not there", "The same sentence twice"):
        assert name in "".join(found.text)
    ids = set(re.findall(r'id="(\w+)"', page))
    assert {address[1:] for address in found.addresses if address.startswith("#")} <= ids


def evil_data():
    """Markup and escape sequences wherever a name or a word may stand."""
    names = [EVIL, "\x1b[31mred", 'a"b', "\u202eturned", "tab\there"]
    train = [
        {
            "id": name,
            "doc_id": name,
            "tokens": [name, "New", name],
            "entities": [{"start": 0, "end": 3, "label": name}],
        }
        for name in names
        for _ in range(3)
    ]
    bare = [{"id": name, "doc_id": name, "tokens": [name, "New", name], "entities": []} for name in names]
    other = [{**one, "entities": [{"start": 0, "end": 3, "label": "\x1b]0;other"}]} for one in train[:1]]
    return {"train": train + other, f"te{EVIL}st\x1b": bare + [*train[:1]]}


def test_nothing_in_the_data_is_obeyed():
    found = inspect(evil_data())
    text = inspection_text("evil \x1b".replace("\x1b", ""), found)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text) and "\\x1b[31mred" in text
    page = inspection_page(f"{EVIL}", found, EVIL)
    checked = Checker(page)
    assert checked.tags.count("script") == 1 and EVIL not in page  # the page's own
    assert EVIL in "".join(checked.text) and "\x1b" not in page and "\u202e" not in page


def test_evil_data_on_the_command_line(tmp_path, capsys):
    write_jsonl(evil_data()["train"], tmp_path / "train.jsonl")
    assert run(tmp_path, "--html", tmp_path / "i.html", "--json", "-") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run(tmp_path) == 0
    assert not re.search("[\x1b\u202e]", capsys.readouterr().out)


def test_lines_fit_whatever_the_names():
    data = evil_data()
    entities = [{"start": 0, "end": 1, "label": "L" * 90}]
    data["train"] += [{"id": "x" * 200, "doc_id": None, "tokens": ["表" * 90, "y"], "entities": entities}] * 3
    lines = inspection_text("names", inspect(data)).splitlines()
    assert [line for line in lines if text_width(line) > 100] == []


def test_a_long_context_keeps_its_span_in_sight():
    words = ["before"] * 8 + ["Anna", "Smith"] + ["after"] * 8
    one = {"id": "s", "doc_id": None, "tokens": words, "entities": [{"start": 8, "end": 10, "label": "PER"}]}
    example = inspect([one]).total.longest_entity
    shown = around(example, 40)
    assert "[Anna Smith]" in shown and text_width(shown) <= 40 and shown.startswith("…") and shown.endswith("…")


@pytest.mark.parametrize(
    ("text", "width", "cut"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("表表表", 5, "表表…"), ("a", 0, "")]
)
def test_text_is_cut_by_columns(text, width, cut):
    assert clip(text, width) == cut


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["FOLDER/gone/"], "gone"),
        (["FOLDER", "--max_span_length", "0"], "max_span_length=0 must be a number of words, at least 1"),
        (["FOLDER", "--examples", "-1"], "--examples -1 must be"),
        (["FOLDER", "--json", "FOLDER"], "directory"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(folder, capsys, argv, told):
    assert run(*(word.replace("FOLDER", str(folder)) for word in argv)) == 2
    error = capsys.readouterr().err
    assert told in error and error.startswith("hf-spanner inspect: ") and error.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["DATA", "more"], ["DATA", "--word_splitter", "coarse"]])
def test_arguments_that_are_wrong(argv, capsys):
    with pytest.raises(SystemExit) as exit:
        run(*argv)
    assert exit.value.code == 2 and "see `hf-spanner inspect --help`" in capsys.readouterr().err


def test_data_without_entities_or_sentences(tmp_path, capsys):
    write_jsonl([{"id": "a", "doc_id": None, "tokens": ["rain"], "entities": []}], tmp_path / "train.jsonl")
    assert run(tmp_path, "--html", tmp_path / "i.html") == 0
    assert "There is no entity in 1 sentence" in capsys.readouterr().out
    Checker((tmp_path / "i.html").read_text(encoding="utf-8"))
    (tmp_path / "empty.jsonl").write_text("")
    code = run(tmp_path / "empty.jsonl", "--html", tmp_path / "e.html")
    shown = capsys.readouterr()
    assert code == 0 and "There is no sentence in the data" in shown.out, shown
    Checker((tmp_path / "e.html").read_text(encoding="utf-8"))


def test_what_reading_lost_is_said(tmp_path, capsys, caplog):
    (tmp_path / "train.txt").write_text("CD28-mediated death in Bonn", encoding="utf-8")
    (tmp_path / "train.ann").write_text("T1\tprotein 0 4\tCD28\nT2\tLOC 23 27\tBonn\n", encoding="utf-8")
    assert run(tmp_path) == 0
    assert "boundary inside a word" in caplog.text
    out = capsys.readouterr().out
    assert "(as the text was read)" in out and "begin or end inside a word: 1 of 2\n" in out
    assert run(tmp_path, "--word_splitter", "fine") == 0
    assert "begin or end inside a word: 0 of 2\n" in capsys.readouterr().out
