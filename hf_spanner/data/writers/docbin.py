"""spaCy's DocBin, a `.spacy` file: what `spacy train` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from ..needed import needed
from ..schema import Sentence
from .files import complete_or_not_at_all

SPANS_KEY = "nested"  # the group of spans that holds all entities
DOC_FIELDS = ("doc_id", "labels", "flat", "corpus")  # what the sentences of one Doc have in common


def write_docbin(sentences: Iterable[Sentence], path: str | Path) -> int:
    """A Doc for the neighbouring sentences of a document, one for each sentence that belongs to none. Returns their
    number.

    All entities are in `doc.spans["nested"]`, the kinds of mention in `attrs["mentions"]` of that group; the outermost
    that do not cross are in `doc.ents`, too. Sentence boundaries are set. What a sentence says of its document, labels
    and corpus is in `doc.user_data`. There is no place for ids, part-of-speech tags and sentences without words.
    """
    spacy = needed("spacy", "spacy", "Writing a DocBin")
    tokens = needed("spacy.tokens", "spacy", "Writing a DocBin")
    vocab = spacy.blank("xx").vocab
    bin = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE", "SENT_START"], store_user_data=True)
    for members in _docs(sentences):
        bin.add(_as_doc(members, tokens, vocab, spacy.util.filter_spans))
    with complete_or_not_at_all(Path(path), binary=True) as file:
        file.write(bin.to_bytes())
    return len(bin)


def _docs(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    def common(sentence: Sentence) -> list[Any]:
        alone = sentence["id"] if sentence["doc_id"] is None else None
        return [alone, *(sentence.get(name) for name in DOC_FIELDS)]

    for _, members in groupby(sentences, key=common):
        yield list(members)


def _as_doc(sentences: list[Sentence], tokens: Any, vocab: Any, filter_spans: Any) -> Any:
    words: list[str] = []
    starts, spans, mentions = [], [], []
    for sentence in sentences:
        for token in sentence["tokens"]:
            if not token.strip():
                raise ValueError(
                    f"Sentence {sentence['id']!r}: token {token!r} is empty or white space, which is no word to "
                    "spaCy; replace it or write jsonl."
                )
        for entity in sentence["entities"]:
            spans.append((len(words) + entity["start"], len(words) + entity["end"], entity["label"]))
            mentions.append(entity.get("mention"))
        words += sentence["tokens"]
        starts += [position == 0 for position in range(len(sentence["tokens"]))]
    doc = tokens.Doc(vocab, words=words, sent_starts=starts)
    group = tokens.SpanGroup(doc, name=SPANS_KEY, spans=[tokens.Span(doc, *span) for span in spans])
    if any(mention is not None for mention in mentions):
        group.attrs["mentions"] = mentions
    doc.spans[SPANS_KEY] = group
    doc.ents = filter_spans(list(group))
    common: dict[str, Any] = {**sentences[0]}
    doc.user_data.update({name: common[name] for name in DOC_FIELDS if common.get(name) is not None})
    return doc
