"""CoNLL columns: one word a line, and as many columns of tags as it takes to hold every entity."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..schema import Entity, Sentence
from ..tags import entities_to_tags
from .files import complete_or_not_at_all


def write_conll(sentences: Iterable[Sentence], path: str | Path, scheme: str = "BIO") -> int:
    """A word and its tags a line, tabs between them, a blank line after each sentence. Returns the number of columns
    of tags.

    The first column of tags holds the outermost entities, the next what lies in these, and so on; entities that cross
    or share a span stand in different columns, too, so that nothing is lost. `read_file(path, token_column=0)` gives
    the same words and entities back. A line `-DOCSTART-` stands where the document changes. The format has no place
    for ids, kinds of mention and sentences without words.
    """
    sentences = list(sentences)
    rows = [layers_of(sentence["entities"]) for sentence in sentences]
    width = max([1, *map(len, rows)])
    by_document = any(sentence["doc_id"] is not None for sentence in sentences)
    before: object = object()  # equal to no name
    with complete_or_not_at_all(Path(path)) as file:
        for sentence, layers in zip(sentences, rows, strict=True):
            _check(sentence)
            if by_document and sentence["doc_id"] != before:
                file.write("\t".join(["-DOCSTART-", *["O"] * width]) + "\n\n")
                before = sentence["doc_id"]
            tokens = sentence["tokens"]
            spans = [[(e["start"], e["end"], e["label"]) for e in layer] for layer in layers]
            spans += [[]] * (width - len(spans))
            columns = [entities_to_tags(layer, len(tokens), scheme) for layer in spans]
            file.writelines("\t".join(row) + "\n" for row in zip(tokens, *columns, strict=True))
            file.write("\n" if tokens else "")
    return width


def layers_of(entities: Iterable[Entity]) -> list[list[Entity]]:
    """The entities in layers without overlap: each in the first that has room, the longest first.

    >>> outer, inner = {"start": 0, "end": 3, "label": "PER"}, {"start": 2, "end": 3, "label": "LOC"}
    >>> [[entity["label"] for entity in layer] for layer in layers_of([inner, outer])]
    [['PER'], ['LOC']]
    """
    layers: list[list[Entity]] = []
    for entity in sorted(entities, key=lambda e: (e["start"] - e["end"], e["start"])):
        for layer in layers:
            if all(entity["end"] <= other["start"] or other["end"] <= entity["start"] for other in layer):
                layer.append(entity)
                break
        else:
            layers.append([entity])
    return layers


def _check(sentence: Sentence) -> None:
    texts = [("token", token) for token in sentence["tokens"]] + [("label", e["label"]) for e in sentence["entities"]]
    for what, text in texts:
        if not text or text != text.strip(" \r") or {"\t", "\n"} & set(text):
            raise ValueError(
                f"Sentence {sentence['id']!r}: {what} {text!r} is empty, holds a tab or a line break, or has a space "
                "at its end, and would not be read back; replace it or write jsonl."
            )
    if any(token.startswith("-DOCSTART-") for token in sentence["tokens"]):
        raise ValueError(
            f"Sentence {sentence['id']!r}: the word '-DOCSTART-' begins a document in this format; write jsonl."
        )
