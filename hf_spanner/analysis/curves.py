"""Lines of a score over a setting, or of the loss over epochs, with matplotlib.

```python
>>> figure = draw_lines({"span": [(0.1, [0.71, 0.72])], "seq": [(0.1, [0.65, 0.66])]}, xlabel="α", ylabel="F1")
>>> save_figure(figure, "pictures/alpha")  # alpha.png, alpha.svg
```
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .figures import COLOURS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = tuple[float, "float | Sequence[float]"]  # where, and a value or those of several runs


def draw_lines(
    series: Mapping[str, Iterable[Point]],
    xlabel: str,
    ylabel: str,
    title: str = "",
    scale: float = 1.0,
) -> Figure:
    """A line for each name; of several values at a point their mean, with a band from the least to the most.

    Args:
        series: points (x, y), or (x, [y, y, ...]) of several runs.
        scale: what y is multiplied with, 100 for per cent.
    """
    series = {name: list(points) for name, points in series.items()}
    if not any(series.values()):
        raise ValueError("There is no point to draw.")
    figure, (axes,) = new_figure(title)
    plot_lines(axes, series, scale)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if len(series) > 1:
        legend_above(axes)
    return figure


def plot_lines(axes: Any, series: Mapping[str, Iterable[Point]], scale: float = 1.0) -> None:
    """Plot what [`draw_lines`] draws on axes that are there."""
    for number, (name, points) in enumerate(series.items()):
        rows = [
            (x, [scale * y for y in (values if isinstance(values, Sequence) else [values])]) for x, values in points
        ]
        rows.sort(key=lambda row: row[0])
        x, colour = [at for at, _ in rows], COLOURS[number % len(COLOURS)]
        axes.plot(x, [statistics.mean(y) for _, y in rows], "o-", markersize=4, color=colour, label=name)
        if any(len(y) > 1 for _, y in rows):
            axes.fill_between(x, [min(y) for _, y in rows], [max(y) for _, y in rows], color=colour, alpha=0.2, lw=0)


def draw_losses(records: Mapping[str, Mapping[str, Any]], title: str = "") -> Figure:
    """The mean training loss by epoch (Figure 3 of SNG) of trainings, given their records by name."""
    for name, record in records.items():
        if not record.get("loss_by_epoch"):
            raise ValueError(f"The record of {name} has no loss_by_epoch: it was written before that was kept.")
    losses = {
        name: [(entry["epoch"], entry["loss"]) for entry in record["loss_by_epoch"]]
        for name, record in records.items()
    }
    return draw_lines(losses, "epoch", "mean training loss", title)
