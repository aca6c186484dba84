"""JSON Lines by words: this package's own form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..schema import FURTHER, Sentence
from .files import complete_or_not_at_all


def write_jsonl(sentences: Iterable[Sentence], path: str | Path) -> int:
    """One sentence a line, by words; `read_jsonl` gives the same sentences back. Returns their number."""
    number = 0
    with complete_or_not_at_all(Path(path)) as file:
        for sentence in sentences:
            whole: dict[str, Any] = {**sentence}
            record = {key: whole[key] for key in ("id", "doc_id", "tokens", "entities")}
            record |= {name: whole[name] for name in FURTHER if whole.get(name) is not None}
            record["entities"] = [{k: v for k, v in e.items() if v is not None} for e in sentence["entities"]]
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            number += 1
    return number
