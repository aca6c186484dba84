"""Reading: from words to the tensors a model reads (sub-words, windows, context, padding), and back to entities.

    words → `WordEncoder` → sub-words     text → `TextEncoder` → `Reading`     readings → `Reader` → entities

Everything that runs a model over texts goes this way: pipeline, data set, evaluation, analyses, benchmarks. torch is
imported where a model in torch is run: exported ones are read without it (`hf_spanner.onnx`).
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm.auto import tqdm

from .decoding import Entity, Trim, label_among, resolve_overlaps, split_mention
from .subwords import Window, WordEncoder
from .word_inputs import WORD_INPUTS

if TYPE_CHECKING:
    import torch

    from .configuration_nested_ner import NestedNerConfig
    from .imitation import Teaching

logger = logging.getLogger(__name__)

ANNOTATION = ("annotated_labels", "flat", "teacher_longest", "places")  # of a window: a value, or one for each label
PADDING = 64  # sub-words of a batch on a CPU, at most
OUT_OF_MEMORY = re.compile(r"out ?of ?memory|can't allocate memory|not enough memory", re.IGNORECASE)


class Reading(NamedTuple):
    """A text as a model reads it: its windows, and what `forward` needs of each."""

    windows: list[Window]
    items: list[dict[str, Any]]
    labels: Collection[str] | None = None  # if entities with other labels are not looked at
    mentions: Collection[str] | None = None  # nor those of other kinds
    words: Sequence[str] = ()  # for `trim`
    trim: Trim | None = None

    def join(self, found: Iterable[list[Entity]], overlap: str) -> list[Entity]:
        """The text's entities from those of its windows."""
        if self.mentions is not None:
            found = [[entity for entity in entities if entity.mention in self.mentions] for entities in found]
        if self.labels is not None:
            found = [[entity for entity in entities if _named(entity, self.labels)] for entities in found]
        return self.trimmed(merge_windows(self.windows, found, overlap), self.mentions)

    def trimmed(self, entities: list[Entity], mentions: Collection[str] | None) -> list[Entity]:
        """The entities as they are shown where these kinds of mention are looked for: names without their articles."""
        if self.trim is None or not self.trim.applies(mentions):
            return entities
        return self.trim(entities, self.words)


def _named(entity: Entity, labels: Collection[str]) -> bool:
    """Whether labels name an entity: its type, or the type's mentions of its kind (`person:name`)."""
    return label_among(labels, entity.label, entity.mention) in labels


class TextEncoder:
    """Cuts texts into windows and encodes them as a configuration says, for training and for reading alike."""

    def __init__(self, config: NestedNerConfig, tokenizer):
        self.config = config
        self.words = WordEncoder(
            tokenizer, config.max_subwords, config.word_inputs(), config.max_word_subwords, config.context_separator
        )
        self.collate = NestedNerCollator(tokenizer.pad_token_id)

    def cut(
        self,
        words: Sequence[str],
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        pos: Sequence[str] | None = None,
        entities: Sequence[tuple[int, int, int]] | None = None,
        labels: Collection[str] | None = None,
        stride: int | None = None,
        flat: bool | None = None,
        mentions: Collection[str] | None = None,
        teacher: Teaching | None = None,
    ) -> Reading:
        """A text, one window or several.

        Args:
            before, after: words around it, to be read for context.
            pos: part-of-speech tags, if they are known.
            entities: gold start, end, label id, or given spans; each goes to the windows that hold it whole.
            labels: those that the text is annotated with, if these are not all: types, or labels with their kind of
                mention (`person:name`).
            stride: words that neighbouring windows share; by default enough for the longest span.
            flat: whether it is annotated with its outermost entities alone (see `Gold`).
            mentions: the kinds of mention that are looked at, if not all.
            teacher: what teachers say of its spans; each goes to the windows that hold it whole.
        """
        overlap = self.config.reach().overlap(self.words.capacity) if stride is None else stride
        trim = None if self.config.trim is None else Trim(**self.config.trim)
        reading = Reading(self.words.windows(words, overlap), [], labels, mentions, words, trim)
        for window in reading.windows:
            item: dict[str, Any] = self.words.encode(words, window, before, after, pos)
            if entities is not None:
                item["entities"] = [
                    (start - window.start, end - window.start, label)
                    for start, end, label in entities
                    if window.start <= start and end <= window.end
                ]
            if labels is not None:
                item["annotated_labels"] = [
                    label in labels or split_mention(label, self.config.mentions)[0] in labels
                    for label in self.config.labels
                ]
            if flat is not None:
                item["flat"] = flat
            if teacher is not None:
                item["teacher"] = teacher.within(window.start, window.end)
                item["teacher_longest"] = teacher.longest
            reading.items.append(item)
        return reading

    def cut_sentences(self, sentences: Sequence[Mapping[str, Any]], gold: bool = False) -> list[Reading]:
        """Records with `tokens` and, where there are any, `doc_id` (for context), `pos`, `labels`, `flat`, `teacher`,
        `entities`.

        With `gold` their entities come along, checked. Without, those of a model that types given spans do, without
        their labels.
        """
        readings, alone = [], 0
        label2id: Any = self.config.label2id  # numbers: `__post_init__` has made them
        for index, sentence in enumerate(sentences):
            entities = None
            if gold:
                entities = gold_entities(sentence, label2id)
            elif self.config.task == "typing":
                entities = [(entity["start"], entity["end"], -1) for entity in sentence["entities"]]
            before, after = neighbours(sentences, index, self.config.context_sentences)
            alone += sentence.get("doc_id") is None
            given = {name: sentence.get(name) for name in ("pos", "labels", "flat", "teacher")}
            readings.append(self.cut(sentence["tokens"], before, after, entities=entities, **given))
        if alone and self.config.context_sentences:
            logger.warning(
                "%d of %d sentences have no doc_id: they are read without the sentences around them, which this model "
                "is trained with (context_sentences=%d).",
                alone,
                len(readings),
                self.config.context_sentences,
            )
        return readings


def neighbours(sentences: Sequence[Mapping[str, Any]], index: int, number: int) -> tuple[list[str], list[str]]:
    """The words of up to `number` sentences before and after one, of the same document."""
    doc = sentences[index].get("doc_id") if number else None
    if doc is None:
        return [], []

    def words(indices: Iterable[int]) -> list[str]:
        near = [sentences[i] for i in indices if 0 <= i < len(sentences)]
        return [word for sentence in near if sentence.get("doc_id") == doc for word in sentence["tokens"]]

    return words(range(index - number, index)), words(range(index + 1, index + number + 1))


def gold_entities(sentence: Mapping[str, Any], label2id: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """(start, end, label id) of a sentence's entities, checked."""
    for name in ("tokens", "entities"):
        if name not in sentence:
            raise ValueError(
                f"Sentence {sentence.get('id')!r} has no {name!r}, only {sorted(sentence)}: training and scoring need "
                "words and gold entities. `predict_sentences` and the pipeline read without gold."
            )
    words, rows = sentence["tokens"], []
    for entity in sentence["entities"]:
        start, end, label = entity["start"], entity["end"], entity["label"]
        label = label_among(label2id, label, entity.get("mention"))
        where = f"Entity {label!r} [{start}, {end}) of sentence {sentence.get('id')!r}"
        if not 0 <= start < end <= len(words):
            raise ValueError(
                f"{where} does not lie in its {len(words)} words: spans are [start, end) with end exclusive."
            )
        if label not in label2id:
            raise ValueError(f"{where} has an unknown label: the model knows {sorted(label2id)}.")
        rows.append((start, end, label2id[label]))
    return rows


class Place(NamedTuple):
    """Which window of which text."""

    text: int
    window: int


class Reader(TextEncoder):
    """Runs a model over texts: windows → batches of similar length → model → entities, on the model's device.

    ```python
    >>> reader = Reader(model, tokenizer)
    >>> list(reader.read([reader.cut("the mayor of New York".split())]))
    [[Entity(start=0, end=5, label='PER', score=0.98), Entity(start=3, end=5, label='LOC', score=0.97)]]
    ```
    """

    def __init__(self, model, tokenizer):
        super().__init__(model.config, tokenizer)
        self.model = model
        self.fits: int | None = None  # the most windows at once, once more were too many for the memory

    def run(
        self, readings: Sequence[Reading], batch_size: int = 32, progress: bool = False, **forward
    ) -> Iterator[tuple[list[Place], Any]]:
        """Yield what `forward` says of all windows, batch by batch, the longest first, and which windows these are.

        A batch ends before windows that would mostly be padding (`together`).
        The model is in evaluation mode meanwhile. Of a batch that does not fit into memory half is tried, and so on,
        which is said once. Gold entities stay out of the batch; given spans go in without labels. With `progress` a
        bar is shown on a terminal.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")

        def size(place: Place) -> int:
            return len(readings[place.text].items[place.window]["input_ids"])

        places = [Place(i, j) for i, reading in enumerate(readings) for j in range(len(reading.items))]
        places.sort(key=size, reverse=True)
        was_training = self.model.training
        self.model.eval()
        first, too_many = 0, 0
        try:
            with tqdm(total=len(places), desc="reading", leave=False, disable=None if progress else True) as bar:
                while first < len(places):
                    most = min(batch_size, self.fits or batch_size)
                    number = together([size(place) for place in places[first : first + most]], self._on_cpu)
                    chosen = places[first : first + number]
                    output = self._run_batch([readings[place.text].items[place.window] for place in chosen], **forward)
                    if output is None:
                        too_many, self.fits = too_many or len(chosen), len(chosen) // 2
                        continue
                    if too_many:
                        logger.warning(
                            "%d windows at once do not fit into memory: %d are read at once.", too_many, self.fits
                        )
                    first, too_many = first + len(chosen), 0
                    bar.update(len(chosen))
                    yield chosen, output
        finally:
            if was_training:
                self.model.train()

    @property
    def _on_cpu(self) -> bool:
        return str(getattr(self.model, "device", "cpu")) == "cpu"  # a graph has no device

    def _run_batch(self, items: Sequence[Mapping[str, Any]], **forward) -> Any:
        """What `forward` says of these windows; None if several are too many for the memory."""
        import torch

        batch = self.collate(items)
        for name in (*ANNOTATION, "teacher"):
            batch.pop(name, None)
        spans = batch.pop("entities", None)
        if self.config.task == "typing" and spans is not None:
            batch["entities"] = torch.cat([spans[..., :2], torch.full_like(spans[..., :1], -1)], dim=-1)
        try:
            inputs = {key: x.to(self.model.device) for key, x in batch.items()}
            with torch.inference_mode():
                return self.model(**inputs, return_dict=True, **forward)
        except IndexError as error:
            if "out of range in self" not in str(error):
                raise
            raise ValueError(
                "The tokenizer has sub-words that the model does not know: the two do not belong together."
            ) from error
        except RuntimeError as error:
            if len(items) == 1 or not OUT_OF_MEMORY.search(f"{type(error).__name__}: {error}"):
                raise
        if torch.cuda.is_available():  # with the error its tensors are gone
            torch.cuda.empty_cache()
        return None

    def read(
        self,
        readings: Iterable[Reading],
        batch_size: int = 32,
        look_ahead: int | None = None,
        threshold: float | Mapping[str, float] | None = None,
        overlap: str | None = None,
        head: str | None = None,
        progress: bool = False,
        **inference,
    ) -> Iterator[list[Entity]]:
        """Yield each text's entities, in order.

        Args:
            look_ahead: windows that are gathered before the first batch is run, to be sorted by length; None: all.
            threshold, overlap, head: as in the model's `decode`.
            **inference: the approach's own parameters (`model.inference_parameters`).
        """
        for block in _blocks(readings, look_ahead):
            found: list[list[list[Entity]]] = [[[] for _ in reading.items] for reading in block]
            for places, output in self.run(block, batch_size, progress, **inference):
                # Overlaps are resolved once, when the windows of a text are together again.
                decoded = self.model.decode(output, threshold=threshold, overlap="any", head=head)
                for place, entities in zip(places, decoded, strict=True):
                    found[place.text][place.window] = entities
            for reading, windows in zip(block, found, strict=True):
                yield reading.join(windows, overlap or self.config.overlap)


def together(sizes: Sequence[int], on_cpu: bool) -> int:
    """How many of these windows, the longest first, are worth reading in one batch.

    Padding costs what words cost. On a CPU another batch costs little: as soon as there would be more than `PADDING`
    sub-words of it, the batch ends. On a GPU it costs more, and only windows less than half as long as the first are
    left to the next batch.

    >>> together([90, 60, 50, 40], on_cpu=True), together([90, 60, 50, 40], on_cpu=False)
    (2, 3)
    """
    padding = 0
    for number, size in enumerate(sizes):
        padding += sizes[0] - size
        if padding > PADDING if on_cpu else 2 * size < sizes[0]:
            return number
    return len(sizes)


def _blocks(readings: Iterable[Reading], windows: int | None) -> Iterator[list[Reading]]:
    """The readings in lists of (at least) so many windows together; None: in one list."""
    block, waiting = [], 0
    for reading in readings:
        block.append(reading)
        waiting += len(reading.items)
        if windows is not None and waiting >= windows:
            yield block
            block, waiting = [], 0
    yield block


class NestedNerCollator:
    """Encoded windows → the one batch that every approach reads (see `forward`).

    Of the items of a `NestedNerDataset` it keeps `places (B, 2)`, sentence and window number, by which predictions are
    put back together. Items may be dicts of lists, arrays or tensors, as `datasets` gives them `with_format(...)`.

    Args:
        pad_token_id: the tokenizer's.
        pad_to_multiple_of: make the batch's sub-words, words and entities a multiple of this many. Results stay, and
            there are fewer shapes for `torch.compile` to make a graph for, and better ones for a GPU (8 or 16).
        array: what makes of lists what the model reads; by default tensors of torch.
    """

    def __init__(
        self,
        pad_token_id: int | None,
        pad_to_multiple_of: int | None = None,
        array: Callable[[Any], Any] | None = None,
    ):
        if pad_to_multiple_of is not None and pad_to_multiple_of < 1:
            raise ValueError(
                f"pad_to_multiple_of={pad_to_multiple_of} must be at least 1, or None for no more padding."
            )
        self.pad_token_id, self.pad_to_multiple_of, self.array = pad_token_id, pad_to_multiple_of, array

    def __call__(self, items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        if any(hasattr(value, "tolist") for value in items[0].values()):
            items = [{k: v.tolist() if hasattr(v, "tolist") else v for k, v in item.items()} for item in items]
        return pad_batch(items, self.pad_token_id, self.pad_to_multiple_of, self.array)


def pad_batch(
    features: Sequence[Mapping[str, Any]],
    pad_token_id: int | None,
    multiple: int | None = None,
    array: Callable[[Any], Any] | None = None,
) -> dict[str, Any]:
    """Encoded windows (and their gold `entities`, if any) as one batch, padded on the right."""
    if array is None:
        import torch

        array = torch.tensor

    def most(counts: Iterable[int]) -> int:
        return math.ceil(max(1, *counts) / (multiple or 1)) * (multiple or 1)

    width = most(len(feature["input_ids"]) for feature in features)
    num_words = [feature["num_words"] for feature in features]
    length = most(num_words)

    def padded(key: str, value: int) -> list[list[int]]:
        return [feature[key] + [value] * (width - len(feature[key])) for feature in features]

    batch: dict[str, Any] = {
        "input_ids": padded("input_ids", pad_token_id or 0),
        "attention_mask": padded("attention_mask", 0),
        "word_ids": padded("word_ids", -1),
        "num_words": num_words,
        "word_mask": [[True] * number + [False] * (length - number) for number in num_words],
        **pad_word_inputs(features, length),
    }
    if "entities" in features[0]:
        number = most(len(feature["entities"]) for feature in features)
        rows = [[*map(list, f["entities"]), *[[-1, -1, -1]] * (number - len(f["entities"]))] for f in features]
        batch["entities"] = rows
    if "teacher" in features[0]:
        number = most(len(feature["teacher"]) for feature in features)
        blank = [-1.0] * len(features[0]["teacher"][0])
        batch["teacher"] = [[*f["teacher"], *[blank] * (number - len(f["teacher"]))] for f in features]
    for name in ANNOTATION:
        if name in features[0]:
            batch[name] = [feature[name] for feature in features]
    return {name: array(values) for name, values in batch.items()}


def pad_word_inputs(features: Sequence[Mapping[str, Any]], length: int) -> dict[str, list]:
    """The inputs by word of several sentences, padded with 0 to `length` words."""
    batch = {}
    for name in WORD_INPUTS:
        if name not in features[0]:
            continue
        rows = [feature[name] for feature in features]
        if name == "char_ids":
            width = max((len(ids) for row in rows for ids in row), default=1)
            rows = [[ids + [0] * (width - len(ids)) for ids in row] for row in rows]
            blank: list[int] | int = [0] * width
        else:
            blank = 0
        batch[name] = [[*row, *[blank] * (length - len(row))] for row in rows]
    return batch


def merge_windows(windows: Sequence[Window], found: Iterable[list[Entity]], overlap: str) -> list[Entity]:
    """One text's entities from those of its windows (in the windows' own word numbers), overlaps resolved.

    Where windows share words, an entity is taken from the window that sees most around it: the one in which its
    distance to the nearest cut is largest. So a mention is neither doubled nor spoilt by a cut.
    """
    merged = []
    for index, entities in enumerate(found):
        for entity in entities:
            start, end = entity.start + windows[index].start, entity.end + windows[index].start
            if sees_most(windows, index, start, end):
                merged.append(entity._replace(start=start, end=end))
    return resolve_overlaps(merged, overlap)


def sees_most(windows: Sequence[Window], index: int, start: int, end: int) -> bool:
    """Whether of all windows it is this one from which a span is taken: the first of those that see most around it."""
    last = len(windows) - 1

    def view(index: int) -> float:
        window = windows[index]
        if start < window.start or end > window.end:
            return -1
        before = float("inf") if index == 0 else start - window.start
        after = float("inf") if index == last else window.end - end
        return min(before, after)

    near = range(max(0, index - 1), min(last, index + 1) + 1)
    return max(near, key=lambda i: (view(i), -i)) == index
