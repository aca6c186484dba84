"""PubTator: `PMID|t|title`, `PMID|a|abstract`, then a line of tabs for each mention (NCBI Disease, BC5CDR)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..chars import RUNNING_TEXT, CharSpan, TextOptions, at_its_offsets, document_to_sentences
from ..schema import ReadReport, Sentence, short
from .files import field_lines

_FIELDS = 5  # of a mention at least; its concepts, and those of its parts, may follow
_OFFSETS = re.compile(r"\t[0-9]+\t[0-9]+(?=\t)")
TEXT_LINE = re.compile(r"([^|\t\s]+)\|([ta])\|(.*)")


def read_pubtator(
    path: str | Path, report: ReadReport, text: TextOptions = RUNNING_TEXT, *, check_text: bool = True
) -> Iterator[Sentence]:
    """Abstracts with mentions: `PMID<tab>start<tab>end<tab>text<tab>type<tab>concept`, offsets in title and abstract
    with one character between them. Lines of relations are left aside.

    Args:
        text: how texts are cut into words and sentences.
        check_text: a mention whose text is not at its offsets is counted as lost.
    """
    name = ""
    texts: dict[str, str] = {}
    mentions: list[tuple[CharSpan, str | None]] = []  # each with the text that it repeats, if that is looked at
    began = ""

    def document() -> Iterator[Sentence]:
        content = f"{texts.get('t', '')} {texts.get('a', '')}"
        spans = [span for span, wanted in mentions if at_its_offsets(span, wanted, content, report)]
        yield from document_to_sentences(content, spans, report, text, id=name, doc_id=name, where=began)

    for number, line in field_lines(Path(path)):
        where, fields = f"{path}:{number}", line.split("\t")
        if not line.strip():
            continue
        if match := TEXT_LINE.fullmatch(line):
            if texts and (match[1] != name or match[2] in texts):
                yield from document()
                texts, mentions = {}, []
            name, began = match[1], began if texts else where
            texts[match[2]] = match[3]
            report.lose("mention in a line of text", f"{where}: {short(line)}", _mentions(line))
            continue
        if not texts:
            raise ValueError(f"{where}: {short(line)} stands before any text; expected a line such as '123|t|Title'.")
        if len(fields) == 4 and not fields[1].isdigit():
            report.ignore("relation", where)
        elif not _FIELDS <= len(fields) <= _FIELDS + 2 or fields[0] != name or not fields[4].strip():
            report.lose("line that is no mention of its text", f"{where}: {short(line)}", max(_mentions(line), 1))
        elif not (_is_offset(fields[1]) and _is_offset(fields[2])):
            report.lose("mention without offsets", f"{where}: {short(line)}")
        else:
            span = CharSpan(int(fields[1]), int(fields[2]), fields[4].strip(), where)
            mentions.append((span, fields[3] if check_text else None))
    if texts:
        yield from document()


def _mentions(line: str) -> int:
    """How many mentions a line holds: several where line breaks are missing, or are those of another system."""
    return len(_OFFSETS.findall(line)) or int(line.count("\t") >= _FIELDS - 1)


def _is_offset(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
