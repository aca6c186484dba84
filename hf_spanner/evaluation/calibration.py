"""Whether scores mean what they say: of the predictions with a score near 0.8, are about 80 % right?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..modeling.decoding import Calibration, Entity
from .mentions import Mention
from .thresholds import References, answers

FEWEST = 20  # predictions of which a share is taken


def calibration(mentions: Iterable[Mention], bins: int = 10) -> dict[str, Any] | None:
    """The reliability curve and the expected calibration error (ECE) of the predictions.

    The scores are cut into `bins` ranges of equal width, `[low, high)` and 1.0 in the last. ECE is the mean, over
    predictions, of the gap between a range's mean score and the share of its predictions that are correct.

    Returns:
        `{"ece": float, "bins": [{"low", "high", "count", "score", "correct"}, ...]}`, where `score` and `correct` are
        None in an empty range. None if there is no prediction, or if scores are missing or no probabilities.
    """
    predicted = [m for m in mentions if m.predicted]
    if not predicted or any(m.score is None or not 0 <= m.score <= 1 for m in predicted):
        return None
    scores = np.array([m.score for m in predicted])
    correct = np.array([m.gold for m in predicted], dtype=float)
    ece, count, score_sum, correct_sum = _reliability(scores, correct, bins)
    rows = [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "count": int(count[i]),
            "score": float(score_sum[i] / count[i]) if count[i] else None,
            "correct": float(correct_sum[i] / count[i]) if count[i] else None,
        }
        for i in range(bins)
    ]
    return {"ece": ece, "bins": rows}


def _reliability(scores: np.ndarray, correct: np.ndarray, bins: int) -> tuple[float, Any, Any, Any]:
    """ECE, and of each range the number of predictions, their scores' sum and how many are right."""
    where = np.minimum((scores * bins).astype(int), bins - 1)
    count = np.bincount(where, minlength=bins)
    score_sum = np.bincount(where, weights=scores, minlength=bins)
    correct_sum = np.bincount(where, weights=correct, minlength=bins)
    return float(np.abs(score_sum - correct_sum).sum() / len(scores)), count, score_sum, correct_sum


def fit_calibration(
    candidates: Sequence[Sequence[Entity]], references: References, overlap: str = "any", groups: int = 20
) -> list[list[float]]:
    """Points (score, share of right answers) through which `Calibration` draws its line; isotonic.

    Predictions are cut into groups of equal number by their score; of neighbouring groups whose shares do not rise one
    is made, until all rise.

    Args:
        candidates: scored entities per sentence, before overlaps are resolved, of a model without calibration.
        references: the gold entities.
        overlap: the policy under which the model will predict.
    """
    scores, right, _ = answers(candidates, references, overlap)
    parts = np.array_split(np.argsort(scores, kind="stable"), max(1, min(groups, len(scores) // FEWEST)))
    blocks: list[tuple[float, float, int]] = []  # sum of scores, right answers, number
    for part in parts:
        if not len(part):
            continue
        blocks.append((float(scores[part].sum()), float(right[part].sum()), len(part)))
        while len(blocks) > 1 and not _rises(blocks[-2], blocks[-1]):
            (a, b, n), (c, d, m) = blocks[-2:]
            blocks[-2:] = [(a + c, b + d, n + m)]
    points = [[round(total / number, 6), round(correct / number, 6)] for total, correct, number in blocks]
    return [point for point in points if 0 < point[0] < 1 and 0 < point[1] < 1]


def calibration_error(
    candidates: Sequence[Sequence[Entity]],
    references: References,
    overlap: str,
    points: Sequence[Sequence[float]] = (),
) -> float:
    """The expected calibration error (ten ranges) of predictions, their scores read through `points`."""
    scores, right, _ = answers(candidates, references, overlap)
    scores = np.array(list(map(Calibration(points), scores)))
    return _reliability(scores, right, 10)[0] if len(scores) else 0.0


def _rises(below: tuple[float, float, int], above: tuple[float, float, int]) -> bool:
    return below[1] / below[2] < above[1] / above[2] and below[0] / below[2] < above[0] / above[2]
