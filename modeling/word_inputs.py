"""Inputs by word that an approach may read beside sub-words: keys of word vectors, characters, part-of-speech tags.

Each is made from the words and a few settings of the configuration alone: no vocabulary has to lie beside the model.
"""

import functools
import hashlib
import string
from collections.abc import Sequence

WORD_INPUTS = ("word_keys", "char_ids", "pos_ids")  # their names in a batch: (B, T), (B, T, C), (B, T)

# Characters: 0 is padding, then ASCII's printable ones, the end of a word, and any other.
CHARACTERS = {character: number for number, character in enumerate(string.printable, 1)}
END_OF_WORD, OTHER = len(CHARACTERS) + 1, len(CHARACTERS) + 2
NUM_CHARACTERS = OTHER + 1
MAX_CHARACTERS = 50  # read of a word


class WordInputs:
    """Makes the inputs that a configuration asks for (`LocateAndLabelConfig` has the settings).

    ```python
    >>> WordInputs(vectors=True).of(["IL-2", "gene"])
    {'word_keys': [5345757730923834288, 7304351123325071367]}
    ```

    Args:
        vectors: make `word_keys`, by which a table of word vectors is read.
        lowercase: of the words as they are looked up in that table.
        characters: make `char_ids`.
        pos_tags: make `pos_ids`, each word's part-of-speech tag as its place in this list; 0 is padding, 1 any other.
        pos_tagger: the spaCy pipeline that tags words which come without tags.
    """

    def __init__(
        self,
        vectors: bool = False,
        lowercase: bool = False,
        characters: bool = False,
        pos_tags: Sequence[str] | None = None,
        pos_tagger: str | None = None,
    ):
        self.vectors, self.lowercase, self.characters, self.pos_tagger = vectors, lowercase, characters, pos_tagger
        self.pos_ids = None if pos_tags is None else {tag: number for number, tag in enumerate(pos_tags, 2)}

    @property
    def names(self) -> tuple[str, ...]:
        """Which of `WORD_INPUTS` are made."""
        made = (self.vectors, self.characters, self.pos_ids is not None)
        return tuple(name for name, is_made in zip(WORD_INPUTS, made, strict=True) if is_made)

    def of(self, words: Sequence[str], pos: Sequence[str] | None = None) -> dict[str, list]:
        """The inputs of a sentence, one element a word; `pos` are its part-of-speech tags, if they are known."""
        inputs: dict[str, list] = {}
        if self.vectors:
            inputs["word_keys"] = [word_key(word.lower() if self.lowercase else word) for word in words]
        if self.characters:
            inputs["char_ids"] = [char_ids(word) for word in words]
        if self.pos_ids is not None:
            tags = tag_words(words, self.pos_tagger) if pos is None else pos
            if len(tags) != len(words):
                raise ValueError(f"{len(tags)} part-of-speech tags do not fit {len(words)} words: give one for each.")
            inputs["pos_ids"] = [self.pos_ids.get(tag, 1) for tag in tags]
        return inputs


@functools.lru_cache(maxsize=200_000)
def word_key(word: str) -> int:
    """64 bits that stand for a word, the same on every machine: a model keeps these in place of a vocabulary."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@functools.lru_cache(maxsize=200_000)
def char_ids(word: str) -> list[int]:
    """Numbers of a word's characters and of the end of a word."""
    return [*(CHARACTERS.get(character, OTHER) for character in word[:MAX_CHARACTERS]), END_OF_WORD]


def tag_words(words: Sequence[str], tagger: str | None) -> list[str]:
    """Part-of-speech tags (Penn's, spaCy's `tag_`) from the spaCy pipeline `tagger`."""
    if not words:
        return []
    if tagger is None:
        raise ValueError(
            "This model reads part-of-speech tags, and a sentence has none: give them with the data, as 'pos', or "
            "name a spaCy pipeline, pos_tagger='en_core_web_sm'."
        )
    nlp, doc = _load_tagger(tagger)
    return [token.tag_ for token in nlp(doc(nlp.vocab, words=list(words)))]


@functools.cache
def _load_tagger(name: str):
    try:
        import spacy
    except ImportError as error:
        raise ValueError(
            f"pos_tagger={name!r} needs spaCy, which is not installed: `pip install spacy`, or give part-of-speech "
            "tags with the data, as 'pos'."
        ) from error
    try:
        return spacy.load(name, exclude=["parser", "ner", "lemmatizer"]), spacy.tokens.Doc
    except OSError as error:
        raise ValueError(
            f"There is no spaCy pipeline {name!r} here: `python -m spacy download {name}`, or give part-of-speech "
            "tags with the data, as 'pos'."
        ) from error
