"""Which gold entities a model could never predict, and why: said before training, not found out after."""

from collections import Counter

from ..modeling.decoding import Entity, resolve_overlaps
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .dataset import NestedNerDataset


def unreachable(dataset: NestedNerDataset, model: NestedNerPreTrainedModel) -> Counter[str]:
    """Count the gold entities of `dataset` out of the model's reach, by reason; each is counted once."""
    config, reach = model.config, model.reach()
    reasons: Counter[str] = Counter()
    one_label = not config.multi_label
    for sentence, reading, gold in zip(dataset.sentences, dataset.readings, dataset.gold(), strict=True):
        rest: list[Entity] = []
        sizes = [1] * len(sentence["tokens"])
        if reach.unit == "subword":
            sizes = [len(subwords) for subwords in dataset.encoder.words.subwords(sentence["tokens"])]
        for entity in gold:
            size = sum(sizes[entity.start : entity.end])
            if why := reach.refuses(size, at_end=entity.end == len(sizes)):
                reasons[why] += 1
            elif not any(window.start <= entity.start and entity.end <= window.end for window in reading.windows):
                reasons[f"longer than a window of max_subwords={config.max_subwords}"] += 1
            elif one_label and any(entity[:2] == other[:2] for other in rest):
                reasons["second label on one span"] += 1
            else:
                rest.append(entity)
        if reach.per_text is not None and len(rest) > reach.per_text:
            reasons[f"more than {reach.per_text} in one sentence"] += len(rest) - reach.per_text
            rest = rest[: reach.per_text]
        # The policy keeps the longest of those that may not stand together.
        scored = [Entity(e.start, e.end, e.label, float(e.end - e.start)) for e in rest]
        if lost := len(rest) - len(resolve_overlaps(scored, config.overlap)):
            reasons[f"overlap another entity (overlap={config.overlap!r})"] += lost
    return reasons


def reach_report(name: str, dataset: NestedNerDataset, model: NestedNerPreTrainedModel) -> str:
    """One line a split: how many gold entities are out of reach, and why; and how many words are not read whole."""
    return _found(name, dataset, model) + _cut_words(dataset)


def _cut_words(dataset: NestedNerDataset) -> str:
    most, cut = dataset.config.max_word_subwords, dataset.encoder.words.cut
    words = [word for sentence in dataset.sentences for word in sentence["tokens"]]
    number = sum(word in cut for word in words)
    if most is None or not number:
        return ""
    return f" Of {number:,} of {len(words):,} words only the first max_word_subwords={most} sub-words are read."


def _found(name: str, dataset: NestedNerDataset, model: NestedNerPreTrainedModel) -> str:
    total = sum(len(sentence["entities"]) for sentence in dataset.sentences)
    reasons = unreachable(dataset, model)
    lost = sum(reasons.values())
    if not lost:
        return f"{name}: all {total:,} gold entities can be found."
    why = "; ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"{name}: {lost:,} of {total:,} gold entities ({lost / total:.1%}) are out of reach: {why}."
