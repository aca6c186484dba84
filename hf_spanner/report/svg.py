"""Small charts as inline SVG. Colours come from the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..rendering.markup import Html, join, tag
from .html import hue, percent, system_class

WIDTH = 360


def _text(x: float, y: float, text: Any, **attributes: Any) -> Html:
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", **attributes)


def _svg(width: float, height: float, title: str, *parts: Any) -> Html:
    return tag(
        "svg", tag("title", title), *parts, viewBox=f"0 0 {width:g} {height:g}", role="img", width=width, height=height
    )


def bars(title: str, rows: Sequence[tuple[str, Sequence[float | None], str]], series: Sequence[str]) -> Html:
    """Horizontal bars of shares: rows of (name, a value for each series, a note at the right)."""
    left = min(16 + 6.6 * max((len(name) for name, *_ in rows), default=0), 150)
    note = 12 + 6.2 * max((len(text) for *_, text in rows), default=0)
    right = WIDTH - note - 34
    thick = 14 if len(series) == 1 else 12
    gap = 8
    y, parts = 4.0, []
    for name, values, text in rows:
        height = thick * len(values)
        middle = y + height / 2 + 4
        parts.append(_text(left - 8, middle, name, class_="end"))
        for i, value in enumerate(values):
            top = y + i * thick
            parts.append(
                tag("rect", x=left, y=f"{top:g}", width=f"{right - left:g}", height=thick - 2, class_="track")
            )
            if value is None:
                continue
            size = max((right - left) * value, 0.5)
            tip = tag(
                "title", f"{series[i]}, {name}: {percent(value)}" if len(series) > 1 else f"{name}: {percent(value)}"
            )
            parts.append(
                tag(
                    "rect",
                    tip,
                    x=left,
                    y=f"{top:g}",
                    width=f"{size:.1f}",
                    height=thick - 2,
                    rx=2,
                    class_="fill s0" if len(series) == 1 else f"fill {system_class(i)}",
                )
            )
            parts.append(_text(right + 5, top + thick - 3.5, percent(value), class_="value"))
        parts.append(_text(WIDTH - 2, middle, text, class_="end quiet"))
        y += height + gap
    return _svg(WIDTH, y, title, *parts)


def stacked(title: str, counts: Mapping[str, int], colours: Sequence[str]) -> Html:
    """One bar cut into parts, with their names and counts below."""
    total, width = sum(counts.values()), 720
    x, parts, keys = 0.0, [], []
    for (name, count), colour in zip(counts.items(), colours, strict=True):
        size = width * count / total if total else 0
        tip = tag("title", f"{name}: {count:,} of {total:,}")
        parts.append(tag("rect", tip, x=f"{x:.1f}", y=0, width=f"{size:.1f}", height=26, class_=f"fill {colour}"))
        share = f"{count:,} ({percent(count / total, 0)} %)" if total else "0"
        keys.append(tag("span", tag("i", class_=f"swatch {colour}"), f" {name} ", tag("b", share), class_="key"))
        x += size
    chart = tag(
        "svg", tag("title", title), *parts, viewBox=f"0 0 {width} 26", role="img", preserveAspectRatio="none",
        class_="wide",
    )  # fmt: skip
    return join([chart, tag("p", *keys, class_="keys")])


def reliability(title: str, bins: Sequence[Mapping[str, Any]]) -> Html:
    """The share of correct predictions against their score, and how many have that score."""
    size, left, top = 240, 44, 8
    below = top + size + 10
    most = max((row["count"] for row in bins), default=0) or 1

    def x(value: float) -> float:
        return left + size * value

    def y(value: float) -> float:
        return top + size * (1 - value)

    parts = [tag("rect", x=left, y=top, width=size, height=size, class_="track")]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(tag("line", x1=left, x2=left + size, y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(_text(left - 6, y(tick) + 4, f"{tick:g}", class_="end quiet"))
        parts.append(_text(x(tick), below + 54, f"{tick:g}", class_="middle quiet"))
    parts.append(tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="ideal"))
    there = [row for row in bins if row["count"]]
    path = " ".join(f"{x(row['score']):.1f},{y(row['correct']):.1f}" for row in there)
    parts.append(tag("polyline", points=path, class_="curve"))
    for row in there:
        tip = tag(
            "title",
            f"{row['count']:,} predictions with scores from {row['low']:g} to {row['high']:g}, in the mean "
            f"{row['score']:.2f}: {percent(row['correct'])} % correct",
        )
        parts.append(
            tag("circle", tip, cx=f"{x(row['score']):.1f}", cy=f"{y(row['correct']):.1f}", r=4, class_="fill s0")
        )
        tall = max(38 * row["count"] / most, 1)
        parts.append(
            tag("rect", tag("title", f"{row['count']:,} predictions"), x=f"{x(row['low']) + 1:.1f}",
                y=f"{below + 38 - tall:.1f}", width=f"{size / len(bins) - 2:.1f}", height=f"{tall:.1f}", class_="bar")
        )  # fmt: skip
    parts.append(_text(x(0.5), below + 72, "score", class_="middle"))
    parts.append(_text(12, y(0.5), "share correct", class_="middle", transform=f"rotate(-90 12 {y(0.5):g})"))
    return _svg(left + size + 16, below + 80, title, *parts)


def scatter(
    title: str, points: Sequence[Sequence[float]], groups: Sequence[str], names: Sequence[str], most: int = 3000
) -> Html:
    """Points coloured by group, on equal axes; of more than `most`, evenly spread ones are shown."""
    size, edge = 420, 10
    step = max(1, -(-len(points) // most))
    points, groups = points[::step], groups[::step]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    span = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    middle = ((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2)
    parts = [tag("rect", x=0, y=0, width=size, height=size, class_="track")]
    for (px, py), group in zip(points, groups, strict=True):
        cx = size / 2 + (px - middle[0]) / span * (size - 2 * edge)
        cy = size / 2 - (py - middle[1]) / span * (size - 2 * edge)
        parts.append(_dot(round(cx, 1), round(cy, 1), 2.4, group, names))
    return _svg(size, size, title, *parts)


def key(group: str, names: Sequence[str]) -> Html:
    """A group's dot, for the legend."""
    return tag("svg", _dot(6, 6, 4, group, names), width=12, height=12, class_="key", aria_hidden="true")


def _dot(x: float, y: float, r: float, group: str, names: Sequence[str]) -> Html:
    """A round dot; groups that share a colour have square and hollow ones."""
    kinds = f"dot {hue(group, names)}"
    if "striped" in kinds:
        return tag("rect", x=f"{x - r:g}", y=f"{y - r:g}", width=2 * r, height=2 * r, class_=kinds)
    return tag("circle", cx=f"{x:g}", cy=f"{y:g}", r=r, class_=kinds)
