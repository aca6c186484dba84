"""DiffusionNER: the authors' numbers, what is generated from noise, and that it depends on text and seed alone."""

import re

import pytest
import torch
from tests_support import LABELS, SENTENCES, encoder_config, learn, make_batch, read_oracle, without_gold

import hf_spanner
from hf_spanner.modeling.diffusion_ner_network import BoundaryPointer, mean_of_spans
from hf_spanner.modeling.diffusion_ner_process import SentenceNoise, alpha_bars, sinusoid, spans_of_shares
from hf_spanner.modeling.modeling_diffusion_ner import (
    DiffusionNerConfig,
    DiffusionNerForNestedNer,
    DiffusionNerOutput,
    entity_codes,
)
from hf_spanner.modeling.modeling_nested_ner import WordStates

SMALL = {"max_subwords": 64, "dropout": 0.0, "encoder_dropout": 0.0, "num_noisy_spans": 12, "ffn_size": 64}


def make(tokenizer, **settings) -> DiffusionNerForNestedNer:
    torch.manual_seed(0)
    encoder = encoder_config("bert", len(tokenizer)).to_dict()
    config = DiffusionNerConfig(encoder_config=encoder, labels=LABELS, **{**SMALL, **settings})
    return DiffusionNerForNestedNer(config).eval()


def found(model, tokenizer, sentences, **kwargs):
    threshold = kwargs.pop("threshold", None)
    with torch.no_grad():
        return model.decode(model(**without_gold(make_batch(tokenizer, sentences)), **kwargs), threshold=threshold)


# ------------------------------------------------------------------------------------------------ the authors' numbers

RENAMED = {
    r"^lstm\.": "lstm.lstm.",
    r"^downlinear\.": "denoiser.join.",
    r"^affine_(start|end)\.": r"denoiser.\1.",
    r"^pos_embeddings\.1\.": "denoiser.slot_mlp.0.",
    r"^pos_embeddings\.3\.": "denoiser.slot_mlp.2.",
    r"^time_mlp\.1\.": "denoiser.time_mlp.0.",
    r"^time_mlp\.3\.": "denoiser.time_mlp.2.",
    r"^entity_classifier\.classifier\.": "denoiser.classifier.",
    r"^spanattention\.layers\.(\d)\.(self|cross)_attn\.": r"denoiser.layers.\1.\2_attention.",
    r"^spanattention\.layers\.(\d)\.norm1\.": r"denoiser.layers.\1.cross_norm.",
    r"^spanattention\.layers\.(\d)\.norm2\.": r"denoiser.layers.\1.self_norm.",
    r"^spanattention\.layers\.(\d)\.norm3\.": r"denoiser.layers.\1.ffn_norm.",
    r"^spanattention\.layers\.(\d)\.linear1\.": r"denoiser.layers.\1.ffn.0.",
    r"^spanattention\.layers\.(\d)\.linear2\.": r"denoiser.layers.\1.ffn.3.",
    r"^(left|right)_boundary_predictor\.token_embedding_linear\.0\.": r"denoiser.\1.words.",
    r"^(left|right)_boundary_predictor\.entity_embedding_linear\.0\.": r"denoiser.\1.spans.",
    r"^(left|right)_boundary_predictor\.boundary_predictor\.": r"denoiser.\1.score.",
}


@pytest.fixture(scope="module")
def original():
    """The authors' tiny model: their record, and ours with their weights above the encoder."""
    record = read_oracle("diffusion_ner.pt")["models"]["lrconcat_cosine"]
    config = DiffusionNerConfig(
        encoder_config=record["hf_config"],
        labels=["a", "b", "c"],
        timesteps=100,
        num_steps=3,
        num_noisy_spans=6,
        eta=1.0,
    )
    model = DiffusionNerForNestedNer(config).eval()
    weights = {}
    for name, value in record["state_dict"].items():
        for pattern, ours in RENAMED.items():
            if re.match(pattern, name):
                weights[re.sub(pattern, ours, name)] = value
    report = model.load_state_dict(weights, strict=False)
    assert report.unexpected_keys == [] and all(name.startswith("encoder.") for name in report.missing_keys)
    return record, model


@torch.no_grad()
def test_sentence_encoder_and_denoiser_are_the_authors(original):
    record, model = original
    mask = record["batch"]["token_masks"]
    assert torch.allclose(model.lstm(record["h_token"], mask.sum(1)), record["h_token_lstm"], atol=1e-5)
    spans = spans_of_shares(record["head_in"]["spans"], mask.sum(1))
    logits, left, right = model.denoiser(record["h_token_lstm"], mask, spans, record["head_in"]["t"])
    assert torch.allclose(logits, record["head_out"]["logits"], atol=1e-5)
    for mine, key in ((left, "left"), (right, "right")):
        assert torch.allclose(mine.sigmoid(), record["head_out"][key], atol=1e-5)


class Replay(SentenceNoise):
    """The authors' draws in place of ours."""

    def __init__(self, draws):
        self.draws = iter(draws)

    def normal(self, *shape):
        return next(self.draws)


@torch.no_grad()
def test_denoising_with_the_authors_draws_is_theirs_step_by_step(original, monkeypatch):
    record, model = original
    mask = record["batch"]["token_masks"]
    states = WordStates(record["h_token_lstm"], mask, mask.sum(1), None, None, None, None)
    seen = []
    denoise = model.denoise
    monkeypatch.setattr(model, "denoise", lambda *args: seen.append((args[3], args[4][0])) or denoise(*args))
    draws = Replay(draw for _, draw in record["ddim"]["draws"])
    output = model.generate(states.words, states, draws, 3, 6, 1.0, False)
    assert [time for _, time in seen] == record["ddim"]["times"]
    for (x, _), step in zip(seen, record["ddim"]["trace"], strict=True):
        assert torch.allclose(x.double(), step["x_t"].double(), atol=1e-5)
    final = record["ddim"]["final"]
    assert torch.allclose(output.logits, final["pred_logits"], atol=1e-5)
    assert torch.allclose(output.left.sigmoid(), final["pred_left"], atol=1e-5)
    spans = torch.stack([output.left.argmax(-1), output.right.argmax(-1)], dim=-1)
    assert torch.equal(spans, final["pred_spans"])


@torch.no_grad()
def test_a_prediction_that_ends_before_it_begins_is_no_further_off_than_a_state_can_be(tokenizer, monkeypatch):
    """Of five words, left 3 and right 1: share 3/4, width -2/4. The state (0.5, -2) is cut to (0.5, -1)."""
    model, seen = make(tokenizer, timesteps=100), []
    left, right = (torch.full((1, 1, 5), -9.0).index_fill(2, torch.tensor([i]), 9.0) for i in (3, 1))

    def denoise(words, mask, num_words, x, times):
        seen.append(x)
        return torch.zeros(1, 1, len(LABELS) + 1), left, right

    monkeypatch.setattr(model, "denoise", denoise)
    words = torch.zeros(1, 5, 32)
    mask = torch.ones(1, 5, dtype=torch.bool)
    states = WordStates(words, mask, torch.tensor([5]), None, None, None, None)
    x = torch.tensor([[[0.3, -0.2]]])
    model.generate(words, states, Replay([x]), 2, 1, 0.0, False)
    now, then = (alpha_bars("cosine", 100)[t] for t in (99, 49))
    x0 = torch.tensor([0.5, -1.0])
    expected = then**0.5 * x0 + (1 - then) ** 0.5 * (x - now**0.5 * x0) / (1 - now) ** 0.5
    assert torch.equal(seen[0], x) and torch.allclose(seen[1], expected, atol=1e-5)


# --------------------------------------------------------------------------------------------------------- the network


def test_a_span_of_the_mean_kind_is_the_mean_of_its_words():
    words = torch.randn(2, 5, 3)
    spans = torch.tensor([[[0, 4], [2, 2]], [[1, 3], [0, 0]]])
    expected = torch.stack(
        [
            torch.stack([words[b, left : right + 1].mean(0) for left, right in row.tolist()])
            for b, row in enumerate(spans)
        ]
    )
    assert torch.allclose(mean_of_spans(words, spans), expected, atol=1e-6)


def test_the_pointer_gives_the_same_in_parts(monkeypatch):
    pointer, words, x = BoundaryPointer(4), torch.randn(2, 5, 4), torch.randn(2, 7, 4)
    whole = pointer(words, x)
    monkeypatch.setattr("hf_spanner.modeling.diffusion_ner_network.POINTER_CELLS", 80)
    assert whole.shape == (2, 7, 5) and torch.allclose(pointer(words, x), whole, atol=1e-6)


def test_the_encoder_runs_once_however_many_steps_there_are(tokenizer):
    model, calls = make(tokenizer), []
    model.encoder.register_forward_hook(lambda *_: calls.append("encoder"))
    model.lstm.register_forward_hook(lambda *_: calls.append("lstm"))
    model.denoiser.register_forward_hook(lambda *_: calls.append("denoiser"))
    found(model, tokenizer, SENTENCES, num_steps=4)
    assert calls == ["encoder", "lstm", *["denoiser"] * 4]


# ------------------------------------------------------------------------------------------------------------ training


@pytest.mark.parametrize("expansion, targets", [("repeat", 12), ("random", 6), ("mixed", 6)])
def test_expansion_repeats_entities_or_adds_random_spans(tokenizer, expansion, targets):
    model = make(tokenizer, expansion=expansion)
    batch = make_batch(tokenizer)
    gold, x0 = model.expand(batch["entities"], batch["num_words"], SentenceNoise([None] * 5))
    assert x0.shape == (5, 12, 2)
    assert [len(rows) for rows in gold][::3] == [targets, 0]  # a sentence with six entities, one with none
    assert {tuple(row) for row in gold[0].tolist()} == {
        (0, 4, 1), (3, 4, 2), (6, 12, 1), (9, 12, 3), (12, 12, 2), (14, 14, 2)
    }  # fmt: skip
    exact = {tuple(round(value, 4) for value in row) for row in x0[0].tolist()}
    assert {(-1.0, round(8 / 14 - 1, 4)), (1.0, -1.0)} <= exact  # (0, 4) and (14, 14), as left and width


@pytest.mark.parametrize("expansion, copies", [("random", 1), ("mixed", 3)])
def test_the_entities_among_the_noisy_spans_stand_at_random_places(tokenizer, expansion, copies):
    """The network knows its spans by their number: it must not learn which numbers entities have."""
    torch.manual_seed(0)
    model, sentences = make(tokenizer, expansion=expansion, num_noisy_spans=6), 1200
    entities = torch.tensor([[[1, 3, 0]]]).expand(sentences, -1, -1)  # of five words: left 1, one word further
    _, x0 = model.expand(entities, torch.full((sentences,), 5), SentenceNoise([None] * sentences))
    is_gold = (x0 == torch.tensor([-0.5, -0.5])).all(-1)  # (sentences, 6)
    assert (is_gold.sum(1) == copies).all()
    assert (is_gold.float().mean(0) - copies / 6).abs().max() < 0.06


def test_more_entities_than_noisy_spans_are_said_and_all_trained(tokenizer, caplog):
    model = make(tokenizer, num_noisy_spans=3)
    batch = make_batch(tokenizer)
    logger = "hf_spanner.modeling.modeling_diffusion_ner"
    with caplog.at_level("WARNING", logger=logger):
        gold, x0 = model.expand(batch["entities"], batch["num_words"], SentenceNoise([None] * 5))
    assert "6 entities, more than num_noisy_spans=3" in caplog.text
    assert x0.size(1) == 6 and len(gold[0]) == 6
    assert torch.isfinite(model.train()(**batch).loss)


def test_more_entities_than_noisy_spans_count_as_out_of_reach(tokenizer):
    from tests_support import records

    from hf_spanner.training import NestedNerDataset, unreachable

    model = make(tokenizer, num_noisy_spans=4, multi_label=True)
    reasons = unreachable(NestedNerDataset(records(), tokenizer, model.config), model)
    assert reasons == {"more than 4 in one sentence": 2 + 1}


def test_the_loss_of_evaluation_is_the_same_twice_and_leaves_training_alone(tokenizer):
    model, batch = make(tokenizer), make_batch(tokenizer)
    state = torch.get_rng_state()
    with torch.no_grad():
        assert model(**batch).loss == model(**batch).loss
    assert torch.equal(torch.get_rng_state(), state)
    model.train()
    assert model(**batch).loss != model(**batch).loss  # other noise


def test_the_schedule_is_in_no_checkpoint_and_survives_loading_in_bf16(tokenizer, tmp_path):
    model = make(tokenizer)
    assert not list(model.buffers()) or all("position_ids" in n or "token_type" in n for n, _ in model.named_buffers())
    before = alpha_bars("cosine", 1000)
    model.save_pretrained(tmp_path)
    loaded = hf_spanner.AutoModelForNestedNer.from_pretrained(tmp_path, dtype=torch.bfloat16).eval()
    assert loaded.denoiser.join.weight.dtype == torch.bfloat16
    assert alpha_bars(loaded.config.schedule, loaded.config.timesteps) == before
    output = loaded(**without_gold(make_batch(tokenizer)))
    assert torch.isfinite(output.logits).all()
    loaded.train()
    assert torch.isfinite(loaded(**make_batch(tokenizer)).loss)


# ----------------------------------------------------------------------------------------------------------- inference


@pytest.fixture(scope="module")
def deep(tokenizer):
    """A model that has learnt one sentence, nested four deep."""
    model = make(tokenizer, num_noisy_spans=20)
    torch.manual_seed(0)  # of the noise
    batch = make_batch(tokenizer, [SENTENCES[4]] * 4)  # four noisy looks a step

    def learnt() -> bool:  # with other noise than that of the tests, in five steps and in one
        return all(whole(model, tokenizer, range(100, 150), num_steps) == 50 for num_steps in (5, 1))

    learn(model, batch, learnt, learning_rate=1e-2, steps=400)
    return model


def whole(model, tokenizer, seeds, num_steps: int = 5) -> int:
    """From how many seeds' noise all entities of the sentence come back."""
    gold, count = set(SENTENCES[4][1]), 0
    for seed in seeds:
        (entities,) = found(
            model, tokenizer, [SENTENCES[4]], seed=seed, num_steps=num_steps, threshold=0.7, num_noisy_spans=60
        )
        count += gold <= {entity[:3] for entity in entities}
    return count


def test_a_learnt_sentence_comes_back_whole_from_noise(deep, tokenizer):
    assert whole(deep, tokenizer, range(50)) > 0.95 * 50


def test_one_step_may_be_enough(deep, tokenizer):
    assert whole(deep, tokenizer, range(20), num_steps=1) > 0.8 * 20


def test_text_and_seed_decide_whatever_the_batch_its_order_and_its_padding(deep, tokenizer):
    many = (SENTENCES * 7)[:32]
    kwargs = {"eta": 1.0, "threshold": 0.0, "seed": 3}  # chance in every step, and everything shown
    together = found(deep, tokenizer, many, **kwargs)
    backwards = found(deep, tokenizer, many[::-1], **kwargs)[::-1]
    for sentence, one, other in zip(many, together, backwards, strict=True):
        (alone,) = found(deep, tokenizer, [sentence], **kwargs)
        assert [e[:3] for e in alone] == [e[:3] for e in one] == [e[:3] for e in other]
        assert [e.score for e in alone] == pytest.approx([e.score for e in one], abs=1e-5)
    outputs = [deep(**without_gold(make_batch(tokenizer)), seed=seed).left for seed in (3, 4)]
    assert not torch.allclose(*outputs)


def test_the_pipeline_takes_what_the_approach_declares(deep, tokenizer, monkeypatch):
    ner = hf_spanner.pipeline(deep, tokenizer)
    text = " ".join(SENTENCES[4][0])
    assert ner(text) == ner(text) != []
    seen = []
    generate = deep.generate
    monkeypatch.setattr(deep, "generate", lambda *args, **kwargs: seen.append(kwargs) or generate(*args, **kwargs))
    ner(text, num_steps=2, num_noisy_spans=7, seed=5)
    hf_spanner.pipeline(deep, tokenizer, num_steps=1)(text, seed=6)
    expected = {"num_steps": 5, "num_noisy_spans": 20, "seed": 42, "eta": 0.0, "early_stop": False}
    assert seen == [
        {**expected, "num_steps": 2, "num_noisy_spans": 7, "seed": 5},
        {**expected, "num_steps": 1, "seed": 6},
    ]
    with pytest.raises(TypeError, match="no parameter 'steps'"):
        ner(text, steps=3)
    with pytest.raises(ValueError, match="num_steps=1001 must lie between 1 and the 1000 timesteps"):
        ner(text, num_steps=1001)


def test_other_approaches_know_no_such_parameter(tokenizer):
    encoder = encoder_config("bert", len(tokenizer)).to_dict()
    model_class = hf_spanner.APPROACHES["span_ner"]
    model = model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, max_subwords=64))
    with pytest.raises(TypeError, match="no parameter 'num_steps'"):
        hf_spanner.pipeline(model, tokenizer)("London", num_steps=3)
    with pytest.raises(TypeError, match="span_ner knows no inference parameter 'num_steps', none"):
        model.inference_settings(num_steps=3)


def test_denoising_stops_early_for_the_texts_that_have_settled(deep, tokenizer, monkeypatch):
    batch, predictions, denoise = without_gold(make_batch(tokenizer)), [], deep.denoise
    monkeypatch.setattr(deep, "denoise", lambda *args: predictions.append(denoise(*args)) or predictions[-1])
    with torch.no_grad():
        full = deep(**batch, num_steps=10)
        predictions.clear()
        early = deep(**batch, num_steps=10, early_stop=True)
        rows = [len(logits) for logits, _, _ in predictions]
        predictions.clear()
        i = int(early.steps.argmin())
        alone = deep(**without_gold(make_batch(tokenizer, [SENTENCES[i]])), num_steps=10, early_stop=True)
    assert full.steps.tolist() == [10] * 5
    assert 2 <= early.steps[i] < 10
    assert rows == [int((early.steps > step).sum()) for step in range(len(rows))]  # the settled are not computed
    assert alone.steps[0] == early.steps[i] == len(predictions)  # the others do not matter
    before, last = (
        entity_codes(logits, torch.stack([left.argmax(-1), right.argmax(-1)], -1), left.size(-1))
        for logits, left, right in predictions[-2:]
    )
    assert torch.equal(before, last)


def test_rows_hold_the_same_entities_in_whatever_order_and_however_often():
    logits = torch.eye(3)[torch.tensor([[1, 2, 1], [2, 1, 2], [1, 2, 0]])]
    spans = torch.tensor([[[0, 1], [2, 3], [0, 1]], [[2, 3], [0, 1], [2, 3]], [[0, 1], [3, 2], [2, 3]]])
    codes = entity_codes(logits, spans, 4)
    assert torch.equal(codes[0], codes[1])
    assert (codes[2] >= 0).sum() == 1  # the second ends before it begins, the third is none


@pytest.mark.parametrize("span_state", ["left_width", "left_right"])
def test_when_a_text_has_settled_does_not_hang_on_the_others_of_its_batch(tokenizer, span_state):
    model = make(tokenizer, span_state=span_state, span_representation="mean", eta=1.0, lstm_layers=0)
    sentences = [(words[i:], []) for words, _ in SENTENCES for i in range(min(4, len(words)))]
    with torch.no_grad():
        batch = model(**without_gold(make_batch(tokenizer, sentences)), num_steps=10, early_stop=True)
        alone = [
            model(**without_gold(make_batch(tokenizer, [sentence])), num_steps=10, early_stop=True).steps.item()
            for sentence in sentences
        ]
    assert batch.steps.tolist() == alone


# ------------------------------------------------------------------------------------------------------------ decoding


def output_of(rows, words: int = 4) -> DiffusionNerOutput:
    """Predictions of one sentence, given as left, right, class and the probabilities of these three."""
    left = torch.full((1, len(rows), words), -20.0)
    right, logits = left.clone(), torch.zeros(1, len(rows), len(LABELS) + 1)
    for k, (first, last, type_, *certain) in enumerate(rows):
        left[0, k, first], right[0, k, last], p = *(torch.logit(torch.tensor(c)) for c in certain[:2]), certain[2]
        logits[0, k] = torch.log(torch.tensor((1 - p) / len(LABELS)))
        logits[0, k, type_] = torch.log(torch.tensor(p))
    return DiffusionNerOutput(logits=logits, left=left, right=right, num_words=torch.tensor([words]))


def test_a_prediction_needs_a_type_an_order_and_the_sum_of_its_probabilities(tokenizer):
    model = make(tokenizer, overlap="any")
    output = output_of(
        [
            (0, 1, 1, 0.9, 0.9, 0.8),  # 2.6 ≥ φ
            (1, 2, 2, 0.9, 0.9, 0.6),  # 2.4
            (3, 2, 2, 0.99, 0.99, 0.99),  # ends before it begins
            (2, 2, 0, 0.99, 0.99, 0.99),  # none
        ]
    )
    (entities,) = model.decode(output)
    assert [entity[:3] for entity in entities] == [(0, 2, "PER")]
    assert entities[0].score == pytest.approx(2.6 / 3)
    assert [entity[:3] for entity in model.decode(output, threshold=0.7)[0]] == [(0, 2, "PER"), (1, 3, "place name")]
    # A threshold for one label leaves φ to the others.
    assert model.decode(output, threshold={"PER": 0.9})[0] == []


def test_of_one_span_the_most_probable_type_stays_unless_several_may(tokenizer):
    output = output_of([(0, 1, 1, 0.99, 0.99, 0.8), (0, 1, 2, 0.9, 0.9, 0.9), (0, 1, 2, 0.95, 0.95, 0.7)])
    (entities,) = make(tokenizer).decode(output)
    assert [(e.label, round(e.score, 4)) for e in entities] == [("place name", 0.9)]
    (entities,) = make(tokenizer, multi_label=True).decode(output)
    assert {e.label for e in entities} == {"PER", "place name"}


def test_a_span_cap_drops_longer_predictions(tokenizer):
    output = output_of([(0, 1, 1, 0.99, 0.99, 0.99), (0, 2, 1, 0.99, 0.99, 0.99)])
    model = make(tokenizer, max_span_length=2)
    assert model.reach().longest is not None and make(tokenizer).reach().longest is None
    assert [e[:2] for e in model.decode(output)[0]] == [(0, 2)]


# ----------------------------------------------------------------------------------------------------------- bad input


def test_a_sentence_of_one_word_trains_and_predicts(tokenizer):
    model = make(tokenizer)
    (entities,) = found(model, tokenizer, [(["London"], [])], threshold=0.0)
    assert all(entity[:2] == (0, 1) for entity in entities)
    assert torch.isfinite(model.train()(**make_batch(tokenizer, [SENTENCES[2]])).loss)


@pytest.mark.parametrize("own, cross", [(False, True), (True, False), (False, False)])
def test_without_an_attention_spans_do_not_see_what_it_shows(tokenizer, own, cross):
    """Without self-attention a span does not see the others; without cross-attention not the words that it is not made
    of (the pointers apart: the types are looked at)."""
    torch.manual_seed(0)
    model = make(tokenizer, self_attention=own, cross_attention=cross, span_representation="boundary")
    denoiser = model.denoiser
    names = {name for name, _ in denoiser.named_parameters()}
    assert any("self_attention" in name for name in names) is own
    assert any("cross_attention" in name for name in names) is cross
    words, mask = torch.randn(1, 6, 32), torch.ones(1, 6, dtype=torch.bool)
    spans, times = torch.tensor([[[0, 1], [2, 3]]]), torch.tensor([7])

    def types(words: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return denoiser(words, mask, spans, times)[0][0, 0]

    other_span, other_word = spans.clone(), words.clone()
    other_span[0, 1], other_word[0, 5] = torch.tensor([3, 4]), 9.0
    assert torch.allclose(types(words, spans), types(words, other_span)) is not own
    assert torch.allclose(types(words, spans), types(other_word, spans)) is not cross


def test_an_ablated_model_learns_with_every_parameter(tokenizer):
    model = make(tokenizer, self_attention=False, cross_attention=False, time_embedding="sinusoid").train()
    model(**make_batch(tokenizer)).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None and not name.startswith("encoder.")] == []


def test_the_time_may_be_added_as_its_sinusoid(tokenizer):
    model = make(tokenizer, time_embedding="sinusoid")
    assert not any("time_mlp" in name for name, _ in model.named_parameters())
    denoiser, seen = model.denoiser, []
    denoiser.classifier.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    words, mask, spans = torch.randn(1, 4, 32), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[[0, 1]]])
    with torch.no_grad():
        for time in (3, 400):
            denoiser(words, mask, spans, torch.tensor([time]))
    expected = sinusoid(torch.tensor([400]), 32) - sinusoid(torch.tensor([3]), 32)
    assert torch.allclose(seen[1][0] - seen[0][0], expected, atol=1e-5)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"num_steps": 1001}, "num_steps=1001 must lie between 1 and the 1000 timesteps"),
        ({"num_steps": 0}, "num_steps=0"),
        ({"num_noisy_spans": 0}, "num_noisy_spans=0 must be at least 1"),
        ({"eta": 2.0}, "eta=2.0 must lie between 0 and 1"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
        ({"schedule": "sigmoid"}, "schedule='sigmoid' is unknown"),
        ({"schedule": "linear", "timesteps": 15}, "timesteps=15 are too few for the linear schedule"),
        ({"span_state": "width"}, "span_state='width' is unknown"),
        ({"expansion": "none"}, "expansion='none' is unknown"),
        ({"span_representation": "max"}, "span_representation='max' is unknown"),
        ({"scale": 0.0}, "scale=0.0 must be positive"),
        ({"boundary_smoothing": 0.1}, "has no grid of spans to smooth"),
        ({"time_embedding": "raw"}, "time_embedding='raw' is unknown"),
        ({"boundary_loss": "paper"}, "boundary_loss='paper' is unknown"),
        ({"attention_heads": 5}, "attention_heads=5 do not divide the encoder's 32 dimensions"),
    ],
)
def test_settings_out_of_range_are_named(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, **settings)
