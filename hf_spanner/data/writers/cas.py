"""UIMA CAS as XMI with its type system: what INCEpTION, WebAnno and DKPro read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ..needed import needed
from ..schema import Sentence
from .files import Line, check_words, complete_or_not_at_all, documents, file_name, in_characters

SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type."
NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
TYPE_SYSTEM = "TypeSystem.xml"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # of XML 1.0


def write_cas(sentences: Iterable[Sentence], folder: str | Path) -> list[Path]:
    """A `.xmi` a document, and `TypeSystem.xml`. Returns the `.xmi` files.

    Words are tokens, sentences are sentences, one a line, and an entity is a `NamedEntity` of DKPro with its label as
    `value` and, if it has one, its kind as `mention`. Sentences without a `doc_id` go to the document `sentences`.
    There is no place for ids, part-of-speech tags and sentences without words.
    """
    cassis = needed("cassis", "cas", "Writing CAS XMI")
    types = _types()
    folder = Path(folder)
    used: set[str] = set()
    written = []
    contents = {}
    for doc_id, members in documents(sentences).items():
        name = file_name("sentences" if doc_id is None else doc_id, used)
        contents[name] = _as_cas(members, cassis, types)  # all is checked before the first file is there
    for name, content in [*((f"{name}.xmi", content) for name, content in contents.items()), ("", "")]:
        with complete_or_not_at_all(folder / (name or TYPE_SYSTEM)) as file:
            file.write(content if name else types.to_xml())
        written += [folder / name] if name else []
    return written


@cache
def _types() -> Any:
    """DKPro's types, with kinds of mention."""
    types = needed("cassis", "cas", "Writing CAS XMI").load_dkpro_core_typesystem()
    types.create_feature(types.get_type(NAMED_ENTITY), "mention", "uima.cas.String")
    return types


def _as_cas(sentences: list[Sentence], cassis: Any, types: Any) -> str:
    lines: list[Line] = []
    position = 0
    for sentence in sentences:
        check_words(sentence, "XMI")
        lines.append(in_characters(sentence, position))
        _check_xml(sentence)
        position += len(lines[-1].text) + 1
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string = "".join(line.text + "\n" for line in lines)
    cas.sofa_mime = "text/plain"
    token, border, entity = (
        types.get_type(name) for name in (SEGMENTATION + "Token", SEGMENTATION + "Sentence", NAMED_ENTITY)
    )
    for words, spans in ((line.words, line.spans) for line in lines if line.words):
        cas.add(border(begin=words[0][0], end=words[-1][1]))
        cas.add_all([token(begin=start, end=end) for start, end in words])
        cas.add_all([entity(begin=s.start, end=s.end, value=s.label, mention=s.mention) for s in spans])
    return str(cas.to_xmi())


def _check_xml(sentence: Sentence) -> None:
    texts = [*sentence["tokens"], *(value for e in sentence["entities"] for value in (e["label"], e.get("mention")))]
    for text in texts:
        if text and (bad := _NOT_XML.search(text)):
            raise ValueError(
                f"Sentence {sentence['id']!r}: {text!r} holds the character {bad[0]!a}, which XML has no place for; "
                "replace it or write jsonl."
            )
