"""The class probabilities that a model gives to the gold spans, whatever its approach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ..modeling.decoding import Entity
from ..modeling.reading import Reader

NONE = "none"


@dataclass
class GoldProbabilities:
    """One row for each gold entity: how probable the model finds each class for its span.

    `classes` are the labels and, unless the model only types given spans, "none" as the last.
    """

    classes: list[str]
    probabilities: np.ndarray  # (N, C), rows sum to 1
    gold: np.ndarray  # (N,) the index of the gold label
    out_of_reach: int = 0  # gold entities that the model cannot look at, and that have no row

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def predicted(self) -> np.ndarray:
        """The most probable class, `(N,)`."""
        return self.probabilities.argmax(1)

    @property
    def right(self) -> np.ndarray:
        return self.predicted == self.gold

    @property
    def missed(self) -> np.ndarray:
        """Where "none" is the most probable."""
        return np.array(self.classes)[self.predicted] == NONE

    @property
    def of_gold(self) -> np.ndarray:
        """The probability of the gold label, `(N,)`."""
        return self.probabilities[np.arange(len(self)), self.gold]


def gold_probabilities(model, tokenizer, sentences: Iterable[Mapping], batch_size: int = 32) -> GoldProbabilities:
    """Run the model over annotated sentences and read off what it thinks of their entities.

    - Where an approach scores all spans, these are its scores. Entities longer than its span cap are out of reach.
    - A tagging model gives a span the product of the probabilities of its tags.
    - Of any other approach the scores of what it finds are taken: a span that it does not find is "none".
    """
    labels, sentences = model.config.labels, list(sentences)
    reader = Reader(model, tokenizer)
    readings = reader.cut_sentences(sentences, gold=True)
    rows: dict[tuple, tuple[int, np.ndarray]] = {}  # of an entity in two windows of a long text the first counts
    for places, output in reader.run(readings, batch_size):
        items = [readings[place.text].items[place.window] for place in places]
        entities = reader.collate(items)["entities"]
        for place, given, probabilities in zip(places, entities, _of_spans(model, output, entities), strict=True):
            shift = readings[place.text].windows[place.window].start
            for (start, end, label), row in zip(given.tolist(), probabilities, strict=True):
                key = (place.text, start + shift, end + shift, label)
                if start >= 0 and not np.isnan(row).any() and (key not in rows or place.window < rows[key][0]):
                    rows[key] = place.window, row
    if not rows:
        raise ValueError("There is no gold entity that the model can look at: nothing can be analysed.")
    total = len({(i, e["start"], e["end"], e["label"]) for i, s in enumerate(sentences) for e in s["entities"]})
    classes = labels if model.task == "typing" else [*labels, NONE]
    keys = sorted(rows)
    gold = np.array([label for *_, label in keys])
    return GoldProbabilities(classes, np.stack([rows[key][1] for key in keys]), gold, total - len(rows))


def _of_spans(model, output, entities: torch.Tensor) -> np.ndarray:
    """`(B, E, C)` for the spans of `entities (B, E, 3)`; NaN where the model cannot look."""
    if model.task == "typing":
        return output.logits.float().softmax(-1).cpu().numpy()
    if model.choose_head(None) == "seq":
        return _of_tags(model, output, entities)
    if output.is_grid:
        return _of_grid(output.logits, entities, model.config.multi_label)
    found = model.decode(output, threshold=0.0, overlap="any")
    return np.stack([_of_found(row, given.tolist(), model.config.labels) for row, given in zip(found, entities)])


def _of_grid(logits: torch.Tensor, entities: torch.Tensor, multi_label: bool) -> np.ndarray:
    """From the grid `(B, T, K, c)`, where class 0 is none (or each label has a sigmoid)."""
    start, end, _ = entities.to(logits.device).unbind(-1)
    size = end - start
    outside = (start < 0) | (size > logits.size(2))
    batch = torch.arange(len(start), device=logits.device).unsqueeze(1)
    scores = logits[batch, start.clamp(min=0), (size - 1).clamp(0, logits.size(2) - 1)].float()  # (B, E, c)
    if multi_label:
        probabilities = _with_none(scores.sigmoid())
    else:
        probabilities = scores.softmax(-1).roll(-1, dims=-1)  # none last
    return probabilities.masked_fill(outside.unsqueeze(-1), torch.nan).cpu().numpy()


def _of_tags(model, output, entities: torch.Tensor) -> np.ndarray:
    """The product of p(B-X), p(I-X), ... and of no I-X behind the span: exact for a softmax, near enough for a CRF.
    In BIOES, where E-X and S-X say the end, of p(B-X), p(I-X), ..., p(E-X), or p(S-X)."""
    logits, crf = output.tag_logits, model.tagger.crf
    mask = torch.arange(logits.size(1), device=logits.device) < output.num_words.unsqueeze(1)
    tags = (logits.float().softmax(-1) if crf is None else crf.marginals(logits, mask)).cpu()  # (B, T, 2m + 1)
    each = model.tagger.tags_a_label
    begin, inside = tags[..., 1::each], tags[..., 2::each]  # (B, T, m)
    result = torch.full((*entities.shape[:2], begin.size(-1)), torch.nan)
    for b, e in (entities[..., 0] >= 0).nonzero().tolist():
        start, end, _ = entities[b, e].tolist()
        if model.tagger.scheme == "BIOES":
            last, single = tags[b, end - 1, 3::4], tags[b, start, 4::4]
            several = begin[b, start] * inside[b, start + 1 : end - 1].prod(0) * last
            result[b, e] = single if end - start == 1 else several
            continue
        product = begin[b, start] * inside[b, start + 1 : end].prod(0)
        goes_on = inside[b, end] if end < output.num_words[b] else 0.0
        result[b, e] = product * (1 - goes_on)
    return _with_none(result).numpy()


def _of_found(found: list[Entity], spans: list, labels: list[str]) -> np.ndarray:
    """From entities with scores; a span that is not among them is none."""
    scores = torch.zeros(len(spans), len(labels))
    for entity in found:
        for row, (start, end, _) in enumerate(spans):
            if (start, end) == (entity.start, entity.end):
                column = labels.index(entity.label)
                scores[row, column] = max(scores[row, column].item(), entity.score)
    return _with_none(scores).numpy()


def _with_none(scores: torch.Tensor) -> torch.Tensor:
    """Add what is left of 1 as "none"; scores that sum to more than 1 (labels apart, each with its own) are scaled."""
    total = scores.sum(-1, keepdim=True)
    return torch.cat([scores / total.clamp(min=1), (1 - total).clamp(min=0)], dim=-1)
