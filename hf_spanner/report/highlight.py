"""A sentence with its entities as bars, nested to any depth: the gold above the words, the predictions below.

Every word is a box of its own, with a piece of each bar that runs over it, so that lines can break anywhere. Inner
entities stand nearest to the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .html import Html, hue, join, tag
from .terminal import stack

WORD_EM, LABEL_EM = 0.5, 0.42  # about how wide a character of the text and of a bar's label is


class Bar(NamedTuple):
    """An entity over words `[start, end)`; one that stands out is a mistake, or what the reader should look at."""

    start: int
    end: int
    label: str
    stands_out: bool = False
    mark: str = ""  # before the label, so that colour is not all that tells


def highlight(words: Sequence[str], above: Sequence[Bar], below: Sequence[Bar], labels: Sequence[str]) -> Html:
    """The sentence as HTML. `labels` gives each type its colour."""
    pieces: list[list[Html]] = [[] for _ in words]
    widths = [0.0] * len(words)
    lanes = [0, 0]
    for side, bars in enumerate((above, below)):
        bars = sorted(bars, key=lambda bar: (bar.end - bar.start, bar.start, bar.label))
        for bar, lane in zip(bars, stack([(bar.start, bar.end) for bar in bars]), strict=True):
            lanes[side] = max(lanes[side], lane + 1)
            name = f"{bar.mark} {bar.label}".strip()
            # A bar too short for its label widens its first word.
            rest = sum(len(word) + 1 for word in words[bar.start + 1 : bar.end]) * WORD_EM
            widths[bar.start] = max(widths[bar.start], (len(name) + 1.5) * LABEL_EM - rest)
            for position in range(bar.start, bar.end):
                first, last = position == bar.start, position == bar.end - 1
                kinds = ("ud"[side], hue(bar.label, labels), "x" * bar.stands_out, "f" * first, "l" * last)
                shown = [tag("b", name)] if first else []
                pieces[position].append(tag("i", *shown, class_=" ".join(filter(None, kinds)), style=f"--n:{lane}"))
    boxes = []
    for word, inside, width in zip(words, pieces, widths, strict=True):
        wide = f"min-width:{width:.1f}em" if width > (len(word) + 1) * WORD_EM else None
        boxes.append(tag("span", f"{word} ", *inside, class_="w", style=wide))  # bars run on below the space
    return tag("p", join(boxes), class_="text", style=f"--u:{lanes[0]};--d:{lanes[1]}")
