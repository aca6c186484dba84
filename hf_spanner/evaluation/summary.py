"""All measures of one system, and of several beside each other, as plain dicts that can be written as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..data.describe import label_names
from ..metrics.nested_ner.scoring import EntityLike, Triple, score_entities
from .calibration import calibration
from .comparison import (
    SentenceCounts,
    bootstrap_f1,
    bootstrap_runs,
    compare_runs,
    compare_systems,
    f1_of,
    found_by,
    holm,
)
from .errors import confusion, list_errors, summarise_errors
from .groups import LENGTH, Bins, Sentences, score_groupings, unseen_density
from .mentions import Mention, list_mentions


def summarise(
    predictions: Iterable[Iterable[EntityLike]],
    sentences: Sentences,
    train: Sentences | None = None,
    labels: Iterable[str] | None = None,
    resamples: int = 10_000,
    lengths: Bins = LENGTH,
) -> dict[str, Any]:
    """Everything that can be said of predictions for annotated sentences.

    Args:
        predictions: one list of entities per sentence, in order.
        sentences: records with `tokens` and gold `entities`.
        train: the training sentences; without them there is no `eCon`, no `unseen` and no `unseen_density`.
        labels: types that get a row even if they never occur; others follow.
        resamples: of the bootstrap behind `f1_interval`.
        lengths: the groups of `length`, such as `Bins.parse(["1-4", "5-9", "10-"])`.

    Returns:
        `data` (counts of sentences, words, entities), `scores` (see `score_entities`), `f1_interval` (95 %),
        `groups` (see `groupings`), `errors` (see `summarise_errors`), `confusion`, `calibration`, `unseen_density`,
        and `notes`, sentences about what a reader should know.

    Example:
        >>> gold = [{"tokens": ["New", "York", "Times"], "entities": [{"start": 0, "end": 3, "label": "ORG"}]}]
        >>> summary = summarise([[(0, 3, "ORG"), (0, 2, "LOC")]], gold)
        >>> summary["scores"]["precision"], summary["errors"]["boundary_error_rate"]
        (0.5, 1.0)
    """
    mentions = list_mentions(predictions, [sentence["entities"] for sentence in sentences])
    return summarise_mentions(mentions, sentences, train, labels, resamples, lengths)


def summarise_mentions(
    mentions: Sequence[Mention],
    sentences: Sentences,
    train: Sentences | None = None,
    labels: Iterable[str] | None = None,
    resamples: int = 10_000,
    lengths: Bins = LENGTH,
) -> dict[str, Any]:
    """What [`summarise`] returns, from mentions."""
    if not sentences:
        raise ValueError("There is no sentence to evaluate: the data is empty.")
    labels = list(label_names(sentences) if labels is None else labels)
    predicted: list[list[Triple]] = [[] for _ in sentences]
    gold: list[list[Triple]] = [[] for _ in sentences]
    for mention in mentions:
        if mention.predicted:
            predicted[mention.sentence].append(mention[1:4])
        if mention.gold:
            gold[mention.sentence].append(mention[1:4])
    counts = SentenceCounts.of(mentions, len(sentences))
    return {
        "data": {
            "sentences": len(sentences),
            "words": sum(len(sentence["tokens"]) for sentence in sentences),
            "entities": sum(m.gold for m in mentions),
        },
        "scores": score_entities(predicted, gold, labels),
        "f1_interval": list(bootstrap_f1(counts, resamples)),
        "groups": score_groupings(mentions, sentences, train, lengths),
        "errors": summarise_errors(list_errors(mentions)),
        "confusion": confusion(mentions, labels),
        "calibration": calibration(mentions),
        "unseen_density": None if train is None else unseen_density(sentences, train),
        "notes": _notes(mentions, sentences),
    }


def _notes(mentions: Sequence[Mention], sentences: Sentences) -> list[str]:
    notes = []
    known = set(label_names(sentences))
    if foreign := Counter(m.label for m in mentions if m.label not in known):
        names = ", ".join(f"{label} ({count:,})" for label, count in sorted(foreign.items()))
        notes.append(f"Predicted labels that these sentences do not have, so that they can only be wrong: {names}.")
    if not any(m.predicted for m in mentions):
        notes.append("There is no prediction at all: every gold entity is missed.")
    elif calibration(mentions) is None:
        notes.append("No calibration: the predictions have no scores, or scores that are no probabilities.")
    if not known:
        notes.append("The sentences have no gold entity: every prediction is wrong.")
    return notes


def compare(
    systems: Mapping[str, Iterable[Iterable[EntityLike]]],
    sentences: Sentences,
    train: Sentences | None = None,
    labels: Iterable[str] | None = None,
    resamples: int = 10_000,
    lengths: Bins = LENGTH,
) -> dict[str, Any]:
    """Two or more systems on the same sentences; the first is the one that the others are held against.

    Returns:
        `baseline`, its name; `systems`, the summary of each; `tests`, of each other system against the baseline (see
        `compare_systems`; with several of them also `p_holm`, adjusted); `differences`, F1 minus the baseline's for
        every group (Table 6 of Ji et al., 2022) and for the error rates (Table 7); `only`, the gold entities that
        exactly one system finds, and `by_all` and `by_none`, how many all or none find.
    """
    gold = [sentence["entities"] for sentence in sentences]
    mentions = {name: [list_mentions(found, gold)] for name, found in systems.items()}
    return compare_mentions(mentions, sentences, train, labels, resamples, lengths)


def compare_mentions(
    systems: Mapping[str, Sequence[Sequence[Mention]]],
    sentences: Sentences,
    train: Sentences | None = None,
    labels: Iterable[str] | None = None,
    resamples: int = 10_000,
    lengths: Bins = LENGTH,
) -> dict[str, Any]:
    """What [`compare`] returns, of systems trained once or several times: the mentions of each of their runs.

    Of several runs counts and groups are of all together, every sentence counting once for each. The tests, and the
    intervals of F1, are about the means of the runs (see `compare_runs`), whose F1 are in `runs` of each summary.
    """
    if len(systems) < 2:
        raise ValueError(f"A comparison needs at least two systems, not {list(systems)}.")
    baseline, *others = systems
    number = len(systems[baseline])
    if any(len(runs) != number for runs in systems.values()):
        told = ", ".join(f"{name} {len(runs)}" for name, runs in systems.items())
        raise ValueError(f"The systems have different numbers of runs ({told}): name as many of each.")
    labels = None if labels is None else list(labels)
    copies = [*sentences] * number
    pooled = {name: pool_runs(runs, len(sentences)) for name, runs in systems.items()}
    summaries = {name: summarise_mentions(m, copies, train, labels, resamples, lengths) for name, m in pooled.items()}
    counts = {name: [SentenceCounts.of(run, len(sentences)) for run in runs] for name, runs in systems.items()}
    if number == 1:
        tests = {name: compare_systems(counts[baseline][0], counts[name][0], resamples) for name in others}
    else:
        tests = {name: compare_runs(counts[baseline], counts[name], resamples) for name in others}
        for name, summary in summaries.items():
            _tell_of_runs(summary, counts[name], resamples)
    if len(others) > 1:
        adjusted = holm([test["p_randomisation" if number == 1 else "p_bootstrap"] for test in tests.values()])
        for test, p in zip(tests.values(), adjusted, strict=True):
            test["p_holm"] = p
    found = found_by(pooled)
    only = {
        name: [
            dict(zip(("sentence", "start", "end", "label"), key, strict=True)) for key in found if found[key] == [name]
        ]
        for name in pooled
    }
    return {
        "baseline": baseline,
        "systems": summaries,
        "tests": tests,
        "differences": {name: _differences(summaries[baseline], summaries[name]) for name in others},
        "only": only,
        "by_all": sum(len(names) == len(pooled) for names in found.values()),
        "by_none": sum(not names for names in found.values()),
    }


def _tell_of_runs(summary: dict[str, Any], runs: Sequence[SentenceCounts], resamples: int) -> None:
    """The F1 of each run, their interval in place of the pooled one, and a note of both."""
    f1 = [float(f1_of(*map(sum, run))) for run in runs]
    summary["runs"] = f1
    summary["f1_interval"] = list(bootstrap_runs(runs, resamples))
    summary["notes"].insert(
        0,
        f"F1 of {len(runs)} runs: {statistics.mean(f1):.4f} ± {statistics.stdev(f1):.4f} (mean ± standard deviation); "
        "all counts are of the runs together.",
    )


def pool_runs(runs: Iterable[Sequence[Mention]], sentences: int) -> list[Mention]:
    """The mentions of several runs over as many copies of the sentences, one behind the other."""
    return [
        mention._replace(sentence=mention.sentence + number * sentences)
        for number, run in enumerate(runs)
        for mention in run
    ]


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """b - a; None for groups in which neither has a gold entity or a prediction."""
    groups: dict[str, dict[str, float | None]] = {}
    for by, rows in b["groups"].items():
        groups[by] = {}
        for name, row in rows.items():
            other = a["groups"][by].get(name, {"f1": 0.0, "support": 0, "predicted": 0})  # depths that only b reaches
            empty = not (row["support"] or row["predicted"] or other["predicted"])
            groups[by][name] = None if empty else row["f1"] - other["f1"]
    rates = ("boundary_error_rate", "type_error_rate")
    return {"groups": groups, "errors": {rate: b["errors"][rate] - a["errors"][rate] for rate in rates}}
