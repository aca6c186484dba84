"""What can be downloaded: the entities as JSON Lines, and as brat annotations beside their text."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Entities = Sequence[Mapping[str, Any]]


def write_json(path: Path, text: str, found: Mapping[str, Entities]) -> Path:
    """One line a model: `{"model", "text", "entities"}`, as `hf-spanner predict` writes them."""
    rows = [{"model": model, "text": text, "entities": list(entities)} for model, entities in found.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_brat(path: Path, text: str, found: Mapping[str, Entities]) -> Path:
    """A zip with `text.txt` and `text.ann`; with several models a folder for each."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, entities in enumerate(found.values(), start=1):
            folder = f"model{number}/" if len(found) > 1 else ""
            archive.writestr(f"{folder}text.txt", text.encode("utf-8", "replace"))
            archive.writestr(f"{folder}text.ann", brat_annotations(text, entities).encode("utf-8", "replace"))
    return path


def brat_annotations(text: str, entities: Entities) -> str:
    """A line an entity. brat knows no line breaks inside one, so that such an entity is in several fragments."""
    rows = []
    for number, entity in enumerate(entities, start=1):
        start, end = entity["start"], entity["end"]
        lines = [(start + m.start(), start + m.end()) for m in re.finditer(r"[^\r\n]+", text[start:end])]
        parts = [(a, b) for a, b in lines if text[a:b].strip()]
        label = re.sub(r"\s+", "_", entity["entity_group"])
        places = ";".join(f"{a} {b}" for a, b in parts)
        rows.append(f"T{number}\t{label} {places}\t{' '.join(text[a:b] for a, b in parts)}\n")
    return "".join(rows)
