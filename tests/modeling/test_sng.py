"""SNG: the authors' numbers, the grid against a run for each span, and life without an encoder."""

import numpy as np
import pytest
import torch
from tests_support import LABELS, SENTENCES, make_batch, read_oracle, records, without_gold
from transformers import pipeline

import hf_spanner
from hf_spanner.building.vectors import WordVectors
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.loading import load_tokenizer
from hf_spanner.metrics import format_scores, score_typing
from hf_spanner.modeling.modeling_sng import SngConfig, SngForNestedNer
from hf_spanner.modeling.sng_networks import GivenSpans, by_end, by_start
from hf_spanner.training import NestedNerTrainer, NestedNerTrainingArguments

WORDS = sorted({word for words, _ in SENTENCES for word in words} - {"Bank"})  # one word has no vector


def vectors(dim: int = 12) -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), dim)).astype(np.float32))


def make(**settings) -> tuple[SngForNestedNer, object]:
    torch.manual_seed(0)
    words = vectors()
    settings = {"lstm_size": 8, "max_span_length": 12, **settings}
    return SngForNestedNer.from_vectors(words.table(), labels=LABELS, **settings).eval(), words.tokenizer()


# --------------------------------------------------------------------------------------------- the authors' numbers


@pytest.fixture
def oracle() -> dict:
    return read_oracle("sng.pt")


def load_state(model: SngForNestedNer, state: dict) -> SngForNestedNer:
    own = {name.replace("out.", "output."): value for name, value in state.items() if not name.startswith("embedding")}
    model.network.load_state_dict(own)
    return model


def oracle_batch(ids: torch.Tensor, entities: list[tuple[int, int, int]]) -> dict[str, torch.Tensor]:
    return {
        "input_ids": ids,
        "word_ids": torch.arange(ids.size(1)).unsqueeze(0),
        "num_words": torch.tensor([ids.size(1)]),
        "entities": torch.tensor([entities]),
    }


def oracle_model(oracle: dict, **settings) -> SngForNestedNer:
    state = oracle["state0"]
    model = SngForNestedNer.from_vectors(state["embedding.weight"], lstm_size=4, **settings)
    return load_state(model, state)


def test_logits_and_attention_of_given_spans_are_the_authors(oracle):
    model = oracle_model(oracle, labels=["a", "b", "c"], spans="gold")
    cases = oracle["forward"]
    spans = [(case["left"], case["right_inclusive"] + 1, -1) for case in cases]
    logits = model(**oracle_batch(oracle["X"], spans)).logits[0]
    start, end, _ = torch.tensor(spans).unbind(-1)
    words = model.encoder(oracle["X"]).last_hidden_state
    given = GivenSpans.of(words, torch.zeros_like(start), start, end)
    _, weights = model.network.score(given)
    for number, case in enumerate(cases):
        assert torch.allclose(logits[number], case["logits"][0], atol=1e-6, rtol=0)
        mine = weights[given.order[given.span] == number]
        assert torch.allclose(mine, case["attention"][0], atol=1e-6, rtol=0)


def test_the_grid_holds_the_authors_logits_too(oracle):
    model = oracle_model(oracle, labels=["b", "c"], max_span_length=7)  # with none there are three classes
    batch = without_gold(oracle_batch(oracle["X"], []))
    logits = model(**batch).logits[0]
    for case in oracle["forward"]:
        left, right = case["left"], case["right_inclusive"]
        assert torch.allclose(logits[left, right - left], case["logits"][0], atol=1e-6, rtol=0)


def test_three_full_batch_adam_steps_are_the_authors(oracle):
    """One backward pass a sentence, one step an epoch: gradients add up over the whole training data."""
    model = oracle_model(oracle, labels=["a", "b", "c"], spans="gold", full_batch=True).train()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for step in oracle["train_trace"]:
        optimizer.zero_grad()
        total = 0.0
        for ids, entities in oracle["train_data"]:
            loss = model(**oracle_batch(ids, [(s, e + 1, label) for s, e, label in entities])).loss
            loss.backward()
            total += loss.item()
        optimizer.step()
        assert total == pytest.approx(step["loss_sum"], abs=1e-6)
        expected = load_state(oracle_model(oracle, labels=["a", "b", "c"], spans="gold"), step["state"])
        for name, parameter in model.named_parameters():
            assert torch.allclose(parameter, expected.get_parameter(name), atol=1e-6, rtol=0), name


def test_the_papers_f1_is_a_function_of_the_accuracy(oracle):
    for row in oracle["reported"].values():
        assert row["f1_claimed"] == pytest.approx(2 * row["acc"] / (1 + row["acc"]))
    scores = score_typing([[(0, 1, "A"), (1, 2, "B")]] * 4, [[(0, 1, "A"), (1, 2, "A")]] * 4)
    assert scores["typing_accuracy"] == 0.5 and scores["paper_f1"] == pytest.approx(2 / 3)
    assert "f1" not in scores and "recall" not in scores
    assert "says nothing about finding entities" in format_scores(scores)


# ------------------------------------------------------------------------------------------- the grid, span by span


@pytest.mark.parametrize("network", ["bilstm_attention", "bag"])
@pytest.mark.parametrize("length, max_span", [(1, 1), (7, 7), (9, 4)])
def test_the_grid_equals_a_run_for_each_span(network, length, max_span):
    model, _ = make(span_network=network)
    words = torch.randn(2, length, 12, dtype=torch.float64)
    net = model.network.double()
    grid = net(words, max_span)
    cells = [(b, i, k) for b in range(2) for i in range(length) for k in range(max_span) if i + k < length]
    row, start, size = torch.tensor(cells).unbind(-1)
    alone, _ = net.score(GivenSpans.of(words, row, start, start + size + 1))
    assert torch.allclose(grid[row, start, size], alone, atol=1e-12)


def test_by_end_is_the_inverse_of_by_start():
    x = torch.randn(2, 5, 3, 4)
    y = by_start(x)
    assert torch.equal(y[:, 1, 2], x[:, 3, 2])
    inside = by_end(torch.ones_like(x)) > 0  # spans that begin in the text
    assert torch.equal(by_end(y)[inside], x[inside])


def test_words_outside_a_span_change_nothing():
    model, tokenizer = make()
    with torch.no_grad():
        a = model(**without_gold(make_batch(tokenizer, [("the mayor of New York".split(), [])]))).logits
        b = model(**without_gold(make_batch(tokenizer, [("met head of New London".split(), [])]))).logits
    assert torch.allclose(a[0, 2, :2], b[0, 2, :2])  # "of", "of New"
    assert not torch.allclose(a[0, 2, 2], b[0, 2, 2])


@pytest.mark.parametrize("network", ["bilstm_attention", "bag"])
def test_a_given_span_of_500_words_is_typed(network):
    model, tokenizer = make(spans="gold", span_network=network)
    words = (WORDS * 40)[:500]
    sentence = {"tokens": words, "entities": [{"start": 0, "end": 500}, {"start": 3, "end": 4}]}
    (found,) = predict_sentences(model, tokenizer, [sentence])
    assert [(e.start, e.end) for e in found] == [(0, 500), (3, 4)]
    assert all(0 < e.score <= 1 for e in found)


# -------------------------------------------------------------------------------------------------- typing given spans


def test_given_spans_need_no_label_and_padding_is_left_out():
    model, tokenizer = make(spans="gold")
    batch = make_batch(tokenizer)
    labelled = model(**batch)
    batch["entities"] = torch.where(torch.tensor([True, True, False]), batch["entities"], -1)
    bare = model(**batch)
    assert torch.equal(labelled.logits, bare.logits)
    assert bare.loss == 0 and labelled.loss > 0
    assert [len(found) for found in model.decode(bare)] == [6, 1, 1, 0, 5]  # two labels on one span: one type


def test_all_given_spans_stand_even_if_they_cross():
    model, tokenizer = make(spans="gold")
    sentence = {
        "tokens": "the mayor of New York".split(),
        "entities": [{"start": 0, "end": 3}, {"start": 2, "end": 5}],
    }
    (found,) = predict_sentences(model, tokenizer, [sentence])
    assert len(found) == 2


def test_the_pipeline_says_in_a_sentence_that_it_cannot_find_given_spans():
    model, tokenizer = make(spans="gold")
    with pytest.raises(ValueError, match="types spans that are given and cannot find entities in a text"):
        pipeline("nested-ner", model=model, tokenizer=tokenizer)("the mayor of New York")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"spans": "some"}, "spans='some' is unknown"),
        ({"span_network": "tree"}, "span_network='tree' is unknown"),
        ({"spans": "gold", "multi_label": True}, "one type"),
        ({"max_negatives": 0}, "max_negatives=0"),
        ({"max_span_length": None}, "max_span_length=None"),
        ({"vector_dim": 50}, "vector_dim=50, but the word vectors have 12"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_there_is_no_encoder_to_build_on():
    with pytest.raises(ValueError, match="from_vectors"):
        SngForNestedNer.from_encoder("bert-base-cased", labels=LABELS)


# --------------------------------------------------------------------------------- save, load, pipeline, train


@pytest.mark.parametrize("settings", [{}, {"span_network": "bag"}, {"spans": "gold"}], ids=["all", "bag", "gold"])
def test_saved_and_loaded_gives_the_same_answers(settings, tmp_path):
    model, tokenizer = make(**settings)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, words = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path).eval(), load_tokenizer(tmp_path)
    assert isinstance(loaded, SngForNestedNer) and loaded.config.encoder_config is None
    assert not loaded.encoder.vectors.requires_grad  # still frozen
    with torch.no_grad():
        assert torch.equal(model(**make_batch(tokenizer)).logits, loaded(**make_batch(words)).logits)


def test_frozen_vectors_stay_and_free_ones_move():
    for frozen in (True, False):
        model, tokenizer = make(freeze_vectors=frozen)
        before = model.encoder.vectors.clone()
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
        model.train()(**make_batch(tokenizer)).loss.backward()
        optimizer.step()
        assert torch.equal(before, model.encoder.vectors) == frozen


def test_a_text_of_only_unknown_words_is_read():
    model, tokenizer = make()
    ner = pipeline("nested-ner", model=model, tokenizer=tokenizer)
    text = "zxcv qwerty 東京 !!"
    assert all(text[e["start"] : e["end"]] == e["word"] for e in ner(text, threshold=0.0))
    batch = make_batch(tokenizer, [(text.split(), [])])
    assert (batch["input_ids"] == tokenizer.unk_token_id).all()
    assert torch.isfinite(model(**without_gold(batch)).logits).all()


def train(tmp_path, epochs=25, **settings):
    model, tokenizer = make(**settings)
    args = NestedNerTrainingArguments(
        str(tmp_path), num_train_epochs=epochs, learning_rate=0.02, weight_decay=0.0, warmup_steps=0, max_grad_norm=0,
        per_device_train_batch_size=2, lr_scheduler_type="constant", eval_strategy="no", save_strategy="no",
        load_best_model_at_end=False, use_cpu=True, report_to=[], disable_tqdm=True,
    )  # fmt: skip
    data = records()
    trainer = NestedNerTrainer(
        model=model, args=args, train_dataset=data, eval_dataset=data, processing_class=tokenizer
    )
    trainer.train()
    return trainer


def test_the_trainer_teaches_it_to_find_entities(tmp_path):
    scores = train(tmp_path, epochs=60).evaluate()
    assert scores["eval_recall"] > 0.7 and scores["eval_precision"] > 0.7


def test_the_trainer_teaches_it_to_type_and_names_the_score_honestly(tmp_path):
    scores = train(tmp_path, spans="gold").evaluate()
    assert scores["eval_typing_accuracy"] > 0.8 and scores["eval_support"] == 14
    assert "eval_f1" not in scores


def test_full_batch_takes_one_step_an_epoch(tmp_path):
    trainer = train(tmp_path, epochs=3, spans="gold", full_batch=True)
    assert trainer.state.global_step == 3


@pytest.mark.parametrize("spans", ["gold", "all"])
def test_full_batch_steps_do_not_depend_on_the_batches(spans):
    """The loss is summed over spans: however the data is cut into batches, the step of an epoch is the same."""
    weights = []
    for size in (1, 5):
        model, tokenizer = make(spans=spans, full_batch=True, max_negatives=None)
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
        for first in range(0, 5, size):
            model(**make_batch(tokenizer, SENTENCES[first : first + size])).loss.backward()
        optimizer.step()
        weights.append(model.network.output.weight.detach().clone())
    assert torch.allclose(*weights, atol=1e-6)


@pytest.mark.parametrize("spans", ["gold", "all"])
def test_a_full_batch_loss_is_the_sum_over_spans_that_is_else_a_mean(spans):
    sentences = [("New York is here".split(), [(0, 2, "place name"), (0, 1, "ORG")])]
    losses = []
    for full_batch in (True, False):
        model, tokenizer = make(spans=spans, full_batch=full_batch, max_negatives=None, max_span_length=3)
        losses.append(model(**make_batch(tokenizer, sentences)).loss.item())
    count = 2 if spans == "gold" else 4 + 3 + 2
    assert losses[0] == pytest.approx(count * losses[1], rel=1e-5)


def test_the_configuration_survives_a_round_trip(tmp_path):
    SngConfig(labels=LABELS, vocab_size=9, vector_dim=5, spans="gold").save_pretrained(tmp_path)
    config = SngConfig.from_pretrained(tmp_path)
    assert (config.hidden_size, config.spans, config.overlap, config.labels) == (5, "gold", "any", LABELS)
