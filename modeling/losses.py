"""Losses that approaches share: of the span grid, and of any list of classified spans. Pure functions.

An approach names the terms of its loss, `NestedNerOutput.losses`, each with its weight; the base class adds them up.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from .boundary_smoothing import smooth_targets
from .configuration_nested_ner import NestedNerConfig
from .spans import cut_spans, first_labels, inner_labels, sample_negatives, span_mask, span_targets


@dataclass
class Gold:
    """What a batch is annotated with."""

    entities: torch.Tensor  # (B, E, 3) start, end, label id; padded with -1
    annotated_labels: torch.Tensor | None = None  # (B, m), if not every sentence is annotated with every label
    flat: torch.Tensor | None = None  # (B,), if of some sentences what lies inside or across entities is unknown

    def to(self, device: torch.device | str) -> "Gold":
        given = (self.entities, self.annotated_labels, self.flat)
        return Gold(*(None if x is None else x.to(device) for x in given))  # type: ignore[arg-type]

    def unknown(self, length: int, max_span: int) -> torch.Tensor | None:
        """`(B, T, K)`: the spans of which a flat annotation says nothing; None if there are none.

        A corpus that marks outermost names alone does not say that nothing stands inside them. (What has the label of
        the entity it lies inside is another matter: the loss of the span grid takes it for known that there is none.)
        """
        if self.flat is None:
            return None
        return cut_spans(self.entities, length, max_span) & self.flat[:, None, None]

    def require_nested(self, approach: str) -> None:
        """For approaches whose loss cannot leave a span out."""
        if self.flat is not None:
            raise ValueError(
                f"{approach} cannot leave spans inside flat entities out of its loss: choose an approach that scores "
                "all spans, such as span_ner, or train without `flat`."
            )

    def require_all_labels(self, approach: str) -> None:
        """For approaches whose loss cannot leave a label out."""
        if self.annotated_labels is not None:
            raise ValueError(
                f"{approach} must be trained against all its labels: train on corpora of different labels one by one, "
                "or choose an approach that scores all spans, such as span_ner."
            )


def grid_loss(
    logits: torch.Tensor,
    num_words: torch.Tensor,
    gold: Gold,
    config: NestedNerConfig,
    max_negatives: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Summed classification loss over the gold spans and (a sample of) the others of the grid, and their number.

    Args:
        logits: `(B, T, K, classes)`.
        num_words: `(B,)`, in the unit of the grid.
        max_negatives: how many spans without an entity are drawn from each sentence; None for all.
    """
    _, length, max_span, _ = logits.shape
    targets = span_targets(gold.entities, length, max_span, len(config.labels))  # (B, T, K, m)
    mask = span_mask(num_words, length, max_span)
    is_entity = targets.any(-1)
    annotated = None if gold.annotated_labels is None else gold.annotated_labels[:, None, None]
    unknown = gold.unknown(length, max_span)
    if unknown is not None:  # of a span inside an entity it is known that it does not have the entity's label
        unknown = unknown & ~is_entity
        inner = inner_labels(gold.entities, length, max_span, len(config.labels))
        mask = mask & (~unknown | inner.any(-1))
        annotated = torch.where(unknown.unsqueeze(-1), inner, True if annotated is None else annotated)
    if max_negatives is None:
        chosen = mask
    else:
        chosen = is_entity | sample_negatives((mask & ~is_entity).flatten(1), max_negatives).view_as(is_entity)
    if config.boundary_smoothing:
        targets = smooth_targets(
            gold.entities,
            num_words,
            length,
            max_span,
            len(config.labels),
            config.boundary_smoothing,
            config.smoothing_size,
            keep_long=config.smooth_long_entities,
            normalise=not config.multi_label,
        )
    if annotated is not None and config.exclusive_labels:
        annotated = annotated | is_entity.unsqueeze(-1)
    return classification_loss(logits, targets, config.multi_label, annotated, chosen), chosen.sum()


def classification_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    multi_label: bool,
    annotated: torch.Tensor | None = None,
    chosen: torch.Tensor | None = None,
) -> torch.Tensor:
    """Summed loss, in single precision, of `(..., classes)` logits: cross entropy, or binary with `multi_label`.

    Targets are label flags `(..., m)`, or probabilities `(..., m + 1)` of none and the labels. Where `annotated`
    `(..., m)` is false a label takes no part, where `chosen` `(...)` is false a span. Spans that take no part are
    multiplied by 0 and not cut out: their number is not known to the host, which would wait for it.
    """
    logits, soft = logits.float(), targets.is_floating_point()
    chosen = torch.ones_like(logits[..., 0], dtype=torch.bool) if chosen is None else chosen
    if multi_label:
        targets = targets[..., 1:] if soft else targets
        weight = chosen.unsqueeze(-1) if annotated is None else annotated & chosen.unsqueeze(-1)
        return F.binary_cross_entropy_with_logits(logits, targets.float(), weight.float(), reduction="sum")
    if annotated is not None:
        none = torch.ones_like(annotated[..., :1])
        logits = exclude(logits, torch.cat([none, annotated], dim=-1))
    if not soft:
        return cross_entropy(logits, first_labels(targets), chosen)
    return (F.cross_entropy(logits.movedim(-1, 1), targets.movedim(-1, 1), reduction="none") * chosen).sum()


def cross_entropy(logits: torch.Tensor, classes: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Summed cross entropy, in single precision, of `(..., C)` logits and `(...)` classes, where `mask` is true."""
    classes = torch.where(mask, classes, -100)  # torch leaves these out
    return F.cross_entropy(logits.float().flatten(0, -2), classes.flatten(), reduction="sum")


def exclude(logits: torch.Tensor, possible: torch.Tensor) -> torch.Tensor:
    """Logits whose impossible classes have no probability (finite, so that a target of 0 times them is 0)."""
    return logits.float().masked_fill(~possible, -1e4)


def reduce_loss(total: torch.Tensor, count: torch.Tensor, sentences: int, reduction: str) -> torch.Tensor:
    """A summed loss as a mean over the `count` spans (or words) of the batch, or over its sentences."""
    return total / (sentences if reduction == "sentence" else count.clamp(min=1))
