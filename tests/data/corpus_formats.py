"""Annotated files in the forms of single corpora, for `mutations.py`: writers, and counts without the readers."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

TYPES = ["DNA", "RNA", "protein", "cell_line", "cell_type"]
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def in_characters(document: dict) -> tuple[str, list[tuple[int, int, str]]]:
    starts, position = [], 0
    for word in document["words"]:
        starts.append(position)
        position += len(word) + 1
    ends = [start + len(word) for start, word in zip(starts, document["words"], strict=True)]
    return " ".join(document["words"]), [(starts[s], ends[e - 1], label) for s, e, label in document["spans"]]


def without_crossing(doc: dict) -> list[tuple[int, int, str]]:
    """The spans, the outer first; those that cross one before them are taken out of the document."""
    kept: list[tuple[int, int, str]] = []
    for start, end, label in doc["spans"]:
        if not any(start < s < end < e or s < start < e < end for s, e, _ in kept):
            kept.append((start, end, label))
    doc["spans"] = kept
    return sorted(kept, key=lambda span: (span[0], -span[1]))


def marked_up(doc: dict, opened: Callable[[str], str], closed: str) -> str:
    """The words with a tag around every span."""
    spans = without_crossing(doc)
    words = []
    for position, word in enumerate(doc["words"]):
        before = "".join(opened(label) for start, _, label in spans if start == position)
        after = closed * sum(end == position + 1 for _, end, _ in spans)
        words.append(before + escape(word) + after)
    return " ".join(words)


def write_conll2012(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    lines = []
    for number, doc in enumerate(docs):
        spans = without_crossing(doc)
        lines.append(f"#begin document (a/d{number}); part 000")
        for position, word in enumerate(doc["words"]):
            cell = "".join(f"({label}" for start, _, label in spans if start == position) + "*"
            cell += ")" * sum(end == position + 1 for _, end, _ in spans)
            lines.append(f"a/d 0 {position} {word} NN * - - - x {cell} -")
        lines += ["", "#end document"]
    path = folder / "a.v4_gold_conll"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def count_conll2012(path: Path, text: str) -> int:
    return sum("".join(line.split()[10:11]).count("(") for line in text.split("\n"))


def write_dygie(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    size = draw.randint(1, len(docs))
    records = []
    for begin in range(0, len(docs), size):
        group, first, layers = docs[begin : begin + size], 0, []
        for doc in group:
            layers.append([[first + s, first + e - 1, label] for s, e, label in doc["spans"]])
            first += len(doc["words"])
        records.append({"doc_key": f"d{begin}", "sentences": [doc["words"] for doc in group], "ner": layers})
    path = folder / "a.json"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def count_dygie(path: Path, text: str) -> int:
    records = [json.loads(line) for line in text.split("\n") if line.strip()]
    return sum(len(layer) for record in records for layer in record.get("ner") or ())


def write_pubtator(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    lines = []
    for number, doc in enumerate(docs):
        text, spans = in_characters(doc)
        lines += [f"{number}|t|{text}", f"{number}|a|"]
        lines += [f"{number}\t{s}\t{e}\t{text[s:e]}\t{label}\tD1" for s, e, label in spans] + [""]
    path = folder / "a.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def count_pubtator(path: Path, text: str) -> int:
    return sum(line.count("\t") >= 4 for line in text.split("\n"))


def write_genia(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    lines = [HEAD + "<set>"]
    for number, doc in enumerate(docs):
        lines += ["<article>", f"<articleinfo><bibliomisc>M:{number}</bibliomisc></articleinfo>", "<abstract>"]
        body = marked_up(doc, lambda label: f'<cons lex="x" sem="G#{draw.choice(TYPES)}_x">', "</cons>")
        lines += [f"<sentence>{body}</sentence>", "</abstract>", "</article>"]
    path = folder / "a.xml"
    path.write_text("\n".join([*lines, "</set>"]), encoding="utf-8")
    return path


def count_genia(path: Path, text: str) -> int:
    terms = re.findall(r"<cons\s[^>]*\bsem=[\"']([^\"']*)", text)
    return sum(len(re.findall(rf"G#(?:{'|'.join(TYPES)})(?![^\W_])", sem)) for sem in terms)


def write_harem(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    lines = [HEAD + "<colHAREM>"]
    for number, doc in enumerate(docs):
        body = marked_up(doc, lambda label: f'<EM ID="1" CATEG="{label}">', "</EM>")
        lines += [f'<DOC DOCID="H-{number}">', body, "</DOC>"]
    path = folder / "a.xml"
    path.write_text("\n".join([*lines, "</colHAREM>"]), encoding="utf-8")
    return path


def count_harem(path: Path, text: str) -> int:
    return len(re.findall(r"<EM[\s>/]", text))


def write_ace(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    place = folder / "ace" / "nw"
    place.mkdir(parents=True)
    for number, doc in enumerate(docs):
        text, spans = in_characters(doc)
        name = f"D{number}"
        before = f"\n {name} \n\n"  # what stands outside the tags before the text
        (place / f"{name}.sgm").write_text(
            f"<DOC>\n<DOCID> {name} </DOCID>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n", encoding="utf-8"
        )
        lines = [HEAD + f'<source_file URI="{name}.sgm"><document DOCID="{name}">']
        for s, e, label in spans:
            at = f'START="{s + len(before)}" END="{e - 1 + len(before)}"'
            lines += [f'<entity ID="E" TYPE="{label}">', '<entity_mention ID="M" TYPE="NAM">']
            lines += [
                f"<extent><charseq {at}>{escape(text[s:e])}</charseq></extent>",
                "</entity_mention>",
                "</entity>",
            ]
        (place / f"{name}.apf.xml").write_text("\n".join([*lines, "</document></source_file>"]), encoding="utf-8")
    return folder / "ace"


def write_ere(docs: list[dict], folder: Path, draw: random.Random) -> Path:
    (folder / "ere" / "source").mkdir(parents=True)
    for number, doc in enumerate(docs):
        text, spans = in_characters(doc)
        name = f"D{number}"
        before = f'<doc id="{name}">\n'
        source = before + text + "\n</doc>\n"
        (folder / "ere" / "source" / f"{name}.cmp.txt").write_text(source, encoding="utf-8")
        lines = [HEAD + f'<deft_ere doc_id="{name}">', "<entities>"]
        for s, e, label in spans:
            at = f'offset="{s + len(before)}" length="{e - s}"'
            lines += [f'<entity id="e" type="{label}">', f'<entity_mention id="m" {at} noun_type="NAM">']
            lines += [f"<mention_text>{escape(text[s:e])}</mention_text>", "</entity_mention>", "</entity>"]
        annotations = "\n".join([*lines, "</entities>", "</deft_ere>"])
        (folder / "ere" / f"{name}.rich_ere.xml").write_text(annotations, encoding="utf-8")
    return folder / "ere"


def count_mentions(path: Path, text: str) -> int:
    return len(re.findall(r"<entity_mention[\s>/]", text))


CORPUS_FORMATS = {
    "conll2012": write_conll2012,
    "dygie": write_dygie,
    "pubtator": write_pubtator,
    "genia": write_genia,
    "harem": write_harem,
    "ace": write_ace,
    "ere": write_ere,
}
COUNTS = {
    "conll2012": count_conll2012,
    "dygie": count_dygie,
    "pubtator": count_pubtator,
    "genia": count_genia,
    "harem": count_harem,
    "ace": count_mentions,
    "ere": count_mentions,
}
ANNOTATIONS = {"ace": "*.apf.xml", "ere": "*.rich_ere.xml"}  # of the formats that are read from folders
