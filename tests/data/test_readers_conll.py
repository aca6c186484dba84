"""Columns: layouts, schemes, layers, comments and documents."""

import pytest

from hf_spanner.data import read_file

GERMEVAL = """\
#\thttp://example.org/1\t[2020-01-01]
1\tDer\tO\tO
2\tFC\tB-ORG\tO
3\tBonn\tI-ORG\tB-LOC
4\t#\tO\tO

#\thttp://example.org/2\t[2020-01-02]
1\tUniversität\tB-ORG\tO
2\tKöln\tI-ORG\tB-LOC
"""


def spans(sentence):
    return [(e["start"], e["end"], e["label"]) for e in sentence["entities"]]


def read(tmp_path, text, name="a.conll", **options):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return read_file(path, "conll", **options)


def test_germeval_columns_are_found_and_layers_united(tmp_path):
    sentences, report = read(tmp_path, GERMEVAL, "a.tsv")
    assert [s["tokens"] for s in sentences] == [["Der", "FC", "Bonn", "#"], ["Universität", "Köln"]]
    assert [spans(s) for s in sentences] == [[(1, 3, "ORG"), (2, 3, "LOC")], [(0, 2, "ORG"), (1, 2, "LOC")]]
    assert report.ignored == {"comment line": 2} and report.faithful


OUTER = {
    "IOB1": "I-A I-A B-A O",
    "BIO": "B-A I-A B-A O",
    "BIOES": "B-A E-A S-A O",
    "BILOU": "B-A L-A U-A O",
}
INNER = {
    "IOB1": "I-B O I-B I-B",
    "BIO": "B-B O B-B I-B",
    "BIOES": "S-B O B-B E-B",
    "BILOU": "U-B O B-B L-B",
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_each_of_two_layers_has_its_own_scheme(tmp_path, outer, inner):
    lines = [f"w{n} {a} {b}" for n, (a, b) in enumerate(zip(OUTER[outer].split(), INNER[inner].split(), strict=True))]
    sentences, report = read(tmp_path, "\n".join(lines))
    assert spans(sentences[0]) == [(0, 1, "B"), (0, 2, "A"), (2, 3, "A"), (2, 4, "B")]
    assert report.faithful
    if outer == inner:
        assert read(tmp_path, "\n".join(lines), scheme=outer)[0] == sentences


def test_conll_2003_with_documents_chunks_and_iob1(tmp_path):
    text = (
        "-DOCSTART- -X- -X- O\n\nAnn NNP I-NP I-PER\nsees VBZ I-VP O\nBonn NNP I-NP I-LOC\n\n\n"
        "-DOCSTART- -X- O O\n\nRain NN I-NP O\n"
    )
    sentences, report = read(tmp_path, text)
    assert [(s["id"], s["doc_id"], spans(s)) for s in sentences] == [
        ("a.0", "a.doc0", [(0, 1, "PER"), (2, 3, "LOC")]),
        ("a.1", "a.doc1", []),
    ]
    assert (
        report.ignored == {"column 1, which holds no tags": 1, "column 2 of syntactic chunks": 1} and report.faithful
    )


def test_chunks_are_read_if_they_are_all_there_is_or_asked_for(tmp_path):
    assert spans(read(tmp_path, "Ann NNP B-NP\nsees VBZ B-VP\n")[0][0]) == [(0, 1, "NP"), (1, 2, "VP")]
    four = "Ann NNP B-NP B-PER\n"
    assert spans(read(tmp_path, four, tag_columns=[2])[0][0]) == [(0, 1, "NP")]
    assert spans(read(tmp_path, four, tag_columns=[2, -1])[0][0]) == [(0, 1, "NP"), (0, 1, "PER")]


def test_columns_can_be_named(tmp_path):
    sentences, _ = read(tmp_path, "B-X a O Ann\n", token_column=3, tag_columns=[0])
    assert sentences[0]["tokens"] == ["Ann"] and spans(sentences[0]) == [(0, 1, "X")]
    with pytest.raises(ValueError, match=r"a\.conll:1: there is no column 7 among 4"):
        read(tmp_path, "B-X a O Ann\n", tag_columns=[7])


def test_a_hashtag_is_a_word_and_a_remark_is_a_comment(tmp_path):
    text = "# text = a remark\nlove O\n#Bonn B-LOC\n# O\n"
    sentences, report = read(tmp_path, text)
    assert sentences[0]["tokens"] == ["love", "#Bonn", "#"] and spans(sentences[0]) == [(1, 2, "LOC")]
    assert report.ignored == {"comment line": 1}
    assert read(tmp_path, "% hm\na O\n", comment="%")[0][0]["tokens"] == ["a"]
    with pytest.raises(ValueError, match=r"a\.conll:2: 2 columns, expected 5"):
        read(tmp_path, text, comment=None, tag_columns=[])


def test_tags_with_goodwill_are_counted(tmp_path):
    sentences, report = read(tmp_path, "a B-X\nb I-Y\nc O\nd I-X\n")
    assert spans(sentences[0]) == [(0, 1, "X"), (1, 2, "Y"), (3, 4, "X")]
    assert report.changed == {"tag that broke the scheme BIO": 2}


def test_the_same_entity_in_two_layers_is_kept_once_and_counted(tmp_path):
    sentences, report = read(tmp_path, "a B-X B-X\nb I-X I-X\n")
    assert spans(sentences[0]) == [(0, 2, "X")] and report.lost == {"duplicate": 1}


def test_windows_line_ends_a_byte_order_mark_and_odd_spaces_do_no_harm(tmp_path):
    sentences, report = read(tmp_path, "\ufeffNew York\tB-LOC\r\nis\u00a0it\tO\r\n\t\r\nAnn  \tB-PER \r\n")
    assert [s["tokens"] for s in sentences] == [["New York", "is\u00a0it"], ["Ann"]]
    assert [spans(s) for s in sentences] == [[(0, 1, "LOC")], [(0, 1, "PER")]]
    assert report.faithful


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a O\nb\n", {}, r"a\.conll:2: 1 columns, expected 2"),
        ("a B_LOC\nb B_PER\n", {}, r"a\.conll:1: 'B_LOC' is not a tag: no column holds tags .*\['a', 'B_LOC'\]"),
        ("a NN O\nb NN O\n", {"tag_columns": [1]}, r"a\.conll:1: 'NN' in column 1 is not a tag, and neither is any"),
        ("a\nb\n", {}, r"a\.conll:1: 'a' is not a tag: no column holds tags"),
        ("a S-X\nb U-X\n", {}, r"a\.conll, column 1: A layer mixes tags"),
        ("a O\n\nb E-X\n", {"scheme": "BIO"}, r"a\.conll:3: Tag 'E-X' does not belong to scheme BIO"),
        ("a O\n", {"scheme": "XYZ"}, r"Scheme 'XYZ' is unknown"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, **options)
