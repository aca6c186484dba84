"""What `hf-spanner inspect` found, as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..data.consistency import Inconsistency
from ..data.examples import Example
from ..data.inspection import PERCENTILES, Inspection, Part, percentile
from ..harmless import harmless
from ..rendering.widths import char_width, text_width

WIDTH = 100
MOST_LABELS = 20  # in the table; the rest is counted


def inspection_text(title: str, inspection: Inspection, examples: int = 5, width: int = WIDTH) -> str:
    """The inspection as text of at most `width` columns, with so many examples of everything."""
    parts = {**inspection.splits, "all": inspection.total} if len(inspection.splits) > 1 else inspection.splits
    blocks = [
        [title],
        ["What matters", *_findings(inspection, width)],
        _table(["What it holds", *parts], _contents(parts), width),
        _lengths(inspection, parts, width),
        _splits(inspection, examples, width),
        _repeats(inspection, examples, width),
        *_consistency(inspection, examples, width),
        _boundaries(inspection, examples, width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _findings(inspection: Inspection, width: int) -> Iterator[str]:
    if not inspection.findings:
        yield "  Nothing stands out."
    for number, finding in enumerate(inspection.findings, start=1):
        start = f"  {number}. "
        yield textwrap.fill(
            finding.text, width, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
        )


def contents(part: Part) -> list[tuple[str, str]]:
    """What a split holds: names and figures, the same names for every split."""
    counts = part.statistics
    sentence, entity = part.sentence_lengths, part.lengths
    return [
        ("sentences", f"{counts.sentences:,}"),
        ("… without an entity", f"{part.without_entity / max(counts.sentences, 1):.1%}"),
        ("… empty", f"{part.empty:,}"),
        ("… with nesting", f"{counts.sentences_with_nesting:,}"),
        ("documents", f"{part.documents:,}" if part.documents else "–"),
        ("words", f"{counts.words:,}"),
        ("entities", f"{counts.entities:,}"),
        ("… nested", f"{counts.nested / max(counts.entities, 1):.1%}"),
        ("… nested or with one inside", f"{counts.in_nesting:,} ({counts.nesting_percentage:.2f}%)"),
        ("… depth up to", f"{counts.max_depth}"),
        ("… same span, two labels", f"{counts.same_span_pairs:,}"),
        ("… crossing pairs", f"{counts.crossing_pairs:,}"),
        ("overlap that it needs", counts.overlap),
        *((f"words of an entity, {share:g}%", _or_dash(percentile(entity, share))) for share in PERCENTILES),
        ("… of the longest", _or_dash(max(entity, default=None))),
        ("words of a sentence, mean", f"{counts.mean_length:.2f}"),
        ("words of a sentence, 50%", _or_dash(percentile(sentence, 50))),
        ("… 99%", _or_dash(percentile(sentence, 99))),
        ("… of the longest", _or_dash(max(sentence, default=None))),
    ]


def _or_dash(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _contents(parts: dict[str, Part]) -> Iterator[list[str]]:
    for rows in zip(*(contents(part) for part in parts.values()), strict=True):
        yield [rows[0][0], *(value for _, value in rows)]
    labels = list(parts.values())[-1].statistics.labels
    yield ["entities by label", *[""] * len(parts)]
    for label, _ in labels.most_common(MOST_LABELS):
        yield [f"  {harmless(label)}", *(f"{part.statistics.labels[label]:,}" for part in parts.values())]
    if len(labels) > MOST_LABELS:
        yield [f"  and {len(labels) - MOST_LABELS} more labels", *[""] * len(parts)]


def _lengths(inspection: Inspection, parts: dict[str, Part], width: int) -> list[str]:
    if not inspection.total.statistics.entities:
        return []
    rows = []
    for cap in inspection.reach:
        here = " ←" if cap == inspection.max_span_length else ""
        shares = (_beyond(part, cap) for part in parts.values())
        rows.append([f"max_span_length={cap}{here}", *shares])
    lines = _table(["Entities out of reach", *parts], rows, width)
    lines.append(f"  max_span_length={inspection.cap_for_99} reaches 99% of the entities.")
    if longest := inspection.total.longest_entity:
        words = longest.end - longest.start
        lines.append(clip(f"  The longest, {words} words ({_place(longest)}): {harmless(longest.text)}", width))
    if (sentence := inspection.total.longest_sentence) and sentence.tokens:
        text = f"  The longest sentence, {len(sentence.tokens)} words ({_place(sentence)}): {harmless(sentence.text)}"
        lines.append(clip(text, width))
    return lines


def _beyond(part: Part, cap: int) -> str:
    count = part.beyond(cap)
    return f"{count:,} {count / max(part.statistics.entities, 1):6.2%}"


def _splits(inspection: Inspection, examples: int, width: int) -> list[str]:
    lines = []
    for shared in inspection.repeats.shared:
        if shared.sentences or shared.documents:
            first, second = harmless(shared.first), harmless(shared.second)
            counts = [f"sentences {shared.sentences:,}", f"annotated ones {shared.annotated:,}"]
            lines.append(f"  {second}, and in {first} too: {', '.join(counts)}, documents {len(shared.documents):,}")
            lines += (clip(f"    {_sentence(one)}", width) for one in shared.examples[:examples])
            if shared.documents:
                names = ", ".join(map(harmless, shared.documents[:examples]))
                lines.append(clip(f"    documents: {names}", width))
    for split, labels in inspection.unlearnable.items():
        if labels:
            lines.append(clip(f"  labels of {harmless(split)} that train lacks: {_counts(labels)}", width))
    for split, missing in inspection.unmeasured.items():
        if missing:
            text = f"  labels of train that {harmless(split)} lacks: {', '.join(map(harmless, missing))}"
            lines.append(clip(text, width))
    if len(inspection.splits) > 1:
        return ["Between the splits", *(lines or ["  No sentence and no document stands in two; labels agree."])]
    return []


def _repeats(inspection: Inspection, examples: int, width: int) -> list[str]:
    repeats = inspection.repeats
    if not any(repeats.repeated.values()) and not repeats.conflicts:
        return []
    counts = _counts({split: count for split, count in repeats.repeated.items() if count}) or "none"
    lines = ["The same sentence twice", f"  sentences that stand in their split before: {counts}"]
    if repeats.conflicts:
        lines.append(f"  annotated differently: {repeats.conflicts:,}")
    for conflict in repeats.examples[:examples]:
        lines.append(clip(f"    {harmless(conflict.annotations[0].text)}", width))
        for one in conflict.annotations:
            names = ", ".join(f"{harmless(' '.join(one.tokens[e['start'] : e['end']]))} {harmless(e['label'])}"
                              for e in one.entities)  # fmt: skip
            lines.append(clip(f"      {names or 'no entity'} ({_place(one)})", width))
    return lines


def _consistency(inspection: Inspection, examples: int, width: int) -> Iterator[list[str]]:
    found = inspection.consistency
    if found.missed:
        lines = [
            "Annotated here, not there",
            f"  {found.sometimes:,} of {found.texts:,} texts of entities stand somewhere without annotation.",
            f"  Of those that are mostly annotated, {found.missing:,} mentions are not:",
        ]
        for one in found.missed[:examples]:
            text = f"  {harmless(one.text)}: {_counts(one.labels)}, not annotated {one.missing:,}"
            lines += [clip(text, width), *_pair(one, "yes", "no", width)]
        yield lines
    if found.disagreements:
        lines = ["Different labels for the same words", f"  {found.relabelled:,} mentions are not labelled as most:"]
        for one in found.disagreements[:examples]:
            lines += [clip(f"  {harmless(one.text)}: {_counts(one.labels)}", width), *_pair(one, "", "", width)]
        yield lines


def _pair(found: Inconsistency, usual: str, unusual: str, width: int) -> Iterator[str]:
    """An example of either side, the span in brackets."""
    for name, places in ((usual, found.usual), (unusual, found.unusual)):
        for one in places[:1]:
            name = name or label_of(one)
            start = f"    {harmless(name)}: "
            place = f" ({_place(one)})"
            room = width - text_width(start) - text_width(place)
            yield start + around(one, room) + place


def label_of(one: Example) -> str:
    """What the span of an example is annotated with."""
    return " + ".join(sorted(e["label"] for e in one.entities if (e["start"], e["end"]) == (one.start, one.end)))


def around(one: Example, width: int) -> str:
    """The example in one line, its span in brackets and in the middle of what there is room for."""
    before, after = harmless(" ".join(one.tokens[: one.start])), harmless(" ".join(one.tokens[one.end :]))
    span = clip(f"[{harmless(one.text)}]", max(width - 4, 8))
    room = max(width - text_width(span) - 2, 0)
    left = clip(before[::-1], max(room // 2, room - text_width(after)))[::-1]
    right = clip(after, room - text_width(left))
    return " ".join(filter(None, (left, span, right)))


def _boundaries(inspection: Inspection, examples: int, width: int) -> list[str]:
    found = inspection.boundaries
    if not found.entities:
        return []
    kind = "estimated, as the words' spaces are not known" if found.estimated else "as the text was read"
    lines = [f"Entities on raw text, cut into words by {found.splitter!r} ({kind})"]
    lines.append(f"  begin or end inside a word: {found.spoilt:,} of {found.entities:,}")
    others = {name: count for name, count in found.spoilt_by.items() if name != found.splitter}
    if others:
        lines[-1] += f" (by {', by '.join(f'{name!r} {count:,}' for name, count in others.items())})"
        lines.append(f"  hold words that are cut further: {found.recut:,}")
    return lines + [clip(f"    {harmless(one)}", width) for one in found.examples[:examples]]


# -------------------------------------------------------------------------------------------------------------- layout


def clip(text: str, width: int) -> str:
    """The text in at most `width` columns; what is cut off ends in "…"."""
    if text_width(text) <= width:
        return text
    column, kept = 0, ""
    for character in text:
        column += char_width(character, kept[-1:])
        if column >= width:
            break
        kept += character
    return kept.rstrip() + "…" if width > 0 else ""


def _place(one: Example) -> str:
    """Split and id; of a long id the end tells more."""
    return f"{clip(harmless(one.split), 12)} {clip(harmless(one.id)[::-1], 24)[::-1]}"


def _sentence(one: Example) -> str:
    return f"{harmless(one.text)} ({_place(one)})"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{harmless(name)} {count:,}" for name, count in counts.items())


def _table(head: Sequence[Any], rows: Iterable[Sequence[Any]], width: int) -> list[str]:
    """The first column to the left and two columns in, the others to the right; names that are too long are cut."""
    rows = [[f"  {first}", *rest] for first, *rest in rows]
    cells = [[harmless(cell) for cell in row] for row in [head, *rows]]
    others = [max(map(text_width, column)) for column in list(zip(*cells, strict=True))[1:]]
    first = min(max(text_width(row[0]) for row in cells), max(width - sum(others) - 2 * len(others), 24))
    lines = []
    for name, *rest in cells:
        name = clip(name, first)
        line = name + " " * (first - text_width(name))
        for cell, size in zip(rest, others, strict=True):
            line += " " * (2 + size - text_width(cell)) + cell
        lines.append(line.rstrip())
    return lines
