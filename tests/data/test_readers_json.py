"""Readers of JSON by words: this package's JSON Lines, its cousins, and SpERT."""

import json

import pytest

from hf_spanner.data import guess_format, read_file


def write(path, *records):
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
    return path


TOKENS = ["The", "mayor", "of", "Bonn"]
GOLD = [{"start": 0, "end": 4, "label": "PER"}, {"start": 3, "end": 4, "label": "GPE"}]


@pytest.mark.parametrize(
    "record",
    [
        {"tokens": TOKENS, "entities": GOLD},
        {"words": TOKENS, "ner": [[0, 4, "PER"], [3, 4, "GPE"]]},
        {"tokens": TOKENS, "spans": [{"start": 0, "end": 4, "type": "PER"}, [3, 4, "GPE"]]},
    ],
)
def test_common_spellings_of_a_sentence_are_read(tmp_path, record):
    path = write(tmp_path / "a.jsonl", record, "", record)
    sentences, report = read_file(path)
    assert sentences == [{"id": f"a.{n}", "doc_id": None, "tokens": TOKENS, "entities": GOLD} for n in range(2)]
    assert (report.sentences, report.words, report.entities, report.faithful) == (2, 8, 4, True)


def test_ids_are_kept_as_strings(tmp_path):
    path = write(tmp_path / "a.jsonl", {"id": 7, "doc_id": 3, "tokens": TOKENS, "entities": []})
    assert [(s["id"], s["doc_id"]) for s in read_file(path)[0]] == [("7", "3")]


def test_inclusive_ends_are_read_on_request_and_suggested_by_the_error(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": TOKENS, "ner": [[0, 3, "PER"], [3, 3, "GPE"]]})
    assert read_file(path, end_inclusive=True)[0][0]["entities"] == GOLD
    with pytest.raises(ValueError, match=r"a\.jsonl:1: span \[3, 3\).*end_inclusive=True"):
        read_file(path)


def test_tags_stand_for_entities(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": TOKENS, "ner_tags": ["O", "I-PER", "O", "B-GPE"]})
    sentences, report = read_file(path)
    assert [(e["start"], e["end"], e["label"]) for e in sentences[0]["entities"]] == [(1, 2, "PER"), (3, 4, "GPE")]
    assert report.changed == {"tag that broke its scheme": 1}
    for tags, message in [
        ([0, 1, 0, 2], "numbers cannot be read"),
        (["O"], "1 tags do not fit"),
        (["X"] * 4, "'X' is"),
    ]:
        with pytest.raises(ValueError, match=rf"a\.jsonl:1: .*{message}"):
            read_file(write(path, {"tokens": TOKENS, "ner_tags": tags}))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["a"], "entities": [}', r"broken JSON at column 32"),
        ('["a"]', r"holds a JSON list, expected an object"),
        ('{"tokens": ["a"], "entities": [[0, 2, "X"]]}', r"span \[0, 2\).*out of range for 1 words"),
        ('{"tokens": ["a"], "entities": [[1, 0, "X"]]}', r"span \[1, 0\).*reversed"),
        ('{"tokens": ["a"], "entities": [[0, "X"]]}', r"entity \[0, 'X'\] has to be an object"),
        ('{"tokens": ["a"], "entities": null}', r"'entities' is None"),
        ('{"tokens": ["a"]}', r"found the fields 'tokens', expected one of 'entities', 'ner', 'spans' \(write \[\]"),
        ('{"sentence": "a"}', r"found the fields 'sentence', expected one of 'tokens', 'words'"),
        ('{"tokens": ["a", 1], "entities": []}', r"token 1 is 1"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = write(tmp_path / "a.jsonl", {"tokens": ["fine"], "entities": []}, line)
    with pytest.raises(ValueError, match=rf"a\.jsonl:2: .*{message}"):
        read_file(path)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "a.jsonl"
    line = json.dumps({"tokens": TOKENS, "entities": GOLD})
    path.write_bytes(b"\xef\xbb\xbf" + f"{line}\r\n{line}\r\n".encode())
    assert [s["entities"] for s in read_file(path)[0]] == [GOLD, GOLD]


def test_a_unicode_line_separator_inside_a_word_is_no_line_end(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a\u2028b\x85c"], "entities": []}\n', encoding="utf-8")
    assert read_file(path)[0][0]["tokens"] == ["a\u2028b\x85c"]


def test_a_file_in_another_encoding_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"tokens": ["Köln"], "entities": []}'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.jsonl:1 is not UTF-8 \(byte 14 of the line\)"):
        read_file(path)


def test_an_empty_file_gives_nothing_and_says_so(tmp_path):
    for name in ("a.jsonl", "a.json", "a.conll"):
        sentences, report = read_file(write(tmp_path / name))
        assert sentences == [] and not report.faithful
        assert "nothing was read" in str(report)


def test_a_label_outside_the_given_labels_is_named_with_its_sentence(tmp_path):
    path = write(tmp_path / "a.jsonl", {"id": "s9", "tokens": TOKENS, "entities": GOLD})
    assert read_file(path, labels=["GPE", "PER"])[1].entities == 2
    with pytest.raises(ValueError, match=r"a\.jsonl, sentence 's9': label 'GPE'.*\['PER'\]"):
        read_file(path, labels=["PER"])


def test_unknown_formats_options_and_paths_are_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": TOKENS, "entities": GOLD})
    with pytest.raises(ValueError, match="Format 'xml' is unknown; choose one of jsonl, jsonl-chars, conll"):
        read_file(path, "xml")
    with pytest.raises(ValueError, match="Format 'jsonl' has no option 'splitter'; it knows end_inclusive"):
        read_file(path, splitter="fine")
    with pytest.raises(FileNotFoundError, match="nowhere.jsonl does not exist"):
        read_file(tmp_path / "nowhere.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty: it is a folder, and format 'jsonl' is read from files"):
        read_file(tmp_path / "empty", "jsonl")


def test_spert(tmp_path):
    record = {
        "tokens": TOKENS,
        "entities": [{"type": "PER", "start": 0, "end": 4}, {"type": "GPE", "start": 3, "end": 4}],
        "relations": [{"type": "of", "head": 0, "tail": 1}],
        "orig_id": 12,
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps([record, {"tokens": ["a"], "entities": []}]))
    sentences, report = read_file(path)
    assert [(s["id"], s["entities"]) for s in sentences] == [("12", GOLD), ("a.1", [])]
    assert report.ignored == {"relation": 1} and report.faithful


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"tokens": ["a"],\n "entities": [}]', r"a\.json:2: broken JSON"),
        ('{"tokens": ["a"]}', r"a\.json:1: found the fields 'tokens', expected one of 'entities'"),
        ('[{"tokens": [], "entities": []}', r"a\.json:1: the list does not end"),
        ('[{"tokens": [], "entities": []}] []', r"a\.json:1: there is something after the end of the list"),
        ('[{"tokens": [], "entities": []} {}]', r"a\.json:1: found '{' where ']' was expected"),
        ('[{"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 5}]}]', r"a\.json:1\[0\]: span \[0, 5\)"),
        ('[{"tokens": ["a"]}]', r"a\.json:1\[0\]: found the fields 'tokens', expected one of 'entities'"),
        ("[3]", r"a\.json:1\[0\]: holds a JSON int"),
    ],
)
def test_broken_spert_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_file(write(tmp_path / "a.json", text), "spert")


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.jsonl", '{"tokens": ["a"], "entities": []}', "jsonl"),
        ("a.json", '{"words": ["a"], "ner": []}\n{}', "jsonl"),
        ("a.jsonl", '{"text": "a", "spans": [], "tokens": [{"text": "a"}]}', "jsonl-chars"),
        ("a.jsonl", '{"text": "a", "label": [[0, 1, "X"]]}', "jsonl-chars"),
        ("a.jsonl", '{"text": "a", "entities": [{"start_offset": 0, "end_offset": 1, "label": "X"}]}', "doccano"),
        ("a.jsonl", '{"data": "a", "label": []}', "doccano"),
        ("a.json", '[{"tokens": ["a"], "entities": []}]', "spert"),
        ("a.json", '[{"data": {"text": "a"}, "annotations": []}]', "label-studio"),
        ("a.json", '[{"text": "a", "label": []}]', "jsonl-chars"),
        ("a.json", '[{"text": "a", "entities": [{"start": 0, "end": 1, "label": "X"}]}]', "jsonl-chars"),
        ("a.json", '[{"text": "a"}, {"text": "a", "ner": [{"start": 0, "end": 1, "labels": ["X"]}]}]', "label-studio"),
        ("a.json", '[{"text": "a", "annotator": 1}]', "label-studio"),
        ("a.jsonl", "a O", "conll"),
        ("a.conll", '{"tokens": ["a"], "entities": []}', "jsonl"),
        ("a.conll", "[ O\na B-X", "conll"),
        ("a.train", "a O", "conll"),
        ("a.csv", "text,entities", "csv"),
        ("a.tsv", "sentence_id\tword\ttag", "csv"),
        ("a.conll", "a O", "conll"),
        ("a.tsv", "a\tO", "conll"),
        ("a.txt", "a O", "conll"),
        ("a.ann", "", "brat"),
    ],
)
def test_formats_are_guessed(tmp_path, name, text, format):
    assert guess_format(write(tmp_path / name, text)) == format


def test_what_cannot_be_guessed_is_said(tmp_path):
    for path in (write(tmp_path / "a.xml", "<a/>"), tmp_path):
        with pytest.raises(ValueError, match="Cannot guess the format of .*; pass format= with one of jsonl"):
            guess_format(path)
