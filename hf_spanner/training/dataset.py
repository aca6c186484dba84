"""Annotated sentences as what the Trainer reads: one data set and one collator for all approaches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from ..modeling.configuration_nested_ner import NestedNerConfig
from ..modeling.decoding import Entity
from ..modeling.reading import NestedNerCollator, TextEncoder

__all__ = ["NestedNerCollator", "NestedNerDataset"]


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
        self.sentences = list(sentences)
        self.config = config
        self.encoder = TextEncoder(config, tokenizer)
        self.readings = self.encoder.cut_sentences(self.sentences, gold=True)
        self.items: list[dict[str, Any]] = []
        for index, reading in enumerate(self.readings):
            for number, item in enumerate(reading.items):
                item["place"] = (index, number)
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


def _encoding(config: NestedNerConfig) -> tuple[Any, ...]:
    """What the encoding of sentences hangs on."""
    inputs = config.word_inputs()
    made = None if inputs is None else vars(inputs)
    return config.labels, config.max_subwords, config.context_sentences, config.reach(), made
