"""Labels' colours: one palette that colour-blind readers tell apart, in light and in dark, on pages and on terminals.

A label's name always stands beside its colour: the palette helps, it does not tell.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Paul Tol's muted scheme (https://personal.sron.nl/~pault/), in an order that keeps the first few far apart.
PALETTE = ("#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#AA4499", "#999933", "#44AA99", "#882255")
STYLES = ("solid", "striped", "hollow")  # of the first nine labels, the next nine, and the rest
# On terminals: of middle brightness, to be read on dark and on light; neighbours in the list are far apart in hue.
TERMINAL = (33, 166, 35, 170, 136, 37, 161, 99, 70, 208, 67, 133)
PAPER = {"light": "#ffffff", "dark": "#15181c"}
INK = {"light": "#1d2126", "dark": "#e4e6e8"}
LEAST_CONTRAST = 4.5  # of a label on its bar: WCAG 2, AA


class Shades(NamedTuple):
    """How one colour of the palette is shown in a theme: its line, the bar that is filled with it, the label there."""

    line: str
    fill: str
    ink: str


def places(labels: Iterable[str], known: Sequence[str] = ()) -> dict[str, int]:
    """Each label's place in the palette: that among the `known` ones (a model's), or one that follows from its name.

    Labels of one text have different places, so that nine of them have different colours and 27 look different.
    """
    found = {label: index for index, label in enumerate(dict.fromkeys(known))}
    others = sorted(set(labels) - set(found))
    if found:
        return found | {label: len(found) + index for index, label in enumerate(others)}
    size = len(PALETTE)
    for number, label in enumerate(others):
        first = number // size * size  # of this round through the palette
        place = zlib.crc32(label.encode("utf-8", "replace")) % size
        while first + place in found.values():
            place = (place + 1) % size
        found[label] = first + place
    return found


def style_of(place: int) -> str:
    """How a bar is filled: the tenth label has the first one's colour, in stripes."""
    return STYLES[place // len(PALETTE) % len(STYLES)]


def shades(place: int, theme: str) -> Shades:
    """The colours of the label at a place, in the light or in the dark."""
    colour, paper, ink = PALETTE[place % len(PALETTE)], PAPER[theme], INK[theme]
    fill = mix(colour, paper, 0.3 if theme == "light" else 0.42)
    line = colour
    while contrast(line, paper) < 2:  # a line on paper needs less than letters do, yet it must be seen
        line = mix(ink, line, 0.1)
    text = colour
    while contrast(text, fill) < LEAST_CONTRAST:
        text = mix(ink, text, 0.1)
    return Shades(line, fill, text)


def mix(first: str, second: str, share: float) -> str:
    """Two colours `#rrggbb` mixed, with so much of the first."""
    parts = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(255 * (share * a + (1 - share) * b)):02x}" for a, b in parts)


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, 1 to 21, as WCAG 2 defines it."""
    low, high = sorted(map(_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def _channels(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _luminance(colour: str) -> float:
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour))
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
