"""Which gold entities a model could never predict, and why: said before training, not found out after."""

from collections import Counter

from ..modeling.decoding import Entity, resolve_overlaps
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .features import NestedNerDataset


def unreachable(dataset: NestedNerDataset, model: NestedNerPreTrainedModel) -> Counter:
    """Count the gold entities of `dataset` out of the model's reach, by reason; each is counted once."""
    config, reasons = model.config, Counter()
    one_label = not config.multi_label
    unit = getattr(config, "span_unit", "word")  # what the span cap counts
    for sentence, windows, gold in zip(dataset.sentences, dataset.windows, dataset.gold(), strict=True):
        rest = []
        sizes = [1] * len(sentence["tokens"])
        if unit == "subword":
            sizes = [len(subwords) for subwords in dataset.encoder.subwords(sentence["tokens"])]
        for entity in gold:
            size = sum(sizes[entity.start : entity.end])
            if model.needs_span_cap and size > config.max_span_length:
                reasons[f"longer than max_span_length={config.max_span_length} {unit}s"] += 1
            elif model.learnt_length is not None and size > model.learnt_length:
                reasons[f"longer than the {model.learnt_length} words to which seeds learn to grow"] += 1
            elif model.span_sizes is not None and size not in model.span_sizes and entity.end < len(sizes):
                reasons[f"of another size than windows={list(model.span_sizes)}"] += 1
            elif not any(window.start <= entity.start and entity.end <= window.end for window in windows):
                reasons[f"longer than a window of max_subwords={config.max_subwords}"] += 1
            elif one_label and any(entity[:2] == other[:2] for other in rest):
                reasons["second label on one span"] += 1
            else:
                rest.append(entity)
        most = getattr(config, "num_noisy_spans", None)  # as many as a generative approach can answer with
        if most is not None and len(rest) > most:
            reasons[f"more than num_noisy_spans={most} in one sentence"] += len(rest) - most
            rest = rest[:most]
        # The policy keeps the longest of those that may not stand together.
        scored = [Entity(e.start, e.end, e.label, float(e.end - e.start)) for e in rest]
        if lost := len(rest) - len(resolve_overlaps(scored, config.overlap)):
            reasons[f"overlap another entity (overlap={config.overlap!r})"] += lost
    return reasons


def reach_report(name: str, dataset: NestedNerDataset, model: NestedNerPreTrainedModel) -> str:
    """One line a split: how many gold entities are out of reach, and why."""
    total = sum(len(sentence["entities"]) for sentence in dataset.sentences)
    reasons = unreachable(dataset, model)
    lost = sum(reasons.values())
    if not lost:
        return f"{name}: all {total:,} gold entities can be found."
    why = "; ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"{name}: {lost:,} of {total:,} gold entities ({lost / total:.1%}) are out of reach: {why}."
