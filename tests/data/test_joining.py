"""Corpora of different labels joined for one model."""

import pytest
from datasets import Dataset, DatasetDict

from hf_spanner.data import features, join_corpora


def corpus(*labels, splits=("train", "validation")):
    sentence = {"id": "1", "doc_id": None, "tokens": ["a", "b"]}
    sentence["entities"] = [{"start": 0, "end": 1 + i % 2, "label": label} for i, label in enumerate(labels)]
    return DatasetDict({split: Dataset.from_list([sentence], features=features()) for split in splits})


def test_one_corpus_is_returned_as_it_is():
    data = corpus("PER")
    assert join_corpora({"news": data}) is data


def test_each_sentence_knows_its_corpus_and_the_labels_it_is_annotated_with():
    data = join_corpora({"some/news": corpus("PER", "ORG"), "bio": corpus("DNA", splits=("train", "test"))})
    assert {split: list(part["corpus"]) for split, part in data.items()} == {
        "train": ["news", "bio"],
        "validation": ["news"],
        "test": ["bio"],
    }
    assert list(data["train"]["labels"]) == [["ORG", "PER"], ["DNA"]]


def test_sentences_of_a_complete_corpus_are_examples_without_the_others_labels():
    data = join_corpora({"news": corpus("PER"), "bio": corpus("DNA")}, complete=["news"])
    assert list(data["train"]["labels"]) == [["DNA", "PER"], ["DNA"]]


def test_bad_names_are_said():
    with pytest.raises(ValueError, match="complete names \\['web'\\], but the corpora are"):
        join_corpora({"news": corpus("PER"), "bio": corpus("DNA")}, complete=["web"])
    with pytest.raises(ValueError, match="same name"):
        join_corpora({"a/news": corpus("PER"), "b/news": corpus("DNA")})


def test_flat_corpora_are_declared_or_recognised():
    flat, nested = corpus("PER"), corpus("PER", "ORG")  # ORG contains PER
    assert "flat" not in join_corpora({"f": flat})["train"].column_names
    alone = join_corpora({"f": flat}, flat=["f"])
    assert list(alone["train"]["flat"]) == [True] and "flat" not in alone["validation"].column_names
    assert list(join_corpora({"f": flat, "n": nested}, flat=["auto"])["train"]["flat"]) == [True, False]
    assert list(join_corpora({"f": flat, "n": nested}, flat=["n"])["train"]["flat"]) == [False, True]
    with pytest.raises(ValueError, match=r"flat names \['x'\], but the corpora are \['f'\]"):
        join_corpora({"f": flat}, flat=["x"])
