"""GENIA's own XML (GENIAcorpus3.02.xml): abstracts in sentences, with terms (`cons`) inside terms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..schema import ReadReport, Sentence, short
from .files import plain_name
from .markup import Element, elements, marked_text

TYPES = ("DNA", "RNA", "protein", "cell_line", "cell_type")
_TYPE = re.compile(rf"G#({'|'.join(TYPES)})(?![^\W_])")


def read_genia(path: str | Path, report: ReadReport) -> Iterator[Sentence]:
    """The sentences of title and abstract with terms of five types, as everybody has them since Finkel and Manning.

    Words are cut at white space and where a term begins or ends (`IL-2-mediated` is `IL-2` and `-mediated`). Subtypes
    belong to their type (`G#protein_molecule` is a protein), terms of other types are left aside. Coordinated terms
    (`sem="(AND G#DNA_x G#DNA_x)"`, mostly discontinuous) are counted as lost, each of their parts.
    """
    path = Path(path)
    seen: Counter[str] = Counter()
    for number, article in enumerate(elements(path, {"article", "sentence", "cons"})):
        if article.tag != "article":  # of a damaged file
            _lose(article, report, path)
            continue
        named = article.find("articleinfo", "bibliomisc")
        name = named.text.strip() if named else f"{plain_name(path).stem}.{number}"
        seen[name] += 1  # one abstract stands twice in version 3.02
        doc_id = name if seen[name] == 1 else f"{name}#{seen[name]}"
        parts = list(article.all("sentence", "cons"))
        for index, sentence in enumerate(part for part in parts if part.tag == "sentence"):
            yield _sentence(sentence, f"{doc_id}.{index}", doc_id, report, path)
        for term in parts:
            if term.tag == "cons":
                _lose(term, report, path)


def _lose(stray: Element, report: ReadReport, path: Path) -> None:
    terms = [element for *_, element in marked_text(stray).places] + [stray]
    number = sum(len(_TYPE.findall(term.attributes.get("sem", ""))) for term in terms if term.tag == "cons")
    report.lose("term outside the sentences of an article", f"{path}:{stray.line}", number)


def _sentence(sentence: Element, id: str, doc_id: str, report: ReadReport, path: Path) -> Sentence:
    marked = marked_text(sentence)
    cuts = {position for start, end, _ in marked.places for position in (start, end)}
    words = _words(marked.text, cuts)
    entities = []
    for start, end, term in marked.places:
        where = f"{path}:{term.line}: {short(marked.text[start:end])}"
        sem = term.attributes.get("sem", "")
        if term.tag != "cons":
            report.ignore(f"element {term.tag!r}", where)
            continue
        types = _TYPE.findall(sem)
        inside = [number for number, (first, last) in enumerate(words) if start <= first and last <= end]
        if not types:
            report.ignore("term of another type", f"{where} {short(sem)}")
        elif not sem.startswith("G#"):
            report.lose("part of a coordinated term", f"{where} {short(sem)}", len(types))
        elif not inside:
            report.lose("mention without a word", where)
        else:
            entities.append({"start": inside[0], "end": inside[-1] + 1, "label": types[0]})
            report.lose("further type of a term", f"{where} {short(sem)}", len(types) - 1)
    tokens = [marked.text[start:end] for start, end in words]
    entities.sort(key=lambda entity: (entity["start"], entity["end"]))
    return report.keep(id, doc_id, tokens, entities, f"{path}:{sentence.line}")


def _words(text: str, cuts: set[int]) -> list[tuple[int, int]]:
    """The pieces of the text between white space and cuts."""
    words = []
    for match in re.finditer(r"\S+", text):
        borders = [match.start(), *sorted(cut for cut in cuts if match.start() < cut < match.end()), match.end()]
        words += list(zip(borders, borders[1:], strict=False))
    return words
