"""Words as the sub-words of a tokenizer, and the windows in which a long text is read."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from .word_inputs import WordInputs

logger = logging.getLogger(__name__)


class Window(NamedTuple):
    """Words `[start, end)` of a text that the encoder reads at once."""

    start: int
    end: int


def make_windows(lengths: Sequence[int], capacity: int, overlap: int) -> list[Window]:
    """Cut a text into windows of whole words; neighbours share `overlap` words, or as many as the capacity allows.

    Every span of at most `overlap + 1` words then lies wholly inside some window.

    Args:
        lengths: the number of sub-words of each word, each at most `capacity`.
        capacity: sub-words a window can hold.
        overlap: words that neighbouring windows share.
    """
    windows, start, total = [], 0, len(lengths)
    while True:
        end, used = start, 0
        while end < total and used + lengths[end] <= capacity:
            used += lengths[end]
            end += 1
        windows.append(Window(start, end))
        if end >= total:
            return windows
        start = max(end - overlap, start + 1)
        while sum(lengths[start : end + 1]) > capacity:  # the next window must reach at least one word further
            start += 1


class WordEncoder:
    """Turns words into windows of sub-word ids with a tokenizer, one word at a time.

    Each word is tokenized by itself and remembered, so a text costs little more than a dictionary look-up a word, and
    fast and slow tokenizers of every kind behave alike. Byte-level tokenizers must add a prefix space
    (`load_tokenizer` sees to it). `inputs` makes what a model reads beside sub-words, if it reads anything else. Of a
    word its first `max_word_subwords` are read; `cut` holds the words that have more. With `separate_context` the
    tokenizer's separator stands between a sentence and its context.
    """

    cache_size = 200_000

    def __init__(
        self,
        tokenizer,
        max_subwords: int,
        inputs: WordInputs | None = None,
        max_word_subwords: int | None = None,
        separate_context: bool = False,
    ):
        self.tokenizer, self.inputs = tokenizer, inputs
        self.prefix, self.suffix = _special_tokens(tokenizer)
        self.capacity = max_subwords - len(self.prefix) - len(self.suffix)
        if self.capacity < 1:
            raise ValueError(f"max_subwords={max_subwords} leaves no room for words beside the special tokens.")
        self.longest_word = min(self.capacity, max_word_subwords or self.capacity)
        self.separator: list[int] = [_separator(tokenizer)] if separate_context else []
        self.cut: set[str] = set()
        self._known: dict[str, list[int]] = {}

    def subwords(self, words: Sequence[str]) -> list[list[int]]:
        """Sub-word ids of each word; a word too long for a window keeps as many as fit (said once), one of more than
        `max_word_subwords` so many (said of the first)."""
        for word in words:
            if not isinstance(word, str):
                raise TypeError(f"A word must be a string, not {word!r}.")
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if new:
            if len(self._known) + len(new) > self.cache_size:
                self._known.clear()
                new = list(dict.fromkeys(words))
            # A lone surrogate is a character to Python but not to the tokenizer.
            clean = [word.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for word in new]
            encoded = self.tokenizer(
                clean,
                add_special_tokens=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )["input_ids"]
            for word, ids in zip(new, encoded, strict=True):
                if len(ids) > self.capacity:
                    logger.warning(
                        "The word %r… has %d sub-words, more than a whole window: only the first %d are read.",
                        word[:40],
                        len(ids),
                        self.longest_word,
                    )
                elif len(ids) > self.longest_word and not self.cut:
                    logger.warning(
                        "Of words such as %r only the first %d sub-words are read (max_word_subwords).",
                        word[:40],
                        self.longest_word,
                    )
                if len(ids) > self.longest_word:
                    self.cut.add(word)
                self._known[word] = ids[: self.longest_word]
        return [self._known[word] for word in words]

    def windows(self, words: Sequence[str], overlap: int) -> list[Window]:
        """The windows in which a text of these words is read."""
        return make_windows([len(ids) for ids in self.subwords(words)], self.capacity, overlap)

    def encode(
        self,
        words: Sequence[str],
        window: Window | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        pos: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """One window as `input_ids`, `attention_mask`, `word_ids`, `num_words` and, if there are any, inputs by word.

        `before` and `after` are words of neighbouring sentences: read as far as there is room, nearest first, never
        predicted on. `pos` are the words' part-of-speech tags, if they are known.
        """
        window = window or Window(0, len(words))
        pieces = self.subwords(words[window.start : window.end])
        ids = [i for piece in pieces for i in piece]
        word_ids = [index for index, piece in enumerate(pieces) for _ in piece]
        room = self.capacity - len(ids)
        if room < 0:
            raise ValueError(f"{len(ids)} sub-words do not fit a window of {self.capacity}: use `windows` first.")
        left = [i for piece in self.subwords(before) for i in piece] + self.separator if before else []
        right = self.separator + [i for piece in self.subwords(after) for i in piece] if after else []
        share = room // 2
        keep_left = min(len(left), max(share, room - len(right)))
        keep_right = min(len(right), room - keep_left)
        left, right = left[len(left) - keep_left :], right[:keep_right]
        left, right = (side if len(side) > len(self.separator) else [] for side in (left, right))
        front, back = [*self.prefix, *left], [*right, *self.suffix]
        inputs = {}
        if self.inputs is not None:
            tags = None if pos is None else pos[window.start : window.end]
            inputs = self.inputs.of(words[window.start : window.end], tags)
        return {
            "input_ids": [*front, *ids, *back],
            "attention_mask": [1] * (len(front) + len(ids) + len(back)),
            "word_ids": [-1] * len(front) + word_ids + [-1] * len(back),
            "num_words": window.end - window.start,
            **inputs,
        }


def _separator(tokenizer) -> int:
    """The id of what a tokenizer separates two texts with."""
    if tokenizer.sep_token_id is None:
        raise ValueError("context_separator=True needs a tokenizer with a separator (`sep_token`); this one has none.")
    return int(tokenizer.sep_token_id)


def _special_tokens(tokenizer) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after a text, found by looking at one."""
    # Any visible word will do; its own ids are looked up so that none is mistaken for a special token.
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    full = list(tokenizer("a", add_special_tokens=True)["input_ids"])
    for start in range(len(full) - len(plain) + 1):
        if full[start : start + len(plain)] == plain:
            return full[:start], full[start + len(plain) :]
    return [], []
