"""What the default model reads in ordinary text: sentences of our own, and a floor per type for every default."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

import hf_spanner

FILES = sorted((Path(__file__).parent / "fixtures").glob("ordinary*.yaml"))
# Of so many names, those that must be found with the right type. Raise them with every default that is better.
FLOORS = {
    "organization": 124,
    "place": 123,
    "time": 42,
    "person": 52,
    "chemical": 18,
    "disease": 22,
    "money": 3,
    "protein": 0,  # one, and that is found as DNA
}
PRECISION = 0.88  # of what is shown as a name, a title ("Judge Sarah Thompson") taken for a mistake


def bare(text):
    """With or without an article it is the same name."""
    return text.lower().removeprefix("the ")


@pytest.fixture(scope="module")
def counted():
    rows = [row for file in FILES for row in yaml.safe_load(file.read_text(encoding="utf-8"))]
    texts = [text for text, _ in rows]
    names, right, shown = Counter(), Counter(), Counter()
    found = hf_spanner.pipeline()(texts, batch_size=32, mentions=["name", "nominal"])  # "next year" is no name
    for (text, expected), entities in zip(rows, found, strict=True):
        read = {(bare(e["word"]), e["entity_group"]) for e in entities}
        gold = {(bare(mention), kind) for kind, mentions in expected.items() for mention in mentions}
        assert all(mention in text for mentions in expected.values() for mention in mentions)
        for mention, kind in gold:
            names[kind] += 1
            right[kind] += (mention, kind) in read
        for e in entities:
            if e["mention"] == "name":
                shown[(bare(e["word"]), e["entity_group"]) in gold] += 1
    return names, right, shown


@pytest.mark.parametrize("kind", FLOORS)
def test_names_are_found_with_their_type(counted, kind):
    names, right, _ = counted
    assert set(names) == set(FLOORS)
    assert right[kind] >= FLOORS[kind], f"{right[kind]} of {names[kind]}"


def test_what_is_shown_is_a_name(counted):
    shown = counted[2]
    assert shown[True] / shown.total() >= PRECISION, f"{shown[True]} of {shown.total()}"
