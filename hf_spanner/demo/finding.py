"""A text is read once; thresholds, labels, kinds of mention and overlaps are then chosen from what was found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from ..modeling.decoding import Entity, resolve_overlaps
from ..modeling.pipeline_nested_ner import EntityDict, NestedNerPipeline, Text

LEAST = 0.05  # the lowest threshold that can be chosen afterwards


class Found(NamedTuple):
    """All that a model sees in a text, before anything is chosen from it."""

    text: Text
    own: list[Entity]  # with the model's own thresholds
    all: list[Entity]  # with a score of at least `LEAST`
    ner: NestedNerPipeline


def read(
    ner: NestedNerPipeline, text: str, progress: Callable[[int, int], Any] | None = None, batch_size: int = 8
) -> Found:
    """Run the model over a text, once; `progress` is told how many of how many windows are read."""
    model: Any = ner.model
    prepared = ner.preprocess(text, mentions=model.config.mentions)
    windows = len(prepared.reading.windows)
    kept: dict[str, list[list[Entity]]] = {which: [[] for _ in range(windows)] for which in ("own", "all")}
    done = 0
    with ner.device_placement():
        for places, output in ner.reader.run([prepared.reading], batch_size):
            for which, threshold in (("own", None), ("all", LEAST)):
                decoded = model.decode(output, threshold=threshold, overlap="any")
                for place, entities in zip(places, decoded, strict=True):
                    kept[which][place.window] = entities
            done += len(places)
            if progress is not None:
                progress(done, windows)
    own, everything = (prepared.reading.join(kept[which], "any") for which in ("own", "all"))
    return Found(prepared, own, everything, ner)


def choose(
    found: Found,
    threshold: float | None = None,
    labels: Collection[str] | None = None,
    mentions: Collection[str] | None = None,
    overlap: str | None = None,
) -> list[EntityDict]:
    """What the pipeline returns when it is called with these parameters. The model is not run.

    Args:
        threshold: at least `LEAST`; None for the model's own.
        labels, mentions, overlap: as in the pipeline; None for all labels, for the kinds that the model shows, and for
            its own policy.
    """
    if threshold is not None and not LEAST <= threshold <= 1:
        raise ValueError(f"threshold={threshold} must lie between {LEAST} and 1: nothing below it was kept.")
    config = found.ner.model.config
    mentions = config.shown_mentions if mentions is None else mentions
    chosen = found.own if threshold is None else [entity for entity in found.all if entity.score >= threshold]
    if labels is not None:
        chosen = [entity for entity in chosen if entity.label in labels]
    if mentions is not None and config.mentions is not None:
        chosen = [entity for entity in chosen if entity.mention in mentions]
    chosen = found.text.reading.trimmed(resolve_overlaps(chosen, overlap or config.overlap), mentions)
    return found.ner.postprocess(found.text, chosen)
