"""The spaCy component: what the pipeline finds, in Docs."""

import subprocess
import sys
from pathlib import Path

import pytest

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install hf_spanner[spacy]")

import hf_spanner  # noqa: E402
from hf_spanner.spacy_pipe import NestedNer  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TEXTS = [
    "The mayor of New York met the head of the Bank of England in London.",
    "",
    "  \n\n Jane   Roe's\taunt lives in Paris. ",
    "It rains.",
]


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("hf_spanner", config={"device": "cpu"})
    return nlp


@pytest.fixture(scope="module")
def ner():
    return hf_spanner.pipeline(device="cpu")


def rows(doc, key="nested"):
    group = doc.spans[key]
    scores = [pytest.approx(float(score), abs=1e-4) for score in group.attrs["scores"]]
    return [(s.start_char, s.end_char, s.label_, score) for s, score in zip(group, scores, strict=True)]


def test_spans_labels_scores_and_kinds_are_the_pipelines(nlp, ner):
    docs = list(nlp.pipe(TEXTS, batch_size=2))
    assert [doc.text for doc in docs] == TEXTS
    for doc, found in zip(docs, ner(TEXTS), strict=True):
        assert rows(doc) == [(e["start"], e["end"], e["entity_group"], e["score"]) for e in found]
        assert doc.spans["nested"].attrs.get("mentions", []) == [e["mention"] for e in found]
        assert doc.ents == ()
    assert len(docs[0].spans["nested"]) > 3
    assert rows(nlp(TEXTS[0])) == rows(docs[0])


def doc_with(nlp, words, found, **settings):
    doc = spacy.tokens.Doc(nlp.vocab, words=words, spaces=[False] * len(words))
    pipe = NestedNer(**settings)
    pipe.set_annotations(
        doc, [{"entity_group": la, "start": s, "end": e, "word": "", "score": x} for s, e, la, x in found]
    )
    return doc, pipe


@pytest.mark.parametrize(
    "alignment, expected, moved",
    [
        ("expand", [("abcdef", "X"), ("ghi", "Y")], {"expanded to whole tokens": 2}),
        ("contract", [("def", "X")], {"contracted to whole tokens": 1, "dropped": 1}),
        ("drop", [], {"dropped": 2}),
    ],
)
def test_an_entity_that_ends_inside_a_token_is_moved_as_asked_counted_and_said_once(
    nlp, caplog, alignment, expected, moved
):
    found = [(1, 6, "X", 0.9), (7, 8, "Y", 0.5)]
    doc, pipe = doc_with(nlp, ["abc", "def", "ghi"], found, alignment=alignment)
    assert [(s.text, s.label_) for s in doc.spans["nested"]] == expected and dict(pipe.moved) == moved
    assert len(caplog.records) == len(moved) and ".moved" in caplog.text


def test_entities_that_become_the_same_are_one_with_the_better_score(nlp):
    doc, pipe = doc_with(nlp, ["abc", "def"], [(0, 2, "X", 0.5), (0, 3, "X", 0.9), (0, 3, "Y", 0.1)])
    assert [row[2:] for row in rows(doc)] == [("X", pytest.approx(0.9)), ("Y", pytest.approx(0.1))]
    assert pipe.moved["merged with another entity, which is the same in tokens"] == 1


def test_other_groups_and_entities_that_are_there_stay(nlp):
    pipe = NestedNer(set_ents=True)
    doc = spacy.tokens.Doc(nlp.vocab, words=["a", "b", "c", "d"])
    doc.spans["mine"], doc.ents = [doc[0:4]], [spacy.tokens.Span(doc, 0, 1, "OLD")]
    found = [(0, 3, "X", 0.9), (4, 7, "Y", 0.9), (4, 5, "Z", 0.9)]
    entities = [{"entity_group": la, "start": s, "end": e, "word": "", "score": x} for s, e, la, x in found]
    for _ in range(2):  # a second time changes nothing
        pipe.set_annotations(doc, entities)
        assert [(e.text, e.label_) for e in doc.ents] == [("a", "OLD"), ("c d", "Y")]
        assert len(doc.spans["nested"]) == 3 and len(doc.spans["mine"]) == 1


def test_the_component_is_whole_on_disk_and_in_bytes(nlp, tmp_path):
    expected = rows(nlp(TEXTS[0]))
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert rows(loaded(TEXTS[0])) == expected
    other = spacy.blank("en")
    other.add_pipe("hf_spanner", config={"model": "gone/away", "device": "cpu"})  # nothing is loaded yet
    other.from_bytes(nlp.to_bytes())
    doc = other(TEXTS[0])
    assert rows(doc) == expected
    back = spacy.tokens.Doc(other.vocab).from_bytes(doc.to_bytes())  # Docs with scores are saved, too
    assert rows(back) == expected


def test_settings_reach_the_pipeline_and_wrong_ones_are_refused():
    nlp = spacy.blank("en")
    config = {"device": "cpu", "labels": ["place"], "threshold": 0.6, "spans_key": "places", "set_ents": True}
    pipe = nlp.add_pipe("hf_spanner", config=config)
    doc = nlp(TEXTS[0])
    assert {span.label_ for span in doc.spans["places"]} == {"place"} and doc.ents
    assert "person" in pipe.labels
    for wrong, message in ({"alignment": "guess"}, "choose one of"), ({"batch_size": 0}, "at least 1"):
        with pytest.raises(ValueError, match=message):
            spacy.blank("en").add_pipe("hf_spanner", config=wrong)


def test_nlp_evaluate_scores_the_group(nlp):
    gold = nlp(TEXTS[0])
    assert nlp.evaluate([spacy.training.Example(nlp.make_doc(TEXTS[0]), gold)])["spans_nested_f"] == 1.0


def test_the_package_once_installed_needs_no_import(tmp_path):
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    code = "import spacy; print(spacy.blank('en').add_pipe('hf_spanner').name)"
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=path)
    assert done.stdout.strip() == "hf_spanner", done.stderr
