"""Predictions in a file: written, and read back beside the gold sentences that they are about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.readers.files import json_lines
from ..data.schema import check_sentence
from ..metrics.nested_ner.scoring import EntityLike
from ..modeling.decoding import Entity


def write_predictions(
    path: str | Path, sentences: Iterable[Mapping[str, Any]], predictions: Iterable[Iterable[Entity]]
) -> None:
    """The sentences with predicted entities (and scores) in place of the gold ones, one a line."""
    with Path(path).open("w", encoding="utf-8") as file:
        for sentence, entities in zip(sentences, predictions, strict=True):
            row = {key: sentence.get(key) for key in ("id", "doc_id", "tokens")}
            found = (entity._asdict() for entity in entities)
            row["entities"] = [{name: value for name, value in e.items() if value is not None} for e in found]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_predictions(path: str | Path, sentences: Sequence[Mapping[str, Any]]) -> list[list[EntityLike]]:
    """The entities that a JSON Lines file predicts for each of the gold sentences, in their order.

    A line is `{"id", "tokens", "entities": [{"start", "end", "label", "score"}]}`, as `hf-spanner evaluate
    --predictions FILE` writes it; `score` may be missing. Lines belong to sentences by their `id`, or by their order
    where the ids do not tell the gold sentences apart. A sentence that one side lacks, and words that differ, are
    errors.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no prediction file {str(path)!r}.")
    rows = [(where, record) for where, record in json_lines(path)]
    for where, record in rows:
        check_sentence(record, where)
    keys: list[Any] = [sentence.get("id") for sentence in sentences]
    if None in keys or len(set(keys)) < len(keys):
        if len(rows) != len(sentences):
            raise ValueError(
                f"{path} has {len(rows):,} sentences, the data {len(sentences):,}: predictions need one line for each."
            )
        order = rows
    else:
        order = _by_id(path, rows, keys)
    for (where, record), sentence in zip(order, sentences, strict=True):
        if record["tokens"] != list(sentence["tokens"]):
            raise ValueError(
                f"{where}: the words are not those of sentence {sentence.get('id')!r} of the data "
                f"({' '.join(record['tokens'])[:60]!r} and {' '.join(sentence['tokens'])[:60]!r}): "
                "predict on the same data and split, and of text with the same word splitter (--resplit)."
            )
    return [[dict(entity) for entity in record["entities"]] for _, record in order]


def _by_id(path: Path, rows: list[tuple[str, dict[str, Any]]], keys: list[str]) -> list[tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, record in rows:
        key = str(record.get("id"))
        if key in found:
            raise ValueError(f"{where}: sentence {key!r} is predicted twice in this file.")
        found[key] = where, record
    if unknown := [key for key in found if key not in set(keys)]:
        raise ValueError(
            f"{path} has {len(unknown):,} sentences that the data does not have, such as {unknown[0]!r}: "
            "is it of the same data and split?"
        )
    if missing := [key for key in keys if key not in found]:
        raise ValueError(
            f"{path} lacks {len(missing):,} of the {len(keys):,} sentences of the data, such as {missing[0]!r}: "
            'write a line with "entities": [] where nothing is found.'
        )
    return [found[key] for key in keys]
