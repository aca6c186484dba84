"""brat stand-off: a `.txt` with the text and an `.ann` with the annotations beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..chars import CharSpan, Splitter, document_to_sentences
from ..schema import ReadReport, Sentence
from .files import read_text

_MENTION = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
_OTHER_LINES = {
    "R": "relation",
    "E": "event",
    "A": "attribute",
    "M": "attribute",
    "N": "normalisation",
    "#": "note",
    "*": "equivalence",
}
DISCONTINUOUS = ("skip", "hull")


@dataclass
class _Mention:
    where: str
    label: str
    fragments: list[tuple[int, int]]
    text: str


def read_brat(
    path: str | Path,
    report: ReadReport,
    *,
    splitter: Splitter = "compound",
    on_misaligned: str = "expand",
    split_sentences: str = "newline",
    discontinuous: str = "skip",
    check_text: bool = True,
) -> Iterator[Sentence]:
    """A folder of `.txt`/`.ann` pairs, or one pair (give either file). `doc_id` is the file's name without its ending.

    Args:
        splitter: how the text is cut into words; "whitespace" for what `write_brat` wrote.
        on_misaligned: what to do with a boundary inside a word: "expand" (counted), "drop" (counted) or "error".
        split_sentences: "newline" makes a sentence of every line, "none" keeps a document whole. A mention across a
            line break joins its lines.
        discontinuous: mentions of several fragments: "skip" (counted), or take their "hull" (counted too). Fragments
            with nothing but white space between them are one mention; brat itself writes them at line breaks.
        check_text: the text repeated in a T line has to agree with the document.
    """
    if discontinuous not in DISCONTINUOUS:
        raise ValueError(f"discontinuous={discontinuous!r} is unknown; choose 'skip' or 'hull'.")
    for text_path in _documents(Path(path), report):
        annotation_path = text_path.with_suffix(".ann")
        mentions = list(_mentions(annotation_path, report))
        text = _aligned_text(text_path, mentions, check_text)
        spans = [_char_span(mention, text, discontinuous, report) for mention in mentions]
        yield from document_to_sentences(
            text,
            [span for span in spans if span is not None],
            report,
            id=text_path.stem,
            doc_id=text_path.stem,
            splitter=splitter,
            on_misaligned=on_misaligned,
            split_sentences=split_sentences,
            where=str(annotation_path),
        )


def _documents(path: Path, report: ReadReport) -> list[Path]:
    """The `.txt` of every pair. A text nobody annotated is not a text without entities: it is left out, aloud."""
    if path.is_file():
        texts, annotations = [path.with_suffix(".txt")], [path.with_suffix(".ann")]
    else:
        texts, annotations = sorted(path.glob("*.txt")), sorted(path.glob("*.ann"))
    for annotation in annotations:
        if not annotation.exists():
            raise FileNotFoundError(
                f"{path} has no {annotation.name} beside it; create it, empty if nothing is annotated."
            )
        if not annotation.with_suffix(".txt").exists():
            raise FileNotFoundError(f"{annotation} has no text beside it; expected {annotation.stem}.txt.")
    if not annotations:
        raise FileNotFoundError(f"{path} holds no .ann file; expected pairs of .txt and .ann.")
    for text in texts:
        if text.with_suffix(".ann") not in annotations:
            report.lose("text without an .ann file", str(text))
    return [annotation.with_suffix(".txt") for annotation in annotations]


def _mentions(path: Path, report: ReadReport) -> Iterator[_Mention]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if not line.startswith("T"):
            report.ignore(_OTHER_LINES.get(line[0], "line of an unknown kind"), f"{path}:{number}")
            continue
        id, _, rest = line.partition("\t")
        where = f"{path}:{number} {id}"
        head, _, text = rest.partition("\t")
        match = _MENTION.fullmatch(head.strip())
        if match is None:
            raise ValueError(
                f"{where}: cannot read {line!r}; expected an id, a tab, a label with offsets such as 'ORG 0 5', a tab "
                "and the text."
            )
        fragments = [tuple(map(int, fragment.split(" "))) for fragment in match[2].split(";")]
        yield _Mention(where, match[1], fragments, text)


def _aligned_text(path: Path, mentions: list[_Mention], check_text: bool) -> str:
    """The document such that the offsets fit it.

    brat counts every character of the file, `\\r` and a byte order mark too. Files that travelled between systems may
    have gained those after they were annotated. So the text as it stands comes first, and if the mentions' own texts
    contradict it, the text without them.
    """
    plain = read_text(path)
    candidates = [plain, plain.replace("\r\n", "\n")]
    if path.read_bytes().startswith(b"\xef\xbb\xbf"):  # a space in its place keeps the offsets and is no word
        candidates.insert(0, " " + plain)
    if not check_text:
        return candidates[0]
    for text in candidates:
        if all(_says(text, mention) == _squeeze(mention.text) for mention in mentions):
            return text
    text = candidates[0]
    wrong = next(mention for mention in mentions if _says(text, mention) != _squeeze(mention.text))
    raise ValueError(
        f"{wrong.where}: the document has {_says(text, wrong)!r} at {wrong.fragments}, but the annotation says "
        f"{wrong.text!r}; correct the offsets or read with check_text=False."
    )


def _says(text: str, mention: _Mention) -> str:
    return _squeeze(" ".join(text[start:end] for start, end in mention.fragments))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _char_span(mention: _Mention, text: str, discontinuous: str, report: ReadReport) -> CharSpan | None:
    fragments = sorted(mention.fragments)
    start, end = fragments[0][0], max(end for _, end in fragments)
    gaps = [text[left[1] : right[0]] for left, right in zip(fragments, fragments[1:], strict=False)]
    if any(gap.strip() for gap in gaps):
        example = f"{mention.where}: {mention.label} {mention.text!r}"
        if discontinuous == "skip":
            report.lose("discontinuous mention", example)
            return None
        report.change("discontinuous mention, taken as a whole", example)
    return start, end, mention.label
