"""Whether scores mean what they say: of the predictions with a score near 0.8, are about 80 % right?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .mentions import Mention


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
    where = np.minimum((scores * bins).astype(int), bins - 1)
    count = np.bincount(where, minlength=bins)
    score_sum = np.bincount(where, weights=scores, minlength=bins)
    correct_sum = np.bincount(where, weights=correct, minlength=bins)
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
    return {"ece": float(np.abs(score_sum - correct_sum).sum() / len(scores)), "bins": rows}
