"""spaCy's DocBin, a `.spacy` file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..chars import CharSpan, Splitter
from ..needed import needed
from ..records import further_columns
from ..schema import ReadReport, Sentence, first_line
from ..writers.docbin import DOC_FIELDS
from .files import open_bytes, plain_name
from .own_words import OWN, OwnText, own_sentences


def read_docbin(
    path: str | Path,
    report: ReadReport,
    *,
    spans_key: str | None = None,
    ents: bool = False,
    splitter: Splitter | None = None,
    split_sentences: str = OWN,
    on_misaligned: str = "expand",
) -> Iterator[Sentence]:
    """The entities of `doc.spans`, and those of `doc.ents` if a Doc has no span groups, or if asked for.

    Words and sentences are the Doc's own; one without sentence boundaries is one sentence. Tokens of white space are
    no words. The kinds of mention are read from a group's `attrs["mentions"]`, as `write_docbin` writes them.

    Args:
        spans_key: the group of spans to read; by default all of them.
        ents: take the entities of `doc.ents` in addition; otherwise those that no group holds are counted.
        splitter: cut the text into words anew; for data for a model by its own splitter, say.
        split_sentences: "own", "newline" or "none".
        on_misaligned: see `TextOptions`; of Docs with their own words no span begins inside one.
    """
    path = Path(path)
    stem = plain_name(path).stem
    for number, doc in enumerate(_docs(path)):
        where = f"{path}, row {number}"
        data = doc.user_data if isinstance(doc.user_data, dict) else {}
        said = {name: list(v) if isinstance(v := data.get(name), tuple) else v for name in DOC_FIELDS}
        doc_id = said.pop("doc_id")
        document = OwnText(
            doc.text,
            [(token.idx, token.idx + len(token)) for token in doc if not token.is_space],
            [span.start_char for span in doc.sents] if doc.has_annotation("SENT_START") else None,
            list(_char_spans(doc, spans_key, ents, report, where)),
        )
        yield from own_sentences(
            document,
            report,
            splitter,
            split_sentences,
            on_misaligned,
            id=f"{stem}.{number}",
            doc_id=doc_id if isinstance(doc_id, str) else None,
            where=where,
            further=further_columns(said, report, where),
        )


def _docs(path: Path) -> list[Any]:
    spacy = needed("spacy", "spacy", "Reading a DocBin")
    tokens = needed("spacy.tokens", "spacy", "Reading a DocBin")
    with open_bytes(path) as file:
        content = file.read()
    try:
        return list(tokens.DocBin().from_bytes(content).get_docs(spacy.blank("xx").vocab))
    except Exception as error:  # zlib, msgpack and spaCy fail in a dozen ways; the user needs one sentence
        raise ValueError(
            f"{path}: the DocBin is damaged or no DocBin of spaCy's ({first_line(error)}); write it again."
        ) from error


def _char_spans(doc: Any, spans_key: str | None, ents: bool, report: ReadReport, where: str) -> Iterator[CharSpan]:
    groups = doc.spans if spans_key is None else {spans_key: doc.spans[spans_key]} if spans_key in doc.spans else {}
    for key, group in doc.spans.items():
        if key not in groups:
            report.lose(f"span of another group than {spans_key!r}", f"{where}: {key!r}", len(group))
    seen = set()
    for key, group in groups.items():
        mentions = group.attrs.get("mentions")
        if not isinstance(mentions, list | tuple) or len(mentions) != len(group):
            mentions = [None] * len(group)
        for span, mention in zip(group, mentions, strict=True):
            found = _char_span(span, report, f"{where}: group {key!r}", mention)
            if found is not None:
                seen.add(found[:3])
                yield found
    for entity in doc.ents:
        found = _char_span(entity, report, f"{where}: doc.ents")
        if found is None or found[:3] in seen:
            continue
        if ents or not doc.spans:
            yield found
        else:
            report.lose(
                "entity of doc.ents alone, beside groups of spans", f"{where}: {entity.label_} {entity.text!r}"
            )


def _char_span(span: Any, report: ReadReport, where: str, mention: str | None = None) -> CharSpan | None:
    if not span.label_ or span.start >= span.end:
        report.lose("span without a label or a word", f"{where}: {span.text!r}")
        return None
    report.ignore("link to a knowledge base", f"{where}: {span.text!r}", bool(span.kb_id))
    return CharSpan(span.start_char, span.end_char, span.label_, where, mention)
