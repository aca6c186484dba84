"""Teachers: what trained models say of texts, kept on disk, and sentences that bring it along for a student.

    sentences, texts → teachers (once) → blocks on disk → sentences with a `teacher` → any trainer or loop

Everything after that is the ordinary training: the collator pads what teachers say, `forward(teacher=...)` compares.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import constants
from safetensors import SafetensorError
from safetensors.torch import load, save
from tqdm.auto import tqdm

from ..data.plain import read_texts
from ..loading import load_model
from ..modeling.decoding import Entity, label_among, resolve_overlaps, split_mention
from ..modeling.folders import full_disk_said, write_whole
from ..modeling.imitation import UNSURE, Teaching
from ..modeling.reading import Reader, Reading, sees_most
from ..modeling.spans import span_mask
from .dataset import as_python

logger = logging.getLogger(__name__)

FLOOR = 0.001  # cells with less probability of having any label are not kept
SURE = 0.7  # where entities stand in for probabilities: the least of what is learnt
BLOCK_TEXTS, BLOCK_NUMBERS = 512, 2**23  # the most texts, and probabilities in memory, at once
FORM = 1  # of what is on disk


@dataclass
class Lessons:
    """Sentences to train a student on, and what they are."""

    sentences: list[dict[str, Any]]
    record: dict[str, Any]  # for record and card
    lines: list[str]  # for people


def taught(
    sentences: Iterable[Mapping[str, Any]],
    teachers: Sequence[Any],
    student: Any,
    tokenizer: Any,
    unlabelled: Iterable[Any] = (),
    *,
    cache: str | Path | None = None,
    floor: float = FLOOR,
    sure: float = SURE,
    batch_size: int = 32,
    device: Any = "auto",
) -> Lessons:
    """Annotated sentences, and texts without annotation behind them, with what teachers say of their spans.

    ```python
    >>> lessons = taught(data["train"], ["runs/big", "runs/big-2"], model, tokenizer, unlabelled=["text/"])
    >>> NestedNerTrainer(model=model, train_dataset=lessons.sentences, processing_class=tokenizer).train()
    ```

    Teachers' probabilities are averaged. Where all of them and the student score the span grid, these are what is
    learnt; where a teacher does not, its entities are, and spans of which the teachers are not `sure` take no part.
    A student that does not score the grid gets the teachers' entities of the texts without annotation as its gold.

    Args:
        teachers: folders or Hub ids of trained models, or pairs of model and tokenizer.
        student, tokenizer: the model that will be trained; its labels, grid and windows decide what is asked.
        unlabelled: texts without annotation: files or folders (see `read_texts`), or records with `tokens`.
        cache: where teachers' answers are kept; they are asked once for the same teachers, texts and settings.
        floor: of a span that has a label with less probability than this, none is sure.
        sure: see above.
        device: where teachers run.
    """
    if student.task == "typing":
        raise ValueError("A student that types given spans cannot learn from teachers, which find them.")
    for name, value, least in (("floor", floor, 0), ("sure", sure, 0.5)):
        if not least <= value < 1:
            raise ValueError(f"teacher_{name}={value} is a probability: at least {least} and less than 1.")
    config = student.config
    gold = [dict(sentence) for sentence in as_python(sentences)]
    texts = [dict(text) for text in _texts(unlabelled, config.word_splitter)]
    models = [Teacher(teacher, config.labels, config.mentions, device) for teacher in teachers]
    by_spans = scores_all_spans(Reader(student, tokenizer))
    if not by_spans and not texts:
        raise ValueError(
            f"{config.model_type} learns teachers' entities from text without annotation alone: name some with "
            "--unlabelled, or choose an approach that scores all spans, such as span_ner."
        )
    answers = Answers(models, [*gold, *texts], config.max_span_length if by_spans else None, floor, batch_size, cache)
    said = list(answers)
    by = "probabilities" if by_spans and all(teacher.scores_all_spans for teacher in models) else "entities"
    if by_spans:
        types = config.types
        for sentence, teaching in zip([*gold, *texts], said, strict=True):
            sentence["teacher"] = teaching if by == "probabilities" else in_steps(teaching, sure)
            if sentence.get("labels") is None:
                sentence["labels"] = types if "entities" in sentence else []
    else:
        for text, teaching in zip(texts, said[len(gold) :], strict=True):
            text["entities"] = entities_of(teaching, config)
    if any("flat" in sentence for sentence in gold):
        for text in texts:
            text["flat"] = False
    names = [teacher.name for teacher in models]
    kept = sum(len(teaching.cells) for teaching in said) / max(len(said), 1)
    lines = [
        f"{' and '.join(names)} teach by their {by}: {len(gold):,} training sentences and {len(texts):,} texts "
        f"without annotation; {kept:.1f} spans of each are kept.",
        f"What they say is in {answers.folder}.",
    ]
    record = {"teachers": names, "by": by, "texts": len(texts), "floor": floor}
    if by_spans:
        record |= {"weight": config.distil_weight, "temperature": config.distil_temperature}
    if by == "entities":
        record["sure"] = sure
    for text in texts:
        text.setdefault("entities", [])
    return Lessons([*gold, *texts], record, lines)


def _texts(unlabelled: Iterable[Any], splitter: str) -> Iterator[Mapping[str, Any]]:
    """Records without what anybody annotated."""
    for source in unlabelled:
        if isinstance(source, (str, Path)):
            yield from read_texts(source, splitter)
        else:
            yield {name: source[name] for name in ("id", "doc_id", "tokens", "pos") if source.get(name) is not None}


def scores_all_spans(reader: Reader) -> bool:
    """Whether what a model answers with is its scores of the span grid: it is asked about a word."""
    _, output = next(iter(reader.run([reader.cut(["word"])])))
    return output.is_grid and reader.model.choose_head(None) == "span"


class Teacher:
    """A trained model, and which of a student's labels each of its own is.

    Labels that the student does not have are none to it. Teachers must have all of the student's.
    """

    def __init__(self, source: Any, labels: list[str], mentions: list[str] | None, device: Any = "auto"):
        self.name = str(source) if isinstance(source, (str, Path)) else str(source[0].config.name_or_path or "teacher")
        model, tokenizer = load_model(str(source), device=device) if isinstance(source, (str, Path)) else source
        if model.task == "typing":
            raise ValueError(f"The teacher {self.name} types spans that it is given: it has no spans to teach.")
        self.reader, self.labels = Reader(model, tokenizer), labels
        own = model.config.labels
        self.columns = torch.zeros(len(own), len(labels))  # (its labels, m)
        for row, name in enumerate(own):
            known = label_among(labels, *split_mention(name, model.config.mentions))
            if known in labels:
                self.columns[row, labels.index(known)] = 1.0
        if lacking := [
            label for label, column in zip(labels, self.columns.any(0).tolist(), strict=True) if not column
        ]:
            raise ValueError(
                f"The teacher {self.name} does not know {', '.join(lacking)}, only {', '.join(own)}: it would teach "
                "that there are none. Name a teacher that was trained with all of the student's labels."
            )
        self.scores_all_spans = scores_all_spans(self.reader)

    def fingerprint(self) -> str:
        """The same for the same weights, settings and tokenizer."""
        about = self.reader.config.to_dict()
        for name in ("_name_or_path", "transformers_version", "dtype"):
            about.pop(name, None)
        tokenizer = self.reader.words.tokenizer
        digest = hashlib.sha256(json.dumps([about, sorted(tokenizer.get_vocab().items())], default=str).encode())
        for name, tensor in sorted(self.reader.model.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()

    def add(self, readings: Sequence[Reading], sums: Sequence[torch.Tensor], batch_size: int) -> None:
        """Add the probabilities of the labels of all spans to `sums`, a `(T, K, m)` for each text."""
        if self.scores_all_spans:
            self._add_grids(readings, sums, batch_size)
        else:
            self._add_entities(readings, sums, batch_size)

    def _add_grids(self, readings: Sequence[Reading], sums: Sequence[torch.Tensor], batch_size: int) -> None:
        multi_label = self.reader.config.multi_label
        for places, output in self.reader.run(readings, batch_size):
            logits = output.logits.float()
            labels = logits.sigmoid() if multi_label else logits.softmax(-1)[..., 1:]
            labels = labels @ self.columns.to(labels)  # (B, T, K, m)
            labels *= span_mask(output.num_words, *labels.shape[1:3]).unsqueeze(-1)
            for place, grid in zip(places, labels.cpu(), strict=True):
                windows, total = readings[place.text].windows, sums[place.text]
                window = windows[place.window]
                size = min(grid.size(1), total.size(1))
                grid = grid[: window.end - window.start, :size]
                if len(windows) > 1:
                    grid = grid * _seen_best(windows, place.window, size).unsqueeze(-1)
                total[window.start : window.end, :size] += grid

    def _add_entities(self, readings: Sequence[Reading], sums: Sequence[torch.Tensor], batch_size: int) -> None:
        found = self.reader.read(readings, batch_size, threshold=0.0, overlap="any")
        for entities, total in zip(found, sums, strict=True):
            own = torch.zeros_like(total)
            for entity in entities:
                label, size = label_among(self.labels, entity.label, entity.mention), entity.end - entity.start
                if label in self.labels and size <= total.size(1):
                    cell = own[entity.start, size - 1]
                    cell[self.labels.index(label)] = max(float(cell[self.labels.index(label)]), entity.score)
            total += own

    def longest(self, reading: Reading) -> int | None:
        """The most words of spans that it looks at, all of them, in a text; None for any number."""
        shared = [a.end - b.start + 1 for a, b in zip(reading.windows, reading.windows[1:], strict=False)]
        limits = [*shared, *filter(None, [self.reader.config.reach().longest])]
        return min(limits) if limits else None


def _seen_best(windows: Sequence[Any], index: int, max_span: int) -> torch.Tensor:
    """`(T, K)`: the spans of a window that are taken from it and from no other."""
    first, last = windows[index]
    return torch.tensor(
        [
            [
                start + size <= last and sees_most(windows, index, start, start + size)
                for size in range(1, max_span + 1)
            ]
            for start in range(first, last)
        ]
    )


class Answers:
    """What teachers say of texts, averaged, one [`Teaching`] a text; kept on disk in blocks, each whole or absent.

    Who was killed goes on behind the last block. The folder is called by all that the answers hang on.
    """

    def __init__(
        self,
        teachers: Sequence[Teacher],
        texts: Sequence[Mapping[str, Any]],
        max_span: int | None,
        floor: float,
        batch_size: int = 32,
        cache: str | Path | None = None,
    ):
        self.teachers, self.texts, self.max_span, self.floor = teachers, texts, max_span, floor
        self.batch_size = batch_size
        self.num_labels = len(teachers[0].labels)
        read = [[text["tokens"], text.get("doc_id"), text.get("pos")] for text in texts]
        self.about = {
            "form": FORM,
            "teachers": [teacher.fingerprint() for teacher in teachers],
            "texts": hashlib.sha256(json.dumps(read).encode()).hexdigest(),
            "labels": teachers[0].labels,
            "max_span": max_span,
            "floor": floor,
        }
        key = hashlib.sha256(json.dumps(self.about).encode()).hexdigest()[:20]
        self.folder = (Path(constants.HF_HOME) / "hf_spanner" / "teachers" if cache is None else Path(cache)) / key
        self._readings: list[list[Reading]] | None = None

    def __iter__(self) -> Iterator[Teaching]:
        blocks = list(self.blocks())
        with tqdm(total=len(self.texts), desc="teachers", leave=False, disable=None) as bar:
            for number, block in enumerate(blocks):
                file = self.folder / f"{number:05d}.safetensors"
                answers = self._kept(file, len(block))
                if answers is None:
                    answers = self._asked(block)
                    self._keep(file, answers)
                bar.update(len(block))
                yield from answers

    def blocks(self) -> Iterator[range]:
        """The texts in blocks: not too many, nor too much of them in memory."""
        first, numbers = 0, 0
        for index, text in enumerate(self.texts):
            length = len(text["tokens"])
            own = length * min(self.max_span or length, length) * self.num_labels
            if index > first and (index - first == BLOCK_TEXTS or numbers + own > BLOCK_NUMBERS):
                yield range(first, index)
                first, numbers = index, 0
            numbers += own
        if first < len(self.texts):
            yield range(first, len(self.texts))

    def _asked(self, block: range) -> list[Teaching]:
        if self._readings is None:  # cut together: a text's context is the texts around it
            self._readings = [teacher.reader.cut_sentences(self.texts) for teacher in self.teachers]
        readings = [of[block.start : block.stop] for of in self._readings]
        longest, sums = [], []
        for index, text in zip(block, zip(*readings, strict=True), strict=True):
            length = len(self.texts[index]["tokens"])
            limits = [teacher.longest(reading) for teacher, reading in zip(self.teachers, text, strict=True)]
            longest.append(min(filter(None, [length, self.max_span, *limits]), default=0))
            sums.append(torch.zeros(length, longest[-1], self.num_labels))
        for teacher, own in zip(self.teachers, readings, strict=True):
            teacher.add(own, sums, self.batch_size)
        return [
            Teaching(sparse(total / len(self.teachers), self.floor), most)
            for total, most in zip(sums, longest, strict=True)
        ]

    def _keep(self, file: Path, answers: list[Teaching]) -> None:
        tensors = {
            "cells": torch.cat([answer.cells for answer in answers]),
            "counts": torch.tensor([len(answer.cells) for answer in answers]),
            "longest": torch.tensor([answer.longest for answer in answers]),
        }
        with full_disk_said(self.folder, remedy="go on"):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / "about.json").is_file():
                about = {"names": [teacher.name for teacher in self.teachers], **self.about}
                write_whole(self.folder / "about.json", json.dumps(about, indent=1))
            write_whole(file, save(tensors))

    def _kept(self, file: Path, number: int) -> list[Teaching] | None:
        """The answers in a file; None if there is none, or it is damaged."""
        if not file.is_file():
            return None
        try:
            tensors = load(file.read_bytes())
            counts, longest = tensors["counts"].tolist(), tensors["longest"].tolist()
            cells = tensors["cells"].split(counts)
            if len(counts) == len(longest) == number:
                return [Teaching(*pair) for pair in zip(cells, longest, strict=True)]
        except (SafetensorError, KeyError, RuntimeError):
            pass
        logger.warning("%s is damaged: the teachers are asked again.", file)
        return None


def sparse(probabilities: torch.Tensor, floor: float) -> torch.Tensor:
    """`(T, K, m)` → `(N, 2 + m)`: start, size and probabilities of the cells in which labels have at least `floor`.

    What the others have goes to none.
    """
    start, size = (probabilities.sum(-1) >= max(floor, 1e-12)).nonzero(as_tuple=True)
    place = torch.stack([start, size + 1], dim=-1)
    return torch.cat([place.float(), probabilities[start, size]], dim=-1)


def in_steps(teaching: Teaching, sure: float) -> Teaching:
    """What is sure, made surer: a span has the label, or none; of the other spans nothing is said."""
    place, labels = teaching.cells[:, :2], teaching.cells[:, 2:]
    yes, no = labels >= sure, labels <= 1 - sure
    decided = (yes | no).all(-1, keepdim=True)
    cells = torch.cat([place, torch.where(decided, yes.float(), UNSURE)], dim=-1)
    return teaching._replace(cells=cells[~(decided.squeeze(-1) & no.all(-1))])


def entities_of(teaching: Teaching, config: Any) -> list[dict[str, Any]]:
    """The entities that teachers find, as gold for a student: labels that beat none, without those that it could not
    predict together."""
    found = []
    for start, size, *labels in teaching.cells.tolist():
        best = max(range(len(labels)), key=labels.__getitem__)
        chosen = [i for i, score in enumerate(labels) if score > (0.5 if config.multi_label else 1 - sum(labels))]
        for index in chosen if config.multi_label else [best] if best in chosen else []:
            label, mention = split_mention(config.labels[index], config.mentions)
            found.append(Entity(int(start), int(start + size), label, labels[index], mention))
    return [
        {"start": e.start, "end": e.end, "label": e.label, **({"mention": e.mention} if e.mention else {})}
        for e in resolve_overlaps(found, config.overlap)
    ]
