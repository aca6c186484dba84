"""Around a model: raw text or words → what it reads, and what it finds → entities in characters.

For everything that reads texts as the pipeline does: the pipeline of transformers itself, and the reader of exported
models that needs neither transformers nor torch (`hf_spanner.onnx`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, overload

from .decoding import Entity, check_overlap, nesting
from .reading import Reader, Reading
from .words import split_words

if TYPE_CHECKING:
    from torch.utils.data import Dataset

logger = logging.getLogger(__name__)

LOOK_AHEAD = 16  # batches of a list or data set that are read before the first is run


class _EntityDict(TypedDict):
    entity_group: str
    score: float
    word: str
    start: int
    end: int


class EntityDict(_EntityDict, total=False):
    """An entity as the pipeline gives it, in characters; more with `word_indices` and `nesting`.

    `mention` is its kind (name, nominal, pronoun), if the model tells kinds apart.
    """

    mention: str
    start_word: int
    end_word: int
    depth: int
    parent: int | None


class Passage(NamedTuple):
    """A text (or its words) and the texts around it, nearest last before it and first after it."""

    text: Any
    before: Sequence[Any] = ()
    after: Sequence[Any] = ()


class Text(NamedTuple):
    """One input: its characters, the character span of each of its words, and how it is read."""

    text: str
    offsets: list[tuple[int, int]]
    reading: Reading
    is_split: bool


class TextReader:
    """Texts in, entities out, by the parameters of the pipeline (see `NestedNerPipeline`).

    What a class of it has: `model`, `reader`, `ask`, and parameters for all calls, as pipelines of transformers keep
    them.
    """

    model: Any
    reader: Reader
    _said: set[str]  # what is said once
    _preprocess_params: dict[str, Any]

    def _sanitize_parameters(
        self,
        threshold: float | Mapping[str, float] | None = None,
        overlap: str | None = None,
        head: str | None = None,
        labels: Collection[str] | None = None,
        label_map: Mapping[str, str] | None = None,
        mentions: str | Collection[str] | None = None,
        nesting: bool | None = None,
        word_indices: bool | None = None,
        is_split_into_words: bool | None = None,
        delimiter: str | None = None,
        stride: int | None = None,
        **inference: Any,
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        model: Any = self.model
        if unknown := [name for name in inference if name not in model.inference_parameters]:
            raise TypeError(f"The 'nested-ner' pipeline knows no parameter {unknown[0]!r}.")
        model.inference_settings(**inference)  # checks them
        config = model.config
        if overlap is not None:
            check_overlap(overlap)
        if threshold is not None:
            config.thresholds(threshold)
        if head is not None:
            model.choose_head(head)
        if isinstance(labels, str):
            raise ValueError(f"labels={labels!r} is one string, expected several; write [{labels!r}].")
        for name, chosen in (("labels", labels), ("label_map", label_map)):
            if unknown := [label for label in chosen or () if label not in config.types]:
                raise ValueError(f"{name} names {unknown[0]!r}; this model knows {', '.join(config.types)}.")
        mentions = [mentions] if isinstance(mentions, str) else mentions
        config.check_mentions(mentions)
        if stride is not None:
            if stride < 0:
                raise ValueError(f"stride={stride} must not be negative.")
            if stride < (needed := config.reach().needed_overlap):
                logger.warning(
                    "stride=%d is less than the %d words that windows must share so that no entity is lost at a cut.",
                    stride,
                    needed,
                )
        preprocess = {
            "is_split_into_words": is_split_into_words,
            "delimiter": delimiter,
            "stride": stride,
            "labels": labels,
            "mentions": mentions,
        }
        forward = {"threshold": threshold, "overlap": overlap, "head": head, **inference}
        postprocess = {"with_nesting": nesting, "word_indices": word_indices, "label_map": label_map}

        def given(params: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in params.items() if value is not None}

        return given(preprocess), given(forward), given(postprocess)

    @overload
    def __call__(self, inputs: str, **kwargs: Any) -> list[EntityDict]: ...

    @overload
    def __call__(
        self, inputs: list[str], *, is_split_into_words: Literal[True], **kwargs: Any
    ) -> list[EntityDict]: ...

    @overload
    def __call__(
        self, inputs: list[str] | list[list[str]], *, is_split_into_words: bool = ..., **kwargs: Any
    ) -> list[list[EntityDict]]: ...

    @overload
    def __call__(self, inputs: Iterator[Any] | Dataset[Any], **kwargs: Any) -> Iterator[list[EntityDict]]: ...

    def __call__(
        self, inputs: Any, *, is_document: bool = False, before: Any = None, after: Any = None, **kwargs: Any
    ) -> Any:
        """One text → a list of entities; a list, generator or dataset of texts → one such list each, in order.

        With `is_split_into_words=True` a list of words is one text, and a list of lists of words several. With
        `is_document=True` a list of texts is one document, and a list of lists of texts several.
        """
        if isinstance(inputs, (list, tuple)) and not inputs:
            return []
        is_split = kwargs.get("is_split_into_words", self._preprocess_params.get("is_split_into_words", False))
        if is_document:
            if before is not None or after is not None:
                raise ValueError("before= and after= are for one text: the texts of a document have each other.")
            return self._read_documents(inputs, is_split, kwargs)
        if before is not None or after is not None:
            if not _is_one_text(inputs, is_split):
                raise ValueError(
                    "before= and after= are for one text; texts that follow each other are a document: pass "
                    "is_document=True."
                )
            around = [[] if side is None else [side] for side in (before, after)]
            return self.ask([Passage(inputs, *around)], **kwargs)[0]
        if is_split and isinstance(inputs, (list, tuple)) and _is_one_text(inputs, is_split):
            return self.ask([list(inputs)], **kwargs)[0]
        return self.ask(inputs, **kwargs)

    def ask(self, inputs: Any, **kwargs: Any) -> Any:
        """One input or several, as they are: the entities of each."""
        raise NotImplementedError

    def _read_documents(self, inputs: Any, is_split: bool, kwargs: dict[str, Any]) -> Any:
        """A document's texts, each with its neighbours as context → one list of entities each; several likewise."""
        if not isinstance(inputs, (list, tuple)):
            if isinstance(inputs, str):
                raise TypeError("With `is_document=True` the input is a list of texts, not one string.")
            return (self._read_documents(list(document), is_split, kwargs) for document in inputs)
        if any(_is_one_text(text, is_split) and text for text in inputs):
            return self._read_documents([inputs], is_split, kwargs)[0]
        number = self.model.config.context_sentences
        passages = [
            Passage(text, document[max(i - number, 0) : i], document[i + 1 : i + 1 + number])
            for document in inputs
            for i, text in enumerate(document)
        ]
        found = iter(self.ask(passages, **kwargs) if passages else [])
        return [list(islice(found, len(document))) for document in inputs]

    # ------------------------------------------------------------------------------------------------- text → windows

    def preprocess(
        self,
        inputs: Any,
        is_split_into_words: bool = False,
        delimiter: str = " ",
        stride: int | None = None,
        labels: Collection[str] | None = None,
        mentions: Collection[str] | None = None,
    ) -> Text:
        before: list[str] = []
        after: list[str] = []
        trained_with = self.model.config.context_sentences
        if isinstance(inputs, Passage):
            inputs, *around = inputs
            before, after = (
                [w for text in side for w in self._words(text, is_split_into_words)[1]] for side in around
            )
            if (before or after) and not trained_with:
                self._say_once("This model was trained without context (context_sentences=0), and is read with it.")
        elif trained_with:
            self._say_once(
                f"This model was trained with context (context_sentences={trained_with}), and reads without it: pass "
                "the texts of a document as a list with is_document=True, or what stands around one, before= and "
                "after=."
            )
        text, words, offsets = self._words(inputs, is_split_into_words, delimiter)
        shown = self.model.config.shown_mentions if mentions is None else mentions
        reading = self.reader.cut(words, before, after, labels=labels, stride=stride, mentions=shown)
        return Text(text, offsets, reading, is_split_into_words)

    def _words(
        self, inputs: Any, is_split: bool, delimiter: str = " "
    ) -> tuple[str, list[str], list[tuple[int, int]]]:
        """A text, its words and their character spans, from the text or from the words."""
        if is_split:
            return _join_words(inputs, delimiter)
        if not isinstance(inputs, str):
            raise TypeError(
                f"The 'nested-ner' pipeline reads strings, not {type(inputs).__name__}; "
                "for a list of words say `is_split_into_words=True`."
            )
        offsets = split_words(inputs, self.model.config.word_splitter)
        return inputs, [inputs[start:end] for start, end in offsets], offsets

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            logger.warning(text)

    # ---------------------------------------------------------------------------------------------- windows → entities

    def _forward(
        self, texts: Iterable[Text], batch_size: int = 1, look_ahead: int | None = None, **decoding: Any
    ) -> Iterator[tuple[Text, list[Entity]]]:
        """Each text's entities, in order; what `Reader.read` takes are the arguments."""
        waiting: deque[Text] = deque()  # read, and not answered

        def readings() -> Iterator[Reading]:
            for text in texts:
                waiting.append(text)
                yield text.reading

        for entities in self.reader.read(readings(), batch_size, look_ahead, **decoding):
            yield waiting.popleft(), entities

    def forward(self, texts: Iterable[Text], **params: Any) -> Iterator[tuple[Text, list[Entity]]]:
        """Each text's entities, in order."""
        return self._forward(texts, **params)

    def get_iterator(
        self,
        inputs: Iterable[Any],
        num_workers: int,
        batch_size: int,
        preprocess_params: dict[str, Any],
        forward_params: dict[str, Any],
        postprocess_params: dict[str, Any],
    ) -> Iterator[list[EntityDict]]:
        """Read texts, run their windows in batches of similar length, and yield each text's entities in order.

        Of a list or a data set some batches are read ahead and sorted by length, which saves most of the padding; a
        generator is never read further ahead than one batch.
        """
        ahead = LOOK_AHEAD * batch_size if isinstance(inputs, Sized) and batch_size > 1 else batch_size
        texts = (self.preprocess(text, **preprocess_params) for text in inputs)
        found = self.forward(texts, batch_size=batch_size, look_ahead=ahead, **forward_params)
        for text, entities in found:
            yield self.postprocess(text, entities, **postprocess_params)

    def postprocess(
        self,
        text: Text,
        entities: list[Entity],
        with_nesting: bool = False,
        word_indices: bool | None = None,
        label_map: Mapping[str, str] | None = None,
    ) -> list[EntityDict]:
        if label_map is not None:
            entities = _renamed(entities, label_map)
        word_indices = text.is_split if word_indices is None else word_indices
        places = nesting(entities) if with_nesting else None
        result: list[EntityDict] = []
        for index, entity in enumerate(entities):
            start, end = text.offsets[entity.start][0], text.offsets[entity.end - 1][1]
            row: EntityDict = {
                "entity_group": entity.label,
                "score": entity.score,
                "word": text.text[start:end],
                "start": start,
                "end": end,
            }
            if entity.mention is not None:
                row["mention"] = entity.mention
            if word_indices:
                row["start_word"], row["end_word"] = entity.start, entity.end
            if places:
                row["depth"], row["parent"] = places[index]
            result.append(row)
        return result


def _renamed(entities: list[Entity], label_map: Mapping[str, str]) -> list[Entity]:
    """Entities under other labels, in the same order; of those that are the same then, the best."""
    renamed: dict[tuple[int, int, str], Entity] = {}
    for entity in entities:
        label = label_map.get(entity.label, entity.label)
        known = renamed.get((entity.start, entity.end, label))
        if known is None or known.score < entity.score:
            renamed[entity.start, entity.end, label] = entity._replace(label=label)
    return list(renamed.values())


def _join_words(words: Any, delimiter: str) -> tuple[str, list[str], list[tuple[int, int]]]:
    """The text that words stand for, and the character span of each word in it."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"With `is_split_into_words=True` the input is a list of words, not {words!r:.80}.")
    offsets, position = [], 0
    for word in words:
        offsets.append((position, position + len(word)))
        position += len(word) + len(delimiter)
    return delimiter.join(words), list(words), offsets


def _is_one_text(inputs: Any, is_split: bool) -> bool:
    """Whether the input is one text, and not several."""
    if is_split:
        return isinstance(inputs, (list, tuple)) and all(isinstance(word, str) for word in inputs)
    return isinstance(inputs, str)
