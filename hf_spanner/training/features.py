"""Sentences → windows of sub-words with gold entities → batches. One data set and one collator for all approaches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.utils.data import Dataset

from ..modeling.configuration_nested_ner import NestedNerConfig
from ..modeling.decoding import Entity
from ..modeling.encoding import Window, WordEncoder, merge_windows, pad_batch


class NestedNerDataset(Dataset):
    """Annotated sentences as a model reads them: one item a window, and one window a sentence unless it is too long.

    Args:
        sentences: records with `tokens`, `entities` (start, end, label) and, for context, `doc_id`; a
            `datasets.Dataset` will do. If they have `labels`, a sentence is trained and scored against these alone; if
            they have `pos`, part-of-speech tags, a model that reads these does not ask a tagger.
        tokenizer: the model's.
        config: the model's; its labels, window, span cap and context decide the encoding.
    """

    def __init__(self, sentences: Iterable[Mapping], tokenizer, config: NestedNerConfig):
        self.sentences = list(sentences)
        self.config = config
        self.encoder = encoder = WordEncoder(tokenizer, config.max_subwords, config.word_inputs())
        overlap = max((config.max_span_length or 1) - 1, encoder.capacity // 4)
        self.windows: list[list[Window]] = []
        self.items: list[dict] = []
        for index, sentence in enumerate(self.sentences):
            words = sentence["tokens"]
            gold = gold_entities(sentence, config.label2id)
            labels = sentence.get("labels")
            before, after = self._context(index)
            windows = encoder.windows(words, overlap)
            self.windows.append(windows)
            for number, window in enumerate(windows):
                item = encoder.encode(words, window, before, after, sentence.get("pos"))
                item["entities"] = [
                    (start - window.start, end - window.start, label)
                    for start, end, label in gold
                    if window.start <= start and end <= window.end
                ]
                if labels is not None:
                    item["annotated_labels"] = [label in labels for label in config.labels]
                item["place"] = (index, number)
                self.items.append(item)

    def _context(self, index: int) -> tuple[list[str], list[str]]:
        """The words of the neighbouring sentences of the same document, as many as the configuration asks for."""
        n, here = self.config.context_sentences, self.sentences[index]
        doc = here.get("doc_id")
        if n == 0 or doc is None:
            return [], []

        def words(indices: Iterable[int]) -> list[str]:
            same = [i for i in indices if 0 <= i < len(self.sentences) and self.sentences[i].get("doc_id") == doc]
            return [word for i in same for word in self.sentences[i]["tokens"]]

        return words(range(index - n, index)), words(range(index + 1, index + n + 1))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> dict:
        return self.items[index]

    def gold(self) -> list[list[Entity]]:
        """The gold entities of every sentence."""
        return [[Entity(e["start"], e["end"], e["label"]) for e in s["entities"]] for s in self.sentences]

    def merge(self, found: Iterable[tuple[tuple[int, int], list[Entity]]], overlap: str) -> list[list[Entity]]:
        """Entities of every sentence from those of its windows, given as (place, entities) in any order."""
        by_sentence: dict[int, dict[int, list[Entity]]] = defaultdict(dict)
        for (index, number), entities in found:
            labels = self.sentences[index].get("labels")
            if labels is not None:
                entities = [entity for entity in entities if entity.label in labels]
            by_sentence[index][number] = entities
        return [
            merge_windows(windows, [by_sentence[index].get(n, []) for n in range(len(windows))], overlap)
            for index, windows in enumerate(self.windows)
        ]


def gold_entities(sentence: Mapping, label2id: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """(start, end, label id) of a sentence's entities, checked."""
    words, rows = sentence["tokens"], []
    for entity in sentence["entities"]:
        start, end, label = entity["start"], entity["end"], entity["label"]
        where = f"Entity {label!r} [{start}, {end}) of sentence {sentence.get('id')!r}"
        if not 0 <= start < end <= len(words):
            raise ValueError(
                f"{where} does not lie in its {len(words)} words: spans are [start, end) with end exclusive."
            )
        if label not in label2id:
            raise ValueError(f"{where} has an unknown label: the model knows {sorted(label2id)}.")
        rows.append((start, end, label2id[label]))
    return rows


class NestedNerCollator:
    """Items of [`NestedNerDataset`] → the one batch that every approach reads (see `forward`).

    It adds `places (B, 2)`, sentence and window number, by which the Trainer puts predictions back together.
    """

    def __init__(self, pad_token_id: int | None):
        self.pad_token_id = pad_token_id

    def __call__(self, items: Sequence[dict]) -> dict[str, torch.Tensor]:
        batch = pad_batch(items, self.pad_token_id)
        if "place" in items[0]:
            batch["places"] = torch.tensor([item["place"] for item in items])
        return batch
