"""Kinds of mention: `person:nominal` is a person and a nominal, in every approach; probabilities of kinds add up."""

import pytest
import torch
from approaches import ROWS
from hypothesis import given
from hypothesis import strategies as st
from tests_support import LABELS, encoder_config, make_batch, without_gold

import hf_spanner
from hf_spanner.loading import load_config, load_model, pipeline
from hf_spanner.modeling.decoding import (
    Entity,
    Trim,
    entities_to_tensor,
    span_candidates,
    split_mention,
    tensor_to_entities,
    with_mention,
)
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig
from hf_spanner.modeling.reading import Reader, TextEncoder

KINDS = ["name", "nominal"]
NAMES = ["PER:name", "PER:nominal", *LABELS[2:]]  # as many labels as the matrix has


def with_kinds(row, tokenizer, **settings):
    """A model of the matrix whose first two labels are kinds of one."""
    torch.manual_seed(0)
    model = row.make(tokenizer, **settings)
    model.config.id2label = dict(enumerate(NAMES))
    model.config.label2id = {label: i for i, label in enumerate(NAMES)}
    model.config.mentions = KINDS
    return model


def test_names_are_put_together_and_taken_apart():
    assert with_mention("PER", "name") == "PER:name" and with_mention("PER", None) == "PER"
    assert split_mention("PER:name", KINDS) == ("PER", "name")
    assert split_mention("a:b", KINDS) == ("a:b", "name")  # a colon of its own
    assert split_mention("PER:name", None) == ("PER:name", None)
    assert split_mention(":name", KINDS) == (":name", "name")


def test_a_configuration_knows_types_and_kinds():
    config = SpanNerConfig(
        encoder_config=encoder_config("bert", 50).to_dict(), labels=["PER:nominal", "ORG", "PER:name"], mentions=KINDS
    )
    assert config.types == ["PER", "ORG"] and config.label_types == [0, 1, 0]
    assert config.thresholds({"PER": 0.4}) == [0.4, None, 0.4] and config.thresholds(0.3) == [0.3] * 3
    assert config.thresholds({"PER": 0.4, "PER:name": 0.2, "ORG": 0.3}) == [0.4, 0.3, 0.2]  # a kind before its type
    assert config.thresholds({"PER:name": 0.0}) == [None, None, 0.0]
    with pytest.raises(ValueError, match="unknown label 'ORG:name'"):
        config.thresholds({"ORG:name": 0.4})
    assert config.with_labels(["PER:name", "GPE"]).mentions == KINDS
    assert config.with_labels(["PER", "GPE"]).mentions is None  # nothing is left to tell apart
    plain = SpanNerConfig(encoder_config=encoder_config("bert", 50).to_dict(), labels=["a:b", "c"])
    assert plain.types == ["a:b", "c"] and plain.label_types is None


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"mentions": "name"}, "mentions must be a list of names, not the string 'name'"),
        ({"mentions": []}, "mentions is empty"),
        ({"shown_mentions": ["name"]}, "does not tell kinds of mention apart"),
        ({"mentions": KINDS, "shown_mentions": ["pronoun"]}, "names 'pronoun'; this model tells name, nominal apart"),
    ],
)
def test_bad_kinds_are_said(field, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SpanNerConfig(encoder_config=encoder_config("bert", 50).to_dict(), labels=["PER:name"], **field)


def test_probabilities_of_kinds_add_up_by_hand():
    """none 0.40, PER:name 0.25, ORG 0.05, PER:nominal 0.30: a person (0.55), a nominal; alone neither beats none."""
    logits = torch.tensor([0.40, 0.25, 0.05, 0.30]).log().view(1, 1, 1, 4)
    mask, labels = torch.ones(1, 1, 1, dtype=torch.bool), ["PER:name", "ORG", "PER:nominal"]
    assert span_candidates(logits, mask, labels, [None] * 3) == [[]]
    ((entity,),) = span_candidates(logits, mask, labels, [None] * 3, types=[0, 1, 0])
    assert entity == Entity(0, 1, "PER:nominal", pytest.approx(0.55))
    assert span_candidates(logits, mask, labels, [0.6, 0.1, 0.6], types=[0, 1, 0]) == [[]]
    ((entity,),) = span_candidates(logits, mask, labels, [0.5, 0.1, 0.5], types=[0, 1, 0])
    assert entity.label == "PER:nominal"


@given(st.integers(0, 10**6), st.sampled_from([None, 0.0, 0.2, 0.7]))
def test_labels_that_are_no_kinds_are_found_as_ever(seed, threshold):
    torch.manual_seed(seed)
    logits, mask = 2 * torch.randn(2, 4, 3, 5), torch.rand(2, 4, 3) < 0.7
    labels = ["a", "b", "c", "d"]
    found = [span_candidates(logits, mask, labels, [threshold] * 4, types=types) for types in (None, [0, 1, 2, 3])]
    assert [[e[:3] for e in row] for row in found[0]] == [[e[:3] for e in row] for row in found[1]]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_approach_tells_type_and_kind(row, tokenizer, tmp_path):
    model = with_kinds(row, tokenizer)
    batch = make_batch(tokenizer)
    if model.task == "typing":
        given = {
            **batch,
            "entities": torch.cat([batch["entities"][..., :2], -torch.ones_like(batch["entities"][..., :1])], -1),
        }
    else:
        given = without_gold(batch)
    with torch.no_grad():
        torch.manual_seed(1)
        found = model.decode(model(**given), threshold=0.0)
    assert any(found)
    for entity in (entity for entities in found for entity in entities):
        assert entity.label in model.config.types and entity.mention in KINDS
        assert entity.label == "PER" or entity.mention == "name"
    rows = entities_to_tensor(found, model.config.label2id)
    assert tensor_to_entities(rows, model.config.id2label, KINDS) == found
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    assert again.config.mentions == KINDS and again.config.types == model.config.types
    with torch.no_grad():
        torch.manual_seed(1)
        assert again.decode(again(**given), threshold=0.0) == found


@pytest.fixture(scope="module")
def model(tokenizer):
    return with_kinds(next(row for row in ROWS if row.name == "span_ner"), tokenizer)


def test_gold_goes_to_the_label_of_its_kind(model, tokenizer):
    entities = [
        {"start": 0, "end": 1, "label": "PER", "mention": "nominal"},
        {"start": 1, "end": 2, "label": LABELS[2], "mention": None},
        {"start": 2, "end": 3, "label": LABELS[2], "mention": "name"},  # of this label it knows no kinds
    ]
    encoder = TextEncoder(model.config, tokenizer)
    sentence = {"id": "1", "tokens": ["a", "b", "c"], "entities": entities, "labels": ["PER:name", LABELS[2]]}
    (item,) = encoder.cut_sentences([sentence], gold=True)[0].items
    assert item["entities"] == [(0, 1, 1), (1, 2, 2), (2, 3, 2)]
    assert item["annotated_labels"][:3] == [True, False, True]
    (item,) = encoder.cut_sentences([{**sentence, "labels": ["PER"]}], gold=True)[0].items
    assert item["annotated_labels"][:3] == [True, True, False]
    with pytest.raises(ValueError, match="has an unknown label"):
        encoder.cut_sentences([{**sentence, "entities": [{"start": 0, "end": 1, "label": "PER"}]}], gold=True)


def test_the_pipeline_shows_the_kinds_it_is_asked_for(model, tokenizer):
    ner = hf_spanner.pipeline(model, tokenizer, threshold=0.0, overlap="any")
    text = "the mayor of New York"
    every = ner(text)
    assert {e["mention"] for e in every} == set(KINDS)
    for kind in KINDS:
        assert ner(text, mentions=kind) == ner(text, mentions=[kind]) == [e for e in every if e["mention"] == kind]
    assert ner(text, mentions=KINDS) == every
    assert {e["entity_group"] for e in ner(text, labels=["PER"], mentions="nominal")} == {"PER"}
    with pytest.raises(ValueError, match="mentions names 'pronoun'; this model tells name, nominal apart"):
        ner(text, mentions="pronoun")
    with pytest.raises(ValueError, match="labels names 'PER:name'; this model knows PER"):
        ner(text, labels=["PER:name"])
    model.config.shown_mentions = ["name"]
    try:
        assert ner(text) == [e for e in every if e["mention"] == "name"] and ner(text, mentions=KINDS) == every
        reader = Reader(model, tokenizer)  # what is scored is all that is found
        (read,) = reader.read([reader.cut(text.split())], threshold=0.0)
        assert {entity.mention for entity in read} == set(KINDS)
    finally:
        model.config.shown_mentions = None


def test_a_model_that_does_not_know_says_so(tokenizer):
    plain = next(row for row in ROWS if row.name == "span_ner").make(tokenizer)
    ner = hf_spanner.pipeline(plain, tokenizer)
    with pytest.raises(ValueError, match=r"mentions=\['name'\]: this model does not tell kinds of mention apart"):
        ner("New York", mentions="name")
    assert all("mention" not in e for e in ner("New York", threshold=0.0))


def test_names_lose_articles_and_possessives_where_names_alone_are_looked_for():
    trim = Trim(["name"], before=["the"], after=["'s"])
    words = "The Bank of England met Bush ' s aides in The Hague and the the .".split()

    def cut(start, end):
        return trim([Entity(start, end, "X")], words)[0][:2]

    assert cut(0, 4) == (1, 4)  # a sentence begins with it
    assert cut(10, 12) == (10, 12)  # inside a sentence it is part of a name
    assert cut(5, 8) == (5, 6)  # the possessive is cut in two
    assert cut(13, 15) == (14, 15)  # one word stays
    assert trim.applies({"name"}) and not trim.applies(["name", "nominal"]) and not trim.applies(None)


def test_of_entities_that_are_the_same_when_trimmed_the_best_is_kept():
    trim = Trim(["name"], before=["the"])
    found = trim([Entity(0, 2, "X", 0.5), Entity(1, 2, "X", 0.8), Entity(1, 2, "Y", 0.3)], ["the", "Hague"])
    assert found == [Entity(1, 2, "X", 0.8), Entity(1, 2, "Y", 0.3)]


def test_the_pipeline_trims_names_and_no_phrases(tmp_path):
    model, tokenizer = load_model("default")
    model.config.trim = {"mentions": ["name"], "before": ["the"], "after": ["'s"]}
    ner = pipeline(model, tokenizer)
    text = "He works for the University of Zurich."
    names = [e["word"] for e in ner(text, mentions="name")]
    assert "University of Zurich" in names and "the University of Zurich" not in names
    assert "the University of Zurich" in [e["word"] for e in ner(text, mentions=["name", "nominal"])]
    model.save_pretrained(tmp_path)
    assert load_config(str(tmp_path)).trim == model.config.trim


@pytest.mark.parametrize(
    "trim", [{"before": ["the"]}, {"mentions": ["name"], "inside": []}, {"mentions": ["noun"]}, []]
)
def test_a_trim_that_means_nothing_is_refused(trim):
    with pytest.raises(ValueError, match="trim"):
        SpanNerConfig(labels=["PER:name", "PER:nominal"], mentions=["name", "nominal"], trim=trim)
