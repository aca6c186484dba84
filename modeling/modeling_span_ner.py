"""SpanNER (Ji et al., 2022): classify every span of at most ε words from its boundary words and its pooled words."""

from typing import Any

import torch
from torch import nn

from .configuration_nested_ner import NestedNerConfig
from .graphs import at_most
from .losses import Gold, classification_loss, grid_loss, reduce_loss
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .spans import at_ends, max_of_spans, running_max

PARTS = {
    "boundary": ("start", "end"),
    "pooling": ("pooled", "sentence"),
    "hybrid": ("start", "end", "pooled", "sentence"),
}


class SpanNerConfig(NestedNerConfig):
    """SpanNER. The paper's ε is `max_span_length`.

    Args:
        span_representation: `"boundary"` [e_i; e_j; w_len], `"pooling"` [max(e_i..e_j); e_0; w_len] or `"hybrid"`, all
            of these.
        size_embedding_dim: of w_len, one row for each span length 1..ε.
        max_negatives: spans without an entity drawn from a sentence in training; None for all of them.
        ffn_size: 0 for the paper's single affine map; otherwise a hidden layer of this size (with GELU) before it.
    """

    model_type = "span_ner"

    max_span_length: int = 10
    span_representation: str = "hybrid"
    size_embedding_dim: int = 25
    max_negatives: int | None = 100
    ffn_size: int = 0

    def _check(self) -> None:
        super()._check()
        self.check_choice("span_representation", PARTS)
        if self.max_negatives is not None and self.max_negatives < 1:
            raise ValueError(f"max_negatives={self.max_negatives} must be at least 1, or None for all spans.")


class SpanScorer(nn.Module):
    """Linear([e_i; e_j; max(e_i..e_j); e_0; w_len]) for all spans, without ever building the concatenation.

    A linear map of a concatenation is the sum of the maps of its parts, W [a; b] = W_a a + W_b b. So each word is
    mapped once as a start and once as an end, and the results, of the size of the output and not of 4d, are added on
    the grid.
    """

    def __init__(self, config: SpanNerConfig, out_features: int):
        super().__init__()
        d = config.hidden_size
        self.parts = PARTS[config.span_representation]
        self.sizes = nn.Embedding(config.max_span_length, config.size_embedding_dim)
        self.linear = nn.Linear(len(self.parts) * d + config.size_embedding_dim, out_features)
        self.dropout = nn.Dropout(config.dropout)
        self.widths = [d] * len(self.parts) + [config.size_embedding_dim]

    def _maps(self) -> dict[str, torch.Tensor]:
        """The columns of the one weight matrix that belong to each part.

        Contiguous, so that the result does not depend (in the last bit) on where in memory the matrix was loaded to.
        """
        columns = self.linear.weight.split(self.widths, dim=1)
        return {part: w.contiguous() for part, w in zip([*self.parts, "size"], columns, strict=True)}

    def forward(self, words: torch.Tensor, sentence: torch.Tensor, max_span: int) -> torch.Tensor:
        """Scores of the whole grid, `(B, T, K, out)`, from words `(B, T, d)` and sentence vectors `(B, d)`."""
        w, drop = self._maps(), self.dropout
        sizes = self.sizes(torch.arange(max_span, device=words.device))
        scores = drop(sizes) @ w["size"].T + self.linear.bias  # (K, out)
        if "sentence" in w:
            scores = scores + (drop(sentence) @ w["sentence"].T)[:, None, None]  # (B, 1, K, out)
        if "start" in w:
            scores = scores + (drop(words) @ w["start"].T).unsqueeze(2)  # (B, T, K, out)
            scores = scores + at_ends(drop(words) @ w["end"].T, max_span)
        if "pooled" in w:
            pooled = [drop(states) @ w["pooled"].T for states in running_max(words, max_span)]
            scores = scores + torch.stack(pooled, dim=2)
        return scores

    def represent(self, words: torch.Tensor, sentence: torch.Tensor, max_span: int) -> torch.Tensor:
        """The concatenation itself, `(B, T, K, 4d + w)`: to be looked at; scoring does without it."""
        grid = (*words.shape[:2], max_span)
        parts = {
            "start": words.unsqueeze(2),
            "end": at_ends(words, max_span),
            "pooled": torch.stack(list(running_max(words, max_span)), dim=2),
            "sentence": sentence[:, None, None],
            "size": self.sizes(torch.arange(max_span, device=words.device)),
        }
        return torch.cat([parts[part].expand(*grid, -1) for part in [*self.parts, "size"]], dim=-1)

    def score(
        self, words: torch.Tensor, sentence: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor
    ) -> torch.Tensor:
        """The same for given spans `(B, N)` of any length, `(B, N, out)`; lengths past ε share the last w_len."""
        w, drop = self._maps(), self.dropout
        batch = torch.arange(words.size(0), device=words.device).unsqueeze(1)
        size = (ends - starts - 1).clamp(max=self.sizes.num_embeddings - 1)
        scores = drop(self.sizes(size)) @ w["size"].T + self.linear.bias
        if "sentence" in w:
            scores = scores + (drop(sentence) @ w["sentence"].T).unsqueeze(1)
        if "start" in w:
            scores = scores + drop(words[batch, starts]) @ w["start"].T + drop(words[batch, ends - 1]) @ w["end"].T
        if "pooled" in w:
            scores = scores + drop(max_of_spans(words, starts, ends)) @ w["pooled"].T
        return scores


class SpanNerForNestedNer(NestedNerPreTrainedModel):
    """Span representation → dropout → Linear → none or one of the types, for all spans of at most ε words."""

    config: SpanNerConfig
    config_class = SpanNerConfig

    def __init__(self, config: SpanNerConfig):
        super().__init__(config)
        self.scorer = SpanScorer(config, config.ffn_size or config.num_classes)
        self.output: nn.Sequential | None = None
        if config.ffn_size:
            output = nn.Linear(config.ffn_size, config.num_classes)
            self.output = nn.Sequential(nn.GELU(), nn.Dropout(config.dropout), output)
        self.post_init()

    @property
    def output_layer(self) -> nn.Linear:
        last: Any = self.scorer.linear if self.output is None else self.output[-1]
        return last

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        words, sentence = states.words, states.sentence
        max_span = at_most(self.config.max_span_length, words.size(1))
        scores = self.scorer(words, sentence, max_span)
        logits = scores if self.output is None else self.output(scores)
        representations = None
        if states.output_span_representations:  # the input of `output_layer`
            represent, head = self.scorer.represent, self.output
            representations = represent(words, sentence, max_span) if head is None else head[0](scores)
        losses = None
        if gold is not None:
            total, count = grid_loss(
                logits, states.num_words, gold, self.config, self.config.max_negatives if self.training else None
            )
            long_total, long_count = self._loss_of_long_entities(states, gold, max_span)
            losses = {
                name: reduce_loss(term, count + long_count, len(words), self.config.loss_reduction)
                for name, term in (("spans", total), ("long", long_total))
            }
        return NestedNerOutput(losses=losses, logits=logits, span_representations=representations)

    def _loss_of_long_entities(
        self, states: WordStates, gold: Gold, max_span: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Entities longer than ε are off the grid and never predicted; as in SpERT they are positives in training."""
        start, end, label = gold.entities.unbind(-1)
        long = (start >= 0) & (end - start > max_span) & (end <= states.words.size(1))
        count = long.sum()
        if not torch.compiler.is_compiling() and not count:  # a graph has no such branch: it scores in vain
            return states.words.new_zeros((), dtype=torch.float32), count
        start, end = torch.where(long, start, 0), torch.where(long, end, 1)
        logits = self.scorer.score(states.words, states.sentence, start, end)  # (B, E, classes)
        logits = logits if self.output is None else self.output(logits)
        targets = label.unsqueeze(-1) == torch.arange(len(self.config.labels), device=label.device)  # (B, E, m)
        annotated = None if gold.annotated_labels is None else gold.annotated_labels.unsqueeze(1)
        return classification_loss(logits, targets, self.config.multi_label, annotated, long), count
