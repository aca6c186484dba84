"""The convert command: what it writes, says and returns."""

import pytest

from hf_spanner import cli
from hf_spanner.data import read_file

CONLL = "The B-PER O\nmayor I-PER O\nof I-PER O\nBonn I-PER B-GPE\n\nRain O O\n"


def main(argv: list[str]) -> int:
    return cli.main(["convert", *argv])


@pytest.fixture
def conll(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(CONLL)
    return path


def test_a_file_becomes_jsonl_and_the_report_is_printed(conll, tmp_path, capsys):
    assert main([str(conll), str(tmp_path / "out" / "a.jsonl")]) == 0
    assert read_file(tmp_path / "out" / "a.jsonl")[0] == read_file(conll)[0]
    out = capsys.readouterr().out
    assert "a.conll: 2 sentences, 5 words, 2 entities kept" in out
    assert "nested 1, depth up to 2" in out and "overlap='nested'" in out


def test_there_and_back_through_brat(conll, tmp_path):
    assert main([str(conll), str(tmp_path / "brat"), "--from", "conll", "--to", "brat"]) == 0
    assert main([str(tmp_path / "brat"), str(tmp_path / "b.jsonl"), "--splitter", "whitespace"]) == 0
    before, after = read_file(conll)[0], read_file(tmp_path / "b.jsonl")[0]
    assert [(s["tokens"], s["entities"]) for s in before] == [(s["tokens"], s["entities"]) for s in after]


def test_a_folder_converts_every_split(tmp_path, capsys):
    for name in ("x-train.conll", "x-dev.conll"):
        (tmp_path / name).write_text(CONLL)
    assert main([str(tmp_path), str(tmp_path / "jsonl")]) == 0
    assert sorted(p.name for p in (tmp_path / "jsonl").iterdir()) == ["train.jsonl", "validation.jsonl"]
    assert main([str(tmp_path / "jsonl"), str(tmp_path / "brat"), "--to", "brat"]) == 0
    assert sorted(p.name for p in (tmp_path / "brat" / "train").iterdir()) == ["sentences.ann", "sentences.txt"]


def test_a_file_written_into_a_folder_keeps_its_name(conll, tmp_path):
    (tmp_path / "out").mkdir()
    assert main([str(conll), str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "a.jsonl").exists()


def test_reader_options_are_passed_on(conll, tmp_path, capsys):
    assert main([str(conll), str(tmp_path / "a.jsonl"), "--tag-columns", "2", "--token-column", "0"]) == 0
    assert read_file(tmp_path / "a.jsonl")[1].entities == 1
    assert main([str(conll), str(tmp_path / "b.jsonl"), "--splitter", "fine"]) == 2
    assert "hf-spanner convert: Format 'conll' has no option 'splitter'" in capsys.readouterr().err
    assert not (tmp_path / "b.jsonl").exists()


@pytest.mark.parametrize("name", ["gone.conll", "a.xml"])
def test_what_cannot_be_read_is_one_sentence_and_status_2(tmp_path, capsys, name):
    (tmp_path / "a.xml").write_text("<a/>")
    assert main([str(tmp_path / name), str(tmp_path / "out.jsonl")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("hf-spanner convert: ") and err.count("\n") == 1


def test_the_input_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a"], "ner": []}')
    assert main([str(path), str(path)]) == 2
    assert "is the input itself" in capsys.readouterr().err
    assert path.read_text() == '{"tokens": ["a"], "ner": []}'
