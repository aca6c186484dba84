"""Word vectors from sub-word vectors."""

import torch

from .graphs import is_exporting, pooled


def pool_words(states: torch.Tensor, word_ids: torch.Tensor, num_words: int, how: str = "max") -> torch.Tensor:
    """Word vectors from sub-word vectors; a word without sub-words gets the zero vector.

    Args:
        states: `(B, S, d)` sub-word vectors.
        word_ids: `(B, S)` the word each sub-word belongs to, negative for special, padding and context tokens.
        num_words: the number T of words to return, at least `word_ids.max() + 1`.
        how: `"first"`, `"mean"` or `"max"` (element-wise) over the sub-words of a word.

    Returns:
        `(B, T, d)`
    """
    batch, length, dim = states.shape
    if how == "first":
        # A sub-word is the first of its word where the word index changes: sub-words of a word are neighbours.
        previous = torch.cat([word_ids.new_full((batch, 1), -1), word_ids[:, :-1]], dim=1)
        keep = (word_ids >= 0) & (word_ids != previous)
    elif how in ("mean", "max"):
        keep = word_ids >= 0
    else:
        raise ValueError(f"Unknown word pooling {how!r}: choose 'first', 'mean' or 'max'.")
    # Rows that belong to no word go to one extra row at the end, which is dropped. Reducing along dimension 0 with an
    # expanded index is the layout for which torch has a fast kernel.
    rows = torch.arange(batch, device=states.device).unsqueeze(1) * num_words + word_ids
    rows = torch.where(keep, rows, batch * num_words).reshape(-1, 1).expand(-1, dim)
    reduce = {"first": "sum", "mean": "mean", "max": "amax"}[how]
    if is_exporting():
        words = pooled(states.flatten(0, 1), rows[:, 0], batch * num_words + 1, reduce)
    else:
        words = states.new_zeros(batch * num_words + 1, dim)
        words = words.scatter_reduce(0, rows, states.reshape(-1, dim), reduce=reduce, include_self=False)
    return words[:-1].view(batch, num_words, dim)
