"""GloVe: the co-occurrences it counts, and words of one company that end up together."""

import numpy as np
import pytest

from hf_spanner.building.glove import cooccurrences, fit, train_glove

SENTENCES = ["a b c".split(), "b a".split(), "rare a".split()]


def test_cooccurrences_are_symmetric_and_weighted_by_distance():
    words, counts = cooccurrences(SENTENCES, window=2, min_count=2)
    assert words == ["a", "b"]  # by frequency
    words, counts = cooccurrences(SENTENCES, window=2, min_count=1)
    counts = counts.toarray()
    at = {word: row for row, word in enumerate(words)}
    assert np.allclose(counts, counts.T)
    assert counts[at["a"], at["b"]] == pytest.approx(2.0)  # next to each other, twice
    assert counts[at["a"], at["c"]] == pytest.approx(0.5)  # two apart
    assert counts[at["c"], at["rare"]] == 0  # not in one sentence


def test_the_window_ends_what_counts():
    words, counts = cooccurrences(["a b c".split()], window=1, min_count=1)
    at = {word: row for row, word in enumerate(words)}
    assert counts[at["a"], at["c"]] == 0 and counts[at["a"], at["b"]] == 1


def corpus(seed: int = 0) -> list[list[str]]:
    """Sentences about one of two topics, with words that both share and now and then a word of the other."""
    random = np.random.default_rng(seed)
    topics = [["cat", "dog", "horse", "cow"], ["car", "train", "ship", "plane"]]
    words = [topic + ["the", "a", "and", "is"] + other for topic, other in (topics, topics[::-1])]
    odds = np.array([10.0] * 8 + [1.0] * 4) / 84
    return [list(random.choice(words[i % 2], size=8, p=odds)) for i in range(400)]


def test_words_of_one_company_are_put_together():
    vectors = train_glove(corpus(), dim=10, epochs=300)
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    at = {word: row for row, word in enumerate(vectors.words)}

    def near(a: str, b: str) -> float:
        return float(unit[at[a]] @ unit[at[b]])

    for animal in ("cat", "dog", "horse"):
        assert near(animal, "cow") > near(animal, "plane") + 0.3
    assert near("train", "ship") > near("train", "dog") + 0.3


def test_more_epochs_fit_the_counts_better():
    _, counts = cooccurrences(corpus(), window=5, min_count=1)
    settings = {"dim": 12, "learning_rate": 0.05, "x_max": 10.0, "alpha": 0.75, "seed": 1}
    few, many = (fit(counts, epochs=epochs, **settings) for epochs in (1, 300))
    assert few.shape == many.shape == (12, 12)
    # The product of two words goes with the logarithm of how often they met.
    met = np.log(counts.toarray())[np.triu_indices(12, 1)]
    fits = [np.corrcoef((x @ x.T)[np.triu_indices(12, 1)], met)[0, 1] for x in (few, many)]
    assert fits[1] > max(fits[0], 0.8)


def test_the_same_seed_gives_the_same_vectors():
    a, b, c = (train_glove(corpus(), dim=5, epochs=2, seed=seed).matrix for seed in (1, 1, 2))
    assert np.array_equal(a, b) and not np.allclose(a, c)


def test_small_blocks_give_finite_vectors(monkeypatch):
    monkeypatch.setattr("hf_spanner.building.glove.CELLS", 1)  # one row at a time
    assert np.isfinite(train_glove(corpus(), dim=4, epochs=3).matrix).all()


@pytest.mark.parametrize(
    "sentences, settings, message",
    [
        ([["one"], ["two"]], {}, "No word occurs min_count=2 times in 2 sentences"),
        ([], {}, "No word occurs"),
        ([["a", "a"]], {"dim": 0}, "dim=0 must be at least 1"),
    ],
)
def test_text_without_words_is_refused_with_a_sentence(sentences, settings, message):
    with pytest.raises(ValueError, match=message):
        train_glove(sentences, **settings)
