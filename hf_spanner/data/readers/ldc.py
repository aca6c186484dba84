"""What the LDC distributes: ACE 2004 and 2005 (SGML and APF XML), and Rich ERE (TAC KBP 2017)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

from ..chars import RUNNING_TEXT, CharSpan, TextOptions, at_its_offsets, document_to_sentences
from ..schema import ReadReport, Sentence
from .files import read_text
from .markup import Element, blank_lines_at, elements

APF, ERE = ".apf.xml", ".rich_ere.xml"
_TEXTS = {APF: (".sgm",), ERE: (".cmp.txt", ".mp.txt", ".mpdf.xml")}  # what a file is called that is sure to be one
_FOLDERS = ("adj", "timex2norm", "fp1", "fp2")  # stages of ACE 2005's annotation, the adjudicated one first
_TAG = re.compile(r"<[^<>]+>")
_ESCAPED = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
_OTHERS = {"relation", "event", "hopper", "value", "timex2", "filler"}
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def read_ace(path: str | Path, report: ReadReport, text: TextOptions = RUNNING_TEXT) -> Iterator[Sentence]:
    """A folder of `.sgm` texts with `.apf.xml` annotations beside them, and its sub-folders, or one pair.

    What is inside `<TEXT>` is read; a mention is its extent, its label the entity's type, its `mention` NAM, NOM or
    PRO. Of a document that is annotated several times (`adj`, `timex2norm`, `fp1`, `fp2`) the adjudicated annotation
    is read.

    Args:
        text: how texts are cut into words and sentences.
    """
    return _read(Path(path), APF, _ace_document, report, text)


def read_ere(path: str | Path, report: ReadReport, text: TextOptions = RUNNING_TEXT) -> Iterator[Sentence]:
    """A folder with `.rich_ere.xml` annotations, and texts of the same names anywhere in it (`.cmp.txt`, `.xml`, ...).

    A mention is its whole `mention_text`; those inside tags (authors of posts) are counted as lost.

    Args:
        text: how texts are cut into words and sentences.
    """
    return _read(Path(path), ERE, _ere_document, report, text)


Parsed = tuple[str, list[tuple[CharSpan, str]]]  # a text, and its mentions with the text that each repeats


def _read(
    path: Path,
    suffix: str,
    parse: Callable[[Path, str, ReadReport], Parsed],
    report: ReadReport,
    text: TextOptions,
) -> Iterator[Sentence]:
    folder = path if path.is_dir() else path.parent
    sources = _sources(folder)
    for name, annotation in _annotations(path, suffix, report).items():
        source = sources.get(name)
        if suffix == APF:
            beside = annotation.with_name(f"{name}.sgm")
            source = beside if beside.is_file() else source
        if source is None:
            raise FileNotFoundError(
                f"{annotation} has no text beside it; expected a file called {name} (.sgm, .txt, .xml)."
            )
        content, mentions = parse(annotation, _fitting(annotation, read_text(source), parse), report)
        spans = [span for span, wanted in mentions if at_its_offsets(span, wanted, content, report)]
        yield from document_to_sentences(content, spans, report, text, id=name, doc_id=name, where=str(annotation))
        sources.pop(name, None)
    for source in sources.values() if path.is_dir() else ():
        if source.name.lower().endswith(_TEXTS[suffix]):
            report.lose(f"text without an {suffix} file", str(source))


def _fitting(annotation: Path, raw: str, parse: Callable[[Path, str, ReadReport], Parsed]) -> str:
    """The text as it stands, or with the line ends it had before it travelled, if the offsets fit these better."""

    def fits(text: str) -> int:
        aside = ReadReport(source="")
        content, mentions = parse(annotation, text, aside)
        return sum(at_its_offsets(span, wanted, content, aside) for span, wanted in mentions)

    return max((raw, raw.replace("\r\n", "\n")), key=fits) if "\r\n" in raw else raw


def _annotations(path: Path, suffix: str, report: ReadReport) -> dict[str, Path]:
    """The annotation of every document, by the document's name."""
    found = [path] if path.is_file() else [file for file in sorted(path.rglob(f"*{suffix}")) if file.is_file()]
    chosen: dict[str, Path] = {}
    for file in sorted(found, key=_stage):
        name = file.name.removesuffix(suffix)
        if name in chosen:
            report.ignore("further annotation of a document", str(file))
        chosen.setdefault(name, file)
    if not chosen:
        raise FileNotFoundError(f"{path} holds no {suffix} file.")
    return dict(sorted(chosen.items()))


def _stage(file: Path) -> int:
    return next((number for number, name in enumerate(_FOLDERS) if file.parent.name == name), len(_FOLDERS))


def _sources(folder: Path) -> dict[str, Path]:
    """The texts by the names of their documents."""
    texts: dict[str, Path] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.endswith((APF, ERE)):
            name = re.sub(r"(\.(cmp|mp|mpdf|txt|xml|sgm))+$", "", file.name)
            texts.setdefault(name, file)
    return texts


def _ace_document(annotation: Path, raw: str, report: ReadReport) -> Parsed:
    """ACE counts the characters of the file without its tags; an escaped character is as long as it is written."""
    body = re.search(r"<TEXT>(.*)</TEXT>", raw, re.DOTALL | re.IGNORECASE)
    start, inner = (body.start(1), body[1]) if body else (0, raw)
    before = len(_TAG.sub("", raw[:start]))
    text, moved = _unescape(_TAG.sub("", inner))
    mentions = []
    for entity, mention, where in _entities(annotation, report):
        sequence = mention.find("extent", "charseq")
        first, last = (_number(sequence, name) for name in ("START", "END"))
        if sequence is None or first is None or last is None:
            report.lose("mention without an extent", where)
            continue
        kind = mention.attributes.get("TYPE") or None
        label = entity.attributes.get("TYPE", "")
        span = CharSpan(moved(first - before), moved(last + 1 - before), label, where, kind)
        mentions.append((span, _unescape(sequence.text)[0]))
    return text, _labelled(mentions, report)


def _ere_document(annotation: Path, raw: str, report: ReadReport) -> Parsed:
    """Rich ERE counts all characters of the file, its tags too."""
    text, moved = _unescape(blank_lines_at(raw, _TAG))
    mentions = []
    for entity, mention, where in _entities(annotation, report):
        start, length = _number(mention, "offset"), _number(mention, "length")
        words = mention.find("mention_text")
        if start is None or length is None or words is None:
            report.lose("mention without an extent", where)
            continue
        label, kind = entity.attributes.get("type", ""), mention.attributes.get("noun_type") or None
        mentions.append((CharSpan(moved(start), moved(start + length), label, where, kind), _unescape(words.text)[0]))
    return text, _labelled(mentions, report)


def _entities(annotation: Path, report: ReadReport) -> Iterator[tuple[Element, Element, str]]:
    """(entity, one of its mentions, where it is written)."""
    for element in elements(annotation, {"entity", "entity_mention", *_OTHERS}):
        where = f"{annotation}:{element.line}"
        if element.tag != "entity":
            stray = sum(1 for _ in element.all("entity_mention")) + (element.tag == "entity_mention")
            report.lose("mention that belongs to no entity", where, stray)
            report.ignore(element.tag, where, 0 if stray else 1)
            continue
        for entity, mention in _mentions_of(element):
            yield entity, mention, f"{annotation}:{mention.line}"


def _mentions_of(entity: Element, inside: Element | None = None) -> Iterator[tuple[Element, Element]]:
    """The mentions of an entity; in a damaged file entities may stand inside each other, and mentions too."""
    for element in (inside or entity).all("entity", "entity_mention"):
        if element.tag == "entity":
            yield from _mentions_of(element)
        else:
            yield entity, element
            yield from _mentions_of(entity, element)


def _labelled(mentions: list[tuple[CharSpan, str]], report: ReadReport) -> list[tuple[CharSpan, str]]:
    for span, _ in mentions:
        if not span.label:
            report.lose("mention of an entity without a type", span.where)
    return [(span, wanted) for span, wanted in mentions if span.label]


def _number(element: Element | None, name: str) -> int | None:
    value = element.attributes.get(name, "") if element else ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _unescape(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with `&amp;` and its like as the characters they stand for, and where a place of it is now."""
    ends, shifts, shift = [0], [0], 0
    for match in _ESCAPED.finditer(text):
        shift += len(match[0]) - 1
        ends.append(match.end())
        shifts.append(shift)
    plain = _ESCAPED.sub(lambda match: _CHARACTERS[match[1].lower()], text)
    return plain, lambda place: place - shifts[max(bisect_right(ends, place) - 1, 0)]
