"""One split of annotated data, as commands and scripts ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .loading import load_nested_ner
from .reshaping import resplit_words
from .schema import Sentence


def load_split(
    source: str,
    split: str,
    format: str | None = None,
    resplit: str | None = None,
    splitter: str | None = None,
) -> tuple[list[Sentence], Mapping[str, Iterable[Sentence]], str]:
    """The sentences of a split, all of the data, and the split's name: of data with a single one, that one.

    Data that comes as text is cut into words by `splitter`, which should be the model's own. With `resplit` all words
    are cut as that word splitter cuts raw text.
    """
    # whose rows are sentences
    loaded: Any = load_nested_ner(source, format=format, splitter=resplit or splitter)
    data: Mapping[str, Iterable[Sentence]] = loaded
    if split not in data:
        if len(data) > 1:
            raise ValueError(f"{source} has no split {split!r}, only {sorted(data)}: choose one with --split.")
        split = next(iter(data))  # a single file is what it is
    if resplit is not None:
        data = {name: [resplit_words(sentence, resplit) for sentence in part] for name, part in data.items()}
    return list(data[split]), data, split
