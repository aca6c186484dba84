"""DSpERT and its shallow counterparts: the authors' numbers, the plain loop, and cases worked by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import LABELS, SENTENCES, encoder_config, make_batch, read_oracle, without_gold
from torch import nn
from transformers import AutoModel, RobertaConfig

import hf_spanner
from hf_spanner.benchmarks.dspert_speed import compare_forward, per_size_loop
from hf_spanner.modeling.boundary_smoothing import smooth_targets
from hf_spanner.modeling.dspert_aggregation import AGGREGATIONS, Aggregation
from hf_spanner.modeling.dspert_transformer import SpanTransformer, encoder_layers, read_block, span_block
from hf_spanner.modeling.losses import Gold
from hf_spanner.modeling.modeling_dspert import DspertConfig, DspertForNestedNer
from hf_spanner.modeling.modeling_nested_ner import WordStates
from hf_spanner.modeling.span_units import entities_in_subwords, on_word_grid, subword_units, word_offsets
from hf_spanner.modeling.spans import list_spans
from hf_spanner.training import NestedNerDataset, unreachable

FAMILIES = ("bert", "roberta", "electra", "distilbert", "xlm-roberta", "camembert")


def renamed(state_dict: dict, names: dict[str, str]) -> dict:
    """The entries whose name starts with a key of `names`, under the new name."""
    return {
        new + name.removeprefix(old): value
        for old, new in names.items()
        for name, value in state_dict.items()
        if name.startswith(old)
    }


def tiny(vocab_size: int = 50, family: str = "bert", **settings) -> DspertForNestedNer:
    settings = {"max_span_length": 4, "lstm_size": 12, "ffn_size": 10, "max_subwords": 128, **settings}
    config = DspertConfig(encoder_config=encoder_config(family, vocab_size).to_dict(), labels=LABELS, **settings)
    return DspertForNestedNer(config).eval()


def one_word_a_token(lengths: list[int], entities=None, vocab_size: int = 50) -> dict[str, torch.Tensor]:
    """A batch of random words of one sub-word each, between [CLS] and [SEP]."""
    width = max(lengths) + 2
    batch = {
        "input_ids": torch.zeros(len(lengths), width, dtype=torch.long),
        "attention_mask": torch.zeros(len(lengths), width, dtype=torch.long),
        "word_ids": torch.full((len(lengths), width), -1),
        "num_words": torch.tensor(lengths),
    }
    for row, length in enumerate(lengths):
        words = torch.randint(4, vocab_size, (length,))
        batch["input_ids"][row, : length + 2] = torch.cat([torch.tensor([2]), words, torch.tensor([3])])
        batch["attention_mask"][row, : length + 2] = 1
        batch["word_ids"][row, 1 : length + 1] = torch.arange(length)
    if entities is not None:
        batch["entities"] = torch.tensor(entities)
    return batch


# --------------------------------------------------------------------------------------------- the authors' numbers


@pytest.mark.parametrize("name", ["bert_max", "bert_mul", "bert_top2"])
def test_the_span_transformer_equals_the_authors(name):
    case = read_oracle("dspert_span_encoder.pt")[name]
    layers, how = case["cfg"]["num_layers"], case["cfg"]["agg"].split("_")[0]
    encoder = AutoModel.from_config(DspertConfig(encoder_config=case["hf_config"]).encoder_config)
    depth = layers or case["hf_config"]["num_hidden_layers"]
    transformer = SpanTransformer(encoder, depth, how, dropout=0.2, share_weights=False).eval()
    names = {
        "query_bert_like.layer.": "blocks.",
        "init_aggregating.query": "aggregate.u",
        "init_aggregating.proj_layer.": "aggregate.projection.",
    }
    transformer.load_state_dict(renamed(case["span_state_dict"], names))
    hidden_states = case["hidden_states"][-depth - 1 : -1]
    spans = list_spans(case["attention_mask"].sum(1) - 2, hidden_states[0].size(1), 2, 4)
    with torch.no_grad():
        states = transformer(hidden_states, spans, 4, encoder)
    theirs = [case["out"][k][b, i] for b, i, k in zip(spans.row.tolist(), spans.start.tolist(), spans.size.tolist())]
    assert torch.allclose(states, torch.stack(theirs), atol=1e-5)


def test_the_whole_model_equals_the_authors():
    case = read_oracle("dspert_full.pt")["default"]
    labels, (lstm, ffn) = case["labels"][1:], (10, 12)
    model = DspertForNestedNer(
        DspertConfig(
            encoder_config=case["hf_config"],
            labels=labels,
            max_span_length=case["max_span_size"],
            lstm_size=lstm,
            ffn_size=ffn,
            size_embedding_dim=5,
            size_embedding_rows=case["max_size_id"] + 1,
            boundary_smoothing=case["sb_epsilon"],
            smoothing_size=case["sb_size"],
        )
    ).eval()
    names = {
        "bert_like.bert_like.embeddings.": "encoder.embeddings.",
        "bert_like.bert_like.encoder.": "encoder.encoder.",
        "span_bert_like.query_bert_like.layer.": "span_transformer.blocks.",
        "intermediate2.rnn.": "word_lstm.lstm.",
        "span_intermediate2.rnn.": "span_lstm.lstm.",
        "decoder.affine.ff_blocks.0.proj_layer.": "classifier.ffn.0.",
        "decoder.size_embedding.": "classifier.sizes.",
        "decoder.hid2logit.": "classifier.output.",
    }
    loaded = model.load_state_dict(renamed(case["state_dict"], names), strict=False)
    assert loaded.missing_keys == [] and loaded.unexpected_keys == ["encoder.embeddings.position_ids"]

    num_words = case["attention_mask"].sum(1) - 2
    position = torch.arange(case["input_ids"].size(1)) - 1
    word_ids = torch.where((position >= 0) & (position < num_words.unsqueeze(1)), position, -1)
    entities = torch.full((4, 3, 3), -1)
    for row, chunks in enumerate(case["chunks"]):
        for column, (label, start, end) in enumerate(chunks):
            entities[row, column] = torch.tensor([start, end, labels.index(label)])
    inputs = (case["input_ids"], case["attention_mask"], word_ids, num_words)
    with torch.no_grad():
        output = model(*inputs, entities, output_span_representations=True)
        alone = [model(*(x[i : i + 1] for x in inputs), entities[i : i + 1]).loss for i in range(4)]
    soft = smooth_targets(entities, num_words, 10, 4, 3, case["sb_epsilon"], case["sb_size"])

    for row, n in enumerate(num_words.tolist()):
        size_major = [(row, i, k) for k in range(4) for i in range(n - k)]
        for mine, theirs in (
            (output.logits, "logits"),
            (output.span_representations, "pre_logits"),
            (soft, "targets"),
        ):
            assert torch.allclose(torch.stack([mine[cell] for cell in size_major]), case[theirs][row], atol=1e-5)
    assert torch.allclose(torch.stack(alone), case["losses"], rtol=1e-5)
    assert output.loss.item() == pytest.approx(case["losses"].mean().item(), rel=1e-5)
    found = [{(e.label, e.start, e.end) for e in entities} for entities in model.decode(output, overlap="nested")]
    assert found == [set(map(tuple, chunks)) for chunks in case["decoded"]]


def test_the_shallow_model_equals_the_authors():
    case = read_oracle("biaffine_shallow.pt")["shallow_max_pooling"]
    hidden, num_words, labels = case["hidden"], case["seq_lens"], case["labels"][1:]
    encoder = {**encoder_config("bert", 40).to_dict(), "hidden_size": 8}
    model = DspertForNestedNer(
        DspertConfig(
            encoder_config=encoder,
            labels=labels,
            max_span_length=4,
            span_depth=0,
            bilstm="none",
            shallow_ffn=False,
            size_embedding_dim=3,
            size_embedding_rows=case["max_size_id"] + 1,
            boundary_smoothing=case["sb_epsilon"],
        )
    ).eval()
    names = {"size_embedding.": "classifier.sizes.", "hid2logit.": "classifier.output."}
    model.load_state_dict(renamed(case["state_dict"], names), strict=False)
    chunks = [[(s, e, labels.index(label)) for label, s, e in c] for c in case["chunks"]]
    for row, n in enumerate(num_words.tolist()):
        states = WordStates(hidden[row : row + 1], None, num_words[row : row + 1], None, None, None, None)
        entities = torch.tensor([chunks[row] or [(-1, -1, -1)]])
        with torch.no_grad():
            output = model.recognise(states, Gold(entities))
        cells = [(0, i, k) for k in range(4) for i in range(n - k)]
        assert torch.allclose(torch.stack([output.logits[c] for c in cells]), case["scores"][row], atol=1e-5)
        assert output.losses["spans"].item() == pytest.approx(case["losses"][row].item(), rel=1e-5)


# --------------------------------------------------------------------------------- the fast path and the plain loop


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_fast_path_equals_the_plain_loop(data):
    heads = data.draw(st.sampled_from([1, 2, 4]))
    length, max_span = data.draw(st.integers(2, 9)), data.draw(st.integers(2, 12))
    num_words = torch.tensor(data.draw(st.lists(st.integers(0, length), min_size=1, max_size=3)) + [length])
    how, shared = data.draw(st.sampled_from(AGGREGATIONS)), data.draw(st.booleans())
    torch.manual_seed(data.draw(st.integers(0, 99)))
    config = encoder_config("bert", 20)
    config.hidden_size, config.num_attention_heads = 8, heads
    encoder = AutoModel.from_config(config).eval()
    transformer = SpanTransformer(encoder, 2, how, dropout=0.2, share_weights=shared).eval()
    for parameter in transformer.parameters():
        nn.init.normal_(parameter, std=0.5)
    hidden_states = [torch.randn(len(num_words), length, 8) for _ in range(2)]
    longest = max(min(max_span, length), 2)
    spans = list_spans(num_words, length, 2, longest)
    with torch.no_grad():
        fast = transformer(hidden_states, spans, longest, encoder)
        slow = per_size_loop(transformer, hidden_states, longest, encoder)
    assert len(fast) == sum(max(n - k + 1, 0) for n in num_words.tolist() for k in range(2, longest + 1))
    for b, i, k, state in zip(spans.row.tolist(), spans.start.tolist(), spans.size.tolist(), fast):
        assert torch.allclose(state, slow[k][b, i], atol=1e-5)


def test_the_fast_path_and_the_loop_have_the_same_gradients():
    torch.manual_seed(0)
    encoder = AutoModel.from_config(encoder_config("bert", 20)).eval()
    transformer = SpanTransformer(encoder, 2, "additive", dropout=0.0, share_weights=False).eval()
    for parameter in transformer.parameters():
        nn.init.normal_(parameter, std=0.3)
    hidden_states = [torch.randn(2, 6, 32, requires_grad=True) for _ in range(2)]
    spans = list_spans(torch.tensor([6, 6]), 6, 2, 4)
    wanted = [*hidden_states, *transformer.parameters()]
    fast = torch.autograd.grad(transformer(hidden_states, spans, 4, encoder).square().sum(), wanted)
    loop = per_size_loop(transformer, hidden_states, 4, encoder)
    slow = torch.autograd.grad(sum(states.square().sum() for states in loop.values()), wanted)
    for mine, theirs in zip(fast, slow, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_span_block_is_the_encoders_own_block(family):
    """A query that is a word, attending to the whole sentence: what the encoder's layer makes of that word."""
    torch.manual_seed(0)
    encoder = AutoModel.from_config(encoder_config(family, 20)).eval()
    layer, words = encoder_layers(encoder)[1], torch.randn(5, 32)
    spans = list_spans(torch.tensor([5]), 5, 2, 5)
    whole = int((spans.size == 5).nonzero())
    with torch.no_grad():
        expected = layer(words.unsqueeze(0))
        expected = (expected[0] if isinstance(expected, tuple) else expected)[0]
        for word in range(5):
            queries = words[word].expand(len(spans.row), -1)
            found = span_block(read_block(layer, encoder), queries, words, spans, 5)[whole]
            assert torch.allclose(found, expected[word], atol=1e-5)


def test_a_block_worked_by_hand():
    """Even attention over identity values, no FFN: LayerNorm(max(h) + mean(h)), whatever is beside the span."""
    config = encoder_config("bert", 20)
    config.hidden_size, config.num_attention_heads, config.num_hidden_layers = 2, 1, 1
    encoder = AutoModel.from_config(config).eval()
    transformer = SpanTransformer(encoder, 1, "max", dropout=0.2, share_weights=True).eval()
    for name, parameter in encoder.encoder.named_parameters():
        identity = "value.weight" in name or "attention.output.dense.weight" in name
        nn.init.eye_(parameter) if identity else nn.init.constant_(parameter, float("LayerNorm.weight" in name))
    words = torch.tensor([[[0.0, 2.0], [4.0, 0.0], [0.0, 9.0]]])
    spans = list_spans(torch.tensor([3]), 3, 2, 3)
    with torch.no_grad():
        states = transformer([words], spans, 3, encoder)
    of = {(i, k): states[n].tolist() for n, (i, k) in enumerate(zip(spans.start.tolist(), spans.size.tolist()))}
    # [0, 2): max (4, 2) + mean (2, 1) = (6, 3), the first is larger; [0, 3): (4, 9) + (4/3, 11/3), the second.
    assert of[0, 2] == pytest.approx([1, -1], abs=1e-4)
    assert of[1, 2] == pytest.approx([-1, 1], abs=1e-4)
    assert of[0, 3] == pytest.approx([-1, 1], abs=1e-4)


def test_aggregations_worked_by_hand():
    x = torch.tensor([[[1.0], [4.0], [1.0]]])
    assert torch.stack(list(Aggregation("max", 1)(x, 3)))[:, 0, 0, 0].tolist() == [1, 4, 4]
    assert torch.stack(list(Aggregation("mean", 1)(x, 3)))[:, 0, 0, 0].tolist() == [1, 2.5, 2]
    attention = Aggregation("multiplicative", 1)
    nn.init.ones_(attention.projection.weight), nn.init.zeros_(attention.projection.bias)
    nn.init.constant_(attention.u, 2.0)
    one, four = math.exp(2 * math.tanh(1)), math.exp(2 * math.tanh(4))
    with torch.no_grad():
        pooled = torch.stack(list(attention(x, 3)))[:, 0, 0, 0].tolist()
    assert pooled == pytest.approx([1, (one + 4 * four) / (one + four), (2 * one + 4 * four) / (2 * one + four)])


def test_attention_over_spans_survives_extreme_scores():
    from hf_spanner.modeling.dspert_aggregation import running_attention

    x, scores = torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([[[-1e4], [0.0], [1e4]]])
    assert torch.stack(list(running_attention(x, scores, 3)))[:, 0, 0, 0].tolist() == [1, 2, 3]


def test_span_lists_are_in_the_order_of_packed_sequences():
    spans = list_spans(torch.tensor([2, 0, 4]), 4, 1, 3)
    listed = list(zip(spans.row.tolist(), spans.start.tolist(), spans.size.tolist()))
    expected = {(b, i, k) for b, n in enumerate([2, 0, 4]) for k in (1, 2, 3) for i in range(n - k + 1)}
    assert len(listed) == len(expected) and set(listed) == expected
    assert spans.batch_sizes.tolist() == [5, 4, 2, 1] and spans.batch_sizes.sum() == len(listed)
    assert spans.start.tolist() == sorted(spans.start.tolist())
    assert spans.cell.tolist() == [(b * 4 + i) * 3 + k - 1 for b, i, k in listed]


def test_the_benchmark_compares_three_ways():
    ratios = compare_forward(T=6, K=3, d=8, layers=1, heads=2, repeats=1)
    assert all(value > 0 for value in ratios.values())


# -------------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize(
    ("settings", "millions"),
    [({}, 212.93), ({"share_weights": True, "bilstm": "shared"}, 126.3)],
    ids=["independent", "shared"],
)
def test_the_number_of_parameters_is_the_papers(settings, millions):
    """Table 7, with RoBERTa-base. We do not build the encoder's pooler; the paper counts its 768·769."""
    roberta = RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
    labels = [f"L{i}" for i in range(7)]
    config = DspertConfig(encoder_config=roberta.to_dict(), labels=labels, max_span_length=25, **settings)
    with torch.device("meta"):
        model = DspertForNestedNer(config)
    count = sum(parameter.numel() for parameter in model.parameters()) + 768 * 769
    assert count / 1e6 == pytest.approx(millions, abs=0.05 if settings else 0.006)


def test_from_encoder_starts_span_blocks_as_the_encoders(encoder_folder):
    for depth in (None, 1):
        model = DspertForNestedNer.from_encoder(encoder_folder, labels=LABELS, span_depth=depth)
        theirs = encoder_layers(model.encoder)[-model.config.depth :]
        assert len(model.span_transformer.blocks) == len(theirs) == (depth or 2)
        for mine, layer in zip(model.span_transformer.blocks, theirs, strict=True):
            for a, b in zip(mine.parameters(), layer.parameters(), strict=True):
                assert torch.equal(a, b) and a is not b


def test_copied_blocks_train_at_the_encoders_rate():
    model = tiny()
    slow = {name for name, _ in model.named_parameters() if name.startswith(tuple(model.pretrained_prefixes))}
    assert any(name.startswith("span_transformer.blocks.") for name in slow)
    model = tiny(aggregation="additive")
    fast = {
        name.split(".")[0] for name, _ in model.named_parameters() if not name.startswith(model.pretrained_prefixes)
    }
    assert fast == {"span_transformer", "word_lstm", "span_lstm", "classifier"}  # span_transformer.aggregate alone


def test_shared_blocks_are_saved_once(tmp_path):
    model = tiny(share_weights=True)
    assert not any("blocks" in name for name in model.state_dict())
    model.save_pretrained(tmp_path)
    loaded = DspertForNestedNer.from_pretrained(tmp_path).eval()
    batch = one_word_a_token([5, 3])
    with torch.no_grad():
        assert torch.allclose(model(**batch).logits, loaded(**batch).logits, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_and_is_saved(family, tmp_path):
    model = tiny(family=family).train()
    batch = one_word_a_token([6, 4], [[[0, 2, 0], [1, 4, 1]], [[3, 4, 2], [-1, -1, -1]]])
    model(**batch).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval().save_pretrained(tmp_path)
    loaded = DspertForNestedNer.from_pretrained(tmp_path).eval()
    mine, theirs = model.state_dict(), loaded.state_dict()
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
    with torch.no_grad():
        assert torch.allclose(model(**batch).logits, loaded(**batch).logits, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"span_depth": 0}, {"bilstm": "none"}, {"span_unit": "subword"}])
def test_a_sentence_beside_one_three_times_longer_has_the_same_logits(settings):
    torch.manual_seed(0)
    model = tiny(**settings)
    batch = one_word_a_token([5, 15])
    alone = {key: value[:1, :7] if value.ndim == 2 else value[:1] for key, value in batch.items()}
    with torch.no_grad():
        beside, alone = model(**batch).logits[0], model(**alone).logits[0]
    for i in range(5):
        for k in range(min(4, 5 - i)):
            assert torch.allclose(beside[i, k], alone[i, k], atol=1e-5)


def test_the_loss_is_summed_over_spans_and_averaged_over_sentences():
    model = tiny(max_span_length=2)
    nn.init.zeros_(model.classifier.output.weight)
    loss = model(**one_word_a_token([3, 1], [[[0, 1, 0]], [[0, 1, 2]]])).loss
    assert loss.item() == pytest.approx((5 + 1) / 2 * math.log(4), rel=1e-6)  # 5 spans and 1, none or three types


def test_one_word_spans_are_the_top_words():
    """Eq. 4: the logits of single words do not depend on the span Transformer."""
    torch.manual_seed(0)
    model, batch = tiny(), one_word_a_token([5])
    with torch.no_grad():
        before = model(**batch).logits
        for parameter in model.span_transformer.parameters():
            parameter.mul_(2)
        after = model(**batch).logits
    assert torch.equal(before[:, :, 0], after[:, :, 0])
    assert not torch.allclose(before[:, :4, 1], after[:, :4, 1])


def test_new_layers_start_as_in_the_paper():
    torch.manual_seed(0)
    model = tiny(aggregation="additive", lstm_size=40)
    for lstm in (model.word_lstm.lstm, model.span_lstm.lstm):
        for bias in (lstm.bias_ih_l0, lstm.bias_hh_l0_reverse):
            assert torch.equal(bias.chunk(4)[1], torch.ones(20)) and bias.sum() == 20
        gates = lstm.weight_hh_l0.chunk(4)
        bound = math.sqrt(6 / 40)
        assert gates[0].abs().max() <= bound < gates[2].abs().max() <= 5 / 3 * bound  # the gain of tanh
    assert 0 < model.classifier.sizes.weight.abs().max() <= math.sqrt(3 / 25)
    assert model.classifier.ffn[0].weight.abs().max() <= math.sqrt(6 / (40 + 25))
    assert model.classifier.output.bias.abs().sum() == 0
    assert model.span_transformer.aggregate.v.abs().max() <= math.sqrt(3 / 32)


def test_the_dropouts_of_the_encoder_and_its_copies_are_set():
    for family, name in (("bert", "hidden_dropout_prob"), ("distilbert", "attention_dropout")):
        model = tiny(family=family)
        assert getattr(model.config.encoder_config, name) == 0.2
        assert {m.p for m in model.span_transformer.blocks.modules() if isinstance(m, nn.Dropout)} == {0.2}
        assert getattr(tiny(family=family, encoder_dropout=None).config.encoder_config, name) == 0.1


def test_span_representations_are_returned_when_asked_for(tokenizer):
    model, batch = tiny(), one_word_a_token([5, 2])
    with torch.no_grad():
        assert model(**batch).span_representations is None
        output = model(**batch, output_span_representations=True)
    assert output.span_representations.shape == (2, 5, 4, 10)
    logits = model.classifier.output(output.span_representations)
    assert torch.allclose(logits[0, 1, 3], output.logits[0, 1, 3], atol=1e-6)
    model_class = hf_spanner.APPROACHES["seq_ner"]
    other = model_class(model_class.config_class(encoder_config=encoder_config("bert", 50).to_dict(), labels=LABELS))
    with pytest.raises(ValueError, match="seq_ner has no span representations"):
        other(**batch, output_span_representations=True)


@pytest.mark.parametrize("settings", [{}, {"share_weights": True}])
def test_gradient_checkpointing_recomputes_span_blocks(settings):
    torch.manual_seed(0)
    model = tiny(**settings).train()
    batch = one_word_a_token([6, 4], [[[0, 2, 0]], [[1, 4, 1]]])
    gradients = []
    for on in (False, True):
        if on:
            model.gradient_checkpointing_enable()
            assert model.span_transformer.gradient_checkpointing
        model.zero_grad()
        torch.manual_seed(1)  # the same dropouts
        model(**batch).loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients, strict=True))


def test_bundled_with_a_tagging_head(tokenizer):
    torch.manual_seed(0)
    model = tiny(len(tokenizer), bundle_weight=0.1, max_span_length=12).train()
    batch, optimizer = make_batch(tokenizer), torch.optim.AdamW(model.parameters(), lr=1e-2)
    before = model(**batch).loss
    before.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    optimizer.step()
    with torch.no_grad():
        assert model(**batch).loss < before
        output = model.eval()(**without_gold(batch))
    assert len(model.decode(output, head="span")) == len(model.decode(output, head="seq")) == len(SENTENCES)


@pytest.mark.parametrize("how", AGGREGATIONS)
@pytest.mark.parametrize("shallow_ffn", [True, False])
def test_shallow_models_of_every_kind_train(how, shallow_ffn):
    model = tiny(span_depth=0, aggregation=how, shallow_ffn=shallow_ffn).train()
    assert model.span_transformer is None
    output = model(**one_word_a_token([6, 4], [[[0, 2, 0]], [[1, 4, 1]]]), output_span_representations=True)
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert output.span_representations.size(-1) == (10 if shallow_ffn else 12 + 25)


# -------------------------------------------------------------------------------------------------------- sub-words


def test_units_of_subwords():
    word_ids = torch.tensor([[-1, 0, 0, 2, 3, 3, 3, -1], [-1, 0, -1, -1, -1, -1, -1, -1]])  # word 1 has no sub-words
    units, count = subword_units(word_ids)
    assert units.tolist()[0] == [-1, 0, 1, 2, 3, 4, 5, -1] and count.tolist() == [6, 1]
    offsets = word_offsets(word_ids, 4)
    assert offsets.tolist() == [[0, 2, 2, 3, 6], [0, 1, 1, 1, 1]]
    entities = torch.tensor([[[0, 4, 0], [0, 3, 1], [0, 2, 2], [1, 3, 0], [-1, -1, -1]]]).expand(2, -1, -1)
    assert entities_in_subwords(entities, offsets)[0].tolist() == [
        [0, 6, 0],
        [0, 3, 1],
        [-1, -1, -1],  # ends with the word that has none
        [-1, -1, -1],  # begins with it
        [-1, -1, -1],
    ]


def test_predictions_inside_words_are_dropped():
    word_ids = torch.tensor([[0, 0, 1, 2, 2]])
    grid = torch.arange(5 * 3.0).view(1, 5, 3, 1)  # cell (i, k) of the sub-words holds 3i + k
    words = on_word_grid(grid, word_offsets(word_ids, 3), 3, torch.tensor([-1.0]))[0, ..., 0]
    assert words[0].tolist() == [1, 2, -1]  # [0, 2) and [0, 3) of the sub-words; [0, 5) is longer than K = 3
    assert words[1, :2].tolist() == [6, 8]
    assert words[2, 0].tolist() == 10


def test_where_every_word_is_one_subword_the_unit_does_not_matter():
    torch.manual_seed(0)
    words, subwords = tiny(word_pooling="first"), tiny(span_unit="subword")
    subwords.load_state_dict(words.state_dict())
    batch = one_word_a_token([6, 4], [[[0, 2, 0]], [[1, 4, 1]]])
    with torch.no_grad():
        a, b = words(**batch), subwords(**batch)
    assert a.loss.item() == pytest.approx(b.loss.item(), rel=1e-6)
    assert torch.allclose(a.logits[0, :3], b.logits[0, :3], atol=1e-6)


def test_subword_spans_train_on_all_and_predict_on_words(tokenizer):
    torch.manual_seed(0)
    model = tiny(len(tokenizer), span_unit="subword", max_span_length=6)
    batch = make_batch(tokenizer)
    with torch.no_grad():
        output = model(**batch)
        found = model.decode(output, threshold=0.0, overlap="any")
    assert output.logits.shape == (5, 15, 6, 4) and torch.isfinite(output.loss)
    offsets = word_offsets(batch["word_ids"], 15)
    for row, entities in enumerate(found):
        for entity in entities:
            if entity.score > 0:
                assert offsets[row, entity.end] - offsets[row, entity.start] <= 6


def test_entities_out_of_reach_are_counted_in_the_unit_of_spans(tokenizer):
    records = [{"id": "a", "tokens": ["Größenwahn", "London"], "entities": [{"start": 0, "end": 2, "label": "PER"}]}]
    for unit, reasons in (("word", {}), ("subword", {"longer than max_span_length=4 subwords": 1})):
        model = tiny(len(tokenizer), span_unit=unit)
        assert dict(unreachable(NestedNerDataset(records, tokenizer, model.config), model)) == reasons


# -------------------------------------------------------------------------------------------------------- bad input


def test_a_cap_larger_than_the_text_is_cut_to_it():
    torch.manual_seed(0)
    model = tiny(max_span_length=30)
    with torch.no_grad():
        assert model(**one_word_a_token([5, 3])).logits.shape == (2, 5, 5, 4)


@pytest.mark.parametrize("settings", [{}, {"span_depth": 0}, {"span_unit": "subword"}, {"bilstm": "none"}])
def test_texts_of_one_word_train_every_parameter(settings):
    model = tiny(**settings).train()
    output = model(**one_word_a_token([1, 1], [[[0, 1, 0]], [[-1, -1, -1]]]))
    output.loss.backward()
    assert output.logits.shape == (2, 1, 1, 4)
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []  # or data-parallel training would hang


def test_an_entity_longer_than_the_cap_is_survived_and_counted(tokenizer):
    model = tiny(len(tokenizer), max_span_length=2)
    assert torch.isfinite(model(**make_batch(tokenizer)).loss)
    records = [{"id": "a", "tokens": list("abc"), "entities": [{"start": 0, "end": 3, "label": "PER"}]}]
    lost = unreachable(NestedNerDataset(records, tokenizer, model.config), model)
    assert dict(lost) == {"longer than max_span_length=2 words": 1}


@pytest.mark.parametrize("family", ["deberta-v2", "modernbert"])
def test_an_encoder_without_reusable_blocks_is_refused_unless_shallow(family):
    with pytest.raises(ValueError, match=f"'{family}' encoder .*'bert', 'camembert', 'distilbert', 'electra'"):
        tiny(family=family)
    model = tiny(family=family, span_depth=0)
    with torch.no_grad():
        assert model(**one_word_a_token([3])).logits.shape == (1, 3, 3, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"span_depth": 3}, "span_depth=3 must lie between 0 .* 2 layers"),
        ({"span_depth": -1}, "span_depth=-1"),
        ({"aggregation": "sum"}, "aggregation='sum' is unknown"),
        ({"span_unit": "letter"}, "span_unit='letter' is unknown"),
        ({"bilstm": "two"}, "bilstm='two' is unknown"),
        ({"lstm_size": 7}, "lstm_size=7 must be even"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        tiny(**settings)
