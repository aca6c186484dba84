"""What all pictures of matplotlib share: one width, at which they can be read on a phone and on a screen.

A picture is as wide as a phone is, so that nothing shrinks its letters there; on wider pages it stands as it is. What
would stand side by side stands below each other.

```python
>>> figure, (above, below) = new_figure("Two panels", panels=2)
>>> above.plot([1, 2, 3], label="a line")
>>> legend_above(above)
>>> save_figure(figure, "pictures/lines")  # lines.png, lines.svg
```
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREY = "#0072B2", "#D55E00", "#666666"
# Okabe and Ito's colours, which colour-blind readers tell apart, then darker ones for data with many labels.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#000000", "#56B4E9", "#B8A800",
           "#7B3294", "#8C510A", "#01665E", "#999999"]  # fmt: skip
WIDTH = 3.7  # inches: 355 pixels, what a phone's 390 have between their margins
TITLE, LETTERS = 10, 8.5  # points: of titles, and of all else; 13 and 11 pixels
DOTS = 200  # an inch


def require_matplotlib() -> None:
    """Raise an error that says what to install where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: pip install 'hf_spanner[plots]'."
        ) from error


def new_figure(
    title: str = "", panels: int = 1, height: float = 3.2, note: str = "", **options: Any
) -> tuple[Figure, list[Any]]:
    """A figure and its panels, below each other.

    Args:
        title: what stands above all of them; "\\n" is kept.
        height: of a panel, in inches. Title, note and legends come on top of it.
        note: how to read the picture, below it.
        options: of each panel, such as `xscale="log"`.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, panels * height), dpi=DOTS, layout="constrained")
    axes = list(figure.subplots(panels, 1, squeeze=False, subplot_kw=options)[:, 0])
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="0.92", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=LETTERS)
        panel.tick_params(which="minor", labelsize=LETTERS - 1)
        for text in (panel.xaxis.label, panel.yaxis.label):
            text.set_fontsize(LETTERS)
    if title:
        _grow(figure, figure.suptitle(wrap(title, TITLE), fontsize=TITLE))
    if note:
        _grow(figure, figure.supxlabel(wrap(note), fontsize=LETTERS, color="0.3"))
    return figure, axes


def wrap(text: str, size: float = LETTERS, width: float = WIDTH) -> str:
    """The text in lines that fit a picture, or so many inches of it."""
    columns = int(width * 72 / (0.57 * size))  # of letters of the usual width
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, columns) or [""])


def legend_above(axes: Any, handles: Sequence[Any] | None = None, title: str | None = None) -> None:
    """A legend between a panel and what is above it, in as many columns as its names leave room for."""
    entries = axes.get_legend_handles_labels()[0] if handles is None else handles
    if not entries:
        return
    names = [str(entry.get_label()) for entry in entries]
    columns = max(1, min(len(names), int(46 // (max(map(len, names)) + 5))))
    axes.legend(
        entries, names, loc="lower left", bbox_to_anchor=(-0.12, 1.0), ncols=columns, frameon=False, title=title,
        fontsize=LETTERS, title_fontsize=LETTERS, columnspacing=1.2, handletextpad=0.4, borderaxespad=0.2,
    )  # fmt: skip
    rows = -(-len(names) // columns) + bool(title)
    figure = axes.get_figure()
    figure.set_figheight(figure.get_figheight() + rows * 1.45 * LETTERS / 72)


def save_figure(figure: Figure, stem: str | Path, formats: Iterable[str] = ("png", "svg")) -> list[Path]:
    """Save a figure as `stem.png` and so on, with its title for those who cannot see it; returns the files."""
    titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    titles += [f"{axes.get_ylabel()} by {axes.get_xlabel()}" for axes in figure.axes if axes.get_ylabel()]
    title = next((" ".join(text.split()) for text in titles if text), "")
    files = [Path(f"{stem}.{ending}") for ending in formats]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=DOTS, metadata={"Title": title} if title else None)
    return files


def _grow(figure: Figure, text: Any) -> None:
    """Make a figure higher by the lines of a text that was put on it."""
    lines = text.get_text().count("\n") + 1
    figure.set_figheight(figure.get_figheight() + lines * 1.25 * text.get_fontsize() / 72)
