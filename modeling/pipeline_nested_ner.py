"""`pipeline("nested-ner")`: raw text or words in, nested entities with exact character offsets out."""

import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.utils.data import IterableDataset
from transformers import PreTrainedTokenizerBase
from transformers.pipelines.base import ChunkPipeline

from .decoding import Entity
from .folders import remove_other_code, whole_or_not_at_all
from .reading import Reader
from .texts import LOOK_AHEAD, EntityDict, Passage, Text, TextReader

__all__ = ["LOOK_AHEAD", "EntityDict", "NestedNerPipeline", "Passage", "Stream", "Text"]


class Stream(IterableDataset[Any]):
    """Texts that come one by one."""

    def __init__(self, texts: Iterable[Any]):
        self.texts = texts

    def __iter__(self) -> Iterator[Any]:
        return iter(self.texts)


class NestedNerPipeline(TextReader, ChunkPipeline):  # type: ignore[misc]  # texts and windows in place of tensors
    """Finds nested entities in text of any length.

    ```python
    >>> ner = pipeline("nested-ner", model="me/span-ner-genia")
    >>> ner("The IL-2 receptor alpha gene is induced.")
    [{'entity_group': 'DNA', 'score': 0.97, 'word': 'IL-2 receptor alpha gene', 'start': 4, 'end': 28},
     {'entity_group': 'protein', 'score': 0.95, 'word': 'IL-2 receptor', 'start': 4, 'end': 17}, ...]
    ```

    Entities are sorted by start, the longest first, and `text[e["start"]:e["end"]] == e["word"]` always holds. Texts
    longer than the encoder's window are read in overlapping windows and merged: nothing is cut.

    Parameters, given to `pipeline(...)` or to a call:

    - **threshold** (`float` or `dict`): the least score, for all labels or by label. Default: the configuration.
    - **overlap** (`"flat"`, `"nested"`, `"any"`): which entities may stand together. Default: the configuration.
    - **labels** (`list`): the labels to look for; entities with others are as if the model did not know them.
    - **label_map** (`dict`): other names for labels on the way out. Two may become one: of entities that are the same
      then, the best is kept.
    - **mentions** (`str` or `list`): the kinds of mention to look for, of a model that tells them apart: `"name"`, or
      `["name", "nominal"]`. Default: `config.shown_mentions`.
    - **head** (`"span"` or `"seq"`): which head of a bundled model predicts.
    - **nesting** (`bool`): add `depth` (0 = outermost) and `parent` (index in the list, or None) to each entity.
    - **word_indices** (`bool`): add `start_word` and `end_word` (exclusive). Default: only for words as input.
    - **is_split_into_words** (`bool`): the input is a list of words (or a list of such lists). Offsets then count in
      `delimiter.join(words)`.
    - **delimiter** (`str`): what joins words then; a space by default.
    - **is_document** (`bool`): the input is a list of texts that follow each other in a document (or a list of such
      lists). A model trained with `context_sentences` reads each with as many of its neighbours.
    - **before**, **after** (`str`, or a list of words): what stands around the one text of a call, as such context.
    - **stride** (`int`): words that neighbouring windows of a long text share. Default: a quarter of the window, and
      never fewer than the longest span needs.
    - **batch_size** (`int`): windows run at once.
    - what the approach adds, `model.inference_parameters`. Default: the configuration. (`diffusion_ner`: `num_steps`,
      `num_noisy_spans`, `seed`, `eta`, `early_stop`.)
    """

    _load_tokenizer: Any = True
    _load_processor: Any = False
    _load_image_processor: Any = False
    _load_feature_extractor: Any = False
    default_input_names: Any = "inputs"
    # How `push_to_hub` adds card, recipe and results; hf_spanner sets it, a repository's own code has none.
    publish: Callable[..., Any] | None = None

    def __init__(self, model: Any, tokenizer: PreTrainedTokenizerBase | None = None, **kwargs: Any) -> None:
        if not hasattr(model, "decode"):
            raise ValueError(
                f"{type(model).__name__} is not a nested NER model: 'nested-ner' needs a checkpoint of this "
                "task, for example one trained with `hf-spanner train`."
            )
        if tokenizer is None:
            raise ValueError(
                "The 'nested-ner' pipeline needs the model's tokenizer, and its folder has none: save it there with "
                "`tokenizer.save_pretrained(folder)`, or pass `tokenizer=...`."
            )
        if getattr(model, "is_graph", False) and kwargs.get("device") is None:
            kwargs["device"] = model.device  # not a GPU because there is one
        super().__init__(model=model, tokenizer=tokenizer, **kwargs)  # type: ignore[arg-type]
        self.reader = Reader(self.model, self.tokenizer)
        self._said: set[str] = set()  # what is said once

    def ask(self, inputs: Any, **kwargs: Any) -> Any:
        if isinstance(inputs, types.GeneratorType):
            inputs = Stream(inputs)  # some releases of transformers would read a generator to its end first
        return ChunkPipeline.__call__(self, inputs, **kwargs)

    def forward(self, texts: Iterable[Text], **params: Any) -> Iterator[tuple[Text, list[Entity]]]:
        with self.device_placement():
            yield from self._forward(texts, **params)

    def run_single(
        self,
        inputs: Any,
        preprocess_params: dict[str, Any],
        forward_params: dict[str, Any],
        postprocess_params: dict[str, Any],
    ) -> list[EntityDict]:
        return next(self.get_iterator([inputs], 0, 1, preprocess_params, forward_params, postprocess_params))

    # ----------------------------------------------------------------------------------------------------- to the Hub

    def save_pretrained(self, save_directory: str | os.PathLike[str], **kwargs: Any) -> None:
        """Save model, tokenizer and their code; the folder never looks complete before it is."""
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", os.path.basename(os.path.normpath(save_directory)))
        with whole_or_not_at_all(save_directory) as folder:
            if not getattr(self.model, "is_graph", False):
                super().save_pretrained(folder, **kwargs)
            else:
                self.model.save_pretrained(folder, **kwargs)
                tokenizer: Any = self.tokenizer
                tokenizer.save_pretrained(folder)
            remove_other_code(save_directory, inspect.getfile(type(self.model)), needed=folder)

    def push_to_hub(self, repo_id: str, **kwargs: Any) -> Any:
        """Upload what `save_pretrained` saves; with hf_spanner also card, recipe and results."""
        if self.publish is None:
            return super().push_to_hub(repo_id, **kwargs)
        return self.publish(repo_id, **kwargs)
