"""A pipeline that reads columns: what bulk prediction, Ray Data, Spark and `Dataset.map` call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..loading import find_device, pipeline
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.pipeline_nested_ner import LOOK_AHEAD, EntityDict


class Predictor:
    """Adds the entities of a column of texts to a batch of columns.

    ```python
    >>> predictor = hf_spanner.Predictor("me/span-ner-genia")
    >>> predictor({"id": [7], "text": ["The IL-2 gene"]})
    {'id': [7], 'text': ['The IL-2 gene'], 'entities': [[{'entity_group': 'DNA', 'word': 'IL-2 gene', ...}]]}
    ```

    The class is what `ds.map_batches(hf_spanner.Predictor, ...)` of Ray Data takes, an object what
    `Dataset.map(predictor, batched=True)` of datasets takes. The larger a batch, the less padding: texts of similar
    length are read together. A text that is None has None for its entities.

    Args:
        model: a folder, a Hub id, `"default"`, or a model in memory (then with `tokenizer=`).
        text_column: the column with the texts; lists of words with `is_split_into_words=True`.
        entities_column: the column that is added.
        batch_size: windows of text that are run at once.
        device: as `find_device` knows it; `"auto"` is a GPU if there is one.
        **options: of the pipeline, such as `threshold`, `overlap`, `labels`, `mentions`, `dtype`.
    """

    def __init__(
        self,
        model: str | NestedNerPreTrainedModel | None = None,
        text_column: str = "text",
        entities_column: str = "entities",
        batch_size: int = 32,
        device: str = "auto",
        **options: Any,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")
        self.text_column, self.entities_column = text_column, entities_column
        self.at_once = LOOK_AHEAD * batch_size
        options = {name: value for name, value in options.items() if value is not None}
        self.ner = pipeline(model, device=find_device(device), batch_size=batch_size, **options)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """The batch with one more column."""
        if self.text_column not in batch:
            raise ValueError(
                f"There is no column {self.text_column!r} among {', '.join(map(repr, batch))}: name the one with the "
                "texts, text_column=."
            )
        if self.entities_column in batch:
            raise ValueError(
                f"There is a column {self.entities_column!r} already: name another one, entities_column=."
            )
        return {**batch, self.entities_column: self.read(list(batch[self.text_column]))}

    def read(
        self, texts: Sequence[Any], tick: Callable[[int], None] | None = None, **options: Any
    ) -> list[list[EntityDict] | None]:
        """The entities of each text, in the order of the texts; the longest are read first.

        `tick` is told of some texts whenever they have been read; `options` of the pipeline are for this call alone.
        """
        texts = [list(text) if hasattr(text, "tolist") else text for text in texts]  # words that are an array
        order = [index for index, text in enumerate(texts) if text is not None]
        order.sort(key=lambda index: len(texts[index]) if isinstance(texts[index], (str, list)) else 0, reverse=True)
        found: list[list[EntityDict] | None] = [None] * len(texts)
        for first in range(0, len(order), self.at_once):
            chosen = order[first : first + self.at_once]
            for index, entities in zip(chosen, self.ner([texts[index] for index in chosen], **options), strict=True):
                found[index] = entities
            if tick is not None:
                tick(len(chosen))
        return found
