"""Readers that count characters: JSON Lines with text, doccano, Label Studio; and the step to words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data import ReadReport, chars_to_words, read_file


def spans(sentence):
    return [(e["start"], e["end"], e["label"]) for e in sentence["entities"]]


def mentions(sentence):
    return [(" ".join(sentence["tokens"][s:e]), label) for s, e, label in spans(sentence)]


def at(text, mention, label="X"):
    start = text.index(mention)
    return [start, start + len(mention), label]


def jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def convert(text, char_spans, splitter="whitespace", on_misaligned="expand"):
    report = ReadReport()
    tokens, entities = chars_to_words(text, char_spans, splitter, report, on_misaligned)
    return [(" ".join(tokens[e["start"] : e["end"]]), e["label"]) for e in entities], report


def test_characters_become_words():
    text = "The mayor of Bonn."
    found, report = convert(text, [at(text, "The mayor of Bonn"), at(text, "Bonn", "GPE")], "compound")
    assert found == [("The mayor of Bonn", "X"), ("Bonn", "GPE")]
    assert not report.lost and not report.changed


def test_white_space_inside_a_mention_is_trimmed_silently():
    found, report = convert("in  New York  now", [(2, 14, "GPE")])
    assert found == [("New York", "GPE")]
    assert not report.lost and not report.changed


def test_a_boundary_inside_a_word_expands_drops_or_raises():
    text = "anti-Russian mood"
    span = [tuple(at(text, "Russian"))]
    found, report = convert(text, span)
    assert found == [("anti-Russian", "X")]
    assert report.changed == {"boundary inside a word, expanded to the whole word": 1}
    found, report = convert(text, span, on_misaligned="drop")
    assert found == [] and report.lost == {"boundary inside a word": 1}
    with pytest.raises(ValueError, match=r"X 'Russian' begins or ends inside a word \('anti-Russian'\).*finer"):
        convert(text, span, on_misaligned="error")
    assert convert(text, span, "fine")[0] == [("Russian", "X")]
    with pytest.raises(
        ValueError, match="on_misaligned='shrink' is unknown; choose one of 'expand', 'split', 'drop', 'error'"
    ):
        convert(text, span, on_misaligned="shrink")


def test_a_splitter_may_be_a_function_that_leaves_characters_out():
    def only_letters(text):
        return [(i, i + 1) for i, c in enumerate(text) if c.isalpha()]

    found, report = convert("a-b !", [(0, 3, "X"), (4, 5, "Y"), (1, 3, "Z")], only_letters)
    assert found == [("a b", "X"), ("b", "Z")]
    assert report.lost == {"mention without a word": 1} and not report.changed


@pytest.mark.parametrize("span", [(0, 6, "X"), (-1, 2, "X"), (3, 2, "X"), (2, 2, "X"), ("0", 1, "X"), (0, None, "X")])
def test_an_impossible_character_span_is_refused(span):
    with pytest.raises(
        ValueError, match=r"character span \[.*\) of label 'X' does not fit into a text of 5 characters"
    ):
        convert("a b c", [span])


def test_a_mention_of_white_space_only_is_counted():
    found, report = convert("a   b", [(1, 3, "X")])
    assert found == [] and report.lost == {"mention without a word": 1}


def test_a_mention_of_white_space_only_joins_no_lines(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a \n\n b", "label": [[1, 5, "X"]]})
    sentences, report = read_file(path, split_sentences="newline")
    assert [s["tokens"] for s in sentences] == [["a"], ["b"]]
    assert report.lost == {"mention without a word": 1} and not report.changed


@pytest.mark.parametrize("before", ["👩‍👩‍👧 ", "e\u0301 ", "नमस्ते ", "𝒳 ", "\u200b ", "\u00a0"])
@pytest.mark.parametrize("splitter", ["whitespace", "compound", "fine"])
def test_emoji_and_combining_marks_before_a_mention_do_not_shift_it(before, splitter):
    text = before + "Bonn grows"
    assert convert(text, [at(text, "Bonn")], splitter)[0] == [("Bonn", "X")]


@given(st.text(alphabet="ab-. \n\té👍", max_size=30), st.data())
def test_every_mention_with_a_visible_character_is_kept_whole(text, data):
    count = len(text)
    pairs = [(s, e) for s in range(count) for e in range(s + 1, count + 1)]
    span = data.draw(st.sampled_from(pairs)) if pairs else None
    if span is None:
        return
    for splitter in ("whitespace", "compound", "fine"):
        found, report = convert(text, [(*span, "X")], splitter)
        visible = "".join(text[slice(*span)].split())
        if visible:
            assert visible in "".join("".join(found[0][0].split()))
            if not report.changed:
                assert "".join(found[0][0].split()) == visible
        else:
            assert found == [] and report.lost.total() == 1


def test_jsonl_with_text(tmp_path):
    text = "🎉 The mayor of Bonn"
    path = jsonl(
        tmp_path / "a.jsonl",
        {
            "id": 1,
            "text": text,
            "entities": [dict(zip(("start", "end", "label"), at(text, "Bonn", "GPE"), strict=True))],
        },
        {"text": text, "spans": [at(text, "The mayor of Bonn", "PER"), at(text, "The mayor of Bonn", "PER")]},
        {"text": text, "label": [], "doc_id": "d"},
    )
    sentences, report = read_file(path)
    assert [mentions(s) for s in sentences] == [[("Bonn", "GPE")], [("The mayor of Bonn", "PER")], []]
    assert [(s["id"], s["doc_id"]) for s in sentences] == [("1", None), ("a.1", None), ("a.2", "d")]
    assert report.lost == {"duplicate": 1}


def test_two_mentions_that_expand_to_the_same_words_are_one_and_counted(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "anti-Russian", "label": [[0, 4, "X"], [5, 12, "X"]]})
    sentences, report = read_file(path, splitter="whitespace")
    assert spans(sentences[0]) == [(0, 1, "X")]
    assert report.lost == {"duplicate": 1} and report.changed.total() == 2


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "a b", "label": [[0, 9, "X"]]}, r"character span \[0, 9\) of label 'X' does not fit"),
        ({"text": "a b", "label": [[2, 1, "X"]]}, r"character span \[2, 1\)"),
        ({"text": "a b", "label": [[0, 1]]}, r"entity \[0, 1\] has to be \[start, end, label\]"),
        ({"text": "a b", "label": [{"start": 0}]}, r"entity \{'start': 0\} has to be"),
        ({"text": "a b", "label": "X"}, r"the entities are 'X', expected a list"),
        ({"text": "a b"}, r"found the fields 'text', expected one of 'entities', 'spans'"),
        ({"text": 3, "label": []}, r"the text is 3, expected a string"),
        ({"body": "a"}, r"found the fields 'body', expected one of 'text'"),
        ({"text": "a b", "label": [[0, 1, 5]]}, r"label 5 of span \[0, 1\) has to be a non-empty string"),
    ],
)
def test_a_bad_text_record_is_named(tmp_path, record, message):
    with pytest.raises(ValueError, match=rf"a\.jsonl:2: {message}"):
        read_file(jsonl(tmp_path / "a.jsonl", {"text": "", "label": []}, record), "jsonl-chars")


def test_text_can_be_cut_at_line_breaks_and_found_under_another_name(tmp_path):
    text = "Ann left.\nShe saw\nBonn."
    path = jsonl(tmp_path / "a.jsonl", {"body": text, "label": [at(text, "Ann"), at(text, "saw\nBonn", "Y")]})
    sentences, report = read_file(path, "jsonl-chars", text_key="body", split_sentences="newline")
    assert [s["tokens"] for s in sentences] == [["Ann", "left", "."], ["She", "saw", "Bonn", "."]]
    assert [spans(s) for s in sentences] == [[(0, 1, "X")], [(1, 3, "Y")]]
    assert [(s["id"], s["doc_id"]) for s in sentences] == [("a.0.0", "a.0"), ("a.0.1", "a.0")]
    assert report.changed == {"mention across a sentence border, sentences joined": 1}
    with pytest.raises(
        ValueError, match="split_sentences='dot' is unknown; choose one of 'newline', 'punctuation', 'none'"
    ):
        read_file(path, "jsonl-chars", text_key="body", split_sentences="dot")


def test_doccano_old_and_new(tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"id": 1, "data": "Ann saw Bonn", "label": [[8, 12, "GPE"]], "Comments": []},
        {
            "id": 2,
            "text": "Ann saw Bonn",
            "entities": [{"id": 9, "label": "PER", "start_offset": 0, "end_offset": 3}],
            "relations": [{"id": 1, "from_id": 9, "to_id": 9, "type": "is"}],
        },
    )
    sentences, report = read_file(path)
    assert [(s["id"], mentions(s)) for s in sentences] == [("1", [("Bonn", "GPE")]), ("2", [("Ann", "PER")])]
    assert report.ignored == {"relation": 1} and report.faithful


def region(start, end, *labels, text=None, type="labels"):
    value = {"start": start, "end": end, "labels": list(labels)} | ({"text": text} if text is not None else {})
    return {"id": "r", "from_name": "label", "to_name": "text", "type": type, "value": value}


def task(text, *annotations, **data):
    annotations = [a if isinstance(a, dict) else {"was_cancelled": False, "result": a} for a in annotations]
    return {"id": 5, "data": {"text": text, **data}, "annotations": annotations, "predictions": []}


def studio(path, *tasks, **options):
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return read_file(path, "label-studio", **options)


def test_label_studio_takes_the_first_valid_annotation_and_counts_the_rest(tmp_path):
    sentences, report = studio(
        tmp_path / "a.json",
        task(
            "Ann saw Bonn",
            {"was_cancelled": True, "result": [region(0, 3, "WRONG")]},
            [region(0, 3, "PER", text="Ann"), region(8, 12, "GPE", "ORG"), {"type": "choices", "value": {}}],
            [region(0, 3, "OTHER")],
        ),
        task("never looked at"),
        task("nothing here", []),
    )
    assert [mentions(s) for s in sentences] == [[("Ann", "PER"), ("Bonn", "GPE"), ("Bonn", "ORG")], []]
    assert report.lost == {"mention of a further annotation of the same task": 1, "task without an annotation": 1}
    assert report.ignored == {"cancelled annotation": 1, "result of type 'choices'": 1}


def test_label_studio_counts_what_it_cannot_read(tmp_path):
    results = [region(0, 3, "X", type="hypertextlabels"), region(0, 3), region(8, 12, "GPE")]
    sentences, report = studio(tmp_path / "a.json", task("Ann saw Bonn", results))
    assert mentions(sentences[0]) == [("Bonn", "GPE")]
    assert report.lost == {"result of type 'hypertextlabels'": 1, "region without a label": 1}


def test_label_studio_offsets_of_a_browser_are_converted_when_the_text_shows_it(tmp_path):
    text = "🎉🎉 Ann saw\nBonn"
    results = [region(5, 8, "PER", text="Ann"), region(9, 17, "X", text="saw\\nBonn")]
    sentences, _ = studio(tmp_path / "a.json", task(text, results))
    assert mentions(sentences[0]) == [("Ann", "PER"), ("saw Bonn", "X")]
    code_points, _ = studio(tmp_path / "a.json", task(text, [region(3, 6, "PER", text="Ann")]))
    assert mentions(code_points[0]) == [("Ann", "PER")]


def test_label_studio_text_that_disagrees_is_an_error(tmp_path):
    wrong = task("Ann saw Bonn", [region(4, 7, "PER", text="Ann")])
    with pytest.raises(ValueError, match=r"a\.json:1\[0\]: characters \[4, 7\) .* 'saw', but the region says 'Ann'"):
        studio(tmp_path / "a.json", wrong)
    assert mentions(studio(tmp_path / "a.json", wrong, check_text=False)[0][0]) == [("saw", "PER")]


def test_label_studio_finds_the_text_or_asks_for_it(tmp_path):
    one = {"id": 1, "data": {"body": "Ann"}, "annotations": [{"result": [region(0, 3, "PER")]}]}
    assert mentions(studio(tmp_path / "a.json", one)[0][0]) == [("Ann", "PER")]
    two = {"id": 1, "data": {"body": "Ann", "title": "T"}, "annotations": [{"result": [region(0, 3, "PER")]}]}
    with pytest.raises(ValueError, match=r"cannot tell which field .*'body', 'title'\); pass text_key="):
        studio(tmp_path / "a.json", two)
    assert mentions(studio(tmp_path / "a.json", two, text_key="body")[0][0]) == [("Ann", "PER")]


def test_label_studio_minimal_form(tmp_path):
    tasks = [
        {"id": 1, "text": "Ann saw Bonn", "label": [region(8, 12, "GPE", "ORG")["value"]], "annotator": 1},
        {"id": 2, "text": "nothing here", "annotator": 1, "created_at": "2024-01-01"},
    ]
    sentences, report = studio(tmp_path / "a.json", *tasks)
    assert [mentions(s) for s in sentences] == [[("Bonn", "GPE"), ("Bonn", "ORG")], []]
    assert report.faithful


def test_label_studio_span_out_of_range_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.json:1\[0\]: character span \[0, 99\)"):
        studio(tmp_path / "a.json", task("Ann", [region(0, 99, "PER")]))


def test_what_a_text_says_of_itself_is_kept_in_every_line(tmp_path):
    """Kinds of mention, and `labels`, `flat` and `corpus`: once they were read with words alone."""
    record = {
        "text": "Anna left .\nthe mayor stayed .",
        "entities": [
            {"start": 0, "end": 4, "label": "PER", "mention": "name"},
            {"start": 12, "end": 21, "label": "PER", "mention": "nominal"},
            [12, 28, "EVENT"],
        ],
        "labels": ["PER", "EVENT"],
        "flat": True,
        "corpus": "ours",
    }
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (first, second), report = read_file(path, split_sentences="newline")
    assert first["entities"] == [{"start": 0, "end": 1, "label": "PER", "mention": "name"}]
    assert second["entities"] == [
        {"start": 0, "end": 2, "label": "PER", "mention": "nominal"},
        {"start": 0, "end": 3, "label": "EVENT"},
    ]
    for sentence in (first, second):
        assert (sentence["labels"], sentence["flat"], sentence["corpus"]) == (["PER", "EVENT"], True, "ours")
    assert not report.lost and not report.ignored
