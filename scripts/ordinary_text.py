"""Ordinary sentences of our own from the patterns of `ordinary_text.yaml`, with their entities.

    python scripts/ordinary_text.py 20        # twenty of them, to look at

`scripts/default_data.py` takes them for the default model. A slot of a pattern is filled with one of its lines, which
may hold slots themselves, or with what it names (`{city:Chicago}`); what fills a slot with a label is an entity. Names
of the reading tests are left out.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hf_spanner.data.chars import word_splitter

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests" / "fixtures"
SLOT = re.compile(r"\{(\w+)(?::([^}]+))?\}")


def tested_names() -> set[str]:
    """The names that the reading tests ask for, without their article."""
    rows = [row for file in TESTS.glob("ordinary*.yaml") for row in yaml.safe_load(file.read_text(encoding="utf-8"))]
    return {bare(name) for _, expected in rows for names in expected.values() for name in names}


def bare(name: str) -> str:
    return name.lower().removeprefix("the ")


def names_of(line: str) -> set[str]:
    """The name that a line is, if its slots name what they are filled with, and what these are filled with."""
    return {bare(SLOT.sub(lambda match: match[2] or match[0], line))} | {
        bare(m[2]) for m in SLOT.finditer(line) if m[2]
    }


class Patterns:
    """Patterns, what fills their slots, and the labels of slots."""

    def __init__(self, path: Path = HERE / "ordinary_text.yaml", without: set[str] | None = None) -> None:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
        without = tested_names() if without is None else without
        self.labels: dict[str, str] = plan["labels"]
        self.patterns: list[str] = plan["patterns"]
        self.fill = {
            slot: [line for line in lines if not names_of(line) & without] for slot, lines in plan["fill"].items()
        }

    def sentence(self, pattern: str, draw: random.Random) -> dict[str, Any]:
        """The pattern filled: words and entities."""
        text, found = self._filled(pattern, draw)
        if text[:1].islower() and pattern[:1] == "{":  # a slot opens the sentence
            text = text[:1].upper() + text[1:]
        words = word_splitter("fine")(text)
        starts, ends = {s: i for i, (s, _) in enumerate(words)}, {e: i + 1 for i, (_, e) in enumerate(words)}
        entities = [
            {"start": starts[s], "end": ends[e], "label": label, "mention": "name"}
            for s, e, label in found
            if s in starts and e in ends  # "GreenTanaka" is one word, and no person
        ]
        return {"tokens": [text[s:e] for s, e in words], "entities": entities}

    def _filled(self, pattern: str, draw: random.Random) -> tuple[str, list[tuple[int, int, str]]]:
        text, found, last = "", [], 0
        for match in SLOT.finditer(pattern):
            slot = match[1]
            inner, inner_found = self._filled(match[2] or draw.choice(self.fill[slot]), draw)
            text += pattern[last : match.start()]
            if inner.lower().startswith("the ") and text.lower().endswith(("the ", "a ")):
                inner, inner_found = inner[4:], [(max(s - 4, 0), e - 4, label) for s, e, label in inner_found]
            found += [(len(text) + s, len(text) + e, label) for s, e, label in inner_found]
            if slot in self.labels:
                found.append((len(text), len(text) + len(inner), self.labels[slot]))
            text, last = text + inner, match.end()
        return text + pattern[last:], found


def sentences(number: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    """So many sentences, every pattern as often as another."""
    patterns, order = Patterns(), []
    for i in range(number):
        if not order:
            order = patterns.patterns.copy()
            draw.shuffle(order)
        yield {"id": f"ordinary/{i}", "doc_id": None, **patterns.sentence(order.pop(), draw)}


if __name__ == "__main__":
    for row in sentences(int(sys.argv[1]), random.Random()):
        names = [(" ".join(row["tokens"][e["start"] : e["end"]]), e["label"]) for e in row["entities"]]
        print(" ".join(row["tokens"]), names, sep="\n    ")
