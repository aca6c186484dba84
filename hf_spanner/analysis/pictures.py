"""Three pictures of what a model thinks of the gold entities (after SNG), for every approach, with matplotlib.

```python
>>> thoughts = gold_probabilities(model, tokenizer, data["test"])
>>> draw_pictures(thoughts, "pictures/", title="SpanNER on GENIA, test")
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..rendering.colours import mix
from .figures import BLUE, COLOURS, GREY, LETTERS, RED, legend_above, new_figure, require_matplotlib, save_figure, wrap
from .probabilities import NONE, GoldProbabilities
from .representations import principal_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLOOR = 1e-6  # of the gold label's probability where it is divided by
MOST_POINTS = 20_000
MOST_NAMES = 3  # of classes that share a place


def draw_pictures(
    thoughts: GoldProbabilities,
    folder: str | Path,
    title: str = "",
    kinds: Iterable[str] = ("pca", "violin", "volcano"),
    formats: Iterable[str] = ("png", "svg"),
) -> list[Path]:
    """Draw and save the pictures; returns the files."""
    require_matplotlib()
    files = []
    for kind in kinds:
        if kind not in PICTURES:
            raise ValueError(f"There is no picture {kind!r}: choose from {list(PICTURES)}.")
        files += save_figure(PICTURES[kind](thoughts, title), Path(folder) / kind, formats)
    return files


def draw_pca(thoughts: GoldProbabilities, title: str = "") -> Figure:
    """The class probabilities of the gold spans on their first two principal components."""
    figure, (axes,) = new_figure(
        _title("Class probabilities of the gold spans, seen from where they differ most", title),
        height=3.6,
        note=_note(
            thoughts,
            "Each point is a gold entity. A cross with a name is where the model gives that class all the "
            "probability; between crosses it hesitates.",
        ),
    )
    points, corners, shares = principal_components(thoughts)
    right = thoughts.right
    shown = _sample(len(thoughts))
    for is_right, marker, size in ((True, "^", 14), (False, "o", 16)):
        for index in range(len(_labels(thoughts))):
            chosen = shown[(right[shown] == is_right) & (thoughts.gold[shown] == index)]
            axes.scatter(
                *points[chosen].T, s=size, marker=marker, color=_colour(index), alpha=0.45 if is_right else 0.8,
                linewidths=0.4, edgecolors="none" if is_right else "black", rasterized=True, zorder=2 + (not is_right),
            )  # fmt: skip
    _corners(axes, corners, thoughts)
    axes.set_xlabel(f"first principal component ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second principal component ({shares[1]:.0%})")
    from matplotlib.lines import Line2D

    entries = [
        Line2D([], [], marker="s", linestyle="", color=_colour(index), label=f"{label}: {n:,} gold, {share:.0%} right")
        for index, (label, n, share) in enumerate(_by_label(thoughts))
    ]
    entries += [
        Line2D([], [], marker="^", linestyle="", color=GREY, label=f"right: {right.sum():,}"),
        Line2D([], [], marker="o", linestyle="", color=GREY, mec="black", label=f"wrong: {(~right).sum():,}"),
    ]
    legend_above(axes, entries, title="gold label")
    return figure


def draw_representations(figures: Mapping[str, Any], title: str = "") -> Figure:
    """The gold entities' representations on their first two principal components (Figure 4 of DSpERT).

    Args:
        figures: what `describe_representations` returns.
    """
    pca = figures["pca"]
    text = f"Each point is one of {figures['entities']:,} gold entities."
    if figures["out_of_reach"]:
        text += f" {figures['out_of_reach']:,} more are longer than the span cap and have no representation."
    if len(pca["points"]) > MOST_POINTS:
        text += f" {MOST_POINTS:,} are shown, drawn at random."
    subject = "Representations of the gold entities, seen from where they differ most"
    figure, (axes,) = new_figure(_title(subject, title), height=3.6, note=text)
    points, labels = np.array(pca["points"]), np.array(pca["labels"])
    shown = _sample(len(points))
    for index, label in enumerate(dict.fromkeys(sorted(pca["labels"]))):
        chosen = shown[labels[shown] == label]
        name = f"{label}: {(labels == label).sum():,}"
        axes.scatter(
            *points[chosen].T, s=14, color=_colour(index), alpha=0.5, linewidths=0, rasterized=True, label=name
        )
    for axis, name, share in zip((axes.set_xlabel, axes.set_ylabel), ("first", "second"), pca["shares"], strict=True):
        axis(f"{name} principal component ({share:.0%} of the variance)")
    legend_above(axes, title="gold label")
    return figure


def draw_violin(thoughts: GoldProbabilities, title: str = "") -> Figure:
    """How probable the model finds the gold label, where it is right and where it is wrong."""
    rows = list(_by_label(thoughts))
    figure, (axes,) = new_figure(
        _title("Probability of the gold label, by label and by correctness", title),
        height=0.9 + 0.55 * len(rows),
        note=_note(
            thoughts,
            "The higher, the more entities have that probability; halves are scaled to one height. White bar: the "
            "median.",
        ),
    )
    for position, _ in enumerate(rows):
        for is_right, colour in ((True, BLUE), (False, RED)):
            values = thoughts.of_gold[(thoughts.gold == position) & (thoughts.right == is_right)]
            _half_violin(axes, values, position, colour, above=is_right)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("probability of the gold label")
    names = [
        f"{wrap(label, width=1.1)}\n{round(n * share):,} right\n{n - round(n * share):,} wrong"
        for label, n, share in rows
    ]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)  # the first label is the uppermost
    from matplotlib.patches import Patch

    handles = [
        Patch(color=BLUE, alpha=0.75, label=f"right: {thoughts.right.sum():,}"),
        Patch(color=RED, alpha=0.75, label=f"wrong: {(~thoughts.right).sum():,}"),
    ]
    legend_above(axes, handles)
    return figure


def draw_volcano(thoughts: GoldProbabilities, title: str = "") -> Figure:
    """How far the model's favourite is from the gold label, log₂(p_max / p_gold), against the D-value."""
    figure, (axes,) = new_figure(
        _title("How much more probable than the gold label the model's favourite is", title),
        height=3.6,
        note=_note(
            thoughts,
            "Right entities all lie on 0; none can lie left of it. Up and to the right: sure of something else. "
            f"Probabilities of the gold label below {FLOOR:.0e} count as that.",
        ),
    )
    x, y = discrepancy(thoughts)
    groups = [("right: the favourite is the gold label", thoughts.right, BLUE, "^")]
    if NONE in thoughts.classes:
        groups.append(("missed: the favourite is none", thoughts.missed & ~thoughts.right, GREY, "s"))
    groups.append(("wrong label", ~thoughts.right & ~thoughts.missed, RED, "o"))
    shown = np.zeros(len(thoughts), dtype=bool)
    shown[_sample(len(thoughts))] = True
    for name, chosen, colour, marker in groups:
        axes.scatter(
            x[chosen & shown], y[chosen & shown], s=18, marker=marker, color=colour, alpha=0.45, linewidths=0,
            label=f"{name}: {chosen.sum():,}", rasterized=True,
        )  # fmt: skip
    far = (x > 1).sum()
    axes.axvline(1, color="black", linewidth=0.8, linestyle="--")
    axes.annotate(
        f" twice as probable;\n {far:,} lie beyond",
        (1, 0.02),
        xycoords=("data", "axes fraction"),
        fontsize=LETTERS,
        va="bottom",
    )
    axes.set_yscale("log")
    axes.set_xlim(left=min(-0.4, -0.03 * x.max()))
    axes.set_xlabel("log₂( p of the favourite / p of the gold label )")
    axes.set_ylabel("D-value: variance of p over the classes\n/ p of the gold label")
    legend_above(axes)
    return figure


PICTURES = {"pca": draw_pca, "violin": draw_violin, "volcano": draw_volcano}


# ---------------------------------------------------------------------------------------------------------- numbers


def principal_components(thoughts: GoldProbabilities) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entities `(N, 2)` and the corners of certainty `(C, 2)` on the first two axes; their shares of variance."""
    p = thoughts.probabilities.astype(np.float64)
    mean, axes, shares = principal_axes(p)
    return (p - mean) @ axes, (np.eye(p.shape[1]) - mean) @ axes, shares


def discrepancy(thoughts: GoldProbabilities) -> tuple[np.ndarray, np.ndarray]:
    """Of each entity log₂(p_max / p_gold), which is 0 where the model is right, and the D-value Var(p) / p_gold."""
    of_gold = thoughts.of_gold.clip(FLOOR)
    ratio = np.log2(thoughts.probabilities.max(1).clip(FLOOR) / of_gold)
    return ratio, thoughts.probabilities.var(1).clip(1e-12) / of_gold


# ---------------------------------------------------------------------------------------------------------- drawing


def _title(subject: str, title: str) -> str:
    return f"{subject}\n{title}" if title else subject


def _note(thoughts: GoldProbabilities, text: str) -> str:
    """How to read the picture, and what is not in it."""
    if thoughts.out_of_reach:
        text += f" {thoughts.out_of_reach:,} gold entities that the model cannot look at are left out."
    if len(thoughts) > MOST_POINTS:
        text += f" Scatter plots show {MOST_POINTS:,} of {len(thoughts):,} entities, drawn at random; all are counted."
    return text


def _labels(thoughts: GoldProbabilities) -> list[str]:
    return [label for label in thoughts.classes if label != NONE]


def _by_label(thoughts: GoldProbabilities):
    """(label, gold entities, share of right ones) of every label."""
    for index, label in enumerate(_labels(thoughts)):
        chosen = thoughts.gold == index
        yield label, int(chosen.sum()), float(thoughts.right[chosen].mean()) if chosen.any() else 0.0


def _colour(index: int) -> str:
    """Each label's own: after the twelfth the same ones lighter, then darker."""
    colour = COLOURS[index % len(COLOURS)]
    turn = index // len(COLOURS)
    return colour if not turn else mix(colour, "#ffffff" if turn % 2 else "#000000", 0.5 ** ((turn + 1) // 2))


def _sample(count: int) -> np.ndarray:
    """Indices of the points to show, in random order, so that no label hides the others."""
    return np.random.default_rng(0).permutation(count)[:MOST_POINTS]


def _corners(axes, corners: np.ndarray, thoughts: GoldProbabilities) -> None:
    """A cross where a class is certain, with its name; corners that all but fall together share a place for some."""
    near = 0.07 * np.ptp(corners, axis=0).max()
    groups: list[list[int]] = []
    for index, corner in enumerate(corners):
        group = next((g for g in groups if np.linalg.norm(corners[g[0]] - corner) < near), None)
        groups.append([index]) if group is None else group.append(index)
    middle = (corners[:, 0].min() + corners[:, 0].max()) / 2
    for group in groups:
        axes.plot(*corners[group].T, marker="x", linestyle="", color="black", markersize=7, zorder=4)
        left = corners[group[0]][0] <= middle  # names run towards the middle, so that they stay in the picture
        names = [thoughts.classes[index] for index in group]
        if len(names) > MOST_NAMES:
            names[MOST_NAMES - 1 :] = [f"{len(names) - MOST_NAMES + 1} more"]
        axes.annotate(
            wrap(", ".join(names), width=1.8), corners[group[0]],
            fontsize=LETTERS, weight="bold", textcoords="offset points", xytext=(6 if left else -6, 6), zorder=5,
            ha="left" if left else "right", bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75,
                                                  "linewidth": 0},
        ).set_in_layout(False)  # fmt: skip
    axes.margins(0.1)


def _half_violin(axes, values: np.ndarray, position: int, colour: str, above: bool) -> None:
    ends: tuple[float, float]
    if not len(values):
        return
    side = "low" if above else "high"  # the axis runs downwards
    if np.ptp(values) > 1e-9:
        parts = axes.violinplot(
            [values], [position], widths=0.85, showextrema=False, side=side, points=200, orientation="horizontal"
        )
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor="none", alpha=0.75)
    else:  # all alike: no density to draw
        ends = (position - 0.42, position) if above else (position, position + 0.42)
        axes.vlines(values[0], *ends, color=colour, linewidth=3)
    middle = float(np.median(values))
    ends = (position - 0.12, position - 0.01) if above else (position + 0.01, position + 0.12)
    axes.vlines(middle, *ends, color="black", linewidth=4.5, zorder=3)
    axes.vlines(middle, *ends, color="white", linewidth=2.5, zorder=4)
