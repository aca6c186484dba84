"""What the default model reads in ordinary text: sentences of our own, and a floor per type for every default."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

import hf_spanner

FILE = Path(__file__).parent / "fixtures" / "ordinary.yaml"
# Of so many names, those that must be found with the right type. Raise them with every default that is better.
FLOORS = {"organization": 32, "place": 49, "time": 19, "person": 15, "chemical": 4, "disease": 0}
ALSO = {"chemical": {"substance"}}  # what the present default calls it


def bare(text):
    """With or without an article it is the same name."""
    return text.lower().removeprefix("the ")


@pytest.fixture(scope="module")
def counted():
    rows = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    texts = [text for text, _ in rows]
    names, right = Counter(), Counter()
    for (text, expected), entities in zip(rows, hf_spanner.pipeline()(texts, batch_size=32), strict=True):
        found = {(bare(e["word"]), e["entity_group"]) for e in entities}
        for kind, mentions in expected.items():
            for mention in mentions:
                assert mention in text
                names[kind] += 1
                right[kind] += any((bare(mention), label) in found for label in {kind} | ALSO.get(kind, set()))
    return names, right


@pytest.mark.parametrize("kind", FLOORS)
def test_names_are_found_with_their_type(counted, kind):
    names, right = counted
    assert set(names) == set(FLOORS)
    assert right[kind] >= FLOORS[kind], f"{right[kind]} of {names[kind]}"
