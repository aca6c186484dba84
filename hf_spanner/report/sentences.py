"""Sections that show entities in their sentences, filtered by kind, by type and by words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.errors import KINDS, list_errors
from ..evaluation.groups import Sentences
from ..evaluation.mentions import Mention
from ..rendering.layout import Mark
from ..rendering.markup import Html, join, tag
from .html import sentence_view, type_name


def errors_in_sentences(mentions: Sequence[Mention], sentences: Sentences, labels: Sequence[str]) -> Html:
    """Every sentence with an error, gold above the words and predictions below, with filters."""
    by_sentence: dict[int, list[Mention]] = defaultdict(list)
    for mention in mentions:
        by_sentence[mention.sentence].append(mention)
    errors = defaultdict(list)
    for error in list_errors(mentions):
        errors[error.mention.sentence].append(error)
    if not errors:
        return tag("p", "There is none.")
    articles = []
    for index, members in sorted(errors.items()):
        sentence = sentences[index]
        gold = [_mark(m, "○", above=True) for m in by_sentence[index] if m.gold]
        found = [_mark(m, "✗") for m in by_sentence[index] if m.predicted]
        items = [
            _item(sentence["tokens"], m, kind, "missed" if m.gold else "wrong", labels, kind) for m, kind in members
        ]
        articles.append(_article(sentence, sentence_view(sentence["tokens"], gold + found, labels), items))
    counts = Counter(error.kind for members in errors.values() for error in members)
    types = Counter(error.mention.label for members in errors.values() for error in members)
    kinds = {kind: (f"{kind} {counts[kind]:,}", KINDS[kind]) for kind in KINDS if counts[kind]}
    legend = tag(
        "p",
        tag("span", "above the words: gold, below: predicted"),
        tag("span", tag("span", "TYPE", class_="bar c0 solid"), " both agree"),
        tag("span", tag("span", "○ TYPE", class_="bar out c0 solid"), " gold, but not predicted"),
        tag("span", tag("span", "✗ TYPE", class_="bar out c0 solid"), " predicted, but not gold"),
        class_="legend",
    )
    return join([legend, _filters(kinds, types, labels), *articles])


def _mark(m: Mention, sign: str, above: bool = False) -> Mark:
    """A mention as it is drawn: a mistake stands out."""
    return Mark(m.start, m.end, m.label, stands_out=not m.correct, sign="" if m.correct else sign, above=above)


def found_by_one(
    comparison: Mapping[str, Any],
    mentions: Mapping[str, Sequence[Mention]],
    sentences: Sentences,
    labels: Sequence[str],
) -> Html:
    """The gold entities that exactly one system finds, in their sentences, with filters."""
    found: dict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, entities in comparison["only"].items():
        for entity in entities:
            found[entity["sentence"]].append((name, entity))
    text = (
        f"All find {comparison['by_all']:,} gold entities, none finds {comparison['by_none']:,}. Found by one alone: "
        + ", ".join(f"{name} {len(entities):,}" for name, entities in comparison["only"].items())
        + "."
    )
    if not found:
        return tag("p", text)
    gold: dict[int, list[Mention]] = defaultdict(list)
    for mention in next(iter(mentions.values())):
        if mention.gold:
            gold[mention.sentence].append(mention)
    articles = []
    for index, members in sorted(found.items()):
        words = sentences[index]["tokens"]
        finder = {(e["start"], e["end"], e["label"]): name for name, e in members}
        marks = [Mark(*m[1:4], stands_out=m[1:4] in finder, above=True) for m in gold[index]]
        items = [
            _item(words, Mention(index, e["start"], e["end"], e["label"], True, True), name, "only", labels, name)
            for name, e in members
        ]
        articles.append(_article(sentences[index], sentence_view(words, marks, labels), items))
    kinds = {
        name: (f"only {name} {len(e):,}", f"found by {name} alone") for name, e in comparison["only"].items() if e
    }
    types = Counter(entity["label"] for members in found.values() for _, entity in members)
    legend = tag(
        "p",
        tag("span", tag("span", "TYPE", class_="bar out c0 solid"), " gold, found by one system alone"),
        tag("span", tag("span", "TYPE", class_="bar c0 solid"), " other gold entities"),
        class_="legend",
    )
    return join([tag("p", text), legend, _filters(kinds, types, labels), *articles])


def _filters(kinds: Mapping[str, tuple[str, str]], types: Counter[str], labels: Sequence[str]) -> Html:
    buttons = [
        tag("button", text, type="button", value=kind, title=title, aria_pressed="false")
        for kind, (text, title) in kinds.items()
    ]
    options = [tag("option", "all types", value="")]
    options += [tag("option", f"{label} {types[label]:,}", value=label) for label in labels if types[label]]
    return tag(
        "div",
        *buttons,
        tag("select", *options, aria_label="type"),
        Html('<input type="search" placeholder="words" aria-label="words">'),
        tag("output", ""),
        class_="filters",
    )


def _article(sentence: Mapping[str, Any], text: Html, items: Sequence[Html]) -> Html:
    name = sentence.get("id")
    return tag("article", tag("small", name, class_="soft") if name else "", text, tag("ul", *items))


def _item(words: Sequence[str], m: Mention, kind: str, side: str, labels: Sequence[str], note: str) -> Html:
    text = " ".join(words[m.start : m.end])
    text = text if len(text) <= 60 else text[:57] + "…"
    label = type_name(m.label, labels)
    note = "" if note == side else note
    return tag("li", f"{side} ", label, f" “{text}” ", tag("em", note), data_kind=kind, data_type=m.label)
