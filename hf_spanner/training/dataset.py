"""Annotated sentences as what the Trainer reads: one data set and one collator for all approaches."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch.utils.data import Dataset, IterableDataset
from transformers import PreTrainedTokenizerBase

from ..modeling.configuration_nested_ner import NestedNerConfig
from ..modeling.decoding import Entity
from ..modeling.reading import NestedNerCollator, TextEncoder

__all__ = ["NestedNerCollator", "NestedNerDataset", "NestedNerStream"]


class NestedNerDataset(Dataset[dict[str, Any]]):
    """Annotated sentences as a model reads them: one item a window, and one window a sentence unless it is too long.

    Args:
        sentences: records with `tokens`, `entities` (start, end, label) and, for context, `doc_id`; a
            `datasets.Dataset` will do. If they have `labels`, a sentence is trained and scored against these alone; if
            they have `pos`, part-of-speech tags, a model that reads these does not ask a tagger.
        tokenizer: the model's.
        config: the model's; its labels, window, reach and context decide the encoding.
    """

    def __init__(
        self, sentences: Iterable[Mapping[str, Any]], tokenizer: PreTrainedTokenizerBase, config: NestedNerConfig
    ) -> None:
        if isinstance(sentences, Mapping):
            raise ValueError(
                f"This data has the splits {', '.join(map(repr, sentences))}: name the one you mean, data['train']."
            )
        self.sentences = list(as_python(sentences))
        self.config = config
        self.encoder = TextEncoder(config, tokenizer)
        self.readings = self.encoder.cut_sentences(self.sentences, gold=True)
        self.items: list[dict[str, Any]] = []
        for index, reading in enumerate(self.readings):
            for number, item in enumerate(reading.items):
                item["places"] = (index, number)
                self.items.append(item)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.items[index]

    def suits(self, config: NestedNerConfig) -> bool:
        """Whether a model of this configuration reads the sentences as they are encoded here."""
        return _encoding(config) == _encoding(self.config)

    def gold(self) -> list[list[Entity]]:
        """The gold entities of every sentence."""
        return [[Entity(e["start"], e["end"], e["label"]) for e in s["entities"]] for s in self.sentences]

    def merge(self, found: Iterable[tuple[tuple[int, int], list[Entity]]], overlap: str) -> list[list[Entity]]:
        """Entities of every sentence from those of its windows, given as (place, entities) in any order."""
        windows: dict[tuple[int, int], list[Entity]] = defaultdict(list)
        windows.update(found)
        return [
            reading.join([windows[index, number] for number in range(len(reading.windows))], overlap)
            for index, reading in enumerate(self.readings)
        ]


class NestedNerStream(IterableDataset[dict[str, Any]]):
    """Sentences of a stream, encoded as they come: for training by `max_steps` on what has no end or no room.

    Args:
        sentences: an `IterableDataset` of torch or `datasets`, with records as in [`NestedNerDataset`].
    """

    def __init__(self, sentences: Any, tokenizer: PreTrainedTokenizerBase, config: NestedNerConfig) -> None:
        if config.context_sentences:
            raise ValueError(
                f"context_sentences={config.context_sentences} cannot be read from a stream, which comes sentence by "
                "sentence: train without context, or on data that is not streamed."
            )
        self.stream = as_python(sentences)
        self.encoder = TextEncoder(config, tokenizer)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for sentence in self.stream:
            if is_encoded(sentence):
                yield sentence
            else:
                yield from self.encoder.cut_sentences([sentence], gold=True)[0].items

    def set_epoch(self, epoch: int) -> None:
        """Shuffle in another order, if the stream does."""
        if hasattr(self.stream, "set_epoch"):
            self.stream.set_epoch(epoch)


def as_python(data: Any) -> Any:
    """A `datasets.Dataset` without its format: sentences are words and numbers, not arrays or tensors."""
    return data.with_format(None) if hasattr(data, "with_format") else data


def is_encoded(item: Any) -> bool:
    """Whether this is a window as a model reads it, and not a sentence."""
    return isinstance(item, Mapping) and "input_ids" in item


def are_encoded(data: Any) -> bool:
    """Whether a data set has windows, and not sentences."""
    return hasattr(data, "__getitem__") and is_encoded(next(iter(data), None))


def _encoding(config: NestedNerConfig) -> tuple[Any, ...]:
    """What the encoding of sentences hangs on."""
    inputs = config.word_inputs()
    made = None if inputs is None else vars(inputs)
    windows = config.max_subwords, config.max_word_subwords, config.reach()
    return config.labels, windows, config.context_sentences, config.context_separator, made
