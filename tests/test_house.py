"""The house itself: what may stand where."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [file for folder in ("modeling", "hf_spanner", "scripts") for file in (ROOT / folder).rglob("*.py")]


def test_texts_are_read_in_one_place():
    """Batches are made, models switched to evaluation and windows merged by the one `Reader`."""
    for name in ("pad_batch", "merge_windows", r"model\.eval\(\)"):
        users = {file.name for file in SOURCES if re.search(rf"\b{name}", file.read_text(encoding="utf-8"))}
        assert users == {"encoding.py"}, name
