"""Label Studio's JSON and JSON-MIN exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ..chars import WHOLE_TEXTS, CharSpan, TextOptions, document_to_sentences
from ..records import document
from ..schema import ReadReport, Sentence, short
from .files import as_object, identifier, json_records

# Results that say something about a text or about a region which another result marks.
_NO_MENTIONS = {"choices", "textarea", "rating", "number", "taxonomy", "datetime", "pairwise", "relation"}
_NOT_TEXT = {"created_at", "updated_at", "annotator", "id", "doc_id", "sentiment"}


def read_label_studio(
    path: str | Path,
    report: ReadReport,
    text: TextOptions = WHOLE_TEXTS,
    *,
    text_key: str | None = None,
    check_text: bool = True,
) -> Iterator[Sentence]:
    """A list of tasks, in the full form (`data`, `annotations[].result[]`) or the JSON-MIN form (`label: [...]`).

    Of several annotations of one task the first that was not cancelled counts; the mentions of the others are counted
    as not kept, and so are tasks without any. Several labels on one region are several entities.

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
            data, results = task, _minimal_results(task, report, where)
        content = data[_find_text_key(data, text_key, where)]
        spans = [span for result in results for span in _char_spans(result, content, report, check_text, where)]
        yield from document_to_sentences(
            content,
            spans,
            report,
            text,
            id=identifier(task, path, number, where),
            doc_id=document(data, where),
            where=where,
        )


def _first_annotation(task: dict[str, Any], report: ReadReport, where: str) -> list[dict[str, Any]] | None:
    """The results of the annotation that counts; None if the task was never annotated."""
    key = "annotations" if task.get("annotations") else "completions"
    annotations = _objects(task.get(key), key, where)
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    report.ignore("cancelled annotation", where, len(annotations) - len(valid))
    if not valid:
        report.lose("task without an annotation", where)
        return None
    results = [_objects(annotation.get("result"), "result", where) for annotation in valid]
    further = sum(_count_mentions(result) for others in results[1:] for result in others)
    report.lose("mention of a further annotation of the same task", where, further)
    return results[0]


def _count_mentions(result: dict[str, Any]) -> int:
    value = result.get("value")
    labels = value.get("labels") if isinstance(value, dict) else None
    return len(labels) if isinstance(labels, list) else 1


def _objects(values: Any, key: str, where: str) -> list[dict[str, Any]]:
    """The objects of a list that may be missing; anything else is an error."""
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError(f"{where}: {key!r} is {short(values)}, expected a list of objects.")
    return values


def _minimal_results(task: dict[str, Any], report: ReadReport, where: str) -> list[dict[str, Any]]:
    """JSON-MIN names the list after the labelling control, so any list of regions will do."""
    regions = []
    for key, values in task.items():
        for value in values if isinstance(values, list) else ():
            if isinstance(value, dict) and "labels" in value:
                regions.append({"type": "labels", "value": value})
            elif isinstance(value, list) or (isinstance(value, dict) and "start" in value):
                report.lose(f"item of {short(key)} without 'labels'", f"{where}: {short(value)}")
            else:
                report.ignore(f"item of {short(key)}", f"{where}: {short(value)}")
    return regions


def _find_text_key(data: dict[str, Any], text_key: str | None, where: str) -> str:
    candidates = [key for key, value in data.items() if isinstance(value, str) and key not in _NOT_TEXT]
    if text_key is None and "text" in candidates:
        return "text"
    if text_key is None and len(candidates) == 1:
        return candidates[0]
    if text_key is not None and text_key in candidates:
        return text_key
    raise ValueError(
        f"{where}: cannot tell which field holds the text (text_key={text_key!r}, fields with a string: "
        f"{', '.join(map(repr, candidates)) or 'none'}); pass text_key=."
    )


def _char_spans(
    result: dict[str, Any], text: str, report: ReadReport, check_text: bool, where: str
) -> Iterator[CharSpan]:
    kind = result.get("type")
    if kind != "labels":
        # hypertextlabels and paragraphlabels are mentions too, but not in plain text
        value = result.get("value")
        other = isinstance(kind, str) and kind in _NO_MENTIONS
        is_mention = not other and isinstance(value, dict) and ("start" in value or "labels" in value)
        (report.lose if is_mention else report.ignore)(
            f"result of type {short(kind)}", where, _count_mentions(result) if is_mention else 1
        )
        return
    value = as_object(result.get("value") or {}, f"{where}, 'value' of a result")
    labels = _labels(value, report, where)
    if not labels:
        report.lose("region without a label", f"{where}: {short(value)}")
        return
    start, end, expected = value.get("start"), value.get("end"), value.get("text")
    if isinstance(expected, str) and check_text and type(start) is int and type(end) is int and 0 <= start < end:
        start, end = _agree(text, start, end, expected, where)
    for label in labels:
        yield CharSpan(cast("int", start), cast("int", end), label)  # what is no span is refused where all spans are


def _labels(value: dict[str, Any], report: ReadReport, where: str) -> list[Any]:
    labels = value.get("labels") or []
    if isinstance(labels, str):  # its letters are no labels
        report.change("label written as a string, taken for a list of one", f"{where}: {short(labels)}")
        return [labels]
    if not isinstance(labels, list):
        raise ValueError(f"{where}: 'labels' is {short(labels)}, expected a list of labels such as ['PER'].")
    return labels


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
        f"{where}: characters [{start}, {end}) of the document are {short(text[start:end])}, but the region says "
        f"{short(expected)}; correct the offsets or read with check_text=False."
    )


def _squeeze(text: str) -> str:
    """Without white space, since Label Studio writes a line break inside a region as a backslash and an n."""
    return "".join(text.replace("\\n", "").split())
