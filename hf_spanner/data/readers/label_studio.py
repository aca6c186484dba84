"""Label Studio's JSON and JSON-MIN exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
    predictions: bool = False,
) -> Iterator[Sentence]:
    """A list of tasks, in the full form (`data`, `annotations[].result[]`) or the JSON-MIN form (`label: [...]`).

    Of several annotations of one task the first that was not cancelled counts; the mentions of the others are counted
    as not kept, and so are tasks without any. Several labels on one region are several entities.

    Label Studio runs in a browser, where a character beyond the basic plane (an emoji) counts as two. When the texts
    that the export repeats for its regions allow that, the offsets of the task are converted.

    Args:
        text_key: the field of the task's data that holds the text; found by itself if there is only one candidate.
        check_text: a region whose repeated text differs from the document is an error.
        predictions: read what models predicted in place of what people annotated.
    """
    path = Path(path)
    for number, (where, task) in enumerate(json_records(path)):
        if "data" in task:
            data, results = as_object(task["data"], where), _first_annotation(task, predictions, report, where)
            if results is None:
                continue
        else:
            data, results = task, _minimal_results(task, report, where)
        content = data[_find_text_key(data, text_key, where)]
        spans = [span for result in results for span in _char_spans(result, content, report, where)]
        spans = _in_characters(content, spans, check_text)
        yield from document_to_sentences(
            content,
            [CharSpan(span.start, span.end, span.label, mention=span.mention) for span in spans],
            report,
            text,
            id=identifier(task, path, number, where),
            doc_id=document(data, where),
            where=where,
        )


class _Region(NamedTuple):
    """A region with one label, as the file has it: `text` is what it repeats of the document, if it does."""

    start: Any
    end: Any
    label: Any
    mention: str | None
    text: Any
    where: str


def _first_annotation(
    task: dict[str, Any], predictions: bool, report: ReadReport, where: str
) -> list[dict[str, Any]] | None:
    """The results of the annotation that counts; None if the task was never annotated."""
    key = "predictions" if predictions else "annotations" if task.get("annotations") else "completions"
    annotations = _objects(task.get(key), key, where)
    for annotation in annotations:
        if not isinstance(said := annotation.get("was_cancelled"), bool | int | None):  # "false" is no false
            raise ValueError(f"{where}: 'was_cancelled' is {short(said)}, expected true or false.")
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    report.ignore("cancelled annotation", where, len(annotations) - len(valid))
    if not valid:
        report.lose(f"task without {'a prediction' if predictions else 'an annotation'}", where)
        return None
    without = sum("result" not in annotation for annotation in valid)
    report.lose("annotation without a 'result'", f"{where}: {short(valid)}", without)
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
        if isinstance(values, dict) and ("labels" in values or "start" in values):
            report.lose(f"region of {short(key)} outside a list", f"{where}: {short(values)}")
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


def _char_spans(result: dict[str, Any], text: str, report: ReadReport, where: str) -> Iterator[_Region]:
    kind = result.get("type")
    if kind != "labels":
        # hypertextlabels and paragraphlabels are mentions too, but not in plain text
        value = result.get("value")
        other = isinstance(kind, str) and kind in _NO_MENTIONS
        said = value if isinstance(value, dict) else result  # some tools forget the `value` around a region
        is_mention = not other and (not isinstance(kind, str) or "start" in said or "labels" in said)
        (report.lose if is_mention else report.ignore)(
            f"result of type {short(kind)}", where, _count_mentions(result) if is_mention else 1
        )
        return
    value = as_object(result.get("value") or {}, f"{where}, 'value' of a result")
    labels = _labels(value, report, where)
    if not labels:
        report.lose("region without a label", f"{where}: {short(value)}")
        return
    meta = result.get("meta")
    mention = meta.get("mention") if isinstance(meta, dict) else None
    mention = mention if isinstance(mention, str) and mention else None
    for label in labels:
        yield _Region(value.get("start"), value.get("end"), label, mention, value.get("text"), where)


def _labels(value: dict[str, Any], report: ReadReport, where: str) -> list[Any]:
    labels = value.get("labels") or []
    if isinstance(labels, str):  # its letters are no labels
        report.change("label written as a string, taken for a list of one", f"{where}: {short(labels)}")
        return [labels]
    if not isinstance(labels, list):
        raise ValueError(f"{where}: 'labels' is {short(labels)}, expected a list of labels such as ['PER'].")
    return labels


def _in_characters(text: str, regions: list[_Region], check_text: bool) -> list[_Region]:
    """The regions with offsets in code points. Label Studio's own are in UTF-16; other programs' may be in either, so
    the unit in which all of a task agree with the document is the one it counts in."""
    can_be_checked = [r for r in regions if check_text and isinstance(r.text, str) and _is_span(r)]
    if not can_be_checked:
        return regions
    if text.isascii() or all(character <= "\uffff" for character in text):
        units = [_same]
    else:
        units = [_from_utf16, _same]  # ... in the first of these that all agree in, else each in the one it agrees in
        for unit in units:
            if all(_agrees(text, unit(text, region)) for region in can_be_checked):
                units = [unit]
                break
    return [_agreed(text, region, units) if region in can_be_checked else region for region in regions]


def _is_span(region: _Region) -> bool:
    return type(region.start) is int and type(region.end) is int and 0 <= region.start < region.end


def _same(text: str, region: _Region) -> _Region:
    return region


def _from_utf16(text: str, region: _Region) -> _Region:
    units = text.encode("utf-16-le", "surrogatepass")
    before, mention = units[: 2 * region.start], units[2 * region.start : 2 * region.end]
    start = len(before.decode("utf-16-le", "replace"))
    return region._replace(start=start, end=start + len(mention.decode("utf-16-le", "replace")))


def _agrees(text: str, region: _Region) -> bool:
    return _squeeze(text[region.start : region.end]) == _squeeze(region.text)


def _agreed(text: str, region: _Region, units: Sequence[Callable[[str, _Region], _Region]]) -> _Region:
    """The region in the first unit in which the document says what the region says."""
    for unit in units:
        if _agrees(text, found := unit(text, region)):
            return found
    raise ValueError(
        f"{region.where}: characters [{region.start}, {region.end}) of the document are "
        f"{short(text[region.start : region.end])}, but the region says {short(region.text)}; correct the offsets or "
        "read with check_text=False."
    )


def _squeeze(text: str) -> str:
    """Without white space, since Label Studio writes a line break inside a region as a backslash and an n."""
    return "".join(text.replace("\\n", "").split())
