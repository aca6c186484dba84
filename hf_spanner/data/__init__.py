"""Data for nested named entity recognition: one form of a sentence, readers, writers, one loader.

>>> from hf_spanner.data import load_nested_ner, suggest_overlap
>>> data = load_nested_ner("my_corpus/")  # doctest: +SKIP
>>> suggest_overlap(data)  # doctest: +SKIP
'nested'
"""

from .chars import TextOptions, chars_to_words
from .describe import Statistics, label_names, mention_kinds, statistics, suggest_overlap
from .loading import find_splits, load_nested_ner
from .readers import READERS, guess_format, read_file
from .reshaping import join_corpora, join_sentences, join_to_size, resplit_words
from .schema import Entity, ReadReport, Sentence, check_sentence, features
from .tags import detect_scheme, entities_to_tags, tags_to_entities
from .writers import (
    WRITERS,
    write_brat,
    write_cas,
    write_conll,
    write_docbin,
    write_jsonl,
    write_label_studio,
)

__all__ = [
    "READERS",
    "WRITERS",
    "Entity",
    "ReadReport",
    "Sentence",
    "Statistics",
    "TextOptions",
    "chars_to_words",
    "check_sentence",
    "detect_scheme",
    "entities_to_tags",
    "features",
    "find_splits",
    "guess_format",
    "join_corpora",
    "join_sentences",
    "join_to_size",
    "label_names",
    "mention_kinds",
    "load_nested_ner",
    "read_file",
    "resplit_words",
    "statistics",
    "suggest_overlap",
    "tags_to_entities",
    "write_brat",
    "write_cas",
    "write_conll",
    "write_docbin",
    "write_jsonl",
    "write_label_studio",
]
