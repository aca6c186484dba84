"""HAREM's golden collections: XML with `<EM CATEG="PESSOA">` around mentions and `<ALT>` around alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..chars import RUNNING_TEXT, CharSpan, TextOptions, document_to_sentences
from ..schema import ReadReport, Sentence, short
from .files import plain_name
from .markup import Element, elements, marked_text


def read_harem(path: str | Path, report: ReadReport, text: TextOptions = RUNNING_TEXT) -> Iterator[Sentence]:
    """The golden collections of the First HAREM, MiniHAREM and the Second HAREM.

    Of alternative analyses the one with the most mentions is taken (then the first), of several categories
    (`CATEG="LOCAL|ORGANIZACAO"`) the first; the others are counted as lost.

    Args:
        text: how texts are cut into words and sentences.
    """
    path = Path(path)
    for number, document in enumerate(elements(path, {"DOC", "EM"})):
        where = f"{path}:{document.line}"
        if document.tag == "EM":  # of a damaged file
            report.lose("mention outside a document", where, _mentions([document]))
            continue
        name = document.attributes.get("DOCID") or f"{plain_name(path).stem}.{number}"
        plain = _choose(document, report, path)
        marked = marked_text(plain)
        spans: list[CharSpan] = []
        for start, end, element in marked.places:
            if element.tag == "EM":
                spans += _span(start, end, element, marked.text, report, f"{path}:{element.line}")
        yield from document_to_sentences(marked.text, spans, report, text, id=name, doc_id=name, where=where)


def _span(start: int, end: int, mention: Element, text: str, report: ReadReport, where: str) -> Iterator[CharSpan]:
    categories = _categories(mention)
    if not categories:
        report.lose("mention without a category", f"{where}: {short(text[start:end])}")
    elif start == end:
        report.lose("mention without a word", f"{where}: {short(mention.attributes)}", len(categories))
    else:
        report.lose("further category of a mention", f"{where}: {short(categories)}", len(categories) - 1)
        yield CharSpan(start, end, categories[0], where)


def _categories(mention: Element) -> list[str]:
    return [name for name in map(str.strip, mention.attributes.get("CATEG", "").split("|")) if name]


def _choose(element: Element, report: ReadReport, path: Path) -> Element:
    """The element with one of the alternatives in place of each `ALT`, and paragraphs apart."""
    content: list[str | Element] = []
    for part in element.content:
        if isinstance(part, str):
            content.append(part)
        elif part.tag == "ALT":
            content += _alternative(_choose(part, report, path), report, path)
        else:
            chosen = _choose(part, report, path)
            content += ["\n\n", chosen] if part.tag == "P" else [chosen]
    return Element(element.tag, element.attributes, element.line, content)


def _alternative(alt: Element, report: ReadReport, path: Path) -> list[str | Element]:
    alternatives: list[list[str | Element]] = [[]]
    for part in alt.content:
        if isinstance(part, str):
            first, *others = part.split("|")
            alternatives[-1].append(first)
            alternatives += [[other] for other in others]
        else:
            alternatives[-1].append(part)
    chosen = max(alternatives, key=_mentions)
    for other in alternatives:
        if other is not chosen:
            report.lose("mention of an alternative that was not taken", f"{path}:{alt.line}", _mentions(other))
    return chosen


def _mentions(content: list[str | Element]) -> int:
    own = [part for part in content if isinstance(part, Element)]
    return sum((max(len(_categories(e)), 1) if e.tag == "EM" else 0) + _mentions(e.content) for e in own)
