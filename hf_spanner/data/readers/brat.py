"""brat stand-off: a `.txt` with the text and an `.ann` with the annotations beside it."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...metrics.given_spans import FRAGMENT, WHOLE
from ..chars import LINE_BY_LINE, CharSpan, TextOptions, document_to_sentences
from ..schema import ReadReport, Sentence, short
from .files import field_lines, open_bytes, read_text

_OFFSETS = r"[0-9]{1,15} [0-9]{1,15}"  # of no file on earth, so any number beyond is no offset
_MENTION = re.compile(rf"(\S+) ({_OFFSETS}(?:;{_OFFSETS})*)")
_KIND = re.compile(r"A[0-9]+\t[Mm]ention (T[0-9]+) (\S+)")  # as `write_brat` writes it
_OTHER_LINES = {
    "R": "relation",
    "E": "event",
    "A": "attribute",
    "M": "attribute",
    "N": "normalisation",
    "#": "note",
    "*": "equivalence",
}
DISCONTINUOUS = ("skip", "hull", "fragments")


@dataclass
class _Mention:
    where: str
    id: str
    label: str
    fragments: list[tuple[int, int]]
    text: str
    kind: str | None = None


def read_brat(
    path: str | Path,
    report: ReadReport,
    text: TextOptions = LINE_BY_LINE,
    *,
    discontinuous: str = "skip",
    check_text: bool = True,
) -> Iterator[Sentence]:
    """A folder of `.txt`/`.ann` pairs and its sub-folders, or one pair (give either file).

    `doc_id` is the file's name without its ending, with the sub-folders before it.

    Args:
        text: how texts are cut; splitter="whitespace" for what `write_brat` wrote.
        discontinuous: mentions of several fragments: "skip" (counted), take their "hull" (counted too), or each of
            their "fragments" as an entity whose `mention` says of which it is a part, `fragment:T3` (see
            `score_typing`). Fragments with nothing but white space between them are one mention; brat itself writes
            them at line breaks.
        check_text: the text repeated in a T line has to agree with the document.
    """
    if discontinuous not in DISCONTINUOUS:
        raise ValueError(f"discontinuous={discontinuous!r} is unknown; choose {', '.join(map(repr, DISCONTINUOUS))}.")
    path = Path(path)
    for annotation_path in _documents(path, report):
        text_path = annotation_path.with_suffix(".txt")
        mentions = list(_mentions(annotation_path, report))
        content = _aligned_text(text_path, mentions, check_text)
        spans = [span for mention in mentions for span in _char_spans(mention, content, discontinuous, report)]
        spans = _join_fragments(spans) if discontinuous == "fragments" else spans
        name = text_path.stem if path.is_file() else text_path.relative_to(path).with_suffix("").as_posix()
        yield from document_to_sentences(
            content,
            spans,
            report,
            text,
            id=name,
            doc_id=name,
            where=str(annotation_path),
        )


def brat_files(folder: Path, suffix: str) -> Iterator[Path]:
    """The files of a folder and its sub-folders with this ending; what is hidden is no data."""
    for path in sorted(folder.rglob(f"*{suffix}")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _documents(path: Path, report: ReadReport) -> list[Path]:
    """The `.ann` of every pair. A text nobody annotated is not a text without entities: it is left out, aloud."""
    if path.is_file():
        texts, annotations = [path.with_suffix(".txt")], [path.with_suffix(".ann")]
    else:
        texts, annotations = list(brat_files(path, ".txt")), list(brat_files(path, ".ann"))
    for annotation in annotations:
        if not annotation.is_file():
            raise FileNotFoundError(
                f"{path} has no {annotation.name} beside it; create it, empty if nothing is annotated."
            )
        if not annotation.with_suffix(".txt").is_file():
            raise FileNotFoundError(f"{annotation} has no text beside it; expected {annotation.stem}.txt.")
    if not annotations:
        raise FileNotFoundError(f"{path} holds no .ann file; expected pairs of .txt and .ann.")
    annotated = set(annotations)
    for text in texts:
        if text.with_suffix(".ann") not in annotated:
            report.lose("text without an .ann file", str(text))
    return annotations


def _mentions(path: Path, report: ReadReport) -> Iterator[_Mention]:
    """The mentions of a document, with the kinds that attributes called `mention` give them."""
    found: list[tuple[str, _Mention]] = []
    kinds: dict[str, str] = {}
    for number, line in field_lines(path):
        if not line.strip():
            continue
        id, *fields = line.split("\t")
        where = f"{path}:{number} {short(id)[1:-1]}"
        match = _MENTION.fullmatch(fields[0].strip()) if fields else None
        if (kind := _KIND.fullmatch(line)) and kind[1] not in kinds:
            kinds[kind[1]] = kind[2]
            continue
        if not line.startswith("T"):
            if _MENTION.fullmatch(id.strip()):
                report.lose("mention without an id", f"{where}: {short(line)}")
            elif match is None:
                report.ignore(_OTHER_LINES.get(line[0], "line of an unknown kind"), f"{path}:{number}")
            else:
                report.lose("mention whose id does not begin with T", f"{where}: {short(line)}")
            continue
        if match is None or len(fields) > 2:
            raise ValueError(
                f"{where}: cannot read {short(line)}; expected an id, a tab, a label with offsets such as 'ORG 0 5', "
                "a tab and the text."
            )
        fragments = [(int(start), int(end)) for start, end in (part.split(" ") for part in match[2].split(";"))]
        mention = _Mention(where, id, match[1], fragments, fields[1] if len(fields) == 2 else "")
        found.append((id, mention))
    report.ignore("attribute", str(path), len(kinds.keys() - {id for id, _ in found}))
    for id, mention in found:
        yield replace(mention, kind=kinds.get(id))


def _aligned_text(path: Path, mentions: list[_Mention], check_text: bool) -> str:
    """The document such that the offsets fit it.

    brat counts every character of the file, `\\r` and a byte order mark too. Files that travelled between systems may
    have gained those after they were annotated. So the text as it stands comes first, and if the mentions' own texts
    contradict it, the text without them.
    """
    plain = read_text(path)
    candidates = [plain, plain.replace("\r\n", "\n")]
    with open_bytes(path) as file:
        has_mark = file.read(len(BOM_UTF8)) == BOM_UTF8
    if has_mark:  # a space in its place keeps the offsets and is no word
        candidates.insert(0, " " + plain)
    if not check_text:
        return candidates[0]
    for text in candidates:
        if all(_says(text, mention) == _squeeze(mention.text) for mention in mentions):
            return text
    text = candidates[0]
    wrong = next(mention for mention in mentions if _says(text, mention) != _squeeze(mention.text))
    raise ValueError(
        f"{wrong.where}: the document has {short(_says(text, wrong))} at {short(wrong.fragments)}, but the annotation "
        f"says {short(wrong.text)}; correct the offsets or read with check_text=False."
    )


def _says(text: str, mention: _Mention) -> str:
    return _squeeze(" ".join(text[start:end] for start, end in mention.fragments))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _char_spans(mention: _Mention, text: str, discontinuous: str, report: ReadReport) -> Iterator[CharSpan]:
    fragments = sorted(mention.fragments)
    start, end = fragments[0][0], max(end for _, end in fragments)
    gaps = [text[left[1] : right[0]] for left, right in zip(fragments, fragments[1:], strict=False)]
    if any(gap.strip() for gap in gaps):
        example = f"{mention.where}: {mention.label} {short(mention.text)}"
        if discontinuous == "skip":
            report.lose("discontinuous mention", example)
            return
        if discontinuous == "fragments":
            report.change("discontinuous mention, taken as its fragments", example)
            for start, end in fragments:
                yield CharSpan(start, end, mention.label, mention.where, FRAGMENT + mention.id)
            return
        report.change("discontinuous mention, taken as a whole", example)
    yield CharSpan(start, end, mention.label, mention.where, mention.kind)


def _join_fragments(spans: list[CharSpan]) -> list[CharSpan]:
    """The spans, where fragments that several mentions share (`pain in arm and leg`) are one that names them all."""
    joined: dict[tuple[int, int, str], CharSpan] = {}
    wholes: list[CharSpan] = []
    fragments = {span[:3] for span in spans if _is_fragment(span)}
    for span in spans:
        if span[:3] not in fragments:
            wholes.append(span)
            continue
        name = (span.mention or "").removeprefix(FRAGMENT) if _is_fragment(span) else WHOLE
        former = joined.get(span[:3])
        joined[span[:3]] = span._replace(mention=f"{former.mention}+{name}" if former else FRAGMENT + name)
    return wholes + list(joined.values())


def _is_fragment(span: CharSpan) -> bool:
    return (span.mention or "").startswith(FRAGMENT)
