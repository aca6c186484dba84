"""The neighbours' formats, there and back with the neighbours' own libraries: what goes in comes out or is counted."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_spanner import cli
from hf_spanner.data import load_nested_ner, read_file, write_brat, write_conll, write_label_studio
from hf_spanner.data.readers.guessing import decide_format
from hf_spanner.data.writers import WRITERS, write_cas, write_docbin
from hf_spanner.data.writers.conll import layers_of

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install hf_spanner[spacy]")
cassis = pytest.importorskip("cassis", reason="cassis is not installed: pip install hf_spanner[cas]")

WORDS = [
    "Bonn",
    "the",
    "IL-2",
    "U.S.",
    "北京",
    "😀",
    "👩‍👩‍👧",
    "e\u0301",
    '"',
    "<&>",
    "'",
    "#x",
    "O",
    "]]>",
    "\u202eabc",
    "ß",
    "1",
]
LABELS = ["PER", 'a "quoted" b', "<x>&amp;", "place/of birth", "😀", "Ä_ö", "O", "B-cell"]
WHERE = {"jsonl": "a.jsonl", "brat": "brat", "conll": "a.conll", "docbin": "a.spacy", "cas": "cas",
         "label-studio": "a.json"}  # fmt: skip
READING = {"brat": {"splitter": "whitespace"}, "label-studio": {"splitter": "whitespace"},
           "conll": {"token_column": 0}}  # fmt: skip


@st.composite
def sentences(draw, words=WORDS, labels=LABELS, mentions=True):
    """Documents with nested, crossing and equal spans, of labels that may be anything."""
    result = []
    for number in range(draw(st.integers(1, 4))):
        tokens = draw(st.lists(st.sampled_from(words), min_size=1, max_size=7))
        spans = draw(
            st.sets(
                st.tuples(st.integers(0, len(tokens) - 1), st.integers(1, 7), st.sampled_from(labels)),
                max_size=6,
            )
        )
        spans = {(start, min(start + size, len(tokens)), label) for start, size, label in spans}
        entities = [{"start": start, "end": end, "label": label} for start, end, label in sorted(spans)]
        if mentions:
            for entity in entities:
                entity |= draw(st.sampled_from([{}, {"mention": "name"}, {"mention": "nominal"}]))
        doc_id = draw(st.sampled_from(["d", "e/f", None]))
        result.append({"id": str(number), "doc_id": doc_id, "tokens": tokens, "entities": entities})
    return sorted(result, key=lambda s: str(s["doc_id"]))  # brat and CAS keep documents together


def plain(found, mention=True):
    """Words and entities, sentence by sentence, whatever their order in the file."""
    rows = []
    for sentence in found:
        entities = [(e["start"], e["end"], e["label"], e.get("mention") or "") for e in sentence["entities"]]
        rows.append((sentence["tokens"], sorted(e if mention else e[:3] for e in entities)))
    return sorted(rows)


@pytest.mark.parametrize("format", ["docbin", "cas", "label-studio", "conll"])
@settings(max_examples=8, deadline=None)
@given(found=sentences(), guess=st.booleans())
def test_entities_in_are_entities_out(tmp_path_factory, found, format, guess):
    path = tmp_path_factory.mktemp("there") / WHERE[format]
    WRITERS[format](found, path)
    back, report = read_file(path, None if guess else format, **READING.get(format, {}))
    assert report.format == format
    assert report.faithful, str(report)
    assert plain(back, format != "conll") == plain(found, format != "conll")


@settings(max_examples=30, deadline=None)
@given(sentences(labels=["PER", "<x>&amp;", "place/of", "😀"]))
def test_brat_keeps_kinds_of_mention_as_attributes(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("brat")
    write_brat(found, path)
    back, report = read_file(path, splitter="whitespace")
    assert report.faithful and not report.ignored and plain(back) == plain(found)


# ----------------------------------------------------------------------------------------------- spaCy


def read_back(path):
    return list(spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def save(docs, path):
    spacy.tokens.DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def test_spacy_itself_reads_what_is_written(tmp_path):
    entities = [{"start": 0, "end": 5, "label": "PER"}, {"start": 3, "end": 5, "label": "LOC", "mention": "name"}]
    first = {"id": "a", "doc_id": "d", "tokens": "the mayor of New York".split(), "entities": entities}
    second = {"id": "b", "doc_id": "d", "tokens": ["Rain"], "entities": [], "flat": False}
    write_docbin([first, second, {**first, "doc_id": "d"}], tmp_path / "a.spacy")
    one, two, three = read_back(tmp_path / "a.spacy")  # what is said of sentences differs in the middle
    assert [(s.text, s.label_) for s in one.spans["nested"]] == [("the mayor of New York", "PER"), ("New York", "LOC")]
    assert one.spans["nested"].attrs["mentions"] == [None, "name"]
    assert [e.text for e in one.ents] == ["the mayor of New York"]
    assert two.user_data == {"doc_id": "d", "flat": False} and one.user_data == three.user_data == {"doc_id": "d"}
    assert read_file(tmp_path / "a.spacy")[0][1]["flat"] is False


def test_a_docbin_of_spacys_own_making_is_read_by_its_words_and_sentences(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp("Jane Roe's aunt  lives in\n\nNew York. It rains there. ")
    doc.spans["sc"] = [doc.char_span(0, 15, "PER"), doc.char_span(0, 8, "PER"), doc.char_span(27, 35, "LOC")]
    doc.ents = [doc.char_span(0, 15, "PER"), doc.char_span(37, 39, "X")]
    found, report = read_file(save([doc], tmp_path / "a.spacy"))
    assert [s["tokens"] for s in found] == [
        ["Jane", "Roe", "'s", "aunt", "lives", "in", "New", "York", "."], ["It", "rains", "there", "."]
    ]  # fmt: skip
    assert found[0]["entities"] == [
        {"start": 0, "end": 4, "label": "PER"}, {"start": 0, "end": 2, "label": "PER"},
        {"start": 6, "end": 8, "label": "LOC"},
    ]  # fmt: skip
    assert dict(report.lost) == {"entity of doc.ents alone, beside groups of spans": 1}
    assert read_file(tmp_path / "a.spacy", ents=True)[1].entities == 4
    anew = read_file(tmp_path / "a.spacy", splitter="compound", split_sentences="none")[0]
    assert len(anew) == 1 and "Roe" in anew[0]["tokens"]


def test_entities_of_doc_ents_are_read_where_there_are_no_groups(tmp_path):
    doc = spacy.blank("en")("New York is large.")
    doc.ents = [doc.char_span(0, 8, "LOC")]
    (sentence,), report = read_file(save([doc], tmp_path / "a.spacy"))
    assert sentence["entities"] == [{"start": 0, "end": 2, "label": "LOC"}] and report.faithful


def test_spans_of_groups_that_were_not_asked_for_and_without_a_label_are_counted(tmp_path):
    doc = spacy.blank("en")("New York is  large.")
    doc.spans["one"] = [doc[0:2], doc.char_span(0, 3, "A")]
    doc.spans["two"] = [doc.char_span(0, 8, "LOC"), spacy.tokens.Span(doc, 3, 4, "SPACE")]
    found, report = read_file(save([doc], tmp_path / "a.spacy"), spans_key="two")
    assert report.entities == 1
    assert dict(report.lost) == {"span of another group than 'two'": 2, "mention without a word": 1}
    _, report = read_file(tmp_path / "a.spacy")
    assert report.lost["span without a label or a word"] == 1 and report.entities == 2


def test_an_entity_across_sentences_joins_them(tmp_path):
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, ["a", "b", "c"], sent_starts=[True, True, True])
    doc.spans["x"] = [spacy.tokens.Span(doc, 0, 2, "L")]
    found, report = read_file(save([doc], tmp_path / "a.spacy"))
    assert [s["tokens"] for s in found] == [["a", "b"], ["c"]]
    assert dict(report.changed) == {"mention across a sentence border, sentences joined": 1}


# ------------------------------------------------------------------------------------------------- CAS


def in_cas(text, spans, layer="webanno.custom.Entity", features=("kind",), folder=None):
    types = cassis.load_dkpro_core_typesystem()
    custom = types.create_type(layer, "uima.tcas.Annotation")
    for feature in features:
        types.create_feature(custom, feature, "uima.cas.String")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string, cas.sofa_mime = text, "text/plain"
    for start, end, label in spans:
        cas.add(custom(begin=start, end=end, **{features[0]: label}))
    cas.to_xmi(folder / "doc.xmi")
    types.to_xml(folder / "TypeSystem.xml")
    return folder / "doc.xmi"


def test_cassis_reads_what_is_written_and_offsets_are_those_of_java(tmp_path):
    entities = [{"start": 0, "end": 2, "label": "<x>&"}, {"start": 1, "end": 2, "label": "LOC"}]
    write_cas([{"id": "a", "doc_id": "d:1", "tokens": ["😀", "Bonn"], "entities": entities}], tmp_path)
    types = cassis.load_typesystem(tmp_path / "TypeSystem.xml")
    cas = cassis.load_cas_from_xmi(tmp_path / "d_1.xmi", typesystem=types)
    found = cas.select("de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity")
    assert [(e.get_covered_text(), e.value) for e in found] == [("😀 Bonn", "<x>&"), ("Bonn", "LOC")]
    assert 'begin="3" end="7" value="LOC"' in (tmp_path / "d_1.xmi").read_text(encoding="utf-8")
    assert cas.typecheck() == []


def test_a_custom_layer_is_read_by_its_one_feature_and_a_text_without_tokens_is_cut(tmp_path):
    path = in_cas("Jane Roe's aunt.", [(0, 15, "PER"), (0, 8, "PER"), (0, 4, None), (9, 9, "X")], folder=tmp_path)
    (sentence,), report = read_file(path)
    assert sentence["tokens"] == ["Jane", "Roe", "'s", "aunt", "."]
    assert [e["end"] for e in sentence["entities"]] == [2, 4]
    assert dict(report.lost) == {"annotation without a label or a word": 2}
    assert read_file(path, layer="webanno.custom.Entity", feature="kind")[1].entities == 2


@pytest.mark.parametrize(
    "features, options, expected",
    [
        (("a", "b"), {}, "which feature of webanno.custom.Entity holds the label"),
        (("a",), {"layer": "nowhere.X"}, "has no layer 'nowhere.X'"),
        (("a",), {"feature": "z"}, "features of strings: a"),
        (("a",), {"split_sentences": "lines"}, "split_sentences='lines' is unknown"),
    ],
)
def test_what_a_cas_does_not_say_is_asked_for(tmp_path, features, options, expected):
    path = in_cas("Bonn", [(0, 4, "LOC")], features=features, folder=tmp_path)
    with pytest.raises(ValueError, match=expected):
        read_file(path, **options)


def test_a_cas_without_its_type_system_or_with_xml_entities_is_refused(tmp_path):
    path = in_cas("Bonn", [(0, 4, "LOC")], folder=tmp_path)
    text = path.read_text(encoding="utf-8")
    declared = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    path.write_text(text.replace("?>", "?>" + declared, 1).replace('"Bonn"', '"&e;"'), encoding="utf-8")
    with pytest.raises(ValueError, match="declares entities of XML"):
        read_file(path)
    (tmp_path / "TypeSystem.xml").unlink()
    with pytest.raises(FileNotFoundError, match=r"no TypeSystem\.xml"):
        read_file(path)


def test_an_annotation_outside_the_view_or_the_text_is_no_silent_loss(tmp_path):
    write_cas(
        [{"id": "a", "doc_id": "d", "tokens": ["Bonn"], "entities": [{"start": 0, "end": 1, "label": "LOC"}]}],
        tmp_path,
    )
    text = (tmp_path / "d.xmi").read_text(encoding="utf-8")
    (tmp_path / "d.xmi").write_text(text.replace('members="2 3 4"', 'members="2 3"'), encoding="utf-8")
    assert dict(read_file(tmp_path)[1].lost) == {"annotation that is not in the document's view": 1}
    (tmp_path / "d.xmi").write_text(text.replace('end="4" value', 'end="40" value'), encoding="utf-8")
    with pytest.raises(ValueError, match="damaged"):
        read_file(tmp_path)


# ----------------------------------------------------------------------------------------------- CoNLL


def test_layers_hold_the_outermost_first_and_crossing_entities_apart():
    spans = [(0, 5, "A"), (1, 3, "B"), (2, 4, "C"), (1, 3, "D"), (6, 7, "E")]
    entities = [{"start": s, "end": e, "label": label} for s, e, label in spans]
    assert [[e["label"] for e in layer] for layer in layers_of(entities)] == [["A", "E"], ["B"], ["D"], ["C"]]


def test_a_conll_file_has_a_column_a_layer(tmp_path):
    entities = [{"start": 0, "end": 3, "label": "PER"}, {"start": 2, "end": 3, "label": "a place"}]
    path = tmp_path / "a.conll"
    write_conll([{"id": "a", "doc_id": None, "tokens": ["mayor", "of", "Bonn"], "entities": entities}], path)
    assert path.read_text() == "mayor\tB-PER\tO\nof\tI-PER\tO\nBonn\tI-PER\tB-a place\n\n"


@pytest.mark.parametrize(
    "format, token, label",
    [("conll", "a\tb", "L"), ("conll", "-DOCSTART-", "L"), ("conll", "a", "L\n"), ("cas", "a b", "L"),
     ("cas", "a\x00", "L"), ("cas", "a", "L\x1b"), ("docbin", " ", "L"), ("docbin", "", "L"), ("brat", "a", "a b")],
)  # fmt: skip
def test_what_a_format_has_no_place_for_is_refused_before_a_file_is_there(tmp_path, format, token, label):
    entities = [{"start": 0, "end": 1, "label": label}]
    with pytest.raises(ValueError, match=r"Sentence 'x'.*jsonl\."):
        WRITERS[format]([{"id": "x", "doc_id": None, "tokens": [token], "entities": entities}], tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


# ---------------------------------------------------------------------------------------- Label Studio


def test_predictions_are_read_where_the_user_says_so(tmp_path):
    value = {"start": 0, "end": 4, "text": "Bonn", "labels": ["LOC"]}
    predictions = [{"result": [{"type": "labels", "value": value, "meta": {"mention": "name"}}]}, {"result": []}]
    (tmp_path / "a.json").write_text(json.dumps([{"data": {"text": "Bonn"}, "predictions": predictions}]))
    assert read_file(tmp_path / "a.json", "label-studio")[1].lost == {"task without an annotation": 1}
    (sentence,), report = read_file(tmp_path / "a.json", predictions=True)
    assert sentence["entities"] == [{"start": 0, "end": 1, "label": "LOC", "mention": "name"}] and report.faithful


def test_offsets_of_a_task_are_all_in_one_unit_even_where_a_region_alone_would_fit_another(tmp_path):
    """«a» stands at 4 in code points, at 6 in UTF-16, and another «a» at 6 in code points."""
    tokens = ["😀", "😀", "a", "a", "a"]
    entities = [{"start": 2, "end": 3, "label": "X"}, {"start": 0, "end": 5, "label": "Y"}]
    write_label_studio([{"id": "0", "doc_id": None, "tokens": tokens, "entities": entities}], tmp_path / "a.json")
    (sentence,), _ = read_file(tmp_path / "a.json")
    assert sorted(sentence["entities"], key=lambda e: e["label"]) == entities


def test_predict_writes_tasks_that_our_own_reader_reads(tmp_path, capsys):
    texts = ["😀 Jane Roe met the mayor of New York.", "Rain.", ""]
    out = str(tmp_path / "tasks.json")
    assert cli.main(["predict", *texts, "--format", "label-studio", "--output", out]) == 0
    assert cli.main(["predict", *texts, "--format", "jsonl"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert [task["data"]["text"] for task in tasks] == texts
    scores = [result["score"] for result in tasks[0]["predictions"][0]["result"]]
    assert scores == [e["score"] for e in found[0]["entities"]] and tasks[0]["predictions"][0]["score"] == min(scores)
    back, report = read_file(out, predictions=True)
    assert report.faithful
    for sentence, row in zip(back, found, strict=True):
        assert sorted(
            (" ".join(sentence["tokens"][e["start"] : e["end"]]), e["label"]) for e in sentence["entities"]
        ) == sorted((e["word"], e["entity_group"]) for e in row["entities"])


def test_label_studios_own_sdk_accepts_the_tasks(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    out = str(tmp_path / "tasks.json")
    assert (
        cli.main(["predict", "😀 Jane Roe met the mayor of New York.", "--format", "label-studio", "--output", out])
        == 0
    )
    labels = "".join(f'<Label value="{label}"/>' for label in ("person", "place", "organization"))
    config = f'<View><Labels name="label" toName="text">{labels}</Labels><Text name="text" value="$text"/></View>'
    for task in json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8")):
        for prediction in task["predictions"]:
            assert interface.LabelInterface(config).validate_prediction(prediction, return_errors=True) == []


# ------------------------------------------------------------------------------------------ everywhere


def test_data_of_every_format_is_recognised_and_loaded_by_what_it_holds(tmp_path):
    entities = [{"start": 0, "end": 3, "label": "PER"}, {"start": 2, "end": 3, "label": "LOC"}]
    found = [{"id": "a", "doc_id": "d", "tokens": ["mayor", "of", "Bonn"], "entities": entities}]
    write_docbin(found, tmp_path / "a.data")
    assert decide_format(tmp_path / "a.data")[0] == "docbin"
    write_cas(found, tmp_path / "cas")
    (tmp_path / "cas" / "d.xmi").rename(tmp_path / "cas" / "d.data")
    assert decide_format(tmp_path / "cas" / "d.data")[0] == "cas"
    (tmp_path / "cas" / "d.data").rename(tmp_path / "cas" / "d.xmi")
    for source in (tmp_path / "a.data", tmp_path / "cas"):
        data = load_nested_ner(str(source))
        assert data["train"][0]["entities"] == entities


@pytest.mark.parametrize("to", ["docbin", "cas", "conll", "label-studio", "brat"])
def test_convert_there_and_back(tmp_path, to):
    line = {"tokens": ["mayor", "of", "Bonn"], "entities": [[0, 3, "PER"], [2, 3, "LOC"]], "doc_id": "d"}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    there = str(tmp_path / WHERE[to] if to != "jsonl" else tmp_path / "b.jsonl")
    assert cli.main(["convert", str(tmp_path / "a.jsonl"), there, "--to", to]) == 0
    assert cli.main(["convert", there, str(tmp_path / "back.jsonl")]) == 0
    assert plain(read_file(tmp_path / "a.jsonl")[0]) == plain(read_file(tmp_path / "back.jsonl")[0])


def test_a_folder_of_splits_converts_to_files_with_the_formats_endings(tmp_path):
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text('{"tokens": ["a"], "entities": []}')
    assert cli.main(["convert", str(tmp_path), str(tmp_path / "out"), "--to", "docbin"]) == 0
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["train.spacy", "validation.spacy"]


def test_documents_whose_names_speak_of_splits_are_one_corpus(tmp_path):
    """A story about a train is not the training data: without it all other documents would be left aside."""
    words = {"tokens": ["Bonn"], "entities": [{"start": 0, "end": 1, "label": "LOC"}]}
    for folder, names in {"one": ["a", "a-test", "story-train"], "two": ["test", "train"]}.items():
        write_cas([{"id": name, "doc_id": name, **words} for name in names], tmp_path / folder)
    assert {split: len(rows) for split, rows in load_nested_ner(tmp_path / "one").items()} == {"train": 3}
    assert {split: len(rows) for split, rows in load_nested_ner(tmp_path / "two").items()} == {"train": 1, "test": 1}


@pytest.mark.parametrize("package, extra, name", [("spacy", "spacy", "a.spacy"), ("cassis", "cas", "a.xmi")])
def test_a_missing_package_is_one_sentence_with_the_line_that_installs_it(tmp_path, package, extra, name):
    (tmp_path / name).write_bytes(b"x")
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from hf_spanner import cli\n"
        f"sys.exit(cli.main(['convert', {str(tmp_path / name)!r}, {str(tmp_path / 'o')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and f"`pip install hf_spanner[{extra}]`" in done.stderr, done.stderr


ODD = [5, "x", [1], [None], [["a"]], {"a": 1}, True, 1.5, b"x"]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_what_a_docbin_says_of_a_document_in_another_form_is_left_aside_and_counted(tmp_path, value):
    doc = spacy.tokens.Doc(spacy.blank("xx").vocab, words=["Ann"])
    doc.spans["nested"] = [spacy.tokens.Span(doc, 0, 1, "PER")]
    doc.spans["nested"].attrs["mentions"] = value if value != [None] else {"x": 1}
    doc.user_data.update(dict.fromkeys(("doc_id", "labels", "flat", "corpus"), value))
    doc_bin = spacy.tokens.DocBin(store_user_data=True)
    doc_bin.add(doc)
    doc_bin.to_disk(tmp_path / "a.spacy")
    if value in ([1], [["a"]]):  # as many kinds as entities, but none that has a name
        with pytest.raises(ValueError, match=r"row 0: mention \S+ of span"):
            read_file(tmp_path / "a.spacy")
        return
    (sentence,), report = read_file(tmp_path / "a.spacy")
    assert sentence["entities"] == [{"start": 0, "end": 1, "label": "PER"}]
    fit = {"x": {"corpus"}, True: {"flat"}}.get(value, set()) if isinstance(value, str | bool) else set()
    assert {"labels", "flat", "corpus"} & sentence.keys() == fit
    assert sum(report.ignored.values()) == 3 - len(fit)
    assert len(load_nested_ner(tmp_path / "a.spacy")["train"]) == 1


def test_the_annotations_of_a_cas_whose_view_has_no_text_are_counted_as_lost(tmp_path):
    entities = [{"start": 0, "end": 1, "label": "PER"}, {"start": 0, "end": 2, "label": "ORG"}]
    write_cas([{"id": "0", "doc_id": "0", "tokens": ["Ann", "Ltd"], "entities": entities}], tmp_path / "cas")
    (file,) = (tmp_path / "cas").glob("*.xmi")
    file.write_text(file.read_text(encoding="utf-8").replace("_InitialView", "_Other"), encoding="utf-8")
    sentences, report = read_file(tmp_path / "cas")
    assert sentences == [] and report.lost == {"annotation of a document without a text": 2}
