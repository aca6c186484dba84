"""New labels for a trained model: each starts from the old labels that its entities had.

A model that knows `person` is most of the way to PER. Before the first step it reads the new training sentences; for
each new label it is counted which old label the model gives to its gold spans, and the new label's rows of the output
layers start as that old label's rows; of an old type with several kinds of mention, as the mean of their rows, by how
often each was seen. A label that is not renamed keeps its rows; one without a counterpart starts at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .modeling.configuration_nested_ner import NestedNerConfig
from .modeling.decoding import label_among, split_mention
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.reading import Reader

FLOOR = 0.01  # the least score at which the old model is said to see a label in a span
LEAST_SHARE = 0.2  # of a new label's gold spans that its counterpart must have
ENOUGH = 2000  # sentences that are read: the shares are known well by then


class Origin(NamedTuple):
    """Where a label comes from: an old label, and the share of its gold spans that the model gave it.

    `kinds` are the old type's labels, with weights that add up to 1, if it has several.
    """

    label: str
    old: str | None
    share: float
    spans: int
    kinds: tuple[tuple[str, float], ...] = ()

    def mix(self, index: Mapping[str, int]) -> dict[int, float] | None:
        """The old rows that the label's start as, with their weights; None for a start at random."""
        if self.old is None:
            return None
        return {index[label]: weight for label, weight in self.kinds or ((self.old, 1.0),)}

    def __str__(self) -> str:
        if self.old is None:
            seen = f"no old label is seen in {LEAST_SHARE:.0%} of its {self.spans:,} spans" if self.spans else "unseen"
            return f"{self.label} starts at random: {seen}"
        if self.old == self.label:
            return f"{self.label} goes on as it is"
        return f"{self.label} starts from {self.old}: {self.share:.0%} of its spans"


@torch.no_grad()
def find_origins(
    model: NestedNerPreTrainedModel,
    tokenizer: Any,
    sentences: Iterable[Mapping[str, Any]],
    labels: Sequence[str],
    batch_size: int = 32,
) -> list[Origin]:
    """For each new label, the old label that the model gives most of its gold spans."""
    known = set(model.config.labels)
    new = [label for label in labels if label not in known]
    seen: dict[str, Counter[str]] = {label: Counter() for label in new}
    spans: Counter[str] = Counter()

    def name(entity: Mapping[str, Any]) -> str:
        return label_among(labels, entity["label"], entity.get("mention"))

    if new:
        chosen = [s for s in sentences if any(name(e) in seen for e in s["entities"])][:ENOUGH]
        for sentence, best in zip(chosen, best_of_spans(model, tokenizer, chosen, batch_size), strict=True):
            for entity in sentence["entities"]:
                if name(entity) in seen:
                    spans[name(entity)] += 1
                    if old := best.get((entity["start"], entity["end"])):
                        seen[name(entity)][old] += 1
    origins = []
    for label in labels:
        if label in known:
            origins.append(Origin(label, label, 1.0, 0))
            continue
        origins.append(_origin(label, seen[label], spans[label], model.config.mentions))
    return origins


def _origin(label: str, seen: Mapping[str, int], spans: int, mentions: Sequence[str] | None) -> Origin:
    """Where a label comes from that has so many spans, of which the old labels were seen so often."""
    types: Counter[str] = Counter()
    for old, count in seen.items():
        types[split_mention(old, mentions)[0]] += count
    best, count = (types.most_common(1) or [("", 0)])[0]
    share = count / max(spans, 1)
    if share < LEAST_SHARE:
        return Origin(label, None, share, spans)
    kinds = {old: number / count for old, number in seen.items() if split_mention(old, mentions)[0] == best}
    return Origin(label, best, share, spans, () if list(kinds) == [best] else tuple(sorted(kinds.items())))


def best_of_spans(
    model: NestedNerPreTrainedModel, tokenizer: Any, sentences: Sequence[Mapping[str, Any]], batch_size: int
) -> list[dict[tuple[int, int], str]]:
    """The label with the highest score of every span in which the model sees one at all, for each sentence."""
    reader = Reader(model, tokenizer)
    words = [{**sentence, "labels": None} for sentence in sentences]  # those it is annotated with are new to the model
    found = reader.read(reader.cut_sentences(words), batch_size, threshold=FLOOR, overlap="any")
    best_last = (sorted(entities, key=lambda entity: entity.score) for entities in found)
    known = set(model.config.labels)
    return [{(e.start, e.end): label_among(known, e.label, e.mention) for e in entities} for entities in best_last]


@torch.no_grad()
def relabel(old: NestedNerPreTrainedModel, origins: Sequence[Origin]) -> NestedNerPreTrainedModel:
    """The same model with other labels: each starts from the old label that it comes from, or at random."""
    new: Any = type(old)(old.config.with_labels([origin.label for origin in origins]))
    new = new.to(old.dtype).train(old.training)
    layouts_of = label_dimensions(old.config, type(old))
    new.load_state_dict({**old.state_dict(), **{name: new.state_dict()[name] for name in layouts_of}})
    index = {label: i for i, label in enumerate(old.config.labels)}
    mixes = [origin.mix(index) for origin in origins]
    weights, before = dict(new.named_parameters()), dict(old.named_parameters())
    for name, layouts in layouts_of.items():
        start, known = before[name], torch.tensor(True)
        for dimension, layout in enumerate(layouts):
            if layout is not None:
                rows = layout.rows(mixes, start.size(dimension)).to(start)
                start = torch.tensordot(start, rows, dims=([dimension], [1])).movedim(-1, dimension)
                has_origin = rows.any(1).view(*(-1 if d == dimension else 1 for d in range(start.ndim)))
                known = known & has_origin
        weights[name].copy_(torch.where(known, start, weights[name]))
    return new


class Layout(NamedTuple):
    """How labels lie along a dimension: `first` rows of no label (none, O), then `each` rows for every label."""

    first: int
    each: int

    def rows(self, mixes: Sequence[Mapping[int, float] | None], old: int) -> torch.Tensor:
        """`(new, old)`: what each new row is made of, by the mix of each new label; zeros for a start at random."""
        matrix = torch.zeros(self.first + len(mixes) * self.each, old)
        matrix[: self.first, : self.first] = torch.eye(self.first)
        for new, mix in enumerate(mixes):
            for label, weight in (mix or {}).items():
                for i in range(self.each):
                    matrix[self.first + new * self.each + i, self.first + label * self.each + i] = weight
        return matrix


def label_dimensions(
    config: NestedNerConfig, model_class: type[NestedNerPreTrainedModel]
) -> dict[str, list[Layout | None]]:
    """The parameters whose shape depends on the number of labels, and how labels lie along each of their dimensions.

    Seen from two models without weights, of three labels and of five: no approach has to declare it.
    """
    few, many = (shapes(config, model_class, number) for number in (3, 5))
    result = {}
    for name in few:
        if few[name] != many[name]:
            layouts: list[Layout | None] = []
            for small, large in zip(few[name], many[name], strict=True):
                each = (large - small) // 2
                layouts.append(Layout(small - 3 * each, each) if each else None)
            result[name] = layouts
    return result


def shapes(config: NestedNerConfig, model_class: type[NestedNerPreTrainedModel], labels: int) -> dict[str, torch.Size]:
    """The shapes of the parameters of a model with so many labels."""
    config = config.with_labels([f"label {i}" for i in range(labels)])
    with torch.device("meta"):
        return {name: parameter.shape for name, parameter in model_class(config).named_parameters()}
