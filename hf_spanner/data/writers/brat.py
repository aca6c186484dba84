"""brat stand-off: a `.txt` and an `.ann` a document."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..schema import Sentence
from .files import check_words, complete_or_not_at_all, documents, file_name, in_characters


def write_brat(sentences: Iterable[Sentence], folder: str | Path) -> list[Path]:
    """One `.txt`/`.ann` pair a document, one sentence a line, words joined by one space. Returns the `.txt` files.

    Sentences without a `doc_id` go to the document `sentences`. `read_file(folder, splitter="whitespace")`
    gives the same words and entities back; the kind of a mention is an attribute, `mention`. brat has no place for the
    ids of sentences, nor for sentences without words. Characters that file systems refuse become `_` in the document's
    name.
    """
    found = documents(_checked(sentences))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    written = []
    for doc_id, members in found.items():
        name = file_name("sentences" if doc_id is None else doc_id, used)
        text, annotations = _as_brat(members)
        for suffix, content in ((".txt", text), (".ann", annotations)):
            with complete_or_not_at_all(folder / (name + suffix)) as file:
                file.write(content)
        written.append(folder / f"{name}.txt")
    return written


def _as_brat(sentences: list[Sentence]) -> tuple[str, str]:
    """The text and the annotations of one document."""
    text = ""
    annotations: list[str] = []
    kinds: list[str] = []
    for sentence in sentences:
        line = in_characters(sentence, len(text))
        text += line.text + "\n"
        for start, end, label, _, mention in line.spans:
            number = len(annotations) + 1
            annotations.append(f"T{number}\t{label} {start} {end}\t{text[start:end]}\n")
            if mention is not None:
                kinds.append(f"A{len(kinds) + 1}\tmention T{number} {mention}\n")
    return text, "".join(annotations + kinds)


def _checked(sentences: Iterable[Sentence]) -> Iterable[Sentence]:
    for sentence in sentences:
        check_words(sentence, "brat")
        for entity in sentence["entities"]:
            for what, value in (("label", entity["label"]), ("mention", entity.get("mention") or "-")):
                if value.split() != [value]:
                    raise ValueError(
                        f"Sentence {sentence['id']!r}: {what} {value!r} contains white space, which brat does not "
                        "allow; rename it or write jsonl."
                    )
        yield sentence
