"""Spans over sub-words (the unit of DSpERT's code): from words to sub-words for training, and back to predict.

For approaches with a setting `span_unit`: `in_subwords`, score the spans of these, `gold_in_subwords` for the loss,
and the output `on_words`.
"""

import dataclasses

import torch

from .graphs import at_most, in_graph
from .losses import Gold
from .modeling_nested_ner import NestedNerOutput, WordStates
from .pooling import pool_words

SPAN_UNITS = ("word", "subword")


def in_subwords(states: WordStates) -> WordStates:
    """The states with each sub-word as a word of its own; `word_ids` numbers them."""
    index, count = subword_units(states.word_ids)
    states = dataclasses.replace(states, num_words=count, word_ids=index)
    length = index.size(1) if in_graph() else max(1, *states.lengths)
    states.mask = torch.arange(length, device=count.device) < count.unsqueeze(1)
    states.words = pool_words(states.encoder.last_hidden_state, index, length, "first")
    return states


def gold_in_subwords(gold: Gold, states: WordStates) -> Gold:
    """The gold entities of `states` over sub-words."""
    offsets = word_offsets(states.word_ids, states.words.size(1))
    return dataclasses.replace(gold, entities=entities_in_subwords(gold.entities, offsets))


def on_words(output: NestedNerOutput, states: WordStates, max_span_length: int | None, has_none: bool) -> None:
    """Put an output over sub-words on the grid of the words of `states`, which is what leaves the model.

    What is no span of the sub-word grid is surely none, and its representation is NaN.
    """
    logits, length = output.logits, states.words.size(1)
    assert logits is not None  # an approach that scores spans
    offsets, max_span = word_offsets(states.word_ids, length), at_most(max_span_length, length)
    never = torch.full_like(logits[0, 0, 0], torch.finfo(logits.dtype).min)
    if has_none:
        never[0] = 0.0
    output.logits = on_word_grid(logits, offsets, max_span, never)
    if output.span_representations is not None:
        nothing = torch.full_like(output.span_representations[0, 0, 0], torch.nan)
        output.span_representations = on_word_grid(output.span_representations, offsets, max_span, nothing)


def subword_units(word_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Number the sub-words that belong to words: `(B, S)` indices, -1 for the others, and their counts `(B,)`."""
    belongs = word_ids >= 0
    units = belongs.long().cumsum(1) - 1
    return units.masked_fill(~belongs, -1), belongs.sum(1)


def word_offsets(word_ids: torch.Tensor, length: int) -> torch.Tensor:
    """`(B, T + 1)`: how many sub-words stand before each of T words, and in all. Word i has `[o_i, o_i+1)`."""
    counts = torch.zeros(word_ids.size(0), length + 1, dtype=torch.long, device=word_ids.device)
    counts.scatter_add_(1, word_ids.clamp(min=-1) + 1, (word_ids >= 0).long())  # word i is counted in column i + 1
    return counts.cumsum(1)


def entities_in_subwords(entities: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """The same entities `(B, E, 3)` over sub-words. One whose first or last word has none becomes padding (-1)."""
    start, end, label = entities.unbind(-1)
    given = start >= 0
    start, end = torch.where(given, start, 0), torch.where(given, end, 1)
    whole = given & (offsets.gather(1, start) < offsets.gather(1, start + 1))
    whole &= offsets.gather(1, end - 1) < offsets.gather(1, end)
    spans = torch.stack([offsets.gather(1, start), offsets.gather(1, end), label], dim=-1)
    return spans.masked_fill(~whole.unsqueeze(-1), -1)


def on_word_grid(values: torch.Tensor, offsets: torch.Tensor, max_span: int, fill: torch.Tensor) -> torch.Tensor:
    """The cells of a sub-word grid that are spans of whole words: `(B, U, K, c)` → `(B, T, max_span, c)`.

    Spans that begin or end inside a word have no cell among words: predictions on them are dropped here, before
    overlaps are resolved. Word spans that are no span of the sub-word grid (longer than K sub-words, or with a first
    or last word without sub-words) get `fill (c,)`.
    """
    batch, length, device = values.size(0), offsets.size(1) - 1, values.device
    start = torch.arange(length, device=device).unsqueeze(1)  # (T, 1)
    end = (start + torch.arange(1, max_span + 1, device=device)).clamp(max=length)  # (T, K')
    has_subwords = offsets[:, 1:] > offsets[:, :-1]  # (B, T)
    first = offsets[:, :-1].unsqueeze(2)  # (B, T, 1)
    size = offsets[:, end] - first  # (B, T, K')
    reached = has_subwords.unsqueeze(2) & has_subwords[:, end - 1] & (size <= values.size(2))
    rows = torch.arange(batch, device=device).view(-1, 1, 1)
    found = values[rows, first.clamp(max=values.size(1) - 1), (size - 1).clamp(0, values.size(2) - 1)]
    return torch.where(reached.unsqueeze(-1), found, fill)
