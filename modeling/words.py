"""Words: how raw text is cut into them."""

import functools

import regex

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
