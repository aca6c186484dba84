"""What kind of mistake each wrong prediction and each missed entity is, and which types are taken for which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .mentions import Mention

NONE = "none"
KINDS = {
    "type": "right span, wrong type",
    "boundary": "overlaps, wrong boundaries",
    "spurious": "touches no gold entity",
    "missed": "no wrong prediction touches it",
}


class Error(NamedTuple):
    """A wrong prediction or a missed gold entity, and what kind of mistake it is."""

    mention: Mention
    kind: str


def list_errors(mentions: Iterable[Mention]) -> list[Error]:
    """Each wrong prediction and each missed gold entity with its kind; the first that applies counts.

    A wrong prediction is of kind
    - `type` if the gold has an entity of another type at its span,
    - `boundary` if it overlaps a gold entity (Ji et al., 2022, counted on the side of predictions),
    - `spurious` otherwise.

    A gold entity that was missed is of kind
    - `type` if another type is predicted at its span,
    - `boundary` if a wrong prediction overlaps it (a correct one, such as an entity inside it, does not count),
    - `missed` otherwise.
    """
    by_sentence: dict[int, list[Mention]] = defaultdict(list)
    for mention in mentions:
        by_sentence[mention.sentence].append(mention)
    errors = []
    for members in by_sentence.values():
        gold = [m for m in members if m.gold]
        predicted = {m.span for m in members if m.predicted}
        wrong = [m for m in members if not m.gold]
        gold_spans = {m.span for m in gold}
        for mention in members:
            if mention.correct:
                continue
            others, there, far = (wrong, predicted, "missed") if mention.gold else (gold, gold_spans, "spurious")
            if mention.span in there:
                kind = "type"
            elif any(overlap(mention, other) for other in others):
                kind = "boundary"
            else:
                kind = far
            errors.append(Error(mention, kind))
    return errors


def overlap(a: Mention, b: Mention) -> bool:
    """Whether two mentions of a sentence share a word."""
    return a.start < b.end and b.start < a.end


def summarise_errors(errors: Sequence[Error]) -> dict[str, Any]:
    """Counts of errors by kind on either side, and the error rates of Ji et al. (2022).

    Returns:
        `wrong`: predictions of kind type, boundary, spurious; their sum is FP. `missed`: gold entities of kind type,
        boundary, missed; their sum is FN. `type_error_rate` and `boundary_error_rate` (TE-Rate and BE-Rate, Eq. 24):
        wrong predictions of the kind divided by FP + FN; 0.0 where there is no error.
    """
    counts = Counter((error.mention.gold, error.kind) for error in errors)
    total = len(errors)
    return {
        "wrong": {kind: counts[False, kind] for kind in ("type", "boundary", "spurious")},
        "missed": {kind: counts[True, kind] for kind in ("type", "boundary", "missed")},
        "type_error_rate": counts[False, "type"] / total if total else 0.0,
        "boundary_error_rate": counts[False, "boundary"] / total if total else 0.0,
    }


def confusion(mentions: Iterable[Mention], labels: Iterable[str] = ()) -> dict[str, Any]:
    """Which types are taken for which: gold types down, predicted types across, none (no such span) last.

    At each span the types that agree are counted on the diagonal; what is left is paired in order of name, and with
    none where the other side has nothing left. So a row adds up to the gold entities of its type, a column to the
    predictions.

    Returns:
        `{"labels": [..., "none"], "matrix": [[...], ...]}`
    """
    mentions = list(mentions)
    names = list(dict.fromkeys([*labels, *sorted({m.label for m in mentions})]))
    at: dict[tuple[int, tuple[int, int]], list[Mention]] = defaultdict(list)
    for mention in mentions:
        at[mention.sentence, mention.span].append(mention)
    pairs: Counter[tuple[str | None, str | None]] = Counter()
    for members in at.values():
        pairs.update((m.label, m.label) for m in members if m.correct)
        gold = sorted(m.label for m in members if not m.predicted)
        wrong = sorted(m.label for m in members if not m.gold)
        longest = max(len(gold), len(wrong))
        pad = [None] * longest
        pairs.update(zip((gold + pad)[:longest], (wrong + pad)[:longest], strict=True))
    axis = [*names, None]
    return {"labels": [*names, NONE], "matrix": [[pairs[row, column] for column in axis] for row in axis]}
