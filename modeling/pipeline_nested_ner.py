"""`pipeline("nested-ner")`: raw text or words in, nested entities with exact character offsets out."""

import logging
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, NamedTuple

from torch.utils.data import IterableDataset
from transformers.pipelines.base import ChunkPipeline

from .decoding import Entity, check_overlap, nesting, thresholds_of
from .encoding import Window, WordEncoder, merge_windows, pad_batch
from .saving import whole_or_not_at_all
from .words import split_words

logger = logging.getLogger(__name__)

LOOK_AHEAD = 16  # batches of a list or data set that are read before the first is run


class Text(NamedTuple):
    """One input: its characters, the character span of each of its words, and the windows it is read in."""

    text: str
    offsets: list[tuple[int, int]]
    windows: list[Window]
    is_split: bool


class Stream(IterableDataset):
    """Texts that come one by one."""

    def __init__(self, texts: Iterable):
        self.texts = texts

    def __iter__(self) -> Iterator:
        return iter(self.texts)


class NestedNerPipeline(ChunkPipeline):
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
    - **head** (`"span"` or `"seq"`): which head of a bundled model predicts.
    - **nesting** (`bool`): add `depth` (0 = outermost) and `parent` (index in the list, or None) to each entity.
    - **word_indices** (`bool`): add `start_word` and `end_word` (exclusive). Default: only for words as input.
    - **is_split_into_words** (`bool`): the input is a list of words (or a list of such lists). Offsets then count in
      `delimiter.join(words)`.
    - **delimiter** (`str`): what joins words then; a space by default.
    - **stride** (`int`): words that neighbouring windows of a long text share. Default: a quarter of the window, and
      never fewer than the longest span needs.
    - **batch_size** (`int`): windows run at once.
    - what the approach adds, `model.inference_parameters`. Default: the configuration. (`diffusion_ner`: `num_steps`,
      `num_noisy_spans`, `seed`, `eta`, `early_stop`.)
    """

    _load_tokenizer = True
    _load_processor = False
    _load_image_processor = False
    _load_feature_extractor = False
    default_input_names = "inputs"
    # How `push_to_hub` adds card, recipe and results; hf_spanner sets it, a repository's own code has none.
    publish: Callable | None = None

    def __init__(self, model, tokenizer=None, **kwargs):
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
        super().__init__(model=model, tokenizer=tokenizer, **kwargs)
        config = self.model.config
        self._encoder = WordEncoder(self.tokenizer, config.max_subwords, config.word_inputs())

    def _sanitize_parameters(
        self,
        threshold: float | Mapping[str, float] | None = None,
        overlap: str | None = None,
        head: str | None = None,
        nesting: bool | None = None,
        word_indices: bool | None = None,
        is_split_into_words: bool | None = None,
        delimiter: str | None = None,
        stride: int | None = None,
        **inference,
    ):
        if unknown := [name for name in inference if name not in self.model.inference_parameters]:
            raise TypeError(f"The 'nested-ner' pipeline knows no parameter {unknown[0]!r}.")
        self.model.inference_settings(**inference)  # checks them
        config = self.model.config
        if overlap is not None:
            check_overlap(overlap)
        if threshold is not None:
            thresholds_of(threshold, config.labels)
        if head is not None:
            self.model.choose_head(head)
        if stride is not None and stride < 0:
            raise ValueError(f"stride={stride} must not be negative.")
        preprocess = {"is_split_into_words": is_split_into_words, "delimiter": delimiter, "stride": stride}
        forward = {"threshold": threshold, "head": head, **inference}
        postprocess = {"overlap": overlap, "with_nesting": nesting, "word_indices": word_indices}

        def given(params: dict) -> dict:
            return {key: value for key, value in params.items() if value is not None}

        return given(preprocess), given(forward), given(postprocess)

    def __call__(self, inputs: Any, **kwargs) -> Any:
        """One text → a list of entities; a list, generator or dataset of texts → one such list each, in order.

        With `is_split_into_words=True` a list of words is one text, and a list of lists of words several.
        """
        if isinstance(inputs, (list, tuple)) and not inputs:
            return []
        is_split = kwargs.get("is_split_into_words", self._preprocess_params.get("is_split_into_words", False))
        if is_split and isinstance(inputs, (list, tuple)) and all(isinstance(word, str) for word in inputs):
            return super().__call__([list(inputs)], **kwargs)[0]
        if isinstance(inputs, types.GeneratorType):
            inputs = Stream(inputs)  # some releases of transformers would read a generator to its end first
        return super().__call__(inputs, **kwargs)

    # ------------------------------------------------------------------------------------------------- text → windows

    def preprocess(self, inputs, is_split_into_words: bool = False, delimiter: str = " ", stride: int | None = None):
        if is_split_into_words:
            text, words, offsets = _join_words(inputs, delimiter)
        else:
            if not isinstance(inputs, str):
                raise TypeError(
                    f"The 'nested-ner' pipeline reads strings, not {type(inputs).__name__}; "
                    "for a list of words say `is_split_into_words=True`."
                )
            text, offsets = inputs, split_words(inputs, self.model.config.word_splitter)
            words = [text[start:end] for start, end in offsets]
        windows = self._encoder.windows(words, self._overlap_of_windows(stride))
        text = Text(text, offsets, windows, is_split_into_words)
        for window in windows:
            yield {"text": text, **self._encoder.encode(words, window)}

    def _overlap_of_windows(self, stride: int | None) -> int:
        needed = self.model.config.max_span_length - 1 if self.model.needs_span_cap else 0
        if stride is None:
            return max(needed, self._encoder.capacity // 4)
        if stride < needed:
            logger.warning(
                "stride=%d is less than the %d words that windows must share so that no entity is lost at a cut.",
                stride,
                needed,
            )
        return stride

    # ---------------------------------------------------------------------------------------------- windows → entities

    def _forward(self, windows: list[dict], threshold=None, head=None, **inference) -> list[list[Entity]]:
        batch = pad_batch(windows, self.tokenizer.pad_token_id)
        output = self.model(**{key: value.to(self.device) for key, value in batch.items()}, **inference)
        # Overlaps are resolved once, when the windows of a text are together again.
        return self.model.decode(output, threshold=threshold, overlap="any", head=head)

    def forward(self, model_inputs: list[dict], **params) -> list[list[Entity]]:
        with self.device_placement(), self.get_inference_context()():
            return self._forward(model_inputs, **params)

    def run_single(self, inputs, preprocess_params, forward_params, postprocess_params):
        return next(self.get_iterator([inputs], 0, 1, preprocess_params, forward_params, postprocess_params))

    def get_iterator(
        self, inputs, num_workers: int, batch_size: int, preprocess_params, forward_params, postprocess_params
    ):
        """Read texts, run their windows in batches of similar length, and yield each text's entities in order.

        Of a list or a data set some batches are read ahead and sorted by length, which saves most of the padding; a
        generator is never read further ahead than one batch.
        """
        self.model.eval()  # a model fresh from training would still drop out
        ahead = LOOK_AHEAD * batch_size if isinstance(inputs, Sized) and batch_size > 1 else batch_size
        texts: list[list[dict]] = []  # the windows of each text that waits
        waiting = 0
        for text in inputs:
            texts.append(list(self.preprocess(text, **preprocess_params)))
            waiting += len(texts[-1])
            if waiting >= ahead:
                yield from self._run(texts, batch_size, forward_params, postprocess_params)
                texts, waiting = [], 0
        yield from self._run(texts, batch_size, forward_params, postprocess_params)

    def _run(self, texts: list[list[dict]], batch_size: int, forward_params, postprocess_params):
        windows = [window for text in texts for window in text]
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]["input_ids"]), reverse=True)
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            for i, entities in zip(chosen, self.forward([windows[i] for i in chosen], **forward_params), strict=True):
                windows[i]["found"] = entities
        for text in texts:
            yield self.postprocess(text, **postprocess_params)

    def postprocess(
        self, model_outputs, overlap: str | None = None, with_nesting: bool = False, word_indices: bool | None = None
    ):
        text, offsets, windows, is_split = model_outputs[0]["text"]
        found = [output["found"] for output in model_outputs]
        entities = merge_windows(windows, found, overlap or self.model.config.overlap)
        word_indices = is_split if word_indices is None else word_indices
        places = nesting(entities) if with_nesting else None
        result = []
        for index, entity in enumerate(entities):
            start, end = offsets[entity.start][0], offsets[entity.end - 1][1]
            row = {
                "entity_group": entity.label,
                "score": entity.score,
                "word": text[start:end],
                "start": start,
                "end": end,
            }
            if word_indices:
                row |= {"start_word": entity.start, "end_word": entity.end}
            if places:
                row["depth"], row["parent"] = places[index]
            result.append(row)
        return result

    # ----------------------------------------------------------------------------------------------------- to the Hub

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs) -> None:
        """Save model, tokenizer and their code; the folder never looks complete before it is."""
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", os.path.basename(os.path.normpath(save_directory)))
        with whole_or_not_at_all(save_directory) as folder:
            super().save_pretrained(folder, **kwargs)

    def push_to_hub(self, repo_id: str, **kwargs):
        """Upload what `save_pretrained` saves; with hf_spanner also card, recipe and results."""
        if self.publish is None:
            return super().push_to_hub(repo_id, **kwargs)
        return self.publish(repo_id, **kwargs)


def _join_words(words: Any, delimiter: str) -> tuple[str, list[str], list[tuple[int, int]]]:
    """The text that words stand for, and the character span of each word in it."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"With `is_split_into_words=True` the input is a list of words, not {words!r:.80}.")
    offsets, position = [], 0
    for word in words:
        offsets.append((position, position + len(word)))
        position += len(word) + len(delimiter)
    return delimiter.join(words), list(words), offsets
