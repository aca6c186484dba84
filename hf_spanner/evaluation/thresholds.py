"""The threshold that maximises micro F1: one for all labels, or one for each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..metrics.nested_ner.scoring import score_entities
from ..modeling.decoding import Entity, resolve_overlaps
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.reading import Reader

References = Sequence[Iterable[Any]]  # the gold entities of each sentence: dicts or tuples

FLOOR = 0.05  # candidates below this score are not looked at: with most spans among them, they would be very many


class Tuned(NamedTuple):
    """A threshold and the F1 that it gives."""

    threshold: float | dict[str, float]
    f1: float


def predict_candidates(
    model: NestedNerPreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[Mapping[str, Any]],
    overlap: str,
    batch_size: int = 32,
    progress: bool = False,
    head: str | None = None,
) -> tuple[list[list[Entity]], list[list[Entity]]]:
    """What a threshold is tuned on: all candidates from `FLOOR` on, overlaps unresolved; and what the model predicts
    as it is. The sentences are read once."""
    reader = Reader(model, tokenizer)
    readings = reader.cut_sentences(list(sentences))
    found: list[dict[str, list[list[Entity]]]] = [
        {kind: [[] for _ in reading.items] for kind in ("candidates", "default")} for reading in readings
    ]
    for places, output in reader.run(readings, batch_size, progress):
        for kind, threshold in (("candidates", FLOOR), ("default", None)):
            decoded = model.decode(output, threshold=threshold, overlap="any", head=head)
            for place, entities in zip(places, decoded, strict=True):
                found[place.text][kind][place.window] = entities
    pairs = list(zip(readings, found, strict=True))
    return (
        [reading.join(windows["candidates"], "any") for reading, windows in pairs],
        [reading.join(windows["default"], overlap) for reading, windows in pairs],
    )


def tune_threshold(
    candidates: Sequence[Sequence[Entity]], references: References, overlap: str = "any", tolerance: float = 0.0
) -> Tuned:
    """The one threshold with the best micro F1; of several the highest. It lies halfway between two scores.

    Overlaps are resolved best first, so what stands at a threshold is what stands at 0 and reaches it.

    Args:
        candidates: scored entities per sentence, before overlaps are resolved.
        references: the gold entities.
        overlap: the policy under which the model will predict.
        tolerance: how much F1 may be given away for a higher threshold, and with it precision; if it is negative, for
            a lower one, and recall.
    """
    scores, correct, _ = answers(candidates, references, overlap)
    choices = _choices(scores, correct)
    support = _support(references)
    f1 = [2 * right / max(kept + support, 1) for _, kept, right in choices]
    good = [i for i, value in enumerate(f1) if value >= max(f1) - abs(tolerance)]  # the highest come first
    chosen = good[0] if tolerance >= 0 else good[-1]
    return Tuned(choices[chosen][0], f1[chosen])


def tune_thresholds(
    candidates: Sequence[Sequence[Entity]], references: References, labels: Iterable[str], overlap: str = "any"
) -> Tuned:
    """A threshold for each label with the best micro F1 together.

    For a given F, the labels' thresholds that maximise Σ (2·correct - F·predicted) can be found one by one; with F the
    F1 that these reach, and so on, F climbs to the best F1 in a few rounds (Dinkelbach). That is exact if overlaps do
    not matter. If they do, a threshold of one label can free the place of an entity of another: the F1 is then
    measured, and one threshold for all is returned if it is better. Labels without candidates get that one too.
    """
    labels = list(labels)
    single = tune_threshold(candidates, references, overlap)
    one = single.threshold
    assert isinstance(one, float)  # as `tune_threshold` gives one for all
    scores, correct, names = answers(candidates, references, overlap)
    choices = {name: _choices(scores[names == name], correct[names == name]) for name in labels}
    support, f1 = _support(references), single.f1
    for _ in range(100):
        chosen = {name: max(options, key=lambda c: 2 * c[2] - f1 * c[1]) for name, options in choices.items()}
        kept, right = (sum(choice[i] for choice in chosen.values()) for i in (1, 2))
        before, f1 = f1, 2 * right / max(kept + support, 1)
        if f1 <= before + 1e-12:
            break
    known = set(names.tolist())
    thresholds = {name: chosen[name][0] if name in known else one for name in labels}
    reached = f1_at(thresholds, candidates, references, overlap)
    if reached < single.f1:
        return Tuned(dict.fromkeys(labels, one), single.f1)
    return Tuned(thresholds, reached)


def f1_at(
    threshold: float | Mapping[str, float],
    candidates: Sequence[Sequence[Entity]],
    references: References,
    overlap: str,
) -> float:
    """Micro F1 of the candidates that reach a threshold, overlaps resolved."""
    found = [resolve_overlaps(row, overlap) for row in reaching(threshold, candidates)]
    f1: float = score_entities(found, references)["f1"]
    return f1


def write_threshold(config: str | Path, threshold: float | dict[str, float], **more: Any) -> None:
    """Set the threshold (and what else is given) in a saved configuration and leave the rest as it is."""
    config = Path(config)
    content = json.loads(config.read_text(encoding="utf-8"))
    content |= {"threshold": threshold, **more}
    aside = config.with_name("config.json.tmp")
    aside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, config)


def answers(
    candidates: Sequence[Sequence[Entity]], references: References, overlap: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score, correctness and label of every candidate that stands once overlaps are resolved."""
    gold = [_triples(row) for row in references]
    found = [resolve_overlaps(row, overlap) for row in candidates]
    rows = [(e.score, tuple(e[:3]) in gold[i], e.label) for i, row in enumerate(found) for e in row]
    scores, correct, names = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(scores, dtype=float), np.array(correct, dtype=bool), np.array(names, dtype=object)


def reaching(threshold: float | Mapping[str, float], candidates: Sequence[Sequence[Entity]]) -> list[list[Entity]]:
    """The candidates that reach a threshold."""
    limit: Callable[[str], Any] = threshold.get if isinstance(threshold, Mapping) else lambda label: threshold
    return [[entity for entity in row if entity.score >= limit(entity.label)] for row in candidates]


def _choices(scores: np.ndarray, correct: np.ndarray) -> list[tuple[float, int, int]]:
    """Every threshold that makes a difference, from the highest, with the candidates it keeps and the correct ones."""
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    right = np.concatenate([[0], np.cumsum(correct[order])])
    edges = np.concatenate([[1.0], scores, [min([FLOOR, *scores])]])  # keeping k, the threshold lies below edges[k]
    apart = edges[:-1] > edges[1:]
    apart[-1] = True  # keep all
    kept = np.flatnonzero(apart)
    return list(zip(((edges[kept] + edges[kept + 1]) / 2).tolist(), kept.tolist(), right[kept].tolist(), strict=True))


def _triples(row: Iterable[Any]) -> set[tuple[Any, ...]]:
    """The gold entities of a sentence as (start, end, label)."""
    return {(e["start"], e["end"], e["label"]) if isinstance(e, Mapping) else tuple(e[:3]) for e in row}


def _support(references: References) -> int:
    return sum(len(_triples(row)) for row in references)
