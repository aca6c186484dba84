"""Sentences to files: every format is one function `write_x(sentences, path)`; `WRITERS` names them.

A file appears under its name only when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .brat import write_brat
from .cas import write_cas
from .conll import write_conll
from .docbin import write_docbin
from .jsonl import write_jsonl
from .label_studio import write_label_studio

WRITERS: dict[str, Callable[..., Any]] = {
    "jsonl": write_jsonl,
    "brat": write_brat,
    "conll": write_conll,
    "docbin": write_docbin,
    "cas": write_cas,
    "label-studio": write_label_studio,
}
# What a file of the format is called; those without an ending are folders.
ENDINGS = {"jsonl": ".jsonl", "conll": ".conll", "docbin": ".spacy", "label-studio": ".json"}

__all__ = [
    "ENDINGS",
    "WRITERS",
    "write_brat",
    "write_cas",
    "write_conll",
    "write_docbin",
    "write_jsonl",
    "write_label_studio",
]
