"""What `hf-spanner inspect` found, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..data.consistency import Inconsistency
from ..data.examples import Example
from ..data.inspection import Inspection, Part
from ..rendering.layout import Mark
from ..rendering.markup import Html, join, tag
from . import svg
from .html import card_row, heat, sentence_view, table, type_name
from .inspection_text import contents, label_of
from .page import notes, whole_page

MOST_LENGTHS = 15  # bars; what is longer shares the last one

DEFINITIONS = {
    "nested, depth": "An entity is nested if it lies strictly inside another one of its sentence; the depth is the "
    "number of entities in the longest chain of such.",
    "overlap": "The narrowest policy under which every entity can be predicted: flat, nested, or any if some cross.",
    "words of an entity, 99%": "99 % of the entities have at most so many words.",
    "out of reach": "Entities of more words than the model's max_span_length, which it can never find.",
    "the same sentence": "All words are the same, with their case; empty sentences are not counted.",
    "annotated here, not there": "The words of an entity that stand elsewhere without annotation: not inside an "
    "entity, nor inside a longer text that is one elsewhere. Shown are texts that are annotated at least twice and "
    "more often than not; single words in small letters only if three times out of four, very common ones never. "
    "First come those that occur often and are hardly ever left out.",
    "begins or ends inside a word": "A model reads raw text in the words of its splitter and can answer with whole "
    "words alone. Where the data is in words, their spaces are put back as one usually writes, and the count is an "
    "estimate.",
}


def inspection_page(title: str, inspection: Inspection, source: str = "") -> str:
    """The page about a data set; `source` says how it was made, for the foot."""
    counts = inspection.total.statistics
    labels = [label for label, _ in counts.labels.most_common()]
    parts = {**inspection.splits, "all": inspection.total} if len(inspection.splits) > 1 else inspection.splits
    sections = [
        ("contents", "What it holds", _contents(parts, labels)),
        ("lengths", "Lengths and reach", _lengths(inspection, parts)),
        ("splits", "Between the splits", _splits(inspection, labels)),
        ("missed", "Annotated here, not there", _missed(inspection, labels)),
        ("labels", "Different labels for the same words", _disagreements(inspection, labels)),
        ("repeats", "The same sentence twice", _repeats(inspection, labels)),
        ("words", "On raw text", _boundaries(inspection)),
    ]
    facts = f"{counts.sentences:,} sentences, {counts.words:,} words, {counts.entities:,} entities."
    top = [notes([finding.text for finding in inspection.findings]), _cards(inspection)]
    return whole_page(f"{title}, inspected", facts, top, sections, source, DEFINITIONS)


def _cards(inspection: Inspection) -> Html:
    total = inspection.total
    counts = total.statistics
    nested = f"{100 * counts.nested / max(counts.entities, 1):.1f} %"
    without = f"{100 * total.without_entity / max(counts.sentences, 1):.1f} % without an entity"
    cap = "–" if inspection.cap_for_99 is None else str(inspection.cap_for_99)
    rows = [
        ("Entities", f"{counts.entities:,}", f"of {len(counts.labels):,} labels"),
        ("Sentences", f"{counts.sentences:,}", without),
        ("Nested", nested, f"depth up to {counts.max_depth}"),
        ("Overlap", counts.overlap, "the policy that the data needs"),
        ("Span cap", cap, "words reach 99 % of the entities"),
        ("Overlooked?", f"{inspection.consistency.missing:,}", "mentions of words that are mostly annotated"),
    ]
    return card_row(rows)


def _contents(parts: Mapping[str, Part], labels: Sequence[str]) -> Html:
    columns = [contents(part) for part in parts.values()]
    rows = [[cells[0][0], *(value for _, value in cells)] for cells in zip(*columns, strict=True)]
    by_label = [
        [
            type_name(label, labels),
            *(_share(part.statistics.labels[label], part.statistics.entities) for part in parts.values()),
        ]
        for label in labels
    ]
    tables = [tag("div", table(["", *parts], rows))]
    if by_label:
        text = "Colour is the share of the split's entities."
        side = [tag("h3", "Entities by label"), table(["", *parts], by_label), tag("p", text, class_="soft")]
        tables.append(tag("div", *side))
    return tag("div", *tables, class_="pair")


def _share(count: int, total: int) -> Html:
    return heat(f"{count:,}", 0.9 * count / max(total, 1), "plain") if count else tag("td", "0", class_="none")


def _lengths(inspection: Inspection, parts: Mapping[str, Part]) -> Html:
    total = inspection.total
    if not total.lengths:
        return Html()
    entities = total.statistics.entities
    bars: list[tuple[str, list[float | None], str]] = [
        (str(length), [total.lengths.get(length, 0) / entities], f"{total.lengths.get(length, 0):,}")
        for length in range(1, min(max(total.lengths), MOST_LENGTHS) + 1)
    ]
    if beyond := total.beyond(MOST_LENGTHS):
        bars.append((f"over {MOST_LENGTHS}", [beyond / entities], f"{beyond:,}"))
    chart = svg.bars("Entities by their number of words", bars, [""])
    rows = []
    for cap in inspection.reach:
        name = tag("b", f"{cap} words, as asked") if cap == inspection.max_span_length else f"{cap} words"
        rows.append([name, *(_beyond(part, cap) for part in parts.values())])
    side = [tag("h3", "Entities out of reach, by max_span_length"), table(["", *parts], rows)]
    side.append(tag("p", f"{inspection.cap_for_99} words reach 99 % of the entities.", class_="soft"))
    figure = tag("figure", tag("figcaption", "Entities by their number of words, in %"), chart)
    longest = [
        tag("p", f"The longest {what}, {one.end - one.start} words ({_place(one)}): ", tag("em", _clipped(one.text)))
        for what, one in (("entity", total.longest_entity), ("sentence", total.longest_sentence))
        if one is not None
    ]
    return join([tag("div", figure, tag("div", *side), class_="pair"), *longest])


def _beyond(part: Part, cap: int) -> Html:
    count = part.beyond(cap)
    share = count / max(part.statistics.entities, 1)
    return heat(join([f"{count:,} ", tag("small", f"{100 * share:.2f} %")]), 4 * share, "bad")


def _splits(inspection: Inspection, labels: Sequence[str]) -> Html:
    shared = inspection.repeats.shared
    if not shared:
        return Html()
    head = ["", "sentences", "annotated ones", "of all annotated, %", "documents", "of all documents, %"]
    rows = [
        [
            f"of {one.second}, also in {one.first}",
            f"{one.sentences:,}",
            f"{one.annotated:,}",
            f"{100 * one.annotated / max(one.of_annotated, 1):.1f}",
            f"{len(one.documents):,}",
            f"{100 * len(one.documents) / max(one.of_documents, 1):.1f}",
        ]
        for one in shared
    ]
    parts = [table(head, rows)]
    for split, counts in inspection.unlearnable.items():
        if counts:
            names = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            parts.append(tag("p", f"Labels of {split} that train lacks: {names}."))
    for split, missing in inspection.unmeasured.items():
        if missing:
            parts.append(tag("p", f"Labels of train that {split} lacks: {', '.join(missing)}."))
    for one in shared:
        if one.documents:
            names = ", ".join(one.documents[:20]) + (" …" if len(one.documents) > 20 else "")
            parts.append(tag("p", f"Documents of {one.second} that stand in {one.first}: {names}."))
        if one.examples:
            examples = (_article([example], labels, f"{one.second}, and in {one.first}") for example in one.examples)
            parts.append(_folded(f"Sentences of {one.second} that stand in {one.first}", examples))
    return join(parts)


def _missed(inspection: Inspection, labels: Sequence[str]) -> Html:
    found = inspection.consistency
    if not found.missed:
        return Html()
    text = (
        f"{found.sometimes:,} of {found.texts:,} texts of entities stand somewhere without annotation. Of those that "
        f"are mostly annotated, {found.missing:,} mentions are not; the most telling come first. Above the words: "
        "what is annotated; below: what is not."
    )
    articles = (
        _inconsistency(one, labels, f"annotated {one.annotated:,} of {one.annotated + one.missing:,} times")
        for one in found.missed
    )
    return join([tag("p", text, class_="soft"), *articles])


def _disagreements(inspection: Inspection, labels: Sequence[str]) -> Html:
    found = inspection.consistency
    if not found.disagreements:
        return Html()
    text = f"{found.relabelled:,} mentions do not have the label that the same words mostly have."
    articles = (_inconsistency(one, labels, "") for one in found.disagreements)
    return join([tag("p", text, class_="soft"), *articles])


def _inconsistency(found: Inconsistency, labels: Sequence[str], count: str) -> Html:
    names = ", ".join(f"{label} {number:,}" for label, number in found.labels.items())
    return _article([*found.usual[:1], *found.unusual], labels, join([tag("b", found.text), f" {count} ({names})"]))


def _repeats(inspection: Inspection, labels: Sequence[str]) -> Html:
    repeats = inspection.repeats
    if not any(repeats.repeated.values()) and not repeats.conflicts:
        return Html()
    counts = ", ".join(f"{split} {count:,}" for split, count in repeats.repeated.items())
    text = f"Sentences that stand in their split before: {counts}. Annotated differently: {repeats.conflicts:,}."
    articles = (
        _article(one.annotations, labels, f"{one.sentences} times, {len(one.annotations)} annotations")
        for one in repeats.examples
    )
    return join([tag("p", text), *articles])


def _boundaries(inspection: Inspection) -> Html:
    found = inspection.boundaries
    if not found.entities:
        return Html()
    about = "about " if found.estimated else ""
    text = (
        f"As {found.splitter!r} cuts raw text into words, {about}{found.spoilt:,} of {found.entities:,} entities "
        f"begin or end inside a word, and {found.recut:,} others hold words that it cuts further."
    )
    parts = [tag("p", text)]
    if found.spoilt_by:
        rows = [[name, f"{n:,}", f"{100 * n / found.entities:.1f}"] for name, n in found.spoilt_by.items()]
        parts.append(table(["word splitter", "entities spoilt", "%"], rows))
    if found.examples:
        parts.append(_folded("Examples", [tag("ul", *(tag("li", one) for one in found.examples))]))
    return join(parts)


def _folded(title: str, inside: Iterable[Html]) -> Html:
    return tag("details", tag("summary", title), *inside)


def _article(examples: Iterable[Example], labels: Sequence[str], heading: object) -> Html:
    """Examples below each other. A span that is not annotated has a bar below it."""
    lines = []
    for one in examples:
        words = ["…"] * one.cut_before + one.tokens + ["…"] * one.cut_after
        shift = int(one.cut_before)
        whole = one.start == 0 and one.end == len(one.tokens)
        gold = [
            Mark(
                e["start"] + shift,
                e["end"] + shift,
                e["label"],
                stands_out=not whole and (e["start"], e["end"]) == (one.start, one.end),
                above=True,
            )
            for e in one.entities
        ]
        missing = Mark(one.start + shift, one.end + shift, "none", stands_out=True, sign="○")
        below = [] if whole or label_of(one) else [missing]
        lines += [tag("small", _place(one)), sentence_view(words, gold + below, labels)]
    return tag("article", tag("small", heading), *lines)


def _place(one: Example) -> str:
    return f"{one.split}, {one.id}"


def _clipped(text: str, most: int = 600) -> str:
    return text if len(text) <= most else text[:most] + "…"
