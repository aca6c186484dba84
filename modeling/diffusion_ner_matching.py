"""Entities as a set: which prediction answers for which gold entity, and its loss (Shen et al., 2023, after DETR)."""

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

BOUNDARY_LOSSES = ("binary", "likelihood")


class HungarianMatcher:
    """Assigns targets to predictions one to one so that the predictions find their targets as probable as can be.

    Args:
        class_weight, boundary_weight: of the two terms of the cost.
        distance_weight: of a third, which is not the paper's: how far the span that a prediction was made from lies
            from the target. While predictions are all alike it gives each of them a target of its own.
    """

    def __init__(self, class_weight: float = 1.0, boundary_weight: float = 1.0, distance_weight: float = 0.0):
        self.class_weight, self.boundary_weight = class_weight, boundary_weight
        self.distance_weight = distance_weight

    @torch.no_grad()
    def __call__(
        self,
        logits: torch.Tensor,
        left: torch.Tensor,
        right: torch.Tensor,
        targets: list[torch.Tensor],
        spans: torch.Tensor | None = None,
        num_words: torch.Tensor | None = None,
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """
        Args:
            logits: `(B, K, 1 + labels)`, class 0 = none.
            left, right: `(B, K, T)` logits of the boundaries.
            targets: for each sentence `(M, 3)` left, right (inclusive), class, with M ≤ K; on the host, where the
                assignment is made: all costs of the batch come to it at once.
            spans, num_words: `(B, K, 2)` and `(B,)`, for the distance: where the predictions were made from.

        Returns:
            For each sentence the matched predictions and their targets, `(M,)` and `(M,)`.
        """
        assign = _scipy_assignment()
        gold = pad_sequence(targets, batch_first=True).to(logits.device)  # (B, M, 3)

        def at(scores: torch.Tensor, column: int) -> torch.Tensor:  # (B, K, ·) → (B, K, M)
            return scores.gather(2, gold[..., column].unsqueeze(1).expand(-1, scores.size(1), -1))

        # Probabilities and not their logarithms, as in DETR, so that both terms are of one size.
        boundaries = at(left.float().sigmoid(), 0) + at(right.float().sigmoid(), 1)
        classes = at(logits.float().softmax(-1), 2)
        cost = -self.boundary_weight * boundaries - self.class_weight * classes
        if self.distance_weight:
            if spans is None or num_words is None:
                raise ValueError(f"distance_weight={self.distance_weight} needs `spans` and `num_words`.")
            distance = torch.cdist(spans.float(), gold[..., :2].float(), p=1)
            cost += self.distance_weight * distance / num_words.clamp(min=1).view(-1, 1, 1)
        costs = cost.cpu().numpy()
        pairs = (assign(costs[row, :, : len(target)]) for row, target in enumerate(targets))
        return [(torch.as_tensor(chosen), torch.as_tensor(of)) for chosen, of in pairs]


def _scipy_assignment():
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise ImportError("Training diffusion_ner needs scipy for its matching: `pip install scipy`.") from error
    return linear_sum_assignment


def set_losses(
    logits: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    mask: torch.Tensor,
    targets: list[torch.Tensor],
    matches: list[tuple[torch.Tensor, torch.Tensor]],
    none_weight: float | None = None,
    boundary_loss: str = "binary",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross entropy of all types, predictions without a target being none, and of the boundaries of the matched ones.

    The types' is a mean over the B·K predictions. The boundaries' is a mean over matched predictions: of a sum over
    words, as each is or is not the boundary (`"binary"`), or of -log P of the right ones (`"likelihood"`). Where every
    prediction has a target, `class_weight = boundary_weight = 1` and `"likelihood"`, both together are the paper's
    objective -Σ log P of left, right and type, as a mean over the B·K predictions.

    Args:
        logits, left, right, targets: as in [`HungarianMatcher`].
        mask: `(B, T)` words that exist.
        matches: what it returned.
        none_weight: of predictions without a target; None to make them weigh as much, together, as the others.
    """
    batch, count = logits.shape[:2]
    row = torch.cat([torch.full_like(chosen, i) for i, (chosen, _) in enumerate(matches)])  # (M in all,)
    prediction = torch.cat([chosen for chosen, _ in matches])
    gold = torch.cat([target[of] for target, (_, of) in zip(targets, matches, strict=True)])  # (M in all, 3)
    row, prediction, gold = (x.to(logits.device) for x in (row, prediction, gold))
    matched = len(gold)

    types = torch.zeros(batch, count, dtype=torch.long, device=logits.device)
    types[row, prediction] = gold[:, 2]
    if none_weight is None:  # without any entity in the batch, none still counts
        none_weight = max(matched, 1) / max(batch * count - matched, 1)
    weights = torch.ones(logits.size(-1), device=logits.device)
    weights[0] = none_weight
    type_loss = F.cross_entropy(logits.float().flatten(0, 1), types.flatten(), weight=weights, reduction="none").mean()

    exists = mask[row].float()  # (M in all, T)
    boundaries = logits.new_zeros((), dtype=torch.float32)
    for pointer, index in ((left, gold[:, 0]), (right, gold[:, 1])):
        is_boundary = (index.unsqueeze(1) == torch.arange(mask.size(1), device=mask.device)).float()
        looked_at = exists if boundary_loss == "binary" else is_boundary
        boundaries = boundaries + F.binary_cross_entropy_with_logits(
            pointer[row, prediction].float(), is_boundary, looked_at, reduction="sum"
        )
    return type_loss, boundaries / max(matched, 1)
