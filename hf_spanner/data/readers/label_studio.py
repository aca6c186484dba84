"""Label Studio's JSON and JSON-MIN exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..chars import CharSpan, Splitter, document_to_sentences
from ..schema import ReadReport, Sentence
from .files import as_object, document, identifier, json_records

_NOT_TEXT = {"created_at", "updated_at", "annotator", "id", "doc_id", "sentiment"}


def read_label_studio(
    path: str | Path,
    report: ReadReport,
    *,
    text_key: str | None = None,
    splitter: Splitter = "compound",
    on_misaligned: str = "expand",
    split_sentences: str = "none",
    check_text: bool = True,
) -> Iterator[Sentence]:
    """A list of tasks, in the full form (`data`, `annotations[].result[]`) or the JSON-MIN form (`label: [...]`).

    Of several annotations of one task the first that was not cancelled counts; the others are counted as not kept, and
    so are tasks without any. Several labels on one region are several entities.

    Label Studio runs in a browser, where a character beyond the basic plane (an emoji) counts as two. When the text
    that the export repeats for a region shows that, the offsets are converted.

    Args:
        text_key: the field of the task's data that holds the text; found by itself if there is only one candidate.
        check_text: a region whose repeated text differs from the document is an error.
    """
    path = Path(path)
    for number, (where, task) in enumerate(json_records(path)):
        if "data" in task:
            data, results = as_object(task["data"], where), _first_annotation(task, report, where)
            if results is None:
                continue
        else:
            data, results = task, _minimal_results(task)
        text = data[_find_text_key(data, text_key, where)]
        spans = [span for result in results for span in _char_spans(result, text, report, check_text, where)]
        id = identifier(task, path, number)
        yield from document_to_sentences(
            text,
            spans,
            report,
            id=id,
            doc_id=document(data) or (id if split_sentences == "newline" else None),
            splitter=splitter,
            on_misaligned=on_misaligned,
            split_sentences=split_sentences,
            where=where,
        )


def _first_annotation(task: dict[str, Any], report: ReadReport, where: str) -> list[dict[str, Any]] | None:
    """The results of the annotation that counts; None if the task was never annotated."""
    annotations = task.get("annotations") or task.get("completions") or []
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    report.ignore("cancelled annotation", where, len(annotations) - len(valid))
    if not valid:
        report.lose("task without an annotation", where)
        return None
    report.lose("further annotation of the same task", where, len(valid) - 1)
    return valid[0].get("result") or []


def _minimal_results(task: dict[str, Any]) -> list[dict[str, Any]]:
    """JSON-MIN names the list after the labelling control, so any list of regions will do."""
    regions = [
        region
        for value in task.values()
        if isinstance(value, list)
        for region in value
        if isinstance(region, dict) and "labels" in region
    ]
    return [{"type": "labels", "value": region} for region in regions]


def _find_text_key(data: dict[str, Any], text_key: str | None, where: str) -> str:
    candidates = [key for key, value in data.items() if isinstance(value, str) and key not in _NOT_TEXT]
    if text_key is None and "text" in candidates:
        return "text"
    if text_key is None and len(candidates) == 1:
        return candidates[0]
    if text_key in candidates:
        return text_key
    raise ValueError(
        f"{where}: cannot tell which field holds the text (text_key={text_key!r}, fields with a string: "
        f"{', '.join(map(repr, candidates)) or 'none'}); pass text_key=."
    )


def _char_spans(
    result: dict[str, Any], text: str, report: ReadReport, check_text: bool, where: str
) -> Iterator[CharSpan]:
    kind, value = result.get("type"), result.get("value") or {}
    if kind != "labels":
        # hypertextlabels and paragraphlabels are mentions too, but not in plain text
        is_mention = isinstance(kind, str) and kind.endswith("labels")
        (report.lose if is_mention else report.ignore)(f"result of type {kind!r}", where)
        return
    labels = value.get("labels") or []
    if not labels:
        report.lose("region without a label", f"{where}: {value!r}")
        return
    start, end, expected = value.get("start"), value.get("end"), value.get("text")
    if expected is not None and check_text and type(start) is int and type(end) is int:
        start, end = _agree(text, start, end, expected, where)
    for label in labels:
        yield start, end, label


def _agree(text: str, start: int, end: int, expected: str, where: str) -> tuple[int, int]:
    """The offsets, in code points, at which the document says what the region says."""
    wanted = _squeeze(expected)
    if _squeeze(text[start:end]) == wanted:
        return start, end
    units = text.encode("utf-16-le", "surrogatepass")
    before, mention = units[: 2 * start].decode("utf-16-le", "replace"), units[2 * start : 2 * end]
    if _squeeze(mention.decode("utf-16-le", "replace")) == wanted:
        return len(before), len(before) + len(mention.decode("utf-16-le", "replace"))
    raise ValueError(
        f"{where}: characters [{start}, {end}) of the document are {text[start:end]!r}, but the region says "
        f"{expected!r}; correct the offsets or read with check_text=False."
    )


def _squeeze(text: str) -> str:
    """Without white space, since Label Studio writes a line break inside a region as a backslash and an n."""
    return "".join(text.replace("\\n", "").split())
