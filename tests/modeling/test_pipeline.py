"""The pipeline's promises, on a model with random weights that calls nearly every span an entity."""

import logging

import pytest
import torch
from approaches import ROWS
from fuzz_texts import fuzz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import LABELS, encoder_config
from transformers import pipeline
from transformers.pipelines.pt_utils import KeyDataset

import hf_spanner
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer

# Offsets are wrong where characters are odd: mix plain words with everything unicode has, lone surrogates included.
odd = st.text(alphabet=st.characters(), max_size=6)
plain = st.sampled_from(
    [
        "New",
        "York",
        "London",
        "IL-2",
        "don't",
        "U.S.",
        "café",
        "e\u0301",
        "👨‍👩‍👧",
        "\u200b",
        "\ud800",
        "\n",
        "\t",
        "3.5",
    ]
)
texts = st.lists(st.one_of(plain, odd), max_size=12).flatmap(
    lambda parts: st.sampled_from(["", " ", "  ", "\n"]).map(lambda joint: joint.join(parts))
)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_no_text_is_a_fault(row):
    """`python tests/fuzz_texts.py --count 100000` reads more of them."""
    assert fuzz(row, 2000) == []


def make_pipeline(tokenizer, **settings):
    torch.manual_seed(0)
    config = SpanNerConfig(
        encoder_config=encoder_config("bert", len(tokenizer)).to_dict(),
        labels=LABELS,
        **{"max_span_length": 4, "max_subwords": 24, **settings},
    )
    return hf_spanner.pipeline(SpanNerForNestedNer(config), tokenizer, threshold=0.0)


@pytest.fixture(scope="module")
def ner(tokenizer):
    return make_pipeline(tokenizer)


@pytest.fixture(scope="module")
def any_ner(any_tokenizer):
    return make_pipeline(any_tokenizer)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts, overlap=st.sampled_from(["flat", "nested", "any"]))
def test_the_word_is_the_text_between_start_and_end(any_ner, text, overlap):
    found = any_ner(text, overlap=overlap)
    for entity in found:
        assert text[entity["start"] : entity["end"]] == entity["word"]
        assert entity["word"] and not entity["word"][0].isspace() and not entity["word"][-1].isspace()
        assert entity["entity_group"] in LABELS and 0 <= entity["score"] <= 1
    if overlap == "any" and text.strip():  # every word is a span, and with threshold 0 every span is an entity
        assert found


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(words=st.lists(st.one_of(plain, odd), max_size=10), delimiter=st.sampled_from([" ", "", "--"]))
def test_words_as_input_keep_their_numbers(any_ner, words, delimiter):
    text = delimiter.join(words)
    for entity in any_ner(words, is_split_into_words=True, delimiter=delimiter, overlap="any"):
        assert text[entity["start"] : entity["end"]] == entity["word"]
        assert delimiter.join(words[entity["start_word"] : entity["end_word"]]) == entity["word"]


def test_lists_generators_and_datasets_give_one_answer_each_in_order(ner):
    inputs = ["New York", "", "London is here " * 20, "it"]
    expected = [ner(text) for text in inputs]

    def close(found):
        return [[(e["start"], e["end"], e["entity_group"], round(e["score"], 4)) for e in row] for row in found]

    assert close(ner(inputs)) == close(expected)
    assert close(ner(inputs, batch_size=3)) == close(expected)
    assert close(ner((text for text in inputs), batch_size=2)) == close(expected)
    dataset = KeyDataset([{"text": text} for text in inputs], "text")
    assert close(ner(dataset, batch_size=3)) == close(expected)


def test_a_generator_is_read_no_further_ahead_than_a_batch(ner):
    read = []

    def source():
        for i in range(100):
            read.append(i)
            yield "New York"

    results = ner(source(), batch_size=4)
    next(results)
    assert len(read) <= 5  # transformers looks at the first element itself


def test_datasets_of_the_datasets_library_stream_through(ner):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": ["New York", "London"]})
    assert len(list(ner(KeyDataset(data, "text"), batch_size=2))) == 2


def test_nesting_is_added_on_request(ner):
    found = ner("the mayor of New York", overlap="nested", nesting=True)
    for entity in found:
        if entity["parent"] is None:
            assert entity["depth"] == 0
        else:
            parent = found[entity["parent"]]
            assert entity["depth"] == parent["depth"] + 1
            assert parent["start"] <= entity["start"] and entity["end"] <= parent["end"]
    assert any(entity["depth"] > 0 for entity in found)


def test_word_indices_are_added_on_request(ner):
    assert {(e["start_word"], e["end_word"]) for e in ner("New York", word_indices=True, overlap="any")} == {
        (0, 1),
        (1, 2),
        (0, 2),
    }
    assert "start_word" not in ner("New York")[0]


def test_several_pretokenized_texts_are_a_list_of_lists(ner):
    found = ner([["New", "York"], ["London"], []], is_split_into_words=True, batch_size=2)
    assert len(found) == 3 and found[1][0]["word"] == "London" and found[2] == []


def test_a_text_of_a_hundred_thousand_words_is_read_to_its_end(tokenizer):
    ner = make_pipeline(tokenizer, max_span_length=1, max_subwords=128)
    text = "New York " * 50_000
    found = ner(text, batch_size=64, overlap="any")
    assert len(found) == 100_000
    assert found[-1]["end"] == len(text) - 1


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(repeats=st.integers(1, 40))
def test_windows_lose_no_span_and_double_none(ner, repeats):
    """With threshold 0 every span of at most four words is an entity: the windows must give back each exactly once."""
    words = ["New", "York", "is", "here"] * repeats
    found = ner(words, is_split_into_words=True, overlap="any")
    spans = [(e["start_word"], e["end_word"]) for e in found]
    n = len(words)
    assert sorted(spans) == [(i, i + k) for i in range(n) for k in range(1, 5) if i + k <= n]


def test_parameters_may_be_set_for_good_or_for_one_call(tokenizer, ner):
    assert ner("New York", threshold=1.0) == []
    assert ner("New York") != []
    with pytest.raises(ValueError, match="unknown label 'GPE'"):
        ner("New York", threshold={"GPE": 0.5})
    with pytest.raises(ValueError, match="Unknown overlap policy 'all'"):
        ner("New York", overlap="all")
    with pytest.raises(ValueError, match="has no 'seq' head"):
        ner("New York", head="seq")
    with pytest.raises(ValueError, match="stride=-1"):
        ner("New York", stride=-1)
    with pytest.raises(TypeError, match="no parameter 'aggregation_strategy'"):
        ner("New York", aggregation_strategy="simple")


def test_a_stride_that_could_lose_entities_is_said(ner, caplog):
    with caplog.at_level(logging.WARNING):
        ner("New York " * 30, stride=1)
    assert "no entity is lost" in caplog.text


@pytest.mark.parametrize("inputs", [3, None, {"text": "New York"}, [["New", "York"]]])
def test_what_is_no_text_is_refused_with_a_remedy(ner, inputs):
    with pytest.raises(TypeError, match="reads strings"):
        ner(inputs)


def test_what_is_no_list_of_words_is_refused_with_a_remedy(ner):
    with pytest.raises(TypeError, match="is a list of words, not 'New York'"):
        ner("New York", is_split_into_words=True)
    with pytest.raises(TypeError, match="is a list of words"):
        ner([["New", 3]], is_split_into_words=True)


def test_the_task_is_known_to_transformers(tokenizer, tmp_path):
    made = make_pipeline(tokenizer)
    made.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = pipeline("nested-ner", model=str(tmp_path), threshold=0.0)
    assert type(loaded).__name__ == "NestedNerPipeline"
    assert loaded("New York") == made("New York")


def test_left_padding_tokenizers_give_the_same_answers(tokenizer, ner):
    tokenizer.padding_side = "left"
    try:
        batch = ner(["New York", "London is here"], batch_size=2)
    finally:
        tokenizer.padding_side = "right"
    assert [len(found) for found in batch] == [len(ner(text)) for text in ("New York", "London is here")]


# ---------------------------------------------------------------------------------------------------------- context

DOCUMENT = ["the mayor of New York", "met the head", "of the Bank of England"]
WITHOUT_CONTEXT = "trained with context (context_sentences=1), and reads without it"


@pytest.fixture(scope="module")
def in_context(tokenizer):
    return make_pipeline(tokenizer, context_sentences=1, max_subwords=64)


def scores(found):
    """What was found, scores to five digits: their last bits hang on what else is in a batch."""
    return [(e["start"], e["end"], e["entity_group"], round(e["score"], 5)) for e in found]


def test_the_texts_of_a_document_are_each_others_context(in_context, tokenizer, caplog):
    records = [{"doc_id": "d", "tokens": text.split(), "entities": []} for text in DOCUMENT]
    expected = predict_sentences(in_context.model, tokenizer, records, threshold=0.0)
    found = in_context(DOCUMENT, is_document=True, word_indices=True)
    for entities, others in zip(found, expected, strict=True):
        assert [(e["start_word"], e["end_word"], e["entity_group"]) for e in entities] == [e[:3] for e in others]
        assert [e["score"] for e in entities] == pytest.approx([e.score for e in others], abs=1e-5)
    found = list(map(scores, found))
    assert list(map(scores, in_context([DOCUMENT, DOCUMENT[:1]], is_document=True)[0])) == found
    words = [text.split() for text in DOCUMENT]
    assert list(map(scores, in_context(words, is_document=True, is_split_into_words=True))) == found
    (streamed,) = in_context(iter([DOCUMENT]), is_document=True)
    assert list(map(scores, streamed)) == found
    nothing, all_of_it = in_context([[], DOCUMENT], is_document=True)
    assert nothing == [] and list(map(scores, all_of_it)) == found
    assert WITHOUT_CONTEXT not in caplog.text


def test_one_text_can_be_given_what_stands_around_it(in_context):
    document = in_context(DOCUMENT, is_document=True)
    assert scores(in_context(DOCUMENT[1], before=DOCUMENT[0], after=DOCUMENT[2])) == scores(document[1])
    assert scores(in_context(DOCUMENT[0], after=DOCUMENT[1])) == scores(document[0])
    words = DOCUMENT[1].split()
    around = {"before": DOCUMENT[0].split(), "after": DOCUMENT[2].split()}
    assert scores(in_context(words, is_split_into_words=True, **around)) == scores(document[1])
    assert scores(in_context(DOCUMENT[1])) != scores(document[1])


def test_a_model_trained_with_context_says_once_that_it_reads_without(tokenizer, caplog):
    ner = make_pipeline(tokenizer, context_sentences=1)
    ner("the mayor"), ner(["New York", "London"])
    assert caplog.text.count(WITHOUT_CONTEXT) == 1


def test_a_model_trained_without_context_says_so_if_it_is_given_some(tokenizer, caplog):
    ner = make_pipeline(tokenizer)
    ner("the mayor", before="New York"), ner("the mayor", before="New York")
    assert caplog.text.count("trained without context") == 1
    caplog.clear()
    assert ner(DOCUMENT, is_document=True) == ner(DOCUMENT) and caplog.text == ""


def test_evaluation_of_a_context_model_says_which_sentences_are_read_alone(tokenizer, caplog):
    model = make_pipeline(tokenizer, context_sentences=1).model
    records = [{"doc_id": doc, "tokens": ["London"], "entities": []} for doc in ("d", None)]
    predict_sentences(model, tokenizer, records)
    assert "1 of 2 sentences have no doc_id" in caplog.text


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (["a", "b"], {"before": "c"}, "one text"),
        (["a", "b"], {"is_document": True, "before": "c"}, "have each other"),
        ("a", {"is_document": True}, "not one string"),
        ([["a", "b"]], {}, "is_split_into_words=True"),
    ],
)
def test_texts_that_do_not_fit_their_context_are_refused(ner, inputs, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ner(inputs, **options)


def test_a_model_in_training_is_left_in_training(tokenizer):
    ner = make_pipeline(tokenizer)
    ner.model.train()
    first = ner("the mayor of New York")
    assert ner.model.training and ner("the mayor of New York") == first


# -------------------------------------------------------------------------------------------------------------- labels

SENTENCE = "the mayor of New York met the head of the Bank of England in London"


def test_labels_that_are_not_asked_for_are_as_if_unknown(ner):
    everything = ner(SENTENCE, threshold=0.0, overlap="any")
    assert len({e["entity_group"] for e in everything}) > 1
    for label in LABELS:
        found = ner(SENTENCE, threshold=0.0, overlap="any", labels=[label])
        assert scores(found) == scores([e for e in everything if e["entity_group"] == label])
    # a label that is left out takes no room either
    flat = ner(SENTENCE, threshold=0.0, overlap="flat", labels=[LABELS[0]])
    assert flat and {e["entity_group"] for e in flat} == {LABELS[0]}
    assert ner(SENTENCE, threshold=0.0, labels=[]) == []


def test_labels_are_renamed_on_the_way_out_and_duplicates_merge(ner):
    before = ner(SENTENCE, threshold=0.0, overlap="any")
    renamed = ner(SENTENCE, threshold=0.0, overlap="any", label_map={LABELS[0]: "x"})
    names = [("x" if e["entity_group"] == LABELS[0] else e["entity_group"]) for e in before]
    assert [e["entity_group"] for e in renamed] == names
    merged = ner(SENTENCE, threshold=0.0, overlap="any", label_map=dict.fromkeys(LABELS, "one"), nesting=True)
    best: dict = {}
    for e in before:
        best[e["start"], e["end"]] = max(e["score"], best.get((e["start"], e["end"]), 0))
    assert {(e["start"], e["end"]): e["score"] for e in merged} == pytest.approx(best)
    assert len(merged) == len(best) and all(e["parent"] is None or e["parent"] < i for i, e in enumerate(merged))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"labels": ["PERSON"]}, "labels names 'PERSON'; this model knows"),
        ({"labels": "PER"}, "labels='PER' is one string"),
        ({"label_map": {"PERSON": "PER"}}, "label_map names 'PERSON'; this model knows"),
    ],
)
def test_unknown_labels_are_refused_with_those_that_are_known(ner, given, message):
    with pytest.raises(ValueError, match=message):
        ner(SENTENCE, **given)
