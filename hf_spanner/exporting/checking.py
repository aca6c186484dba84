"""What an exported model says beside the one that it was made from, on the same sentences: entities, F1, speed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..benchmarks.timing import interleave
from ..evaluation.predicting import predict_sentences
from ..evaluation.scoring import score_predictions
from ..modeling.decoding import Entity

BATCHES = (1, 32)
TIMED = 96  # sentences


@dataclass
class Check:
    """Of how many sentences the entities differ, how far scores do, and both models' F1 and relative speed."""

    sentences: int
    entities: int
    differing: int
    largest_difference: float  # of the scores of entities that both find
    f1: float
    exported_f1: float
    gold: bool  # whether F1 is by gold entities; else by those that torch finds, as the data's labels are unknown
    speed: dict[str, float]  # by batch size: how many times as fast as torch

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def told_f1(self) -> str:
        if not self.gold:
            return f"{100 * self.exported_f1:.2f} by what torch finds, as the model knows none of the data's labels"
        return f"{100 * self.exported_f1:.2f}, in torch {100 * self.f1:.2f}"

    def told(self) -> list[str]:
        """For people, a line each."""
        same = "all equal" if not self.differing else f"other ones in {self.differing:,} sentences"
        speed = ", ".join(f"{ratio:.2f} times at batch {size}" for size, ratio in self.speed.items())
        return [
            f"{self.entities:,} entities in {self.sentences:,} sentences: {same}; scores differ by at most "
            f"{self.largest_difference:.1g}; F1 {self.told_f1()}.",
            f"As fast as torch: {speed} (in turns, one run).",
        ]


class Answers:
    """What answers are scored by: gold entities with labels that the model knows; if there are none, its own.

    Args:
        model: the one in torch,
        found: and the entities that it finds in the sentences.
    """

    def __init__(self, model: Any, sentences: Sequence[Mapping[str, Any]], found: Sequence[Sequence[Entity]]):
        self.model = model
        self.labels = {e["label"] for s in sentences for e in s["entities"]} & set(model.config.types)
        self.are_gold = bool(self.labels)
        if self.are_gold:
            gold = [[e for e in s["entities"] if e["label"] in self.labels] for s in sentences]
        else:
            gold = [[{"start": e.start, "end": e.end, "label": e.label} for e in entities] for entities in found]
        self.sentences = [{**s, "entities": entities} for s, entities in zip(sentences, gold, strict=True)]

    def f1(self, found: Sequence[Sequence[Entity]]) -> float:
        """Strict F1 of the entities found."""
        if self.are_gold:
            found = [[e for e in entities if e.label in self.labels] for entities in found]
        return float(score_predictions(self.model, found, self.sentences)["f1"])


def keys(entities: Sequence[Entity]) -> dict[tuple[Any, ...], float]:
    return {(e.start, e.end, e.label, e.mention): e.score for e in entities}


def check(model: Any, exported: Any, tokenizer: Any, sentences: Sequence[Mapping[str, Any]]) -> Check:
    """Read the sentences with both."""
    found = [predict_sentences(m, tokenizer, sentences, max(BATCHES)) for m in (model, exported)]
    pairs = [(keys(a), keys(b)) for a, b in zip(*found, strict=True)]
    differences = [abs(a[key] - b[key]) for a, b in pairs for key in a.keys() & b.keys()]
    answers = Answers(model, sentences, found[0])
    scores = [answers.f1(entities) for entities in found]
    some = sentences[:TIMED]
    candidates = {
        (name, size): lambda m=m, size=size: predict_sentences(m, tokenizer, some, size)
        for size in BATCHES
        for name, m in (("torch", model), ("onnx", exported))
    }
    seconds = interleave(candidates, repeats=3)
    return Check(
        sentences=len(sentences),
        entities=sum(len(a) for a, _ in pairs),
        differing=sum(a.keys() != b.keys() for a, b in pairs),
        largest_difference=max(differences, default=0.0),
        f1=scores[0],
        exported_f1=scores[1],
        gold=answers.are_gold,
        speed={str(size): round(seconds["torch", size] / seconds["onnx", size], 2) for size in BATCHES},
    )
