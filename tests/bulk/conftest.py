"""A tiny model with random weights in a folder, and texts of many lengths."""

import random

import pytest
import torch
from approaches import ROWS

WORDS = "the mayor of New York met the head of the Bank of England in London Größe café 東京 IL-2 receptor".split()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory, tokenizer) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    row = next(row for row in ROWS if row.name == "span_ner")
    model = row.make(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Texts of our words; every seventh is empty or white space."""
    draw = random.Random(0)
    return [" " * (i % 3) if i % 7 == 0 else " ".join(draw.choices(WORDS, k=draw.randint(1, 25))) for i in range(120)]
