"""Readers of the forms that single corpora have, on small files written to their definitions."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data import guess_format, read_file
from hf_spanner.data.chars import sentence_starts


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def spans(sentence):
    return [(" ".join(sentence["tokens"][e["start"] : e["end"]]), e["label"]) for e in sentence["entities"]]


ONTONOTES = """#begin document (bc/x/00/x_0000); part 001
bc/x/00/x_0000 1 0 The DT (TOP* - - - Ann (ORG(GPE* (0 -
bc/x/00/x_0000 1 1 Hague NNP * - - - Ann *) 0) -
bc/x/00/x_0000 1 2 Court NNP *) - - - Ann *) - -

bc/x/00/x_0000 1 0 Yes UH (TOP*) - - - Ann * -

#end document
"""


def test_conll2012_brackets_nest_and_parts_are_documents(tmp_path):
    path = written(tmp_path / "x_0000.v4_gold_conll", ONTONOTES)
    assert guess_format(path) == "conll2012"
    (first, second), report = read_file(path)
    assert spans(first) == [("The Hague", "GPE"), ("The Hague Court", "ORG")] and second["entities"] == []
    assert first["doc_id"] == second["doc_id"] == "bc/x/00/x_0000.001" and first["pos"] == ["DT", "NNP", "NNP"]
    assert report.faithful


@pytest.mark.parametrize(
    "cell, reason",
    [("(GPE", "opening bracket without"), ("*))", "closing bracket without"), ("GPE*(", "cell that is no bracket")],
)
def test_one_bad_bracket_costs_that_bracket(tmp_path, cell, reason):
    text = f"#begin document (a); part 000\na 0 0 Bonn NNP * - - - x {cell} -\na 0 1 Ulm NNP * - - - x (GPE) -\n"
    (sentence,), report = read_file(written(tmp_path / "a.gold_conll", text))
    assert ("Ulm", "GPE") in spans(sentence)
    assert any(name.startswith(reason) for name in report.lost)


def test_a_row_with_too_few_columns_is_named(tmp_path):
    path = written(tmp_path / "a.gold_conll", "#begin document (a); part 000\na 0 0 Bonn\n")
    with pytest.raises(ValueError, match=r"gold_conll:2: 4 columns, expected at least 11"):
        read_file(path)


def test_dygie_counts_words_through_the_document_and_names_the_last(tmp_path):
    ner = [[[0, 0, "Method"]], [[2, 3, "Method"], [3, 3, "Generic"], [1, 2, "Task"]]]
    sentences = [["Maps", "help"], ["neural", "maps", "."]]
    record = {"doc_key": "P1", "sentences": sentences, "ner": ner, "relations": [[], []]}
    path = written(tmp_path / "train.json", json.dumps(record))
    assert guess_format(path) == "dygie"
    (first, second), report = read_file(path)
    assert spans(first) == [("Maps", "Method")] and spans(second) == [("neural maps", "Method"), ("maps", "Generic")]
    assert first["doc_id"] == second["doc_id"] == "P1" and second["id"] == "P1.1"
    assert report.lost == {"entity that is not inside its sentence": 1}


PUBTATOR = """12|t|Flu and colds.
12|a|Colds are bad. Flu is worse.
12\t0\t3\tFlu\tDisease\tD007251
12\t15\t20\tColds\tDisease\tD003139
12\t30\t33\tFly\tDisease\tD007251
12\tCID\tD007251\tD003139

13|t|Nothing here
13|a|
"""


def test_pubtator_counts_title_and_abstract_together(tmp_path):
    path = written(tmp_path / "CDR.PubTator.txt", PUBTATOR)
    assert guess_format(path) == "pubtator"
    sentences, report = read_file(path)
    assert [(s["doc_id"], spans(s)) for s in sentences] == [
        ("12", [("Flu", "Disease")]), ("12", [("Colds", "Disease")]), ("12", []), ("13", []),
    ]  # fmt: skip
    assert report.lost == {"mention whose text is not at its offsets": 1} and report.ignored == {"relation": 1}


GENIA = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE set SYSTEM "gpml.dtd">
<set><article><articleinfo><bibliomisc>MEDLINE:1</bibliomisc></articleinfo>
<title><sentence><cons lex="x" sem="G#DNA_domain_or_region"><cons lex="IL-2" sem="G#protein_molecule">IL-2</cons>
 gene</cons>-mediated <cons lex="x-ray" sem="G#other_name">x-ray</cons> of <cons lex="(AND a b)"
 sem="(AND G#RNA_molecule G#RNA_molecule)"><cons lex="a">a</cons> and <cons lex="b">b</cons> RNAs</cons>.</sentence>
</title>
<abstract><sentence>&alpha; &amp; more.</sentence></abstract></article></set>
"""


def test_genia_cuts_words_where_terms_end_and_keeps_five_types(tmp_path):
    path = written(tmp_path / "GENIAcorpus3.02.xml", GENIA)
    assert guess_format(path) == "genia"
    (title, abstract), report = read_file(path)
    assert title["tokens"] == ["IL-2", "gene", "-mediated", "x-ray", "of", "a", "and", "b", "RNAs", "."]
    assert spans(title) == [("IL-2", "protein"), ("IL-2 gene", "DNA")]
    assert abstract["tokens"] == ["α", "&", "more."] and abstract["doc_id"] == "MEDLINE:1"
    assert report.lost == {"part of a coordinated term": 2}
    assert report.ignored == {"term of another type": 3}


HAREM = """<?xml version="1.0" encoding="ISO-8859-1"?>
<colHAREM><DOC DOCID="H-1">
O <EM ID="1" CATEG="PESSOA" TIPO="INDIVIDUAL">Rui Sá</EM> viu <ALT><EM ID="2" CATEG="OBRA">Porto e Braga</EM>|<EM
 ID="3" CATEG="LOCAL">Porto</EM> e <EM ID="4" CATEG="LOCAL">Braga</EM></ALT> em <EM ID="5"
 CATEG="TEMPO|VALOR">1999</EM>.
<EM ID="6">Coisa</EM> boa.</DOC></colHAREM>
"""


def test_harem_takes_the_alternative_with_most_mentions_and_counts_the_others(tmp_path):
    path = tmp_path / "harem.xml"
    path.write_text(HAREM, encoding="latin-1")
    assert guess_format(path) == "harem"
    sentences, report = read_file(path)
    found = [span for sentence in sentences for span in spans(sentence)]
    assert found == [("Rui Sá", "PESSOA"), ("Porto", "LOCAL"), ("Braga", "LOCAL"), ("1999", "TEMPO")]
    assert {s["doc_id"] for s in sentences} == {"H-1"}
    assert report.lost == {
        "mention of an alternative that was not taken": 1,
        "further category of a mention": 1,
        "mention without a category": 1,
    }


SGM = """<DOC>
<DOCID> X_1 </DOCID>
<BODY>
<TEXT>
AT&amp;T's chief met
President Yu. He left.

<SPEAKER> Ann Lee </SPEAKER>

Bonn is nice.
</TEXT>
</BODY>
</DOC>
"""
MENTIONS = [("ORG", "NAM", "AT&amp;T"), ("PER", "NOM", "AT&amp;T's chief"), ("PER", "NAM", "President\tYu"),
            ("PER", "PRO", "He"), ("PER", "NAM", "Ann Lee"), ("GPE", "NAM", "Bonn")]  # fmt: skip


def write_ace(folder, name="X_1", mentions=MENTIONS):
    plain = re.sub(r"<[^<>]+>", "", SGM)
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">', "<source_file><document>"]
    for label, kind, text in mentions:
        start = plain.index(text.replace("\t", " ")) if text.replace("\t", " ") in plain else 0
        sequence = f'<charseq START="{start}" END="{start + len(text) - 1}">{text}</charseq>'
        lines.append(
            f'<entity ID="E" TYPE="{label}"><entity_mention ID="M" TYPE="{kind}"><extent>{sequence}</extent><head>'
            f"{sequence}</head></entity_mention></entity>"
        )
    written(folder / f"{name}.sgm", SGM)
    written(folder / f"{name}.apf.xml", "\n".join([*lines, "<timex2 ID='T'></timex2></document></source_file>"]))


def test_ace_extents_come_out_at_their_words_with_their_kind(tmp_path):
    write_ace(tmp_path / "nw" / "fp1", mentions=[])
    write_ace(tmp_path / "nw" / "adj")
    assert guess_format(tmp_path) == "ace"
    sentences, report = read_file(tmp_path)
    assert [spans(s) for s in sentences] == [
        [("AT & T", "ORG"), ("AT & T 's chief", "PER"), ("President Yu", "PER")],
        [("He", "PER")], [("Ann Lee", "PER")], [("Bonn", "GPE")],
    ]  # fmt: skip
    assert [e["mention"] for s in sentences for e in s["entities"]] == ["NAM", "NOM", "NAM", "PRO", "NAM", "NAM"]
    assert report.ignored == {"further annotation of a document": 1, "timex2": 1} and not report.lost


def with_windows_line_ends(folder):
    for file in folder.rglob("*.*"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def test_ace_that_travelled_through_windows_keeps_its_mentions(tmp_path):
    write_ace(tmp_path)
    expected = [(s["tokens"], s["entities"]) for s in read_file(tmp_path)[0]]
    with_windows_line_ends(tmp_path)
    sentences, report = read_file(tmp_path)
    assert [(s["tokens"], s["entities"]) for s in sentences] == expected and not report.lost


def test_an_ace_mention_that_is_elsewhere_costs_itself(tmp_path):
    write_ace(tmp_path, mentions=[*MENTIONS, ("PER", "NAM", "Nobody")])
    sentences, report = read_file(tmp_path)
    assert sum(len(s["entities"]) for s in sentences) == 6
    assert report.lost == {"mention whose text is not at its offsets": 1}


def test_ace_annotation_without_a_text_is_named(tmp_path):
    write_ace(tmp_path)
    (tmp_path / "X_1.sgm").unlink()
    with pytest.raises(FileNotFoundError, match="X_1.apf.xml has no text beside it"):
        read_file(tmp_path)


def test_rich_ere_counts_tags_and_loses_what_stands_in_them(tmp_path):
    source = '<doc id="D">\n<headline>\nRain in Bonn\n</headline>\n'
    source += '<post author="Ann">\nThe mayor &amp; Co spoke.\n</post>\n'
    written(tmp_path / "source" / "D.cmp.txt", source)

    def mention(text, kind):
        at = f'offset="{source.index(text)}" length="{len(text)}"'
        return f'<entity_mention {at} noun_type="{kind}"><mention_text>{text}</mention_text></entity_mention>'

    entities = (
        f'<entity id="1" type="GPE">{mention("Bonn", "NAM")}</entity>'
        f'<entity id="2" type="PER">{mention("The mayor &amp; Co", "NOM")}{mention("Ann", "NAM")}</entity>'
    )
    xml = (
        f'<deft_ere doc_id="D"><entities>{entities}</entities><fillers><filler id="f">x</filler></fillers></deft_ere>'
    )
    written(tmp_path / "ere" / "D.rich_ere.xml", xml)
    assert guess_format(tmp_path) == "ere"
    sentences, report = read_file(tmp_path)
    assert [spans(s) for s in sentences] == [[("Bonn", "GPE")], [("The mayor & Co", "PER")]]
    assert report.lost == {"mention whose text is not at its offsets": 1} and report.ignored == {"filler": 1}
    with_windows_line_ends(tmp_path / "source")
    assert [spans(s) for s in read_file(tmp_path)[0]] == [spans(s) for s in sentences]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("<colHAREM><DOC></colHAREM>", ":1: broken XML"),
        ('<!DOCTYPE a [<!ENTITY b "x">]><colHAREM><DOC>&b;</DOC></colHAREM>', ":1: declares the entity 'b'"),
        (
            '<!DOCTYPE a SYSTEM "a.dtd"><colHAREM><DOC>\n&nosuch;</DOC></colHAREM>',
            ":2: the entity &nosuch; is unknown",
        ),
        ("<colHAREM><DOC>" + "<P>" * 200 + "</P>" * 200 + "</DOC></colHAREM>", ":1: more than 100 elements"),
        ('<?xml version="1.0" encoding="no-such"?><colHAREM></colHAREM>', ":1: broken XML"),
    ],
)
def test_xml_that_is_broken_or_hostile_is_refused_with_its_line(tmp_path, text, complaint):
    path = written(tmp_path / "a.xml", text)
    with pytest.raises(ValueError, match=re.escape(f"{path}{complaint}")):
        read_file(path, "harem")


def test_the_authors_json_of_locate_and_label_gives_documents(tmp_path):
    def record(words, left, right, **more):
        return {"tokens": words, "pos": ["X"] * len(words), "entities": [], "relations": [], "ltokens": left,
                "rtokens": right, **more}  # fmt: skip

    rows = [record(["A"], [], ["B"]), record(["B"], ["A"], []), record(["C"], ["gone"], [])]
    path = written(tmp_path / "ace04_train_context.json", json.dumps(rows))
    sentences, report = read_file(path)
    assert [s["doc_id"] for s in sentences] == ["0", "0", "1"] and sentences[0]["pos"] == ["X"]
    assert report.ignored == {"context (ltokens) that is not the sentence before": 1}
    named = [{**row, "org_id": f"D{number // 2}"} for number, row in enumerate(rows)]
    written(path, json.dumps(named))
    assert [s["doc_id"] for s in read_file(path)[0]] == ["D0", "D0", "D1"]


@given(st.text(alphabet="aB. \n!?()'中。", max_size=60))
def test_sentences_of_running_text_are_all_of_it_in_order(text):
    starts = sentence_starts(text)
    assert starts[0] == 0 and starts == sorted(set(starts)) and all(start < max(len(text), 1) for start in starts)


def test_sentences_end_where_a_reader_would_end_them():
    text = 'Dr. Yu met J. Vogt in Bonn. "Why?" asked U.S. Senator Fox et al. (1999). 3 left.'
    text += "\n\nHeadline\n\nIt was\nso e.g. here."
    starts = sentence_starts(text)
    assert [text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)])] == [
        "Dr. Yu met J. Vogt in Bonn.", '"Why?" asked U.S. Senator Fox et al. (1999).', "3 left.", "Headline",
        "It was\nso e.g. here.",
    ]  # fmt: skip


def test_a_no_break_space_in_a_word_of_conll2012_moves_no_column(tmp_path):
    rows = "#begin document (a); part 000\na 0 0 10\xa0km CD * - - - - (QUANTITY) -\n"
    (sentence,), report = read_file(written(tmp_path / "a.gold_conll", rows))
    assert spans(sentence) == [("10\xa0km", "QUANTITY")] and report.faithful


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "punycode", "idna", "undefined", "hex", "no such one"])
@pytest.mark.parametrize("name", ["a.xml", "a.apf.xml"])
def test_an_encoding_that_xml_does_not_know_is_said_with_its_line(tmp_path, name, encoding):
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    path = written(tmp_path / name, head + "<colHAREM><DOC><EM CATEG='X'>Ann</EM></DOC></colHAREM>")
    written(tmp_path / "a.sgm", "<TEXT>Ann</TEXT>")
    with pytest.raises(ValueError, match=rf"{re.escape(name)}:[12]: broken XML .*\.$"):
        read_file(path)


def test_a_row_of_conll2012_whose_columns_slipped_is_named(tmp_path):
    rows = "a 0 0 Bonn NNP * - - - x (GPE) * -\na 0 Ulm NNP * - - - x (GPE) * -\n"  # the second has no number
    path = written(tmp_path / "a.gold_conll", "#begin document (a); part 000\n" + rows)
    with pytest.raises(ValueError, match=r"gold_conll:3: 12 columns, expected 13 as in the first row of its sentence"):
        read_file(path)


def test_pubtator_counts_every_mention_of_lines_that_ran_together(tmp_path):
    mentions = "12\t0\t3\tFlu\tDisease\tD1" + "12\t4\t8\tcold\tDisease\tD2"
    for text in (f"12|t|Flu cold\n12|a|\n{mentions}\n", f"12|t|Flu cold{mentions}\n12|a|\n"):
        _, report = read_file(written(tmp_path / "a.txt", text), "pubtator")
        assert report.entities == 0 and report.lost.total() == 2


@pytest.mark.parametrize(
    "format, text",
    [
        ("pubtator", "12|t|Flu\r12|a|\r12\t0\t3\tFlu\tDisease\tD1\r"),
        ("conll2012", "#begin document (a); part 000\ra 0 0 Bonn NNP * - - - x (GPE) * (1)\r"),
        ("conll", "Bonn\tB-GPE\rUlm\tB-GPE\r"),
        ("brat", "T1\tGPE 0 4\tBonn\rT2\tGPE 5 8\tUlm"),
    ],
)
def test_lines_that_end_in_carriage_returns_hide_nothing(tmp_path, format, text):
    (tmp_path / "a.txt").write_text("Bonn Ulm")
    path = tmp_path / ("a.ann" if format == "brat" else "b.txt")
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=r":1: there is a carriage return inside the line"):
        read_file(path, format)


def test_mentions_of_ere_entities_inside_each_other_are_of_the_inner_one(tmp_path):
    mention = '<entity_mention id="m" offset="{}" length="4" noun_type="NAM"><mention_text>{}</mention_text>{}'
    inner = mention.format(5, "Bonn", "</entity_mention>")
    outer = mention.format(0, "Anna", mention.format(5, "Bonn", "</entity_mention>") + "</entity_mention>")
    entities = f'<entity id="1" type="PER">{outer}<entity id="2" type="GPE">{inner}</entity></entity>'
    written(tmp_path / "a.rich_ere.xml", f"<deft_ere><entities>{entities}</entities></deft_ere>")
    written(tmp_path / "a.cmp.txt", "Anna Bonn")
    (sentence,), report = read_file(tmp_path)
    assert spans(sentence) == [("Anna", "PER"), ("Bonn", "PER"), ("Bonn", "GPE")] and not report.lost


@pytest.mark.parametrize("ending, text", [(".apf.xml", ".sgm"), (".rich_ere.xml", ".cmp.txt"), (".ann", ".txt")])
def test_a_folder_that_is_called_like_a_text_is_none(tmp_path, ending, text):
    written(tmp_path / f"a{ending}", "" if ending == ".ann" else "<a/>")
    (tmp_path / f"a{text}").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no text beside it"):
        read_file(tmp_path)


@pytest.mark.parametrize("ending, text", [(".apf.xml", ".sgm"), (".rich_ere.xml", ".cmp.txt")])
def test_a_text_of_the_ldc_without_annotations_is_counted(tmp_path, ending, text):
    for name in "ab":
        written(tmp_path / "source" / f"{name}{text}", "<DOC>Bonn</DOC>")
    written(tmp_path / f"a{ending}", "<a/>")
    written(tmp_path / f"b{ending.upper()}", "<a/>")
    written(tmp_path / "index.dtd", "")
    assert read_file(tmp_path)[1].lost == {f"text without an {ending} file": 1}


def test_a_pubtator_mention_whose_fields_slipped_is_no_entity_called_by_its_text(tmp_path):
    path = written(tmp_path / "a.txt", "12|t|Flu\n12|a|\n12\t0\t3\t\tFlu\tDisease\tD1\n")
    _, report = read_file(path)
    assert report.entities == 0 and report.lost == {"mention whose text is not at its offsets": 1}


@pytest.mark.parametrize("end", ["", "\x85", " "])
def test_no_row_of_conll2012_hides_behind_the_beginning_of_its_document(tmp_path, end):
    row = "a 0 0 Bonn NNP * - - - x (GPE) * (1)"
    path = written(tmp_path / "a.gold_conll", f"#begin document (a); part 000{end}{row}\n\n{row}\n")
    with pytest.raises(ValueError, match=r"gold_conll:1: cannot read .* expected nothing but '#begin document"):
        read_file(path)
