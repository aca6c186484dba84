"""Principal component analysis."""

from __future__ import annotations

import numpy as np


def principal_axes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean `(d,)`, the first two principal axes `(d, 2)` of points `(N, d)`, and their shares of the variance.

    The points on the axes are `(x - mean) @ axes`. An axis has no sign of its own: its largest entry is made positive.
    """
    x = np.asarray(x, dtype=np.float64)
    mean = x.mean(0)
    covariance = (x - mean).T @ (x - mean) / max(len(x) - 1, 1)
    values, vectors = np.linalg.eigh(covariance)  # the largest last
    axes = vectors[:, ::-1][:, :2]
    if axes.shape[1] < 2:  # points on a line
        axes = np.pad(axes, ((0, 0), (0, 1)))
    axes = axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1, 1)
    shares = np.append(values[::-1], 0.0)[:2].clip(0) / max(values.sum(), 1e-12)
    return mean, axes, shares
