"""What several test files share. pytest puts this folder on the path (see pyproject.toml)."""

import json
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from hf_spanner.modeling.reading import WordEncoder, pad_batch

ORACLES = Path(__file__).resolve().parent / "fixtures" / "oracles"  # see the README there

LABELS = ["PER", "place name", "ORG"]  # one label with a space

# Words, and entities (start, end, label): nested four deep, two labels on one span, an empty sentence.
SENTENCES = [
    ("the mayor of New York met the head of the Bank of England in London".split(),
     [(0, 5, "PER"), (3, 5, "place name"), (6, 13, "PER"), (9, 13, "ORG"), (12, 13, "place name"),
      (14, 15, "place name")]),
    ("New York".split(), [(0, 2, "place name")]),
    ("London".split(), [(0, 1, "place name"), (0, 1, "ORG")]),
    ("it is not here".split(), []),
    ("the head of the office of the mayor of New York is in New York".split(),
     [(0, 11, "PER"), (3, 11, "ORG"), (6, 11, "PER"), (9, 11, "place name"), (13, 15, "place name")]),
]  # fmt: skip


def read_oracle(name: str) -> dict:
    """What the authors' code answers, from `fixtures/oracles`."""
    file = ORACLES / name
    if file.suffix == ".json":
        return json.loads(file.read_text(encoding="utf-8"))
    return torch.load(file, weights_only=True)


def records() -> list[dict]:
    """The sentences in the form of the data layer."""
    return [
        {
            "id": f"s{i}",
            "doc_id": "d",
            "tokens": words,
            "entities": [{"start": s, "end": e, "label": label} for s, e, label in entities],
        }
        for i, (words, entities) in enumerate(SENTENCES)
    ]


def encoder_config(model_type: str, vocab_size: int):
    """A two-layer encoder of any family, small enough to run in milliseconds."""
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    if model_type == "distilbert":
        size = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    elif model_type == "electra":
        size["embedding_size"] = 16
    positions = 130 if model_type in ("roberta", "xlm-roberta") else 128
    extra = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    if model_type == "modernbert":
        extra |= {"cls_token_id": 2, "sep_token_id": 3, "reference_compile": False}
    if model_type in ("roberta", "xlm-roberta"):
        extra["pad_token_id"] = 1
    return AutoConfig.for_model(model_type, vocab_size=vocab_size, max_position_embeddings=positions, **size, **extra)


def same_entities(found: list[dict], expected: list[dict]) -> bool:
    """Whether they are the same; scores hang on what else was in a batch in their last digits, and tables have null
    for what others leave out."""
    rows = [[{k: v for k, v in entity.items() if v is not None} for entity in side] for side in (found, expected)]
    scores = [[entity.pop("score") for entity in side] for side in rows]
    return rows[0] == rows[1] and scores[0] == pytest.approx(scores[1], abs=1e-4)


def make_batch(tokenizer, sentences=None, max_subwords: int = 128, labels=LABELS) -> dict[str, torch.Tensor]:
    """A padded batch with gold entities."""
    encoder = WordEncoder(tokenizer, max_subwords)
    features = []
    for words, entities in SENTENCES if sentences is None else sentences:
        feature = encoder.encode(words)
        feature["entities"] = [(s, e, labels.index(label)) for s, e, label in entities]
        features.append(feature)
    return pad_batch(features, tokenizer.pad_token_id)


def without_gold(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key: value for key, value in batch.items() if key != "entities"}


def learn(
    model, batch: Mapping | Callable[[], Mapping], learnt: Callable[[], bool], learning_rate: float, steps: int
) -> list[float]:
    """Train on a batch (or on what a call gives) until `learnt()`, asked every `steps` steps, and six times at most.

    How many steps a tiny model needs hangs on the last bits of sums, and so on the processor. What is tested is what
    it can do once it has learnt; a model that never learns fails there.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    losses = []
    for _ in range(6):
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 10, 1 - step / steps))
        model.train()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(**(batch() if callable(batch) else batch)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        if learnt():
            break
    return losses


HALF = ["bfloat16", "autocast bfloat16", "autocast float16"]


def prepared(model, how: str) -> tuple:
    """The model in a precision, and the context it runs in."""
    dtype = getattr(torch, how.split()[-1])
    if how.startswith("autocast"):
        return model, torch.autocast("cpu", dtype)
    return model.to(dtype), torch.autocast("cpu", enabled=False)


VOID = {"meta", "link", "input", "br", "img"}


class Checker(HTMLParser):
    """Every tag is closed in its order; collects addresses, texts and tags."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open, self.addresses, self.text, self.tags = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
