"""Sequence labelling: BIO or BIOES tags, a linear-chain CRF and the head that any approach can carry.

Tag ids: 0 = O; in BIO `1 + 2·label` = B-label, `2 + 2·label` = I-label; in BIOES `1 + 4·label` = B-label, then I-, E-
(the last word of several) and S-label (an entity of one word).
"""

import torch
from torch import nn

from .decoding import SCHEMES, Entity, tag_candidates
from .losses import Gold, cross_entropy, exclude, reduce_loss


def bio_tags(entities: torch.Tensor, length: int) -> torch.Tensor:
    """BIO tag ids `(B, T)` of the outermost entities: one tag a word cannot say nesting.

    Of overlapping entities the longest is kept (ties: the first start, then the lowest label id).
    `entities` is `(B, E, 3)`, padded with -1.
    """
    tags = torch.zeros(entities.size(0), length, dtype=torch.long, device=entities.device)
    start, end, label = entities.unbind(-1)
    size = torch.where((start >= 0) & (end <= length), end - start, 0)
    # One stable sort by (longest, first start, lowest label): pack the three into one key.
    key = ((length - size) * (length + 1) + start.clamp(min=0)) * (label.max().clamp(min=0) + 2) + label.clamp(min=0)
    order = key.argsort(dim=1, stable=True)
    start, end, label, size = (x.gather(1, order).unsqueeze(-1) for x in (start, end, label, size))
    position = torch.arange(length, device=tags.device)
    for j in range(entities.size(1)):
        inside = (position >= start[:, j]) & (position < end[:, j]) & (size[:, j] > 0)  # (B, T)
        free = ~(inside & (tags > 0)).any(1, keepdim=True)
        tag = torch.where(position == start[:, j], 1, 2) + 2 * label[:, j]
        tags = torch.where(inside & free, tag, tags)
    return tags


def bioes_tags(tags: torch.Tensor) -> torch.Tensor:
    """BIO tag ids `(B, T)` as those of BIOES."""
    label, inside = (tags - 1) // 2, (tags - 1) % 2  # inside: 1 for I
    following = torch.cat([tags[:, 1:], tags.new_zeros(len(tags), 1)], dim=1)
    goes_on = following == 2 + 2 * label
    prefix = torch.where(goes_on, inside, 3 - inside)  # B, I, E, S
    return torch.where(tags > 0, 1 + 4 * label + prefix, 0)


class CRF(nn.Module):
    """Linear-chain conditional random field over tags: exact likelihood, Viterbi and marginals.

    score(y) = a[y_1] + Σ_t e_t[y_t] + Σ_t A[y_{t-1}, y_t] + b[y_T], normalised over all tag sequences.
    `mask` is `(B, T)` with every sentence a prefix of true values; a sentence of no words has likelihood 1.
    """

    def __init__(self, num_tags: int):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))  # [from, to]

    def _alphas(self, emissions: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        """log Σ over prefixes that end in each tag, one `(B, C)` for every word; frozen past a sentence's end."""
        alphas = [self.start + emissions[:, 0]]
        for t in range(1, emissions.size(1)):
            step = (alphas[-1].unsqueeze(2) + self.transitions).logsumexp(1) + emissions[:, t]
            alphas.append(torch.where(mask[:, t, None], step, alphas[-1]))
        return alphas

    def log_partition(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """log Z, `(B,)`."""
        return (self._alphas(emissions.float(), mask)[-1] + self.end).logsumexp(1)

    def score(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The unnormalised score of given tags, `(B,)`."""
        emissions = emissions.float()
        local = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, T)
        steps = self.transitions[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
        last = tags.gather(1, (mask.sum(1) - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        return self.start[tags[:, 0]] + (local * mask).sum(1) + (steps * mask[:, 1:]).sum(1) + self.end[last]

    def nll(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood of each sentence, `(B,)`."""
        return (self.log_partition(emissions, mask) - self.score(emissions, tags, mask)) * mask[:, 0]

    @torch.no_grad()
    def viterbi(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The best tags, `(B, T)`; 0 past a sentence's end."""
        emissions = emissions.float()
        best, back = self.start + emissions[:, 0], []
        for t in range(1, emissions.size(1)):
            step, source = (best.unsqueeze(2) + self.transitions).max(1)
            keep = mask[:, t, None]
            back.append(torch.where(keep, source, torch.arange(best.size(1), device=best.device)))
            best = torch.where(keep, step + emissions[:, t], best)
        tags = [(best + self.end).argmax(1)]
        for source in reversed(back):
            tags.append(source.gather(1, tags[-1].unsqueeze(1)).squeeze(1))
        return torch.stack(tags[::-1], dim=1) * mask

    @torch.no_grad()
    def marginals(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The probability of each tag at each word, `(B, T, C)`, by forward-backward."""
        emissions = emissions.float()
        alphas = self._alphas(emissions, mask)
        betas = [self.end.expand_as(alphas[0])]
        for t in range(emissions.size(1) - 1, 0, -1):
            step = (self.transitions + (emissions[:, t] + betas[-1]).unsqueeze(1)).logsumexp(2)
            betas.append(torch.where(mask[:, t, None], step, betas[-1]))
        log = torch.stack(alphas, 1) + torch.stack(betas[::-1], 1)
        return log.softmax(-1)


class TaggingHead(nn.Module):
    """SeqNER (Eq. 5 of Ji et al., 2022): one affine map from a word to 2m + 1 BIO tags (or 4m + 1 of BIOES), then
    softmax or a CRF.

    It is a whole model in `seq_ner`, and the second head of any bundled span approach.
    """

    def __init__(
        self,
        hidden_size: int,
        num_labels: int,
        dropout: float,
        crf: bool,
        scheme: str = "BIO",
        crf_loss: str = "word",
    ):
        super().__init__()
        self.scheme = scheme
        self.tags_a_label = len(SCHEMES[scheme])
        num_tags = self.tags_a_label * num_labels + 1
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden_size, num_tags)
        self.crf = CRF(num_tags) if crf else None
        self.crf_loss = crf_loss

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.dropout(words))  # (B, T, 2m + 1), or 4m + 1

    def gold_tags(self, entities: torch.Tensor, length: int) -> torch.Tensor:
        """The tag ids `(B, T)` of the outermost of `entities` `(B, E, 3)`."""
        tags = bio_tags(entities, length)
        return bioes_tags(tags) if self.scheme == "BIOES" else tags

    def loss(
        self,
        logits: torch.Tensor,
        gold: Gold,
        mask: torch.Tensor,
        reduction: str = "span",
    ) -> torch.Tensor:
        """The cross entropy of the words, or the CRF's negative log-likelihood: its mean over words, or (by
        `"sentence"`, or of a CRF with `crf_loss="sentence"`: Eq. 10 of Ji et al.) its sum over those of a sentence
        averaged over sentences. Labels that a sentence is not annotated with take no part."""
        tags = self.gold_tags(gold.entities, logits.size(1))
        annotated_labels = gold.annotated_labels
        if annotated_labels is not None:
            outside = annotated_labels.new_ones(len(logits), 1)
            possible = torch.cat([outside, annotated_labels.repeat_interleave(self.tags_a_label, dim=1)], dim=1)
            logits = exclude(logits, possible.unsqueeze(1))
        if self.crf is not None:
            total = self.crf.nll(logits, tags, mask).sum()
            reduction = "sentence" if self.crf_loss == "sentence" else reduction
        else:
            total = cross_entropy(logits, tags, mask)
        return reduce_loss(total, mask.sum(), len(logits), reduction)

    def candidates(
        self, logits: torch.Tensor, mask: torch.Tensor, labels: list[str], thresholds: list[float | None]
    ) -> list[list[Entity]]:
        """Entities of the best tags; where a threshold is set for a label, those whose score reaches it."""
        if self.crf is not None:
            tags = self.crf.viterbi(logits, mask)
            probabilities = self.crf.marginals(logits, mask)
        else:
            probabilities = logits.float().softmax(-1)
            tags = probabilities.argmax(-1) * mask
        scores = probabilities.gather(2, tags.unsqueeze(2)).squeeze(2)
        return tag_candidates(tags.tolist(), scores.tolist(), labels, thresholds, self.scheme)
