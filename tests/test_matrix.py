"""Every approach, every promise of the contract. A new approach is one row in `approaches.py`."""

import copy

import pytest
import torch
from approaches import ROWS, Row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import HALF, LABELS, SENTENCES, learn, make_batch, prepared, records, without_gold
from transformers import AutoModelForTokenClassification, pipeline

import hf_spanner
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.modeling.reading import pad_batch
from hf_spanner.relabelling import Origin, find_origins, relabel


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def row(request) -> Row:
    return request.param


@pytest.fixture(scope="module")
def model(row, tokenizer):
    torch.manual_seed(0)
    return row.make(tokenizer)


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


@pytest.fixture(scope="module")
def trained(row, tokenizer):
    """A model that has learnt the sentences of the batch by heart."""
    torch.manual_seed(0)
    model = without_dropout(row.make(tokenizer, dropout=0.0))
    batch = make_batch(tokenizer)
    model.losses = learn(model, batch, lambda: missed(row, model, batch) == set(), row.learning_rate, row.steps)
    return model


def entities_of(model, batch, **kwargs):
    with torch.no_grad():
        return model.decode(model(**without_gold(batch)), **kwargs)


def test_backward_reaches_every_parameter(row, tokenizer):
    model = row.make(tokenizer).train()
    loss = model(**make_batch(tokenizer)).loss
    assert loss.ndim == 0 and torch.isfinite(loss)
    loss.backward()
    missing = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert missing == []  # data-parallel training hangs on unused parameters


def losses_of(model, batch, seed: int = 1) -> dict[str, torch.Tensor]:
    """The terms of the loss in training, with the same draws every time."""
    torch.manual_seed(seed)
    output = model.train()(**batch)
    assert output.loss.ndim == 0 and torch.equal(output.loss, sum(output.losses.values()))
    return output.losses


def test_each_term_of_the_loss_is_positive_and_teaches_and_the_loss_is_their_sum(row, tokenizer):
    torch.manual_seed(0)
    short = (
        {} if "max_span_length" in row.settings else {"max_span_length": 6}
    )  # entities of 7, 8 and 11 words are long
    model = row.make(tokenizer, **short)
    names, parameters = set(), [p for p in model.parameters() if p.requires_grad]
    for name, term in losses_of(model, make_batch(tokenizer)).items():
        assert term.ndim == 0 and torch.isfinite(term) and term > 0, name
        gradients = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
        assert any(g is not None and g.abs().sum() > 0 for g in gradients), name
        names.add(name)
    assert ("tags" in names) == (model.tagger is not None)
    assert model.heads == ("seq",) or names - {"tags"}
    with torch.no_grad():
        output = model.eval()(**without_gold(make_batch(tokenizer)))
    assert output.loss is None and output.losses is None


@pytest.mark.parametrize("alpha", [0.3, 0.7])
def test_the_losses_of_a_bundled_model_are_alpha_of_the_tags_and_the_rest_of_the_spans(row, alpha, tokenizer):
    if row.approach == "seq_ner":
        assert row.make(tokenizer, bundle_weight=alpha).heads == ("seq",)  # there is nothing to bundle
        return
    torch.manual_seed(0)
    model = without_dropout(row.make(tokenizer, dropout=0.0, bundle_weight=alpha))
    batch = make_batch(tokenizer)
    bundled = losses_of(model, batch)
    # Each apart: the same model without bundling, and the tags' mean cross entropy over words.
    torch.manual_seed(1)
    logits = model(**batch).tag_logits
    words = torch.arange(logits.size(1)) < batch["num_words"].unsqueeze(1)
    tags = model.tagger.gold_tags(batch["entities"], logits.size(1))
    if model.config.use_crf:
        sequence = model.tagger.crf.nll(logits, tags, words).sum()
    else:
        sequence = torch.nn.functional.cross_entropy(logits[words], tags[words], reduction="sum")
    by_sentence = model.config.loss_reduction == "sentence" or (
        model.config.use_crf and model.config.crf_loss == "sentence"
    )
    sequence = sequence / (len(words) if by_sentence else words.sum())
    model.config.bundle_weight = None
    spans = losses_of(model, batch)
    assert list(bundled) == ["tags", *spans]
    assert bundled.pop("tags").item() == pytest.approx(alpha * sequence.item(), rel=1e-4)
    for name, term in bundled.items():
        assert term.item() == pytest.approx((1 - alpha) * spans[name].item(), rel=1e-4, abs=1e-7), name


def missed(row, model, batch):
    """The gold entities that the model does not find, of those that it can."""
    found = entities_of(model, batch)
    gold = {(i, *entity) for i, (_, entities) in enumerate(SENTENCES) for entity in entities}
    if not row.nested:  # only the outermost can be found
        gold = {g for g in gold if not any(g != h and g[0] == h[0] and h[1] <= g[1] and g[2] <= h[2] for h in gold)}
    elif row.approach == "sng":  # sees nothing but the span, and "London" is an ORG in one of two sentences: a toss-up
        gold -= {(2, 0, 1, "ORG")}
    if row.nested and not model.config.multi_label:  # one of two labels on one span
        gold -= {(2, 0, 1, "ORG"), (2, 0, 1, "place name")}
    return gold - {(i, *entity[:3]) for i, entities in enumerate(found) for entity in entities}


def test_loss_falls_and_the_sentences_are_learnt(row, trained, tokenizer):
    assert trained.losses[-1] < 0.5 * trained.losses[0]
    assert missed(row, trained, make_batch(tokenizer)) == set()


def test_nested_entities_are_found_nested(row, trained, tokenizer):
    found = {(e.start, e.end, e.label) for e in entities_of(trained, make_batch(tokenizer))[4]}
    if row.nested:
        assert {(0, 11, "PER"), (3, 11, "ORG"), (6, 11, "PER"), (9, 11, "place name")} <= found  # four deep
    else:
        assert (0, 11, "PER") in found


def test_saved_and_loaded_gives_identical_logits(row, trained, tokenizer, tmp_path):
    trained.save_pretrained(tmp_path)
    batch = without_gold(make_batch(tokenizer))
    for auto in (AutoModelForTokenClassification, hf_spanner.AutoModelForNestedNer):
        loaded = auto.from_pretrained(tmp_path).eval()
        assert type(loaded) is type(trained)
        mine, theirs = trained.state_dict(), loaded.state_dict()
        assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
        with torch.no_grad():
            # The last bit of a matrix product may depend on how a file's matrices lie in memory.
            assert torch.allclose(loaded(**batch).logits, trained(**batch).logits, rtol=1e-6, atol=1e-6)
    assert loaded.config.labels == LABELS
    assert loaded.config.encoder_config is None or loaded.config.encoder_config._name_or_path == ""


def test_batch_of_one_equals_batch_of_many(row, trained, tokenizer):
    many = (SENTENCES * 7)[:32]
    together = entities_of(trained, make_batch(tokenizer, many))
    for sentence, expected in zip(many, together, strict=True):
        (alone,) = entities_of(trained, make_batch(tokenizer, [sentence]))
        assert [e[:3] for e in alone] == [e[:3] for e in expected]
        assert [e.score for e in alone] == pytest.approx([e.score for e in expected], abs=1e-5)


@pytest.mark.parametrize("how", HALF)
def test_half_precision_finds_the_same_entities_but_for_those_near_the_threshold(row, how, trained, tokenizer):
    """Found by one and not by the other are at most entities of which the one is hardly sure."""
    if row.approach == "diffusion_ner":
        pytest.skip(
            "a tiny diffusion model learnt by heart moves by more than rounding: spans are generated step by step"
        )
    batch, threshold = make_batch(tokenizer), trained.config.threshold
    limit = threshold if isinstance(threshold, float) else 0.5

    def scores(model) -> dict[tuple, float]:
        found = entities_of(model, batch, overlap="any")
        return {(i, *entity[:3]): entity.score for i, entities in enumerate(found) for entity in entities}

    exact = scores(trained)
    model, context = prepared(copy.deepcopy(trained), how)
    with context:
        half = scores(model)
    assert exact
    for key in exact.keys() | half.keys():
        if key in exact and key in half:
            assert half[key] == pytest.approx(exact[key], abs=0.1), key
        else:
            assert abs(exact.get(key, half.get(key)) - limit) < 0.1, key


def test_padding_does_not_change_the_logits(row, model, tokenizer):
    short, long = SENTENCES[1], SENTENCES[0]
    with torch.no_grad():
        alone = model(**without_gold(make_batch(tokenizer, [short]))).logits
        beside = model(**without_gold(make_batch(tokenizer, [short, long]))).logits
    mask = [slice(0, n) for n in alone.shape[1:]]
    alone, beside = alone[0], beside[(0, *mask)]
    if alone.ndim == 3:  # the span grid: compare the spans that exist
        n = len(short[0])
        cells = [(i, k) for i in range(n) for k in range(alone.size(1)) if i + k < n]
        alone, beside = (torch.stack([x[c] for c in cells]) for x in (alone, beside))
    assert torch.allclose(alone, beside, atol=1e-5)


def test_gradient_checkpointing_gives_the_same_gradients(row, tokenizer):
    torch.manual_seed(0)
    model = without_dropout(row.make(tokenizer, dropout=0.0))
    model.train()
    batch, gradients = make_batch(tokenizer), []
    for on in (False, True):
        if on:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        torch.manual_seed(1)  # negatives are drawn
        model(**batch).loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))


def test_a_batch_without_entities_has_a_finite_loss_and_gradient(row, tokenizer):
    model = row.make(tokenizer).train()
    loss = model(**make_batch(tokenizer, [(["London"], []), (["it", "is"], [])])).loss
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_an_empty_sentence_has_no_entities(row, model, tokenizer):
    assert entities_of(model, make_batch(tokenizer, [([], [])])) == [[]]
    assert entities_of(model, make_batch(tokenizer, [([], []), (["London"], [])]))[0] == []


def test_words_without_subwords_are_survived(row, model, tokenizer):
    words = ["London", "\u200b", "New", "\u200d", "York", "\u200b"]
    with torch.no_grad():
        output = model(**without_gold(make_batch(tokenizer, [(words, [])])))
    assert torch.isfinite(output.logits).all()
    assert all(e.end <= len(words) for e in model.decode(output)[0])


def test_thresholds_hold_for_all_labels_or_for_one(row, trained, tokenizer):
    batch = make_batch(tokenizer)
    default = entities_of(trained, batch, overlap="any")
    assert all(e.score >= 0.99 for found in entities_of(trained, batch, threshold=0.99) for e in found)
    all_of_them = entities_of(trained, batch, threshold=0.0, overlap="any")
    assert all({e[:3] for e in a} >= {e[:3] for e in d} for a, d in zip(all_of_them, default, strict=True))
    by_label = entities_of(trained, batch, threshold={"PER": 1.0}, overlap="any")
    assert all(e.label != "PER" or e.score >= 1.0 for found in by_label for e in found)


def test_bundled_models_predict_from_either_head(row, tokenizer):
    settings = {} if row.approach == "bl_ner" else {"bundle_weight": 0.1}
    model = row.make(tokenizer, **settings)
    if model.heads == ("seq",):
        with pytest.raises(ValueError, match="has no 'span' head"):
            model.choose_head("span")
        return
    model.train()
    output = model(**make_batch(tokenizer))
    output.loss.backward()
    assert model.tagger.classifier.weight.grad.abs().sum() > 0
    model.eval()
    with torch.no_grad():
        output = model(**without_gold(make_batch(tokenizer)))
    assert output.tag_logits.shape[-1] == 2 * len(LABELS) + 1
    assert len(model.decode(output, head="span")) == len(model.decode(output, head="seq")) == len(SENTENCES)


def test_labels_that_a_sentence_is_not_annotated_with_take_no_part_in_its_loss(row, tokenizer):
    torch.manual_seed(0)
    model = without_dropout(row.make(tokenizer, dropout=0.0)).train()
    sentence = (["the", "mayor", "of", "New", "York"], [(0, 5, "PER")])
    batch = make_batch(tokenizer, [sentence, sentence])
    annotated = torch.ones(2, len(LABELS), dtype=torch.bool)
    if row.approach in ("locate_and_label", "diffusion_ner"):
        with pytest.raises(ValueError, match="one by one"):
            model(**batch, annotated_labels=annotated)
        return
    torch.manual_seed(1)
    plain = model(**batch).loss
    torch.manual_seed(1)
    assert torch.allclose(model(**batch, annotated_labels=annotated).loss, plain)
    other = LABELS.index("ORG")
    annotated[1, other] = False
    output = model(**batch, annotated_labels=annotated)
    (gradient,) = torch.autograd.grad(output.loss, output.logits, allow_unused=True)
    if gradient is None:  # the loss is of sub-words, which the logits of words do not lead to
        output = model(**{key: x[1:] for key, x in batch.items()}, annotated_labels=annotated[1:])
        (gradient,) = torch.autograd.grad(output.loss, model.output_bias)
        assert gradient[other + 1] == 0 and gradient.abs().sum() > 0
        return
    if model.heads == ("seq",):  # O, then B and I (E and S) of each label
        each = model.tagger.tags_a_label
        classes = list(range(1 + each * other, 1 + each * (other + 1)))
    else:
        classes = [other if model.config.multi_label else other + 1]
    by_class = gradient.abs().flatten(1, -2).sum(1)  # (2, classes)
    assert (by_class[0] > 0).all()
    assert (by_class[1, classes] == 0).all() and by_class[1].sum() > 0


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.settings.get("multi_label") and row.approach != "locate_and_label"], ids=str
)
def test_with_exclusive_labels_an_entity_is_an_example_without_all_others(row, tokenizer):
    torch.manual_seed(0)
    model = without_dropout(row.make(tokenizer, dropout=0.0, exclusive_labels=True)).train()
    batch = make_batch(tokenizer, [(["the", "mayor", "of", "New", "York"], [(0, 5, "PER")])])
    annotated = torch.tensor([[label == "PER" for label in LABELS]])
    output = model(**batch, annotated_labels=annotated)
    (gradient,) = torch.autograd.grad(output.loss, output.logits)
    others = [LABELS.index("ORG"), LABELS.index("place name")]
    gradient = gradient[0, :, :, others].abs().sum(-1)  # (T, K)
    assert gradient[0, 4] > 0 and gradient.sum() == gradient[0, 4]
    with torch.no_grad():
        output.logits.fill_(1.0)
    assert len({e[:2] for e in model.decode(output)[0]}) == len(model.decode(output)[0]) > 0


def test_the_same_input_gives_the_same_answer_twice(row, model, tokenizer):
    batch = make_batch(tokenizer)
    assert entities_of(model, batch) == entities_of(model, batch)


# ------------------------------------------------------------------------------------------------------ the pipeline


@pytest.fixture(scope="module")
def folder(trained, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    trained.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def ner(folder):
    return pipeline("nested-ner", model=folder)


def test_pipeline_offsets_are_exact(row, ner):
    text = "  the mayor of New York\tmet the head of the Bank of England in\n\nLondon 👨‍👩‍👧 "
    found = ner(text)
    assert found, "the trained model finds something in its training sentence"
    assert all(text[e["start"] : e["end"]] == e["word"] for e in found)
    assert {"entity_group", "score", "word", "start", "end"} == set(found[0])
    assert found == sorted(found, key=lambda e: (e["start"], -e["end"], e["entity_group"]))


def test_pipeline_of_empty_text_is_empty(row, ner):
    assert ner("") == [] and ner(" \n\t ") == []
    assert ner([]) == []
    assert ner([""]) == [[]]
    assert ner([], is_split_into_words=True) == []


def test_pipeline_reads_long_text_in_windows(row, ner):
    """A long text has exactly the entities that its windows have: none is lost or doubled at a cut."""
    words = "the mayor of New York met the head of the Bank of England in London .".split() * 60
    windows = ner.reader.cut(words).windows
    assert len(windows) > 1 and windows[0].start == 0 and windows[-1].end == len(words)

    def keys(words, shift=0):
        found = ner(words, is_split_into_words=True, overlap="any")
        return [(e["start_word"] + shift, e["end_word"] + shift, e["entity_group"]) for e in found]

    found, alone = keys(words), [set(keys(words[w.start : w.end], w.start)) for w in windows]
    assert len(found) == len(set(found)) and set(found) <= set.union(*alone)
    for index, entities in enumerate(alone):  # what no other window sees is decided by this one
        others = [w for i, w in enumerate(windows) if i != index]
        mine = {e for e in entities if not any(w.start <= e[0] and e[1] <= w.end for w in others)}
        assert mine <= set(found)


def test_evaluation_and_pipeline_read_long_texts_alike(row, ner, tokenizer):
    """The same windows and the same entities, also where the span cap is no bound and more than a quarter of one."""
    model = ner.model
    words = "the mayor of New York met the head of the Bank of England in London .".split()
    texts = [words * 12, words, (words * 30)[5:]]
    records = [{"tokens": text, "entities": []} for text in texts]
    data = hf_spanner.NestedNerDataset(records, tokenizer, model.config)
    assert [reading.windows for reading in data.readings] == [ner.reader.cut(text).windows for text in texts]
    assert len(data.readings[0].windows) > 2

    def triples(found):
        return [[(e["start_word"], e["end_word"], e["entity_group"]) for e in entities] for entities in found]

    alike = predict_sentences(model, tokenizer, records, overlap="nested")
    assert any(alike), "the trained model finds something"
    read = ner(texts, is_split_into_words=True, overlap="nested", batch_size=4)
    assert triples(read) == [[tuple(e[:3]) for e in entities] for entities in alike]


def test_windows_of_evaluation_and_pipeline_share_what_the_reach_needs(row, tokenizer):
    model = row.make(tokenizer, max_span_length=30, max_subwords=64)
    text = ["London"] * 200
    (reading,) = hf_spanner.NestedNerDataset([{"tokens": text, "entities": []}], tokenizer, model.config).readings
    ner = hf_spanner.pipeline(model, tokenizer)
    assert reading.windows == ner.reader.cut(text).windows
    shared = reading.windows[0].end - reading.windows[1].start
    capacity = 64 - 2
    assert shared == max((model.reach().longest or 1) - 1, capacity // 4)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_pipeline_batches_equal_single_calls(row, ner, texts):
    def spans(found):
        return [(e["start"], e["end"], e["entity_group"]) for e in found]

    together = ner(texts, batch_size=4)
    assert [spans(found) for found in together] == [spans(ner(text)) for text in texts]
    streamed = list(ner((text for text in texts), batch_size=2))
    assert [spans(found) for found in streamed] == [spans(found) for found in together]


def test_pad_batch_is_what_the_model_reads(row, model, tokenizer):
    batch = make_batch(tokenizer)
    assert set(batch) == {"input_ids", "attention_mask", "word_ids", "num_words", "word_mask", "entities"}
    assert pad_batch([{"input_ids": [1], "attention_mask": [1], "word_ids": [0], "num_words": 1}], 0)[
        "num_words"
    ].tolist() == [1]


def test_renamed_labels_keep_what_was_learnt(row, trained, tokenizer):
    """Labels under other names and in another order: each is traced to its old one, and predictions stay."""
    renamed = {label: f"new {label}" for label in reversed(LABELS)}
    gold = [
        {**sentence, "entities": [{**e, "label": renamed[e["label"]]} for e in sentence["entities"]]}
        for sentence in records()
    ]
    origins = find_origins(trained, tokenizer, gold, list(renamed.values()))
    if row.nested:  # a tagger finds the outermost alone, and may not have seen a label often enough
        assert {origin.label: origin.old for origin in origins} == {renamed[label]: label for label in LABELS}
    new = relabel(trained, [Origin(renamed[label], label, 1.0, 1) for label in reversed(LABELS)]).eval()
    batch = make_batch(tokenizer)
    found = [sorted((e.start, e.end, e.label) for e in entities) for entities in entities_of(new, batch)]
    assert found == [
        sorted((e.start, e.end, renamed[e.label]) for e in entities) for entities in entities_of(trained, batch)
    ]
