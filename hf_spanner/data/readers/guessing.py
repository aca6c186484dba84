"""What format a file is in, by what it holds; its name decides only where the content does not."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ..records import TOKEN_KEYS
from ..tags import is_tag
from .brat import brat_files
from .cas import xmi_files
from .conll2012 import BEGIN
from .files import CHUNK, json_records, open_bytes, plain_name
from .ldc import APF, ERE
from .pubtator import TEXT_LINE
from .tables import csv_form

JSON_SUFFIXES = {".jsonl", ".json", ".ndjson"}
COLUMN_SUFFIXES = {
    ".conll",
    ".bio",
    ".iob",
    ".iob1",
    ".iob2",
    ".bioes",
    ".bilou",
    ".tsv",
    ".txt",
    ".col",
    ".v4_gold_conll",
    ".gold_conll",
}
BRAT_SUFFIXES = {".ann"}
TABLE_SUFFIXES = {".parquet", ".arrow", ".csv"}
NEIGHBOUR_SUFFIXES = {".spacy", ".xmi"}
XML_SUFFIXES = {".xml"}
DATA_SUFFIXES = JSON_SUFFIXES | COLUMN_SUFFIXES | BRAT_SUFFIXES | TABLE_SUFFIXES | NEIGHBOUR_SUFFIXES | XML_SUFFIXES
_LDC = {APF: ("ace", "ACE's APF XML"), ERE: ("ere", "Rich ERE's XML")}

_RECORDS = 100  # looked at before the kind of JSON is decided
_STUDIO_FIELDS = {"annotations", "completions", "annotator", "annotation_id", "lead_time"}


def data_suffix(path: Path) -> str:
    """The ending that says what a file holds: `.jsonl` of `train.jsonl.gz`."""
    return plain_name(path).suffix.lower()


def decide_format(path: Path) -> tuple[str, str] | None:
    """(the format of a file or folder, the reason in words); None if nobody can tell."""
    if path.is_dir():
        return _decide_folder(path)
    suffix = data_suffix(path)
    if suffix in BRAT_SUFFIXES or (suffix == ".txt" and path.with_suffix(".ann").exists()):
        return "brat", "the text and its annotations are a .txt and an .ann file"
    head = _head(path)
    if head.startswith(b"PAR1"):
        return "parquet", "it begins like a parquet file"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow", "it begins like an Arrow file"
    if _is_docbin(head) or suffix == ".spacy":
        return "docbin", "it is a DocBin of spaCy's" if _is_docbin(head) else "its name ends in .spacy"
    if b"http://www.omg.org/XMI" in head or suffix == ".xmi":
        return "cas", "it is XMI" if suffix != ".xmi" else "its name ends in .xmi"
    text = _text(head)
    if known := _decide_corpus(path, text):
        return known
    looks_like_columns = _has_tags(text)
    if text.startswith(("{", "[")) and not (looks_like_columns and suffix not in JSON_SUFFIXES):
        return _decide_json(path, text.startswith("["))
    return _decide_text(text, suffix, looks_like_columns)


def has_tags(path: Path) -> bool:
    """Whether the file looks like columns with tags, or is of one corpus' own form."""
    text = _text(_head(path))
    return _has_tags(text) or _decide_corpus(path, text) is not None


def _head(path: Path) -> bytes:
    with open_bytes(path) as file:
        return file.read(CHUNK)


def _text(head: bytes) -> str:
    return head.decode(errors="replace").removeprefix("\ufeff").lstrip()


def _decide_folder(path: Path) -> tuple[str, str] | None:
    if (path / "state.json").exists() or (path / "dataset_dict.json").exists():
        return "arrow", "the folder was written by save_to_disk"
    if next(brat_files(path, ".ann"), None) is not None:
        return "brat", "the folder holds .ann files"
    for suffix, (format, what) in _LDC.items():
        if next(brat_files(path, suffix), None) is not None:
            return format, f"the folder holds {what} (*{suffix})"
    if xmi_files(path):
        return "cas", "the folder holds .xmi files"
    return None


def _decide_corpus(path: Path, text: str) -> tuple[str, str] | None:
    """The forms that single corpora have."""
    for suffix, (format, what) in _LDC.items():
        if path.name.endswith(suffix):
            return format, f"{what} (*{suffix})"
    if text.startswith(BEGIN):
        return "conll2012", f"it begins with {BEGIN!r}"
    if TEXT_LINE.match(text.partition("\n")[0]):
        return "pubtator", "it begins with a title such as '123|t|Title'"
    if text.startswith("<") and ("<cons " in text or ("<article>" in text and "<sentence>" in text)):
        return "genia", "XML with articles of GENIA in sentences"
    if text.startswith("<") and re.search(r"<EM\s|<colHAREM|<HAREM", text):
        return "harem", "XML with mentions (EM) of HAREM"
    return None


def _is_docbin(head: bytes) -> bool:
    """Whether this is packed as a DocBin is, and begins as one does."""
    with suppress(zlib.error):
        return b"\xa7version" in zlib.decompressobj().decompress(head, 64)
    return False


def _decide_text(text: str, suffix: str, looks_like_columns: bool) -> tuple[str, str] | None:
    heading = text.partition("\n")[0].strip()
    names = [name.strip(' "').lower() for name in re.split(r"[,;\t]", heading)]
    if form := csv_form(names):
        return "csv", f"its first line names the columns of a table, {form}"
    if looks_like_columns:
        return "conll", "its lines are columns, one of them of tags such as O or B-PER"
    if suffix in COLUMN_SUFFIXES:
        return "conll", f"its name ends in {suffix}"
    if suffix in JSON_SUFFIXES:
        return "jsonl", f"its name ends in {suffix}"
    if suffix in TABLE_SUFFIXES:
        return suffix[1:], f"its name ends in {suffix}"
    return None


def _has_tags(text: str) -> bool:
    """Whether half of the first lines end in a tag that is not all of the line."""
    rows = [line.split() for line in text.split("\n")[:100] if line.strip()]
    return bool(rows) and 2 * sum(len(row) > 1 and is_tag(row[-1]) for row in rows) >= len(rows)


def _decide_json(path: Path, is_list: bool) -> tuple[str, str]:
    shape = "a JSON list" if is_list else "JSON, one object a line,"
    records: list[dict[str, Any]] = []
    with suppress(ValueError):  # the reader will say what is wrong, and where
        records += (record for _, record in islice(json_records(path), _RECORDS))
    for record in records:
        if "sentences" in record and "ner" in record:
            return "dygie", f"{shape} with a document's 'sentences' and 'ner'"
        tokens = next((record[key] for key in TOKEN_KEYS if key in record), None)
        if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):  # Prodigy's are objects
            return "spert" if is_list else "jsonl", f"{shape} with a list of words"
        if ("data" in record and record.keys() & {"annotations", "predictions"}) or any(
            map(_is_region, _items(record))
        ):
            return "label-studio", f"{shape} with the tasks or regions of Label Studio"
        if any("start_offset" in item for item in _items(record)):
            return "doccano", f"{shape} with 'start_offset'"
        if any(_items(record)) and "text" in record:
            return "jsonl-chars", f"{shape} with a text and spans"
    fields = set().union(*records)
    if "text" not in fields and not fields & set(TOKEN_KEYS) and fields & {"data", "annotations"}:
        return ("label-studio" if _STUDIO_FIELDS & fields else "doccano"), f"{shape} with 'data' for the text"
    if _STUDIO_FIELDS & fields:
        return "label-studio", f"{shape} with fields of Label Studio"
    if "text" in fields:
        return "jsonl-chars", f"{shape} with a text"
    return ("spert" if is_list else "jsonl"), shape.rstrip(",")


def _items(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects in lists of a record: what may be its entities."""
    lists = [value for value in record.values() if isinstance(value, list)]
    return [item for items in lists for item in items if isinstance(item, dict)]


def _is_region(item: dict[str, Any]) -> bool:
    return "labels" in item and "start" in item
