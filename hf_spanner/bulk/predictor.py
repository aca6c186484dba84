"""A pipeline that reads columns: what bulk prediction, Ray Data, Spark and `Dataset.map` call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ..loading import pipeline, placing
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.pipeline_nested_ner import LOOK_AHEAD, EntityDict
from .tables import Layout, entity_type

if TYPE_CHECKING:
    import pyarrow as pa


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

    A `pyarrow.Table` becomes one with one more column, of the same type whatever is found: what many workers write
    goes together then. (A batch without any entity would be one of lists of nothing.)

    Args:
        model: a folder, a Hub id, `"default"`, or a model in memory (then with `tokenizer=`).
        text_column: the column with the texts; lists of words with `is_split_into_words=True`.
        entities_column: the column that is added.
        batch_size: windows of text that are run at once.
        device: as `placing` knows it; `"auto"` is a GPU if there is one.
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
        self.ner = pipeline(model, **placing(device), batch_size=batch_size, **options)

    @overload
    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Any]: ...

    @overload
    def __call__(self, batch: pa.Table) -> pa.Table: ...

    def __call__(self, batch: Any) -> Any:
        """The batch with one more column."""
        is_table = not isinstance(batch, Mapping)
        names = batch.column_names if is_table else batch
        if self.text_column not in names:
            raise ValueError(
                f"There is no column {self.text_column!r} among {', '.join(map(repr, names))}: name the one with the "
                "texts, text_column=."
            )
        if self.entities_column in names:
            raise ValueError(
                f"There is a column {self.entities_column!r} already: name another one, entities_column=."
            )
        if is_table:
            import pyarrow as pa

            found = self.read(batch[self.text_column].to_pylist())
            return batch.append_column(self.entities_column, pa.array(found, entity_type(self.layout)))
        return {**batch, self.entities_column: self.read(list(batch[self.text_column]))}

    @property
    def layout(self) -> Layout:
        """Which fields the entities have."""
        shown = self.ner._postprocess_params
        words = shown.get("word_indices", self.ner._preprocess_params.get("is_split_into_words", False))
        mentions = bool(self.ner.model.config.mentions)
        return Layout(self.entities_column, mentions, words, shown.get("with_nesting", False))

    def read(
        self, texts: Sequence[Any], tick: Callable[[int], None] | None = None, **options: Any
    ) -> list[list[EntityDict] | None]:
        """The entities of each text, in the order of the texts; the longest are read first.

        `tick` is told of some texts whenever they have been read; `options` of the pipeline are for this call alone.
        """
        texts = [_plain(text) for text in texts]
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


def _plain(text: Any) -> Any:
    """A text as the pipeline takes it: words may be an array, and pandas has NaN for None."""
    if isinstance(text, float) and text != text:
        return None
    return list(text) if hasattr(text, "tolist") else text
