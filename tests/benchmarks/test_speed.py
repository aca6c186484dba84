"""The benchmarks run, and their ratios mean what their names say. The figures themselves are not tested."""

import pytest
from approaches import ROWS
from tests_support import LABELS

from hf_spanner.benchmarks.cold_start import compare_cold_start
from hf_spanner.benchmarks.reading_speed import compare_speed, count_spans
from hf_spanner.benchmarks.training_speed import compare_training

SENTENCE = {"id": "1", "tokens": ["the", "mayor", "of", "New", "York"], "entities": []}
SENTENCE["entities"] = [{"start": 0, "end": 5, "label": LABELS[0]}]


@pytest.fixture
def models(tokenizer, tmp_path) -> dict[str, str]:
    rows = {row.name: row for row in ROWS}
    for name in ("span_ner", "sng"):
        rows[name].make(tokenizer).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    return {name: str(tmp_path / name) for name in ("span_ner", "sng")}


def test_speed_is_relative_to_the_first_model_and_to_the_encoder_where_there_is_one(models):
    span_ner, sng = compare_speed(models, [SENTENCE] * 4, batch_size=2, repeats=1)
    assert span_ner["speed relative to span_ner"] == 1.0 and sng["speed relative to span_ner"] > 0
    assert span_ner["share of the bare encoder"] > 0 and span_ner["share of the bare encoder, sorted"] > 0
    assert sng["share of the bare encoder"] is None and sng["share of the bare encoder, sorted"] is None
    assert span_ner["sentences per second"] > 0 and "share kept" not in span_ner  # neither has a filter
    without, _ = compare_speed(models, [SENTENCE] * 4, batch_size=2, repeats=1, floors=False)
    assert without["speed relative to span_ner"] == 1.0 and without["share of the bare encoder"] is None


def test_what_a_filter_keeps_is_counted_in_the_words_of_the_corpus(tokenizer):
    model = {row.name: row for row in ROWS}["locate_and_label"].make(tokenizer, max_span_length=3)
    sentences = [SENTENCE, {"tokens": ["New-York/London"], "entities": []}]  # 5 + 4 + 3 and 1 seeds
    counts = count_spans(model, tokenizer, sentences, batch_size=1)
    assert counts["seeds a sentence"] == 13 / 2 and 0 <= counts["share labelled"] <= counts["share kept"] <= 1
    model.config.filter_threshold = 0.0
    counts = count_spans(model, tokenizer, sentences)
    assert counts["share kept"] == 1 and counts["kept an entity"] == 13
    assert count_spans(model, tokenizer, sentences[1:])["kept an entity"] is None
    other = {row.name: row for row in ROWS}["span_ner"].make(tokenizer)
    assert set(count_spans(other, tokenizer, sentences).values()) == {None}


def test_training_speed_is_relative_to_the_first_model(models):
    rows = compare_training(models, [SENTENCE] * 3, batch_size=2, repeats=1)
    assert [row["model"] for row in rows] == ["span_ner", "sng"]
    assert rows[0]["training speed relative to span_ner"] == 1.0 and rows[1]["training speed relative to span_ner"] > 0


@pytest.mark.slow
def test_the_default_model_answers_within_three_times_a_token_classifiers_time():
    figures = compare_cold_start(repeats=3)
    assert figures["ratio"] < 3
