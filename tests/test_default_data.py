"""How the default's corpora become one: what is known of each sentence, by hand."""

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


# By its file, not from `sys.path`: with `scripts/` there, `import evaluate` would find `scripts/evaluate.py`.
def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ordinary_text, default_data = script("ordinary_text"), script("default_data")
Corpus, common_kinds, take = default_data.Corpus, default_data.common_kinds, default_data.take
vary, words_of_terms = default_data.vary, default_data.words_of_terms

KINDS = {"person": ["name", "nominal"], "disease": ["name"], "chemical": ["name"], "species": ["name"]}
KINDS |= {name: ["name"] for name in ("protein", "DNA", "RNA", "cell_type", "cell_line")}
TERM_WORDS = {"disease": {"flu"}, "chemical": {"aspirin"}, "species": set()}


def sentence(words, *entities):
    return {"id": "1", "doc_id": "d", "tokens": words.split(), "entities": list(entities)}


def entity(start, end, label, mention="name"):
    return {"start": start, "end": end, "label": label, "mention": mention}


def test_a_names_corpus_says_nothing_of_nominals_and_of_terms_only_where_none_can_be():
    corpus = Corpus("tweets", {"PER": "person"}, general=True, flat=True)
    done = corpus.finish(sentence("Ann has the flu", entity(0, 1, "person")), KINDS, TERM_WORDS)
    assert "person:name" in done["labels"] and "person:nominal" not in done["labels"]
    assert "protein" in done["labels"] and "chemical" in done["labels"] and "disease" not in done["labels"]
    assert done["flat"] and done["corpus"] == "tweets" and done["doc_id"] == "tweets/d"


def test_terms_have_no_kinds_and_rare_kinds_are_counted_to_the_commonest():
    corpus = Corpus("all", {"person": "person", "Disease": "disease"}, kinds=True)
    given = sentence("the man has flu", entity(0, 2, "person", "pronoun"), entity(3, 4, "disease"))
    done = corpus.finish(given, KINDS, TERM_WORDS)
    assert [e.get("mention") for e in done["entities"]] == ["name", None]
    assert done["labels"] == ["disease", "person:name", "person:nominal"]
    many = [sentence("a", entity(0, 1, "x", "nominal"))] * 30 + [sentence("a", entity(0, 1, "x"), entity(0, 1, "y"))]
    assert common_kinds(many) == {"x": ["nominal"], "y": ["name"]}


def test_labels_are_translated_and_what_is_no_name_is_left_out():
    corpus = Corpus("docs", {"LOC": "place", "NUM": "abstract"}, kinds=True)
    given = sentence("American cash : 5 dollars", entity(0, 1, "LOC"), entity(3, 5, "NUM"), entity(1, 2, "MISC"))
    assert [e["label"] for e in corpus.translate(given, {"American"})] == ["money"]


def test_words_of_terms_stand_in_terms_often_enough():
    medicine = [sentence("flu of", entity(0, 2, "disease"))] + [sentence("of of of")] * 3
    assert words_of_terms(medicine)["disease"] == {"flu"}


def test_what_is_varied_keeps_its_entities():
    draw = random.Random(0)
    given = sentence('He said " Ann left " .', entity(3, 4, "person"))
    seen = set()
    for _ in range(300):
        done = vary(given, draw, general=True)
        assert done["entities"] == given["entities"] and done["tokens"][3].lower() == "ann"
        seen.add(" ".join(done["tokens"]))
    assert {'he said " ann left " .', 'HE SAID " ANN LEFT " .', "He said “ Ann left ” ."} <= seen


def test_fractions_of_a_pass_take_whole_documents():
    sentences = [{"doc_id": f"d{i // 4}", "n": i} for i in range(40)]
    taken = list(take(sentences, 1.5, random.Random(0)))
    assert len(taken) == 60 and taken[:40] == sentences
    assert all(sum(s["doc_id"] == f"d{i}" for s in taken[40:]) in (0, 4) for i in range(10))


def test_notice_and_card_name_every_corpus():
    plan = yaml.safe_load((ROOT / "scripts" / "default_corpora.yaml").read_text(encoding="utf-8"))
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8").lower()
    assert [name for name in plan if name not in notice] == []
    for name, entry in plan.items():
        Corpus(name, **entry)  # every key is known


def test_corpora_become_one(tmp_path, monkeypatch):
    """From folders to training data, with two corpora of our own."""
    plan = {"gum": {"labels": {"person": "person"}, "kinds": True, "general": True}}
    plan["bc5cdr"] = {"labels": {"Disease": "disease", "Chemical": "chemical", "Species": "species"}, "flat": True}
    plan["genia"] = {"labels": {name: name for name in default_data.MOLECULES}}
    rows = {
        "gum": sentence("Ann left .", entity(0, 1, "person")),
        "bc5cdr": sentence(
            "aspirin for flu in mice", entity(0, 1, "Chemical"), entity(2, 3, "Disease"), entity(4, 5, "Species")
        ),
        "genia": sentence("a b c d e", *(entity(i, i + 1, name) for i, name in enumerate(default_data.MOLECULES))),
    }
    for name in ("wikigold", "crossner"):
        rows[name] = sentence("x")
    for name, row in rows.items():
        for split in ("train", "validation"):
            file = tmp_path / "in" / name / f"{split}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(row) + "\n")
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    monkeypatch.setattr(default_data, "PLAN", tmp_path / "plan.yaml")
    default_data.main([str(tmp_path / "in"), "--output_dir", str(tmp_path / "out"), "--ordinary", "0"])
    train = [json.loads(line) for line in (tmp_path / "out" / "gold" / "train.jsonl").read_text().splitlines()]
    assert [s["corpus"] for s in train] == ["gum", "bc5cdr", "genia"]
    assert train[0]["labels"] == sorted(["person", "disease", "chemical", "species", *default_data.MOLECULES])
    with pytest.raises(TypeError):
        Corpus("x", {}, unknown=1)


def found(sentence):
    return [(default_data.words_of(sentence, e), e["label"], e["mention"]) for e in sentence["entities"]]


@pytest.mark.parametrize(
    ("words", "label", "name"),
    [
        ("the writer Mark Twain , who left", "person", "Mark Twain"),
        ("Judge Amy Jackson", "person", "Amy Jackson"),
        ("Michael Tien of NPP", "person", "Michael Tien"),
        ("Boston , where she lived", "place", "Boston"),
        ("the Royal Academy in the Louvre", "organization", "Royal Academy"),
        ("the University of NSW 's school of public health", "organization", None),  # where it is cannot be seen
    ],
)
def test_a_phrase_is_a_nominal_that_holds_a_name(words, label, name):
    whole = sentence(words, entity(0, len(words.split()), label))
    expected = [(words, label, "name")] if name is None else [(name, label, "name"), (words, label, "nominal")]
    assert found(default_data.with_bare_names(whole)) == expected


@pytest.mark.parametrize("words", ["the Bank of England", "Ludwig van Beethoven", "Procter & Gamble", "the U . S ."])
def test_a_name_stays_one(words):
    label = "person" if "van" in words else "organization"
    whole = sentence(words, entity(0, len(words.split()), label))
    assert default_data.with_bare_names(whole) == whole


def test_an_article_belongs_to_the_name_that_follows_it():
    assert found(default_data.with_articles(sentence("in the US .", entity(2, 3, "place")))) == [
        ("the US", "place", "name")
    ]
    assert default_data.with_articles(sentence("the US economy", entity(1, 2, "place"))) is None
    of_person = sentence("the Clintons .", entity(1, 2, "person"))
    assert default_data.with_articles(of_person) == of_person


def test_patterns_are_filled(tmp_path):
    """A slot in a slot is an entity in an entity; of two articles one stays; tested names are not used."""
    plan = {
        "labels": {"agency": "organization", "country": "place"},
        "patterns": ["The {agency} left {country}."],
        "fill": {
            "agency": ["the Bank of {country}", "the {country:Chile} Post", "Chile"],
            "team": ["{country:Cuba} Rangers"],
            "country": ["Peru", "Chile"],
        },
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    patterns = ordinary_text.Patterns(tmp_path / "plan.yaml", without={"chile"})
    assert patterns.fill["country"] == ["Peru"] and patterns.fill["agency"] == ["the Bank of {country}"]
    assert found(patterns.sentence("{team} won.", random.Random(0))) == [("Cuba", "place", "name")]
    row = patterns.sentence(plan["patterns"][0], random.Random(0))
    assert row["tokens"] == "The Bank of Peru left Peru .".split()
    assert {(name, label) for name, label, _ in found(row)} == {("Bank of Peru", "organization"), ("Peru", "place")}


def test_no_tested_name_is_trained_on():
    tested = ordinary_text.tested_names()
    assert {"goldman sachs", "lisbon"} <= tested
    for row in ordinary_text.sentences(300, random.Random(0)):
        names = {(ordinary_text.bare(name.lower()), label) for name, label, _ in found(row)}
        assert not {name for name, label in names if label in ("organization", "disease", "chemical")} & tested
