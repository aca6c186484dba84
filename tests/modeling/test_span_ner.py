"""SpanNER's head against the paper's formula written out naively."""

import pytest
import torch
from tests_support import LABELS, encoder_config, make_batch

from hf_spanner.modeling.losses import Gold, grid_loss
from hf_spanner.modeling.modeling_span_ner import SpanNerConfig, SpanNerForNestedNer, SpanScorer


def scorer(representation="hybrid", max_span=4, hidden=32):
    torch.manual_seed(0)
    config = SpanNerConfig(
        encoder_config=encoder_config("bert", 30).to_dict(),
        labels=LABELS,
        max_span_length=max_span,
        span_representation=representation,
    )
    return SpanScorer(config, 4).eval()


@pytest.mark.parametrize("representation", ["boundary", "pooling", "hybrid"])
def test_projecting_first_equals_the_linear_map_of_the_concatenation(representation):
    head = scorer(representation)
    words, sentence = torch.randn(2, 6, 32), torch.randn(2, 32)
    grid = head(words, sentence, 4)  # (B, T, K, out)
    for b in range(2):
        for i in range(6):
            for k in range(min(4, 6 - i)):
                parts = {
                    "boundary": [words[b, i], words[b, i + k]],
                    "pooling": [words[b, i : i + k + 1].amax(0), sentence[b]],
                    "hybrid": [words[b, i], words[b, i + k], words[b, i : i + k + 1].amax(0), sentence[b]],
                }[representation]
                expected = head.linear(torch.cat([*parts, head.sizes.weight[k]]))
                assert torch.allclose(grid[b, i, k], expected, atol=1e-5)


@pytest.mark.parametrize("representation", ["boundary", "pooling", "hybrid"])
def test_given_spans_score_as_on_the_grid(representation):
    head = scorer(representation)
    words, sentence = torch.randn(2, 6, 32), torch.randn(2, 32)
    grid = head(words, sentence, 4)
    starts, ends = torch.tensor([[0, 2, 5], [1, 1, 3]]), torch.tensor([[4, 3, 6], [2, 5, 5]])
    given = head.score(words, sentence, starts, ends)
    for b in range(2):
        for n in range(3):
            i, k = starts[b, n], ends[b, n] - starts[b, n] - 1
            assert torch.allclose(given[b, n], grid[b, i, k], atol=1e-5)


def model(**settings):
    torch.manual_seed(0)
    config = SpanNerConfig(
        encoder_config=encoder_config("bert", 200).to_dict(), labels=LABELS, dropout=0.0, **settings
    )
    return SpanNerForNestedNer(config).eval()


def test_the_loss_is_the_mean_cross_entropy_over_gold_and_all_other_spans(tokenizer):
    sentence = ("New York is here".split(), [(0, 2, "place name")])
    batch = make_batch(tokenizer, [sentence])
    net = model(max_span_length=3, max_negatives=None)
    output = net(**batch)
    losses = []
    for i in range(4):
        for k in range(3):
            if i + k < 4:
                target = 2 if (i, k) == (0, 1) else 0
                losses.append(torch.nn.functional.cross_entropy(output.logits[0, i, k], torch.tensor(target)))
    assert len(losses) == 9
    assert output.loss.item() == pytest.approx(torch.stack(losses).mean().item(), abs=1e-6)


def test_at_most_so_many_negatives_enter_the_loss(tokenizer):
    sentence = ("New York is here".split(), [(0, 2, "place name")])
    batch = make_batch(tokenizer, [sentence])
    net = model(max_span_length=3, max_negatives=2)
    states = net.encode(**{k: batch[k] for k in ("input_ids", "attention_mask", "word_ids", "num_words")})
    logits = net.scorer(states.words, states.sentence, 3)
    _, count = grid_loss(logits, states.num_words, Gold(batch["entities"]), net.config, max_negatives=2)
    assert count == 3  # one gold span, two others


def test_entities_longer_than_the_cap_are_positives_in_training_and_never_predicted(tokenizer):
    sentence = ("the mayor of New York".split(), [(0, 5, "PER")])
    batch = make_batch(tokenizer, [sentence])
    net = model(max_span_length=2, max_negatives=None)
    with_long = net(**batch).loss
    batch["entities"] = torch.full((1, 1, 3), -1)
    assert with_long.item() != pytest.approx(net(**batch).loss.item(), abs=1e-6)
    assert all(e.end - e.start <= 2 for e in net.decode(net(**batch), threshold=0.0, overlap="any")[0])


def test_the_loss_of_a_long_entity_is_its_cross_entropy_and_has_a_gradient(tokenizer):
    """Three words where spans end at two: five spans on the grid, and the entity beside it."""
    batch = make_batch(tokenizer, [("the New York".split(), [(0, 3, "place name")])])
    net = model(max_span_length=2, max_negatives=None)
    output = net(**batch)
    states = net.encode(**{k: batch[k] for k in ("input_ids", "attention_mask", "word_ids", "num_words")})
    logits = net.scorer.score(states.words, states.sentence, torch.tensor([[0]]), torch.tensor([[3]]))[0]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([2])) / (5 + 1)
    assert output.losses["long"].item() == pytest.approx(expected.item(), abs=1e-6)
    (gradient,) = torch.autograd.grad(output.losses["long"], net.scorer.linear.weight)
    assert gradient.abs().sum() > 0
    short = net(**make_batch(tokenizer, [("the New York".split(), [(1, 3, "place name")])]))
    assert short.losses["long"] == 0


def test_memory_of_the_grid_is_linear_in_the_cap():
    head = scorer(max_span=8)
    assert head(torch.randn(1, 50, 32), torch.randn(1, 32), 8).shape == (1, 50, 8, 4)


def test_the_loss_may_be_summed_over_spans_and_averaged_over_sentences(tokenizer):
    batch = make_batch(tokenizer, [("New York is here".split(), [(0, 2, "place name")]), (["London"], [])])
    by_span = model(max_span_length=3, max_negatives=None)(**batch).loss
    by_sentence = model(max_span_length=3, max_negatives=None, loss_reduction="sentence")(**batch).loss
    assert by_sentence.item() == pytest.approx(by_span.item() * (9 + 1) / 2, rel=1e-5)
    with pytest.raises(ValueError, match="loss_reduction='word'"):
        SpanNerConfig(labels=LABELS, loss_reduction="word")
