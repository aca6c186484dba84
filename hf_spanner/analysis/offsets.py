"""How far a Locate and Label model moves the boundaries of its proposals (Figure 3 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from ..modeling.locate_and_label_spans import Spans, shift
from ..modeling.reading import Reader
from .figures import BLUE, GREY, LETTERS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS = ("0", "1", "2", "3", "≥4")


def boundary_offsets(
    model: Any, tokenizer: Any, sentences: Iterable[Mapping[str, Any]], batch_size: int = 32, progress: bool = False
) -> dict[str, dict[str, int]]:
    """By how many whole words boundaries are moved, either way: how often 0, 1, 2, 3 and 4 or more.

    Returns:
        `proposals`, two boundaries of each seed that passes the filter, and `entities`, those of them that become a
        predicted entity. (Several may become the same one; the paper does not say which of them it counts.)
    """
    if getattr(model, "regressor", None) is None:
        raise ValueError(f"This {model.config.model_type} model moves no boundaries: it has no regressor.")
    counts: dict[str, Counter[str]] = {"proposals": Counter(), "entities": Counter()}
    reader = Reader(model, tokenizer)
    for places, output in reader.run(reader.cut_sentences(list(sentences)), batch_size, progress):
        row = torch.repeat_interleave(torch.arange(len(places), device=output.num_kept.device), output.num_kept)
        spans = Spans(row, *output.proposals.unbind(-1))
        moved = shift(spans, output.offsets, output.num_words)
        found = {(i, e.start, e.end) for i, entities in enumerate(model.decode(output)) for e in entities}
        steps = output.offsets.add(0.5).floor().abs().clamp(max=len(BARS) - 1).long().tolist()
        for span, pair in zip(zip(*(x.tolist() for x in moved), strict=True), steps, strict=True):
            for kind in ("proposals", "entities") if span in found else ("proposals",):
                counts[kind].update(BARS[step] for step in pair)
    return {kind: {bar: count[bar] for bar in BARS} for kind, count in counts.items()}


def draw_offsets(counts: Mapping[str, Mapping[str, int]], title: str = "") -> Figure:
    """Bars of what [`boundary_offsets`] returns: of predicted entities, and of all proposals."""
    subject = "Words that boundaries are moved by"
    figure, panels = new_figure(f"{subject}\n{title}" if title else subject, panels=2, height=2.6)
    for axes, (kind, colour) in zip(panels, (("entities", BLUE), ("proposals", GREY)), strict=True):
        bars = axes.bar(list(counts[kind]), list(counts[kind].values()), color=colour)
        axes.bar_label(bars, labels=[f"{n:,}" for n in counts[kind].values()], fontsize=LETTERS)
        name = "proposals that become entities" if kind == "entities" else "all proposals"
        axes.margins(y=0.12)  # for the numbers
        axes.set_title(name, fontsize=LETTERS)
        axes.set_xlabel("words")
    return figure
