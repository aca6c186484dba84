"""Words: how raw text is cut into them, and how sub-word vectors become word vectors."""

import functools

import regex
import torch

from .graphs import is_exporting, pooled

_VISIBLE = r"[^\s\x1c-\x1f]"  # what `str.isspace` does not call white space
_WORD = r"[\p{L}\p{N}\p{M}_]+"
# The last resort of every splitter is one visible character with what modifies it: flags and emoji stay whole.
_ONE = rf"{_VISIBLE}[\p{{M}}\p{{Emoji_Modifier}}]*"
_REST = rf"\p{{Regional_Indicator}}{{2}}|{_ONE}(?:\u200d{_ONE})*"
_COMPOUND = "|".join(
    [
        r"(?:\p{L}\.){2,}",  # U.S.  e.g.
        r"['’](?:s|re|ve|ll|d|m|t)(?![\p{L}\p{N}\p{M}])",  # English clitics
        rf"{_WORD}(?:(?:[-‐‑]|(?<=\p{{N}})[.,](?=\p{{N}})){_WORD})*",  # IL-2  state-of-the-art  3.5
        _REST,
    ]
)
# Ideographs that BERT's tokenizer takes one by one; kana and hangul are none of them.
_IDEOGRAPH = (
    r"\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_BERT_ALONE = rf"{_IDEOGRAPH}\p{{P}}$+<=>^`|~"
SPLITTERS = {
    "whitespace": rf"{_VISIBLE}+",
    "compound": _COMPOUND,
    "fine": rf"{_WORD}|{_REST}",
    "bert": rf"[{_BERT_ALONE}]|[^\s\x1c-\x1f{_BERT_ALONE}]+",
}


@functools.cache
def _pattern(splitter: str) -> regex.Pattern:
    if splitter not in SPLITTERS:
        raise ValueError(f"Unknown word splitter {splitter!r}: choose one of {sorted(SPLITTERS)}.")
    return regex.compile(SPLITTERS[splitter])


def split_words(text: str, splitter: str = "compound") -> list[tuple[int, int]]:
    """Cut `text` into words and return their character spans `[start, end)`; every visible character is in one word.

    - `"whitespace"`: only white space separates words.
    - `"compound"`: punctuation stands alone, but compounds, numbers, abbreviations stay whole (`IL-2`, `3.5`, `U.S.`).
    - `"fine"`: every punctuation mark and hyphen stands alone (`IL`, `-`, `2`).
    - `"bert"`: as BERT's tokenizer cuts a text before it makes sub-words; symbols such as € are part of a word.

    The name is part of a model's configuration, so that training and inference agree.

    ```python
    >>> text = "The IL-2 gene's promoter."
    >>> [text[s:e] for s, e in split_words(text)]
    ['The', 'IL-2', 'gene', "'s", 'promoter', '.']
    ```
    """
    return [match.span() for match in _pattern(splitter).finditer(text)]


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
