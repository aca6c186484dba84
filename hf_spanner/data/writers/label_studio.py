"""Label Studio's tasks: a list of JSON objects, with annotations, or with predictions for people to correct."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..chars import CharSpan
from ..schema import Sentence
from .files import complete_or_not_at_all, in_characters

# The names of the tags in Label Studio's own template for named entities: <Labels name="label" toName="text">.
CONTROL, OBJECT = "label", "text"


def write_label_studio(sentences: Iterable[Sentence], path: str | Path) -> int:
    """A JSON list of annotated tasks, one a sentence, words joined by one space. Returns their number."""
    tasks = [_annotated(sentence) for sentence in sentences]
    with complete_or_not_at_all(Path(path)) as file:
        file.writelines(json_list(tasks))
    return len(tasks)


def prediction_task(
    text: str, spans: Sequence[CharSpan], scores: Sequence[float], model_version: str
) -> dict[str, Any]:
    """A task with what a model found in it: what Label Studio shows to annotators before they begin.

    The score of the prediction, by which Label Studio can sort tasks, is the least certain entity's.
    """
    results = [{**result, "score": score} for result, score in zip(_results(text, spans), scores, strict=True)]
    prediction = {"model_version": model_version, "result": results}
    return {"data": {"text": text}, "predictions": [{**prediction, "score": min(scores)} if scores else prediction]}


def json_list(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The pieces of a JSON list with a record a line, one after the other; the first is the bracket."""
    yield "["
    comma = "\n"
    for record in records:
        yield comma + json.dumps(record, ensure_ascii=False)
        comma = ",\n"
    yield "\n]\n"


def _annotated(sentence: Sentence) -> dict[str, Any]:
    line = in_characters(sentence)
    data = {"text": line.text, "id": sentence["id"]}
    if sentence["doc_id"] is not None:
        data["doc_id"] = sentence["doc_id"]
    return {"data": data, "annotations": [{"result": list(_results(line.text, line.spans))}]}


def _results(text: str, spans: Iterable[CharSpan]) -> Iterator[dict[str, Any]]:
    """Each span as a region. Label Studio counts as a browser does: a character beyond the basic plane is two."""
    for number, (start, end, label, _, mention) in enumerate(spans):
        value = {"start": _units(text[:start]), "end": _units(text[:end]), "text": text[start:end], "labels": [label]}
        result = {"id": f"e{number}", "from_name": CONTROL, "to_name": OBJECT, "type": "labels", "value": value}
        yield result if mention is None else {**result, "meta": {"mention": mention}}


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
