"""brat: offsets, discontinuous mentions, line ends, sentence borders, and the way there and back."""

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner.data import guess_format, read_file, write_brat, write_jsonl

TEXT = "The mayor of Bonn\nleft Köln.\n"
ANN = "T1\tPER 0 17\tThe mayor of Bonn\nT2\tGPE 13 17\tBonn\nT3\tGPE 23 27\tKöln\n"


def spans(sentence):
    return [(e["start"], e["end"], e["label"]) for e in sentence["entities"]]


def pair(folder, text=TEXT, ann=ANN, name="doc"):
    (folder / f"{name}.txt").write_bytes(text.encode())
    (folder / f"{name}.ann").write_bytes(ann.encode())
    return folder


EXPECTED = [
    {
        "id": "doc.0",
        "doc_id": "doc",
        "tokens": ["The", "mayor", "of", "Bonn"],
        "entities": [{"start": 0, "end": 4, "label": "PER"}, {"start": 3, "end": 4, "label": "GPE"}],
    },
    {
        "id": "doc.1",
        "doc_id": "doc",
        "tokens": ["left", "Köln", "."],
        "entities": [{"start": 1, "end": 2, "label": "GPE"}],
    },
]


@pytest.mark.parametrize("name", ["", "doc.txt", "doc.ann"])
def test_a_folder_or_either_file_of_a_pair_is_read(tmp_path, name):
    path = pair(tmp_path) / name
    assert guess_format(path) == "brat"
    sentences, report = read_file(path)
    assert sentences == EXPECTED and report.faithful


def test_documents_come_in_the_order_of_their_names_and_whole_if_wanted(tmp_path):
    pair(pair(tmp_path), "Ann", "T1\tPER 0 3\tAnn", "b")
    sentences, _ = read_file(tmp_path, split_sentences="none")
    assert [(s["id"], s["doc_id"], len(s["tokens"])) for s in sentences] == [("b", "b", 1), ("doc", "doc", 7)]


def test_windows_line_ends_count_as_two_characters(tmp_path):
    ann = ANN.replace("23 27", "24 28").replace("\n", "\r\n")
    assert read_file(pair(tmp_path, TEXT.replace("\n", "\r\n"), ann))[0] == EXPECTED


def test_windows_line_ends_that_came_after_the_annotation_do_not_shift_it(tmp_path):
    assert read_file(pair(tmp_path, TEXT.replace("\n", "\r\n"), ANN))[0] == EXPECTED


def test_a_byte_order_mark_is_no_word_whether_it_was_counted_or_not(tmp_path):
    assert read_file(pair(tmp_path, "\ufeff" + TEXT, "\ufeff" + ANN))[0] == EXPECTED
    shifted = "T1\tPER 1 18\tThe mayor of Bonn\nT2\tGPE 14 18\tBonn\nT3\tGPE 24 28\tKöln\n"
    assert read_file(pair(tmp_path, "\ufeff" + TEXT, shifted))[0] == EXPECTED


def test_emoji_and_combining_marks_count_as_code_points(tmp_path):
    text = "👩‍👧 e\u0301 Bonn"
    start = text.index("Bonn")
    sentences, _ = read_file(pair(tmp_path, text, f"T1\tGPE {start} {start + 4}\tBonn"))
    entity = sentences[0]["entities"][0]
    assert sentences[0]["tokens"][entity["start"] : entity["end"]] == ["Bonn"]


def test_discontinuous_mentions_are_skipped_and_counted_or_taken_whole(tmp_path):
    folder = pair(
        tmp_path, "North and South America", "T1\tGPE 0 5;16 23\tNorth America\nT2\tGPE 10 23\tSouth America\n"
    )
    sentences, report = read_file(folder)
    assert spans(sentences[0]) == [(2, 4, "GPE")]
    assert report.lost == {"discontinuous mention": 1} and "T1: GPE 'North America'" in str(report)
    sentences, report = read_file(folder, discontinuous="hull")
    assert spans(sentences[0]) == [(0, 4, "GPE"), (2, 4, "GPE")]
    assert report.changed == {"discontinuous mention, taken as a whole": 1} and not report.lost
    with pytest.raises(ValueError, match="discontinuous='join' is unknown; choose 'skip', 'hull', 'fragments'"):
        read_file(folder, discontinuous="join")


@pytest.mark.parametrize("offsets", ["4 12", "4 7;8 12"])
def test_a_mention_across_a_line_break_joins_its_lines(tmp_path, offsets):
    folder = pair(tmp_path, "see New\nYork now\nand Rome\n", f"T1\tGPE {offsets}\tNew York\nT2\tGPE 21 25\tRome\n")
    sentences, report = read_file(folder)
    assert [s["tokens"] for s in sentences] == [["see", "New", "York", "now"], ["and", "Rome"]]
    assert [spans(s) for s in sentences] == [[(1, 3, "GPE")], [(1, 2, "GPE")]]
    assert report.changed == {"mention across a sentence border, sentences joined": 1} and not report.lost


def test_other_annotations_are_ignored_and_counted(tmp_path):
    other = "R1\tin Arg1:T1 Arg2:T2\nE1\tT1\nA1\tNeg T1\nM1\tNeg T1\n"
    other += "#1\tNote T1\thm\nN1\tRef T1 W:1\n*\tEquiv T1 T2\n\n?\n"
    _, report = read_file(pair(tmp_path, ann=ANN + other))
    assert report.ignored == {
        "relation": 1,
        "event": 1,
        "attribute": 2,
        "note": 1,
        "normalisation": 1,
        "equivalence": 1,
        "line of an unknown kind": 1,
    }
    assert report.entities == 3 and report.faithful


def test_a_text_that_disagrees_is_named_with_both_texts(tmp_path):
    folder = pair(tmp_path, ann="T1\tPER 0 17\tThe mayor of Bonn\nT2\tGPE 12 16\tBonn\n")
    with pytest.raises(ValueError, match=r"doc\.ann:2 T2: the document has 'Bon' at \[\(12, 16\)\].*says 'Bonn'"):
        read_file(folder)
    sentences, report = read_file(folder, check_text=False)
    assert spans(sentences[0]) == [(0, 4, "PER"), (3, 4, "GPE")]
    assert report.changed == {"boundary inside a word, expanded to the whole word": 1}


@pytest.mark.parametrize(
    ("ann", "options", "message"),
    [
        ("T1\tPER 0 99\tThe mayor", {}, r"doc\.ann:1 T1: the document has .* but the annotation says 'The mayor'"),
        ("T1\tPER 0 99\tThe mayor", {"check_text": False}, r"doc\.ann:1 T1: character span \[0, 99\)"),
        ("T1\tPER 5 2\t", {}, r"doc\.ann:1 T1: character span \[5, 2\)"),
        ("T1\tPER zero 2\tTh", {}, r"doc\.ann:1 T1: cannot read 'T1\\tPER zero 2\\tTh'; expected an id, a tab"),
        ("T1 PER 0 2 Th", {}, r"cannot read 'T1 PER 0 2 Th'"),
    ],
)
def test_a_bad_annotation_is_named(tmp_path, ann, options, message):
    with pytest.raises(ValueError, match=message):
        read_file(pair(tmp_path, ann=ann), **options)


def test_a_text_without_annotation_file_is_left_out_aloud(tmp_path):
    (pair(tmp_path) / "README.txt").write_text("about this corpus")
    sentences, report = read_file(tmp_path)
    assert sentences == EXPECTED and report.lost == {"text without an .ann file": 1}


def test_a_missing_half_is_an_error(tmp_path):
    (tmp_path / "a.ann").write_text("")
    with pytest.raises(FileNotFoundError, match=r"a\.ann has no text beside it; expected a\.txt"):
        read_file(tmp_path)
    (tmp_path / "a.ann").unlink()
    with pytest.raises(FileNotFoundError, match="holds no .ann file"):
        read_file(tmp_path, "brat")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(FileNotFoundError, match="has no a.ann beside it"):
        read_file(tmp_path / "a.txt", "brat")


# There and back

WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5)
LABELS = st.sampled_from(["PER", "GPE", "cell_type", "Ä-b"])


@st.composite
def sentence_lists(draw):
    """Sentences of few words, so that many of their entities nest, cross or share a span."""
    sentences = []
    for number in range(draw(st.integers(0, 4))):
        tokens = draw(st.lists(WORDS, min_size=1, max_size=6))
        spans = [(s, e) for s in range(len(tokens)) for e in range(s + 1, len(tokens) + 1)]
        chosen = draw(st.lists(st.tuples(st.sampled_from(spans), LABELS), max_size=8, unique=True))
        entities = [{"start": s, "end": e, "label": label} for (s, e), label in chosen]
        doc_id = draw(st.sampled_from([None, "a", "b.c"]))
        sentences.append({"id": f"s{number}", "doc_id": doc_id, "tokens": tokens, "entities": entities})
    return sentences


DEEP = [
    {
        "id": "s0",
        "doc_id": "a",
        "tokens": ["the", "head", "of", "the", "bank", "of", "Bonn"],
        "entities": [
            {"start": 0, "end": 7, "label": "PER"},
            {"start": 3, "end": 7, "label": "ORG"},
            {"start": 5, "end": 7, "label": "X"},
            {"start": 6, "end": 7, "label": "GPE"},
            {"start": 6, "end": 7, "label": "LOC"},
            {"start": 4, "end": 6, "label": "CROSSING"},
        ],
    }
]


def through_jsonl(sentences):
    with tempfile.TemporaryDirectory() as folder:
        assert write_jsonl(sentences, f"{folder}/a.jsonl") == len(sentences)
        return read_file(f"{folder}/a.jsonl")


def through_brat(sentences):
    with tempfile.TemporaryDirectory() as folder:
        write_brat(sentences, folder)
        back, report = read_file(folder, splitter="whitespace")
    return back, report


@settings(max_examples=50, deadline=None)
@given(sentence_lists())
def test_sentences_come_back_from_jsonl(sentences):
    back, report = through_jsonl(sentences)
    assert back == sentences and not report.lost and not report.changed


@settings(max_examples=50, deadline=None)
@given(sentence_lists().filter(bool))
def test_sentences_come_back_from_brat(sentences):
    back, report = through_brat(sentences)
    assert not report.lost and not report.changed
    for doc_id, name in ((None, "sentences"), ("a", "a"), ("b.c", "b.c")):
        before = [(s["tokens"], s["entities"]) for s in sentences if s["doc_id"] == doc_id]
        assert [(s["tokens"], s["entities"]) for s in back if s["doc_id"] == name] == before


def test_four_levels_two_labels_on_one_span_and_a_crossing_come_back():
    assert through_jsonl(DEEP)[0] == DEEP
    back, _ = through_brat(DEEP)
    assert back == [{**DEEP[0], "id": "a.0"}]


def test_written_brat_is_what_brat_expects(tmp_path):
    assert write_brat(EXPECTED, tmp_path / "new") == [tmp_path / "new" / "doc.txt"]
    assert (tmp_path / "new" / "doc.txt").read_text() == "The mayor of Bonn\nleft Köln .\n"
    assert (tmp_path / "new" / "doc.ann").read_text() == ANN


def test_documents_whose_names_collide_or_leave_the_folder_are_told_apart(tmp_path):
    sentences = [{**DEEP[0], "doc_id": doc_id} for doc_id in ("../a", "a/b", "a:b", "A_B", None, "sentences")]
    names = [path.name for path in write_brat(sentences, tmp_path / "out")]
    assert names == ["_a.txt", "a_b.txt", "a_b_2.txt", "A_B_3.txt", "sentences.txt", "sentences_2.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("token", ["New York", "", "a\nb"])
def test_brat_refuses_words_that_it_could_not_give_back(tmp_path, token):
    with pytest.raises(ValueError, match="Sentence 's': token .* is empty or contains white space"):
        write_brat([{"id": "s", "doc_id": None, "tokens": [token], "entities": []}], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_brat_refuses_labels_with_spaces(tmp_path):
    entities = [{"start": 0, "end": 1, "label": "cell type"}]
    with pytest.raises(ValueError, match="label 'cell type' contains white space"):
        write_brat([{"id": "s", "doc_id": None, "tokens": ["a"], "entities": entities}], tmp_path)


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(DEEP, path)
    before = path.read_text()

    def broken():
        yield DEEP[0]
        raise RuntimeError("the source dried up")

    with pytest.raises(RuntimeError):
        write_jsonl(broken(), path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
