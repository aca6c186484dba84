"""Locate and Label: the authors' numbers, long entities, ablations, every optional input, and bad input."""

import math
import random

import pytest
import torch
from tests_support import LABELS, SENTENCES, encoder_config, learn, make_batch, read_oracle, records, without_gold
from transformers import BertConfig, pipeline

from hf_spanner.building import VectorArguments, build_model
from hf_spanner.building.vectors import WordVectors
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.loading import load_model, load_tokenizer
from hf_spanner.modeling.locate_and_label_spans import Spans, boundary_loss, overlap_loss, shift
from hf_spanner.modeling.modeling_locate_and_label import (
    LocateAndLabelConfig,
    LocateAndLabelForNestedNer,
    SpanReader,
)
from hf_spanner.modeling.word_inputs import WordInputs, char_ids, word_key
from hf_spanner.training import NestedNerCollator, NestedNerDataset, NestedNerTrainer, NestedNerTrainingArguments
from hf_spanner.training.reach import unreachable


def make(tokenizer, **settings) -> LocateAndLabelForNestedNer:
    torch.manual_seed(0)
    encoder = encoder_config("bert", len(tokenizer)).to_dict()
    settings = {"max_span_length": 12, "max_subwords": 64, **settings}
    return LocateAndLabelForNestedNer(LocateAndLabelConfig(encoder_config=encoder, labels=LABELS, **settings)).eval()


# ----------------------------------------------------------------------------------------------- the authors' numbers


@pytest.fixture(scope="module")
def oracle() -> dict:
    return read_oracle("locate_and_label_model.pt")["linear_nocount"]


@pytest.fixture(scope="module")
def theirs(oracle):
    """Our model with the authors' weights, its words, and their spans: (model, reader, spans, mask of real ones)."""
    state = oracle["state_dict"]
    config = LocateAndLabelConfig(
        encoder_config={**oracle["hf_config"], "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
        labels=["A", "B"],
        dropout=0.0,
        last_layers=4,
        lstm_size=16,
        char_size=4,
        pos_dim=5,
        pos_tags=[f"tag{i}" for i in range(98)],  # their table has 100 rows
        vector_dim=6,
        vector_words=9,
    )
    model = LocateAndLabelForNestedNer(config).eval()
    own = {
        name.replace("bert.", "encoder.", 1): value
        for name, value in state.items()
        if name.startswith("bert.") and "position_ids" not in name and "pooler" not in name
    }
    own["tokens.pos.weight"] = state["pos_embedding.weight"]
    own["tokens.characters.embedding.weight"] = state["char_embedding.weight"]
    own |= {f"tokens.characters.lstm.{n[10:]}": v for n, v in state.items() if n.startswith("char_lstm.")}
    own |= {f"tokens.lstm.lstm.{n[5:]}": v for n, v in state.items() if n.startswith("lstm.")}
    # Their word vectors have the numbers 0..9 for keys: here 1..9 are known, and 0 is unknown.
    own["tokens.vectors.keys"] = torch.arange(1, 10)
    own["tokens.vectors.vectors"] = state["wordvec_embedding.weight"].roll(-1, dims=0)
    names = {"filter": "binary_classfier", "regressor": "offset_regressier1", "classifier": "entity_classifier"}
    for mine, name in names.items():
        first, second, pooled = state[f"{name}.0.weight"].chunk(3, dim=1)  # they have the boundary words first
        own[f"{mine}.hidden.weight"] = torch.cat([pooled, first, second], dim=1)
        own[f"{mine}.hidden.bias"] = state[f"{name}.0.bias"]
        for kind in ("weight", "bias"):
            output = state[f"{name}.2.{kind}"]
            # A softmax over two logits is a sigmoid of their difference.
            own[f"{mine}.output.{kind}"] = output[1:] - output[:1] if mine == "filter" else output
    model.load_state_dict(own)
    batch = oracle["batch"]
    words, subwords = batch["token_masks"].nonzero()[:, :2].T, batch["token_masks"].nonzero()[:, 2]
    word_ids = torch.full_like(batch["encodings"], -1)
    word_ids[words[0], subwords] = words[1]
    num_words = batch["token_masks_bool"].sum(1)
    with torch.no_grad():
        states = model.encode(
            batch["encodings"],
            batch["context_masks"].long(),
            word_ids,
            num_words,
            pos_ids=batch["pos_encoding"],
            word_keys=batch["wordvec_encoding"],
            char_ids=batch["char_encoding"],
        )
    real = batch["entity_sample_masks"]
    row, column = real.nonzero(as_tuple=True)
    spans = Spans(row, *batch["entity_spans_token"][row, column].unbind(-1))
    return model, SpanReader(states.words, num_words), spans, real


def test_filter_logits_are_the_authors(oracle, theirs):
    model, reader, spans, real = theirs
    logits = oracle["outputs"]["bin_logits"][real]
    with torch.no_grad():
        assert torch.allclose(model.filter(reader, spans).squeeze(1), logits[:, 1] - logits[:, 0], atol=1e-5)


def test_offsets_and_logits_are_the_authors(oracle, theirs):
    """Where their shift is legal: elsewhere they set offsets to 0, and we clamp."""
    model, reader, spans, real = theirs
    legal = oracle["outputs"]["illegal_mask"][real]
    assert legal.any() and not legal.all()
    with torch.no_grad():
        offsets = model.regressor(reader, spans)
        logits = model.classifier(reader, shift(spans, offsets, reader.num_words))
    assert torch.allclose(offsets[legal], oracle["outputs"]["offsets1"][real][legal], atol=1e-5)
    assert torch.allclose(logits[legal], oracle["outputs"]["entity_logits"][real][legal], atol=1e-5)


def test_regression_losses_are_the_authors(oracle):
    """They weigh smooth L1 by the IoU, which the paper does not, and leave illegal spans out."""
    batch, offsets = oracle["batch"], oracle["outputs"]["offsets1"]
    mask = batch["offset_sample_masks"] & oracle["outputs"]["illegal_mask"]
    targets = torch.stack([batch["l_offsets"], batch["r_offsets"]], dim=-1)
    losses = boundary_loss(offsets[mask], targets[mask]) * batch["ious"][mask]
    assert losses.mean().item() == pytest.approx(oracle["losses"]["offset"], abs=1e-5)
    seeds = batch["entity_spans_token"][mask].float()
    mine, gold = seeds + offsets[mask], seeds + targets[mask]
    assert overlap_loss(*mine.T, *gold.T).mean().item() == pytest.approx(oracle["losses"]["giou"], abs=1e-5)


# ------------------------------------------------------------------------------------------------------- long entities

LARGEST, LENGTH = 4, 20  # the largest window; the words of a sentence


def bracketed(rng: random.Random, size: int) -> tuple[list[int], tuple[int, int, int]]:
    """Words 2-9, and one entity: a 10, words 12-19, an 11. How far its ends are is for the model to find out."""
    words = [rng.randint(2, 9) for _ in range(LENGTH)]
    start = rng.randint(0, LENGTH - size)
    words[start : start + size] = [10, *(rng.randint(12, 19) for _ in range(size - 2)), 11]
    return words, (start, start + size, 0)


def bracketed_batch(rng: random.Random, sizes: list[int]) -> dict[str, torch.Tensor]:
    words, entities = zip(*(bracketed(rng, size) for size in sizes), strict=True)
    return {
        "input_ids": torch.tensor(words),
        "word_ids": torch.arange(LENGTH).expand(len(words), -1),
        "num_words": torch.full((len(words),), LENGTH),
        "entities": torch.tensor(entities).unsqueeze(1),
    }


def recall_by_size(**settings) -> dict[str, float]:
    torch.manual_seed(0)
    rng = random.Random(0)
    encoder = BertConfig(
        vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config = LocateAndLabelConfig(
        encoder_config=encoder.to_dict(), labels=["A"], max_span_length=LARGEST, windows=None, alpha1=0.5,
        dropout=0.0, lstm_size=32, **settings,
    )  # fmt: skip
    model = LocateAndLabelForNestedNer(config)

    def measure():
        recall = {}
        for name, sizes in {"short": range(2, LARGEST + 1), "long": range(LARGEST + 1, 2 * LARGEST + 1)}.items():
            batch = bracketed_batch(rng, [size for size in sizes for _ in range(20)])
            gold = batch.pop("entities")[:, 0].tolist()
            with torch.no_grad():
                output = model(**batch)
            found = [{(e.start, e.end) for e in entities} for entities in model.decode(output)]
            recall[name] = sum(tuple(g[:2]) in f for g, f in zip(gold, found, strict=True)) / len(gold)
        recall["kept"] = (output.num_kept.sum() / output.num_seeds.sum()).item()
        return recall

    def learnt():
        recall = measure()
        return recall["short"] > 0.9 and (recall["long"] > 0.9 or not config.use_regressor)

    learn(
        model, lambda: bracketed_batch(rng, [rng.randint(2, 2 * LARGEST) for _ in range(16)]), learnt,
        learning_rate=5e-3, steps=160,
    )  # fmt: skip
    return measure()


def test_entities_of_up_to_twice_the_largest_window_are_found_by_moving_seeds():
    recall = recall_by_size()
    assert recall["short"] > 0.8 and recall["long"] > 0.8
    assert recall["kept"] < 0.6  # of the seeds; the others are never looked at again


def test_without_the_regressor_no_entity_longer_than_the_largest_window_is_found():
    recall = recall_by_size(use_regressor=False)
    assert recall["short"] > 0.8 and recall["long"] == 0


# --------------------------------------------------------------------------------------------------- what it looks at


def test_only_what_the_filter_keeps_is_labelled_each_span_once(tokenizer):
    model = make(tokenizer, windows=[1, 2, 3])
    batch = without_gold(make_batch(tokenizer))
    with torch.no_grad():
        model.regressor.output.bias.copy_(torch.tensor([-50.0, 50.0]))  # every seed becomes the whole sentence
        output = model(**batch)
        assert (output.num_kept == output.num_seeds).all()
        spans = [[span for span in row if span[0] >= 0] for row in output.spans.tolist()]
        assert spans == [[[0, len(words)]] for words, _ in SENTENCES]
        model.filter.output.bias.fill_(-50.0)  # and now none is kept
        output = model(**batch)
    assert output.num_kept.tolist() == [0] * len(SENTENCES) and output.num_seeds.tolist()[1:3] == [3, 1]
    assert model.decode(output) == [[]] * len(SENTENCES)
    assert model(**make_batch(tokenizer)).loss.isfinite()


def test_windows_longer_than_every_sentence_do_no_harm(tokenizer):
    model = make(tokenizer, windows=[9, 11])
    batch = make_batch(tokenizer, [(["New", "York"], [(0, 2, "place name")]), (["London"], [])])
    with torch.no_grad():
        assert model(**without_gold(batch)).num_seeds.tolist() == [2, 1]
    model.train()
    model(**batch).loss.backward()


def test_bad_offsets_are_repaired_by_the_gradient(tokenizer):
    """Seeds that a bad start has thrown out of their sentence come back."""
    model = make(tokenizer, dropout=0.0, windows=[1, 2, 3])
    batch = make_batch(tokenizer, [SENTENCES[0]])
    with torch.no_grad():
        model.regressor.output.bias.copy_(torch.tensor([30.0, -30.0]))
    model.train()
    optimizer = torch.optim.AdamW(model.regressor.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        losses.append(model(**batch).loss)
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize(
    "settings, absent",
    [
        ({"use_filter": False}, "filter."),
        ({"use_regressor": False}, "regressor."),
        ({"eta": 0.0}, None),
        ({"soft_nms_decay": 1.0}, None),
        ({"negative_ratio": None}, None),
    ],
)
def test_ablations_are_settings(tokenizer, settings, absent):
    model = make(tokenizer, **settings)
    assert absent is None or not any(name.startswith(absent) for name, _ in model.named_parameters())
    with torch.no_grad():
        output = model(**without_gold(make_batch(tokenizer)))
    if "use_filter" in settings:
        assert (output.num_kept == output.num_seeds).all()
    if "use_regressor" in settings:  # only sizes of windows, or what is left of them at the end of a sentence
        sizes = set(model.config.seed_sizes)
        for spans, (words, _) in zip(output.spans.tolist(), SENTENCES, strict=True):
            assert all(end - start in sizes or end == len(words) for start, end in spans if start >= 0)
    model.train()
    loss = model(**make_batch(tokenizer)).loss
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())


def test_soft_examples_count_less(tokenizer):
    """The same spans and logits: with η = 1 no example counts more than with η = 0, and some count less."""
    batch = make_batch(tokenizer)
    losses = []
    for eta in (0.0, 1.0):
        model = make(tokenizer, eta=eta, dropout=0.0, lambda2=0.0, negative_ratio=None)
        with torch.no_grad():
            losses.append(model(**batch).loss)
    assert losses[1] < losses[0]


def test_each_loss_is_linear_in_its_own_weight_and_in_no_other(tokenizer):
    batch, names = make_batch(tokenizer), ["filter", "regressor", "classifier"]
    model = make(tokenizer, lambda1=1.0, lambda2=1.0, lambda3=1.0)

    def losses() -> list[float]:
        with torch.no_grad():
            output = model(**batch)
        assert list(output.losses) == names
        return [term.item() for term in output.losses.values()]

    plain = losses()
    assert min(plain) > 0
    for index in range(3):
        setattr(model.config, f"lambda{index + 1}", 0.25)
        assert losses() == pytest.approx([0.25 * x if i == index else x for i, x in enumerate(plain)], rel=1e-5)
        setattr(model.config, f"lambda{index + 1}", 1.0)
    assert [getattr(LocateAndLabelConfig(labels=LABELS), f"lambda{i}") for i in (1, 2, 3)] == [1.0, 0.1, 1.0]


# One sentence, a PER at [0, 4). Seeds: the entity itself, IoU 3/4 (above α1 = 0.7), IoU 1/2 (below), IoU 0.
GOLD = torch.tensor([[[0, 4, 0]]])
SEEDS = Spans(torch.zeros(4, dtype=torch.long), torch.tensor([0, 0, 0, 5]), torch.tensor([4, 3, 2, 6]))


@pytest.mark.parametrize("eta, weights", [(0.0, [1, 1, 1, 1]), (1.0, [1, 0.75, 0.5, 1]), (2.0, [1, 0.5625, 0.25, 1])])
def test_the_filter_loss_worked_by_hand(tokenizer, eta, weights):
    """Of p = 0.8 that a seed is kept: the focal loss is 0.2² · -log 0.8 if it shall be, 0.8² · -log 0.2 if not."""
    model = make(tokenizer, eta=eta)
    logits = torch.full((4,), math.log(4.0))
    keep, drop = -0.04 * math.log(0.8), -0.64 * math.log(0.2)
    expected = sum(w * x for w, x in zip(weights, [keep, keep, drop, drop], strict=True)) / 4
    assert model.filter_loss(SEEDS, logits, GOLD).item() == pytest.approx(expected, rel=1e-5)


def test_losses_may_be_sums_by_sentence_as_the_paper_writes_them(tokenizer):
    """Eq. 12-16: the numbers worked by hand below, without dividing by the spans; as if they were of two sentences."""
    means, sums = make(tokenizer), make(tokenizer, loss_reduction="sentence")
    logits, classes = torch.full((4,), 0.5), torch.randn(4, 4)
    offsets, two = torch.randn(4, 2), torch.cat([GOLD, torch.full_like(GOLD, -1)])
    for name, values, looked_at in (
        ("filter_loss", logits, 4),
        ("regressor_loss", offsets, 2),
        ("classifier_loss", classes, 4),
    ):
        mean, total = (getattr(model, name)(SEEDS, values, two).item() for model in (means, sums))
        assert total == pytest.approx(mean * looked_at / 2, rel=1e-5)


@pytest.mark.parametrize("eta, weights", [(0.0, [1, 1, 1, 1]), (1.0, [1, 0.25, 0.5, 1])])
def test_the_classifier_loss_worked_by_hand(tokenizer, eta, weights):
    """Of p = 5/8 for PER and 1/8 for each other: only the exact match is a PER (α2 = 1), all others are none."""
    model = make(tokenizer, eta=eta)
    logits = torch.tensor([0.0, math.log(5.0), 0.0, 0.0]).expand(4, -1)
    costs = [-math.log(5 / 8), *[-math.log(1 / 8)] * 3]
    expected = sum(w * x for w, x in zip(weights, costs, strict=True)) / 4
    assert model.classifier_loss(SEEDS, logits, GOLD).item() == pytest.approx(expected, rel=1e-5)


def test_the_regressor_loss_worked_by_hand(tokenizer):
    """Over the two seeds of at least α1. The entity stays; [0, 3) becomes [-0.5, 3.5) where [0, 4) is wanted.

    Smooth L1: 0.5²/2 for each boundary. Overlap: shared are 3.5 of the 4.5 words from -0.5 to 4.
    """
    model = make(tokenizer)
    offsets = torch.tensor([[0.0, 0.0], [-0.5, 0.5], [9.0, 9.0], [9.0, 9.0]])
    expected = (0 + (0.125 + 0.125) + (1 - 3.5 / 4.5)) / 2
    assert model.regressor_loss(SEEDS, offsets, GOLD).item() == pytest.approx(expected, rel=1e-5)


def test_soft_nms_lowers_scores_before_the_threshold(tokenizer):
    model = make(tokenizer, use_regressor=False, use_filter=False, windows=[3, 4])
    batch = without_gold(make_batch(tokenizer, [(["the", "mayor", "of", "York"], [])]))
    with torch.no_grad():
        output = model(**batch)
    assert output.spans[0, :2].tolist() == [[0, 3], [0, 4]]
    output.logits[:] = torch.tensor([9.0, 0, 0, 0])
    output.logits[0, 0], output.logits[0, 1] = torch.tensor([0, 2.2, 0, 0]), torch.tensor([0, 0, 3.0, 0])
    (found,) = model.decode(output, threshold=0.7)
    assert [e[:3] for e in found] == [(0, 4, "place name")]  # 0.75 falls to 0.68 beside 0.87
    model.config.soft_nms_decay = 1.0
    assert len(model.decode(output, threshold=0.7)[0]) == 2


def test_soft_nms_is_chosen_anew_for_one_call(tokenizer):
    model = make(tokenizer, windows=None)
    batch = without_gold(make_batch(tokenizer))
    with torch.no_grad():
        default, without = model(**batch), model(**batch, soft_nms_decay=1.0)
    assert default.soft_nms_decay is None
    found = model.decode(without, threshold=0.0, overlap="any")
    assert found != model.decode(default, threshold=0.0, overlap="any")
    model.config.soft_nms_decay = 1.0
    assert found == model.decode(default, threshold=0.0, overlap="any")
    with pytest.raises(ValueError, match="soft_nms_decay=1.5 must lie between 0 and 1"):
        model(**batch, soft_nms_decay=1.5)
    with pytest.raises(ValueError, match="all_sizes='yes' must be true or false"):
        model(**batch, all_sizes="yes")


def test_when_reading_seeds_may_be_of_all_sizes_and_in_training_of_the_windows_alone(tokenizer):
    """A sentence of four words has 4 + 3 seeds of one and two words, and 4 + 3 + 2 + 1 of all sizes."""
    model = make(tokenizer, windows=[1, 2], max_span_length=12, negative_ratio=None, all_sizes=True)
    one = [("it is not here".split(), [])]
    batch = without_gold(make_batch(tokenizer, one))
    with torch.no_grad():
        assert model(**batch).num_seeds.tolist() == [10]
        assert model(**batch, all_sizes=False).num_seeds.tolist() == [7]
        assert model.train()(**make_batch(tokenizer, one)).num_seeds.tolist() == [7]
    model.config.use_regressor = False
    assert model.reach().sizes is None and model.reach().longest == 12


def test_offsets_and_the_proposals_they_move_come_out(tokenizer):
    model = make(tokenizer, filter_threshold=0.5)
    with torch.no_grad():
        output = model(**without_gold(make_batch(tokenizer)))
    assert len(output.offsets) == len(output.proposals) == output.num_kept.sum() > 0
    row = torch.repeat_interleave(torch.arange(5), output.num_kept)
    moved = shift(Spans(row, *output.proposals.unbind(-1)), output.offsets, output.num_words)
    spans = {(r, *span) for r, rows in enumerate(output.spans.tolist()) for span in rows if span[0] >= 0}
    assert {(r, s, e) for r, s, e in zip(*(x.tolist() for x in moved), strict=True)} == {
        (r, s, e) for r, s, e in spans
    }


def test_bundled_heads_share_the_words(tokenizer):
    model = make(tokenizer, bundle_weight=0.1, lstm_size=20).train()
    assert model.tagger.classifier.in_features == 20
    model(**make_batch(tokenizer)).loss.backward()
    assert model.tokens.lstm.lstm.weight_ih_l0.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"windows": []}, "must be a list of sizes"),
        ({"windows": [0, 1]}, "must be a list of sizes"),
        ({"windows": 3}, "must be a list of sizes"),
        ({"windows": [20, 30]}, "there is no seed"),
        ({"alpha1": 1.2}, "alpha1=1.2 must lie between 0 and 1"),
        ({"eta": -1}, "eta=-1 must not be negative"),
        ({"soft_nms_decay": 1.5}, "soft_nms_decay=1.5 must lie between 0 and 1"),
        ({"all_sizes": "yes"}, "all_sizes='yes' must be true or false"),
        ({"lstm_size": 7}, "must be even"),
        ({"last_layers": 3}, "last_layers=3 must lie between 1 and the encoder's 2"),
        ({"boundary_smoothing": 0.1}, "Set boundary_smoothing=0"),
    ],
)
def test_bad_settings_are_explained(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, **settings)


# ------------------------------------------------------------------------------------------------------------- reach


def test_what_is_out_of_reach_depends_on_the_regressor(tokenizer):
    def lost(**settings) -> dict:
        model = make(tokenizer, **settings)
        return dict(unreachable(NestedNerDataset(records(), tokenizer, model.config), model))

    second = {"second label on one span": 1}
    assert lost(windows=None) == second
    # 11, 8, 7 words are more than 4/0.7 = 5; those of 1, 2, 4 and 5 can be reached.
    assert lost(windows=[1, 2, 4]) == second | {"longer than the 5 words to which seeds learn to grow": 3}
    fixed = lost(windows=[1, 2, 4], max_span_length=6, use_regressor=False)
    assert fixed == second | {"longer than max_span_length=6 words": 3, "of another size than windows=[1, 2, 4]": 2}


# ----------------------------------------------------------------------------------------------------- optional inputs

WORDS = sorted({word.lower() for words, _ in SENTENCES for word in words} - {"bank"})  # one word has no vector


def vectors() -> WordVectors:
    generator = torch.Generator().manual_seed(0)
    return WordVectors(WORDS, torch.randn(len(WORDS), 6, generator=generator).numpy())


def with_tags() -> list[dict]:
    """The sentences with a made-up part of speech for each word."""
    return [{**record, "pos": ["X" if word.islower() else "NNP" for word in record["tokens"]]} for record in records()]


EVERYTHING = {
    "last_layers": 2, "lstm_size": 32, "char_size": 4, "pos_dim": 3, "pos_tags": ["NNP"], "context_sentences": 1,
    "max_span_length": 12, "max_subwords": 64, "dropout": 0.0,
}  # fmt: skip


@pytest.fixture
def everything(encoder_folder) -> LocateAndLabelForNestedNer:
    torch.manual_seed(0)
    return LocateAndLabelForNestedNer.from_encoder(encoder_folder, labels=LABELS, vectors=vectors(), **EVERYTHING)


def test_word_vectors_are_read_by_word(everything):
    assert everything.config.vectors_lowercase and everything.config.vector_words == len(WORDS)
    words = ["London", "york", "Bank", "\ud800"]
    keys = torch.tensor(everything.config.word_inputs().of(words, pos=["X"] * 4)["word_keys"])
    table, found = vectors().table(), everything.tokens.vectors(keys)
    for word, vector in zip(words, found, strict=True):
        row = 2 + WORDS.index(word.lower()) if word.lower() in WORDS else 1
        assert torch.equal(vector, table[row])
    assert not any("vectors" in name for name, _ in everything.named_parameters())  # frozen


def test_keys_and_characters_are_the_same_everywhere():
    assert word_key("gene") == 7304351123325071367  # models that are saved rely on it
    assert char_ids("a1é") == [11, 2, 102, 101] and len(char_ids("x" * 99)) == 51


def test_every_input_survives_saving_the_pipeline_and_the_trainer(everything, encoder_folder, tmp_path):
    tokenizer = load_tokenizer(encoder_folder)
    trainer = NestedNerTrainer(
        model=everything,
        args=NestedNerTrainingArguments(
            str(tmp_path / "run"),
            num_train_epochs=120,
            learning_rate=5e-3,
            per_device_train_batch_size=5,
            eval_strategy="no",
            save_strategy="no",
            load_best_model_at_end=False,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),  # fmt: skip
        train_dataset=with_tags(),
        eval_dataset=with_tags(),
        processing_class=tokenizer,
    )
    trainer.train()
    assert trainer.evaluate()["eval_f1"] > 0.5
    trainer.save_model(str(tmp_path / "saved"))
    loaded, tokenizer = load_model(str(tmp_path / "saved"))
    for name, value in everything.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    expected = predict_sentences(everything, tokenizer, with_tags())
    found = predict_sentences(loaded, tokenizer, with_tags(), batch_size=1)
    assert [[e[:3] for e in row] for row in found] == [[e[:3] for e in row] for row in expected]
    assert any(found)
    with pytest.raises(ValueError, match="a sentence has none: give them with the data, as 'pos'"):
        pipeline("nested-ner", model=loaded, tokenizer=tokenizer)("the mayor of New York")


def test_the_pipeline_reads_vectors_and_characters(encoder_folder, tmp_path):
    torch.manual_seed(0)
    settings = {**EVERYTHING, "pos_dim": 0, "context_sentences": 0, "threshold": 0.0}
    model = LocateAndLabelForNestedNer.from_encoder(encoder_folder, labels=LABELS, vectors=vectors(), **settings)
    tokenizer = load_tokenizer(encoder_folder)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ner = pipeline("nested-ner", model=str(tmp_path))
    words = SENTENCES[0][0]
    found = ner(words, is_split_into_words=True, overlap="any")
    (expected,) = predict_sentences(model, tokenizer, [{"tokens": words}], overlap="any")
    assert [(e["start_word"], e["end_word"], e["entity_group"]) for e in found] == [e[:3] for e in expected] != []
    assert [e["score"] for e in found] == pytest.approx([e.score for e in expected], abs=1e-5)
    assert ner("") == [] and len(ner(["", " ".join(words)], batch_size=2)) == 2


def test_each_input_makes_a_difference(everything, encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    everything.eval()
    items = NestedNerDataset(with_tags(), tokenizer, everything.config).items
    batch = without_gold(NestedNerCollator(tokenizer.pad_token_id)(items))
    assert batch["word_keys"].shape == batch["pos_ids"].shape == batch["char_ids"].shape[:2]
    batch.pop("places")

    def words(**changes):
        with torch.no_grad():
            return everything.encode(**{**batch, **changes}).words

    for name in ("word_keys", "char_ids", "pos_ids"):
        assert not torch.allclose(words(), words(**{name: batch[name].roll(1, dims=1)}), atol=1e-6)
        with pytest.raises(ValueError, match=name):
            everything(**{key: value for key, value in batch.items() if key != name})


def test_tags_must_fit_the_words():
    inputs = WordInputs(pos_tags=["NN"])
    assert inputs.of(["a", "cat"], ["DT", "NN"]) == {"pos_ids": [1, 2]}
    with pytest.raises(ValueError, match="1 part-of-speech tags do not fit 2 words"):
        inputs.of(["a", "cat"], ["DT"])
    with pytest.raises(ValueError, match="spaCy"):
        WordInputs(pos_tags=["NN"], pos_tagger="no_such_pipeline").of(["a"])


def test_a_new_model_is_built_with_the_vectors_and_the_tags_of_its_data(encoder_folder, tmp_path):
    vectors().save(tmp_path / "vectors.txt")
    data = {"train": with_tags() * 3, "validation": with_tags(), "test": [{**with_tags()[0], "pos": ["RARE"] * 15}]}
    said = []
    model, tokenizer = build_model(
        "locate_and_label", LABELS, {"vector_dim": 6, "pos_dim": 3, "char_size": 2}, encoder_folder, data,
        VectorArguments(vectors=str(tmp_path / "vectors.txt")), say=said.append,
    )  # fmt: skip
    assert model.config.pos_tags == ["NNP", "X"] and model.config.vector_words == len(WORDS)
    assert model.config.hidden_size == 32 + 6 + 3 + 4
    assert len(predict_sentences(model, tokenizer, data["test"])) == 1
    assert any("of the words have a vector" in line for line in said)
