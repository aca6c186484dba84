"""Entities as a column of a Spark data frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .predictor import Predictor

FIELDS = "entity_group: string, score: double, word: string, start: int, end: int, mention: string"

_loaded: dict[str, Predictor] = {}  # of this process, by model and options


def entities_udf(model: str = "default", **options: Any) -> Any:
    """A `pandas_udf` from a column of texts to one of entities; null for null.

    ```python
    >>> find = entities_udf("me/span-ner-genia", threshold=0.5)
    >>> frame.withColumn("entities", find("text"))
    ```

    Every Python worker of Spark loads the model once. `options` are those of `Predictor`.
    `spark.sql.execution.arrow.maxRecordsPerBatch` says how many texts are read together: with 8192 there is little
    padding.
    """
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    fields = FIELDS
    if options.get("is_split_into_words") or options.get("word_indices"):
        fields += ", start_word: int, end_word: int"
    if options.get("nesting"):
        fields += ", depth: int, parent: int"

    def entities(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        predictor = _predictor(model, options)
        for texts in batches:
            found = predictor.read(list(texts))
            yield pd.Series([None if f is None else [{"mention": None, **entity} for entity in f] for f in found])

    entities.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}  # what Spark goes by
    make: Any = pandas_udf  # whose overloads know no iterators
    return make(entities, f"array<struct<{fields}>>")


def _predictor(model: str, options: dict[str, Any]) -> Predictor:
    key = f"{model} {sorted(options.items())}"
    if key not in _loaded:
        _loaded[key] = Predictor(model, **options)
    return _loaded[key]
