"""One list of all entities, gold and predicted: every measure of this package counts over it.

An entity that both sides have stands once. So whatever its entities are grouped by, the counts of the groups add up to
those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..metrics.nested_ner.scoring import EntityLike, Triple, read_entities, scores_of_counts


class Mention(NamedTuple):
    """An entity of the gold, of the predictions, or (then it is correct) of both."""

    sentence: int
    start: int
    end: int
    label: str
    gold: bool
    predicted: bool
    score: float | None = None  # of a prediction that has one

    @property
    def correct(self) -> bool:
        return self.gold and self.predicted

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


def list_mentions(
    predictions: Iterable[Iterable[EntityLike]], references: Iterable[Iterable[EntityLike]]
) -> list[Mention]:
    """The entities of both sides, one list per sentence each, by sentence, start, the longest first, label.

    The same prediction twice counts once, with its best score.
    """
    predictions, references = [list(sentence) for sentence in predictions], list(references)
    predicted, gold = read_entities(predictions, references)
    mentions = []
    for number, (found, expected, given) in enumerate(zip(predicted, gold, predictions, strict=True)):
        scores: dict[Triple, float | None] = {}
        for triple, entity in zip(found, given, strict=True):
            score, before = _score(entity), scores.get(triple)
            scores[triple] = score if before is None else max(before, score or before)
        truth = set(expected)
        for triple in sorted(truth | scores.keys(), key=lambda t: (t[0], -t[1], str(t[2]))):
            mentions.append(Mention(number, *triple, triple in truth, triple in scores, scores.get(triple)))
    return mentions


def _score(entity: EntityLike) -> float | None:
    score = entity.get("score") if isinstance(entity, Mapping) else entity[3] if len(entity) > 3 else None
    return None if score is None else float(score)


def score_mentions(mentions: Iterable[Mention]) -> dict[str, Any]:
    """Strict precision, recall, F1 and their counts."""
    support = predicted = correct = 0
    for mention in mentions:
        support += mention.gold
        predicted += mention.predicted
        correct += mention.gold and mention.predicted
    return scores_of_counts(correct, predicted, support)


def score_by(mentions: Sequence[Mention], keys: Sequence[str], groups: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The scores of each group, given the group of each mention; groups without mentions have rows of zeros."""
    members: dict[str, list[Mention]] = {group: [] for group in groups}
    for mention, key in zip(mentions, keys, strict=True):
        members[key].append(mention)
    return {group: score_mentions(chosen) for group, chosen in members.items()}
