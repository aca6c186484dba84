"""Whether one system is better than another, where, and which entities only one of them finds.

Both tests work on sentences: what matters of a sentence are five numbers, its gold entities and how many each system
predicts and has right. Sentences with the same numbers are interchangeable, so a resample is drawn as how many of each
sort it holds: 10,000 resamples take a fraction of a second, and nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from .mentions import Mention


class SentenceCounts(NamedTuple):
    """The counts of every sentence, `(N,)` each."""

    correct: np.ndarray
    predicted: np.ndarray
    support: np.ndarray

    @classmethod
    def of(cls, mentions: Sequence[Mention], sentences: int) -> SentenceCounts:
        where = np.array([m.sentence for m in mentions], dtype=int)
        columns = ([m.correct for m in mentions], [m.predicted for m in mentions], [m.gold for m in mentions])
        return cls(*(np.bincount(where, np.array(c, dtype=float), minlength=sentences).astype(int) for c in columns))


def pooled(runs: Sequence[SentenceCounts]) -> SentenceCounts:
    """The counts of several runs together, such as seeds: a sentence is drawn with all its runs or not at all."""
    return SentenceCounts(*(np.sum(column, axis=0) for column in zip(*runs, strict=True)))


def f1_of(correct: Any, predicted: Any, support: Any) -> np.ndarray:
    """Micro F1 of counts of any shape; 0 where there is nothing to find and nothing found."""
    both = np.asarray(predicted + support, dtype=float)
    f1: np.ndarray = np.divide(2.0 * correct, both, out=np.zeros_like(both), where=both > 0)
    return f1


def bootstrap_f1(counts: SentenceCounts, resamples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of F1 over resampled sentences (percentiles)."""
    sorts, weights = _resample(np.stack(counts, axis=1), resamples, seed)
    low, high = np.percentile(f1_of(*(weights @ sorts).T), [2.5, 97.5])
    return float(low), float(high)


def compare_systems(a: SentenceCounts, b: SentenceCounts, resamples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Two tests of the difference in micro F1, b - a.

    - *Paired bootstrap*: sentences are drawn with replacement. `interval` is where 95 % of the differences lie;
      `p_bootstrap` is how often a difference strays from the observed one by at least as much as that is from 0.
    - *Approximate randomisation*: in every sentence the two systems' outputs are swapped or not, by a coin.
      `p_randomisation` is how often the difference is at least as large, in either direction, as the observed one.

    Both p are two-sided and count the observed data as one of the resamples, so they are never 0.
    """
    if not np.array_equal(a.support, b.support):
        raise ValueError(
            "The systems are not about the same gold entities: compare predictions for the same sentences."
        )
    difference = float(f1_of(*map(np.sum, b)) - f1_of(*map(np.sum, a)))
    at_least = abs(difference) - 1e-12
    table = np.stack([a.correct, a.predicted, b.correct, b.predicted, a.support], axis=1)

    sorts, weights = _resample(table, resamples, seed)
    totals = weights @ sorts  # (R, 5)
    resampled = f1_of(*totals[:, [2, 3, 4]].T) - f1_of(*totals[:, [0, 1, 4]].T)
    low, high = np.percentile(resampled, [2.5, 97.5])

    sorts, sizes = np.unique(table[:, :4], axis=0, return_counts=True)
    swapped = np.random.default_rng(seed).binomial(sizes, 0.5, size=(resamples, len(sizes)))  # sentences of each sort
    gain = swapped.astype(float) @ (sorts[:, 2:] - sorts[:, :2])  # (R, 2): what a gets from b in correct and predicted
    sums, support = table.sum(0), table[:, 4].sum()
    first = f1_of(sums[0] + gain[:, 0], sums[1] + gain[:, 1], support)
    second = f1_of(sums[2] - gain[:, 0], sums[3] - gain[:, 1], support)
    return {
        "difference": difference,
        "interval": [float(low), float(high)],
        "p_bootstrap": _p_value(np.abs(resampled - difference) >= at_least),
        "p_randomisation": _p_value(np.abs(second - first) >= at_least),
        "resamples": resamples,
    }


def bootstrap_runs(runs: Sequence[SentenceCounts], resamples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean F1 of several runs, over resampled runs and sentences."""
    each = _f1_of_resamples(runs, resamples, seed)
    low, high = np.percentile(_mean_of_draws(each, np.random.default_rng(seed + 1)), [2.5, 97.5])
    return float(low), float(high)


def compare_runs(
    a: Sequence[SentenceCounts], b: Sequence[SentenceCounts], resamples: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Two tests of the difference between the mean micro F1 of several trainings of b and of a.

    - *Bootstrap over runs and sentences*: both are drawn with replacement, so that `interval` and `p_bootstrap` know
      of the luck of a seed and of the choice of sentences. Of n runs n - 1 are drawn: their mean varies as that of n
      new runs would.
    - *Randomisation of runs*: `p_randomisation` is how often runs dealt anew to the two systems differ at least as
      much in their means, exactly; with two runs each it cannot be less than 1/3, with three 1/10, with four 1/35.
    """
    first = a[0].support
    if not all(np.array_equal(first, run.support) for run in (*a, *b)):
        raise ValueError("The runs are not about the same gold entities: compare predictions for the same sentences.")
    if len(a) < 2 or len(b) < 2:
        raise ValueError("A comparison of runs needs two or more of each system.")
    f1 = [np.array([f1_of(*map(np.sum, run)) for run in runs]) for runs in (a, b)]
    difference = float(f1[1].mean() - f1[0].mean())
    at_least = abs(difference) - 1e-12
    each, draw = _f1_of_resamples([*a, *b], resamples, seed), np.random.default_rng(seed + 1)
    resampled = _mean_of_draws(each[:, len(a) :], draw) - _mean_of_draws(each[:, : len(a)], draw)
    low, high = np.percentile(resampled, [2.5, 97.5])
    every = np.concatenate(f1)
    deals = np.array([every[list(chosen)].mean() for chosen in combinations(range(len(every)), len(b))])
    others = (every.sum() - deals * len(b)) / len(a)
    return {
        "difference": difference,
        "interval": [float(low), float(high)],
        "p_bootstrap": _p_value(np.abs(resampled - difference) >= at_least),
        "p_randomisation": float((np.abs(deals - others) >= at_least).mean()),
        "resamples": resamples,
    }


def _f1_of_resamples(runs: Sequence[SentenceCounts], resamples: int, seed: int) -> np.ndarray:
    """The F1 of every run on the same resampled sentences, `(R, runs)`."""
    columns = [column for run in runs for column in (run.correct, run.predicted)]
    sorts, weights = _resample(np.stack([*columns, runs[0].support], axis=1), resamples, seed)
    totals = weights @ sorts  # (R, 2·runs + 1)
    return f1_of(totals[:, 0:-1:2], totals[:, 1:-1:2], totals[:, -1:])


def _mean_of_draws(values: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """The mean of n - 1 of the n values of each row, drawn with replacement."""
    rows, count = values.shape
    drawn: np.ndarray = np.take_along_axis(values, draw.integers(count, size=(rows, count - 1)), axis=1).mean(1)
    return drawn


def _resample(table: np.ndarray, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The sorts of rows `(U, c)` of a table `(N, c)`, and how often each is among N rows drawn at random, `(R, U)`."""
    sorts, sizes = np.unique(table, axis=0, return_counts=True)
    if not len(table):
        return sorts, np.zeros((resamples, 0))
    draws = np.random.default_rng(seed).multinomial(len(table), sizes / len(table), size=resamples)
    return sorts, draws.astype(float)  # products of floats are the fast ones


def _p_value(extreme: np.ndarray) -> float:
    return float((1 + extreme.sum()) / (1 + len(extreme)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests made at once, adjusted by Holm's method."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def found_by(mentions: Mapping[str, Sequence[Mention]]) -> dict[tuple[int, int, int, str], list[str]]:
    """Which systems find each gold entity (sentence, start, end, label); the systems in the order given."""
    found: dict[tuple[int, int, int, str], list[str]] = {}
    for name, members in mentions.items():
        for mention in members:
            if mention.gold:
                found.setdefault(mention[:4], []).extend([name] if mention.predicted else [])
    return found
