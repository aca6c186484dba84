import pytest
import torch
from tests_support import LABELS, encoder_config, records

from hf_spanner.metrics import score_entities
from hf_spanner.modeling.decoding import Entity
from hf_spanner.modeling.modeling_seq_ner import SeqNerConfig, SeqNerForNestedNer
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer
from hf_spanner.training import NestedNerCollator, NestedNerDataset, unreachable
from hf_spanner.training.reach import reach_report


def config(**settings):
    return SpanNerConfig(encoder_config=encoder_config("bert", 200).to_dict(), labels=LABELS, **settings)


def as_set(sentences):
    return {(i, e["start"], e["end"], e["label"]) for i, s in enumerate(sentences) for e in s["entities"]}


def test_four_deep_nesting_and_two_labels_survive_from_data_to_batch_to_metric(tokenizer):
    """What goes in as records comes out of the batch's tensor, and scores 1.0 against itself."""
    dataset = NestedNerDataset(records(), tokenizer, config())
    batch = NestedNerCollator(tokenizer.pad_token_id)([dataset[i] for i in range(len(dataset))])
    found = [[Entity(s, e, LABELS[label]) for s, e, label in row if s >= 0] for row in batch["entities"].tolist()]
    assert {(i, *e[:3]) for i, row in enumerate(found) for e in row} == as_set(records())
    assert {(0, 1, "place name"), (0, 1, "ORG")} == {e[:3] for e in found[2]}
    merged = dataset.merge(zip(map(tuple, batch["places"].tolist()), found, strict=True), "nested")
    scores = score_entities(merged, [s["entities"] for s in records()])
    assert scores["f1"] == 1.0 and scores["support"] == len(as_set(records()))


def test_a_sentence_longer_than_the_window_is_read_in_windows_and_merged_back(tokenizer):
    sentence = records()[0]
    n = len(sentence["tokens"])
    long = {
        "id": "long",
        "tokens": sentence["tokens"] * 10,
        "entities": [
            {"start": e["start"] + n * k, "end": e["end"] + n * k, "label": e["label"]}
            for k in range(10)
            for e in sentence["entities"]
        ],
    }
    dataset = NestedNerDataset([long], tokenizer, config(max_subwords=48, max_span_length=8))
    assert len(dataset) > 3 and all(len(item["input_ids"]) <= 48 for item in dataset.items)
    found = [
        (item["places"], [Entity(s, e, LABELS[label]) for s, e, label in item["entities"]]) for item in dataset.items
    ]
    (merged,) = dataset.merge(found, "nested")
    assert {e[:3] for e in merged} == {(e["start"], e["end"], e["label"]) for e in long["entities"]}


def test_a_sentence_is_trained_and_scored_against_the_labels_it_is_annotated_with(tokenizer):
    sentences = [{**sentence, "labels": LABELS if i else ["PER"]} for i, sentence in enumerate(records())]
    sentences[0]["entities"] = [e for e in sentences[0]["entities"] if e["label"] == "PER"]
    dataset = NestedNerDataset(sentences, tokenizer, config())
    batch = NestedNerCollator(tokenizer.pad_token_id)([dataset[0], dataset[1]])
    assert batch["annotated_labels"].tolist() == [[label == "PER" for label in LABELS], [True] * len(LABELS)]
    found = [Entity(0, 1, "PER"), Entity(0, 2, "ORG")]
    merged = dataset.merge([((0, 0), found), ((1, 0), found)], "nested")
    assert [e.label for e in merged[0]] == ["PER"] and {e.label for e in merged[1]} == {"PER", "ORG"}


def test_context_comes_from_the_same_document_only(tokenizer):
    sentences = [
        {"id": i, "doc_id": doc, "tokens": [word], "entities": []}
        for i, (doc, word) in enumerate([("a", "London"), ("a", "mayor"), ("b", "head"), (None, "Bank"), (None, "it")])
    ]
    dataset = NestedNerDataset(sentences, tokenizer, config(context_sentences=1))
    texts = [tokenizer.decode(item["input_ids"], skip_special_tokens=True) for item in dataset.items]
    assert texts == ["london mayor", "london mayor", "head", "bank", "it"]
    assert [sum(i >= 0 for i in item["word_ids"]) for item in dataset.items] == [
        len(tokenizer(w, add_special_tokens=False)["input_ids"]) for w in ("London", "mayor", "head", "Bank", "it")
    ]


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({"start": 0, "end": 9, "label": "PER"}, r"\[0, 9\) of sentence 'x' does not lie in its 2 words"),
        ({"start": 1, "end": 1, "label": "PER"}, "end exclusive"),
        ({"start": 2, "end": 1, "label": "PER"}, "end exclusive"),
        ({"start": -1, "end": 1, "label": "PER"}, "end exclusive"),
        ({"start": 0, "end": 1, "label": "GPE"}, "unknown label: the model knows"),
    ],
)
def test_a_wrong_entity_is_named(tokenizer, entity, message):
    with pytest.raises(ValueError, match=message):
        NestedNerDataset([{"id": "x", "tokens": ["New", "York"], "entities": [entity]}], tokenizer, config())


def test_what_is_out_of_reach_is_counted_by_reason(tokenizer):
    span = SpanNerForNestedNer(config(max_span_length=6))
    dataset = NestedNerDataset(records(), tokenizer, span.config)
    assert unreachable(dataset, span) == {"longer than max_span_length=6 words": 3, "second label on one span": 1}
    multi = SpanNerForNestedNer(config(max_span_length=12, multi_label=True))
    assert unreachable(dataset, multi) == {}
    assert "all 14 gold entities can be found" in reach_report("train", dataset, multi)
    flat = SeqNerForNestedNer(SeqNerConfig(encoder_config=encoder_config("bert", 200).to_dict(), labels=LABELS))
    assert sum(unreachable(dataset, flat).values()) == 7  # every inner entity, and the second label
    assert "are out of reach" in reach_report("train", dataset, flat)


def test_an_entity_that_no_window_holds_is_counted(tokenizer):
    tokens = ["mayor"] * 40
    sentence = {"id": "x", "tokens": tokens, "entities": [{"start": 0, "end": 40, "label": "PER"}]}
    model = SpanNerForNestedNer(config(max_span_length=50, max_subwords=24))
    dataset = NestedNerDataset([sentence], tokenizer, model.config)
    assert unreachable(dataset, model) == {"longer than a window of max_subwords=24": 1}
    assert len(dataset.gold()[0]) == 1  # and stays in the gold


def test_a_datasets_dataset_will_do(tokenizer):
    datasets = pytest.importorskip("datasets")
    from hf_spanner.data import features

    data = datasets.Dataset.from_list(records(), features=features())
    dataset = NestedNerDataset(data, tokenizer, config())
    assert as_set(dataset.sentences) == as_set(records())
    assert torch.equal(
        NestedNerCollator(0)(dataset.items)["entities"],
        NestedNerCollator(0)(NestedNerDataset(records(), tokenizer, config()).items)["entities"],
    )
