"""The HTML page: one file, readable without a network, in light and in dark, on paper and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evaluation.groups import Sentences
from ..evaluation.mentions import Mention
from ..rendering.html import head, style_sheet
from ..rendering.markup import Html, tag
from .html import percent
from .representations import representations
from .sentences import errors_in_sentences, found_by_one
from .several import heat_map, rates, types_compared, verdict
from .single import calibration, cards, error_kinds, groups, types

HERE = Path(__file__).resolve().parent
DEFINITIONS = {
    "correct": "Start, end and type are those of a gold entity. Precision, recall and F1 are micro averages.",
    "locate, type": "Locate: types are ignored. Type: only spans that were located count.",
    "groups": "Gold entities and predictions are put into groups by the same rule, each by its own span and label; "
    "what is said of nesting is said of the gold. So the counts of the groups add up to the whole.",
    "nested, covering, both, flat": "Nested: strictly inside a gold entity that has another inside. Covering: "
    "strictly contains a gold entity that lies in another. (Figure 3 of DSpERT.)",
    "eLen, tLen, eCon, eDen": "Entity length {1}, {2}, [3, 4], [5, ∞) words; sentence length [1, 7], [8, 16], [17, "
    "31], [32, ∞) words; share of the training occurrences of the same words (whatever their case) that carry the "
    "label, [0, .1], (.1, .5], (.5, .9], (.9, 1]; gold entities per word, [0, .01], (.01, .025], (.025, .05], (.05, "
    "∞). (Table 5 of Ji et al., 2022.)",
    "kinds of errors": "Of wrong predictions: type, a gold entity of another type has that span; boundary, it "
    "overlaps a gold entity; spurious, neither. Of missed gold entities: type, another type is predicted there; "
    "boundary, a wrong prediction overlaps it; missed, neither. The first that applies counts.",
    "BE-Rate, TE-Rate": "Wrong predictions of kind boundary, or type, divided by all errors, FP + FN. (Eq. 24 of "
    "Ji et al., 2022.)",
    "ECE": "Expected calibration error: the mean gap between the score of predictions and the share that is "
    "correct, over ten ranges of scores.",
    "95 % interval": "Of F1 (or of its difference) when sentences are drawn anew, with replacement, many times.",
    "p": "How likely a difference of at least this size is if the two systems are equally good. Randomisation: the "
    "outputs of the two are swapped sentence by sentence at random. Bootstrap: sentences are drawn anew. Holm: the "
    "p of the randomisation, adjusted for several comparisons. Another training seed is not part of these tests.",
}


def report_page(
    title: str,
    mentions: Sequence[Mention],
    sentences: Sentences,
    summary: Mapping[str, Any],
    source: str = "",
) -> str:
    """The page about one system.

    Args:
        title: what stands at the top.
        mentions: gold and predicted entities (see `list_mentions`).
        sentences: the records that they are about.
        summary: what `summarise` says of them; `representations`, if it has them, are shown too.
        source: how the page was made, for the foot.
    """
    labels = list(summary["scores"]["per_type"])
    sections = [
        ("types", "Types", types(summary)),
        ("groups", "Where it succeeds", groups({"": summary})),
        ("kinds", "Kinds of errors", error_kinds(summary)),
        ("calibration", "Calibration", calibration(summary)),
        ("representations", "Representations", representations({"": summary})),
        ("errors", "Every error, in its sentence", errors_in_sentences(mentions, sentences, labels)),
    ]
    top = [notes(summary["notes"]), cards(summary)]
    return whole_page(title, _facts(summary), top, sections, source, DEFINITIONS)


def comparison_page(
    title: str,
    mentions: Mapping[str, Sequence[Mention]],
    sentences: Sentences,
    comparison: Mapping[str, Any],
    source: str = "",
) -> str:
    """The page about several systems; `comparison` is what `compare` returns."""
    systems = comparison["systems"]
    labels = list(dict.fromkeys(label for s in systems.values() for label in s["scores"]["per_type"]))
    said = [f"{name}: {note}" for name, summary in systems.items() for note in summary["notes"]]
    sections = [
        ("verdict", "Is the difference real?", verdict(comparison)),
        ("buckets", "Where they differ", heat_map(comparison)),
        ("rates", "Kinds of errors", rates(comparison)),
        ("types", "Types", types_compared(systems, labels)),
        ("groups", "Groups", groups(systems)),
        ("representations", "Representations", representations(systems)),
        ("only", "Entities that only one of them finds", found_by_one(comparison, mentions, sentences, labels)),
    ]
    first = next(iter(systems.values()))
    return whole_page(title, _facts(first), [notes(said)], sections, source, DEFINITIONS)


def whole_page(
    title: str,
    facts: str,
    top: Iterable[Html],
    sections: Sequence[tuple[str, str, Html]],
    source: str,
    definitions: Mapping[str, str],
) -> str:
    """The page around its sections, (key, heading, content) each; those without content are left out.

    Args:
        facts: one line below the title.
        top: what stands before the sections.
        source: how the page was made, for the foot.
        definitions: what the words mean.
    """
    sections = [section for section in sections if section[2]]
    body = [
        tag(
            "header",
            tag("h1", title),
            tag("p", facts, class_="soft"),
            tag("nav", *(tag("a", name, href=f"#{key}") for key, name, _ in sections)),
        ),
        tag(
            "main",
            *top,
            *(tag("section", tag("h2", name), content, id=key) for key, name, content in sections),
            tag(
                "details",
                tag("summary", "What the words mean"),
                tag(
                    "dl", *(part for term, text in definitions.items() for part in (tag("dt", term), tag("dd", text)))
                ),
            ),
        ),
        tag("footer", source),
        tag("script", Html((HERE / "page.js").read_text(encoding="utf-8"))),
    ]
    style = style_sheet(":root", ["auto"]) + (HERE / "page.css").read_text(encoding="utf-8")
    return "<!doctype html>\n" + tag("html", head(title, style), tag("body", *body), lang="en") + "\n"


def _facts(summary: Mapping[str, Any]) -> str:
    data = summary["data"]
    facts = f"{data['sentences']:,} sentences, {data['words']:,} words, {data['entities']:,} gold entities"
    if summary["unseen_density"] is not None:
        facts += f"; {percent(summary['unseen_density'])} % of the words never occur in training"
    return facts + "."


def notes(said: Sequence[str]) -> Html:
    return tag("div", tag("ul", *(tag("li", note) for note in said)), class_="notes") if said else Html()
