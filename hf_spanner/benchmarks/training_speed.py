"""How fast training is: whole steps (forward, backward, update) on the same sentences."""

from collections.abc import Mapping, Sequence

import torch

from ..auto import AutoModelForNestedNer
from ..loading import load_tokenizer
from ..training.dataset import NestedNerCollator, NestedNerDataset
from .timing import interleave


def compare_training(
    models: Mapping[str, str], sentences: Sequence[Mapping], batch_size: int = 16, repeats: int = 3
) -> list[dict]:
    """Sentences per second of each model's training, relative to the first model's, in one interleaved run.

    The models must know the labels of `sentences`. They are trained for real (in memory; their files are not touched).
    """
    seconds = interleave(
        {name: _training(path, sentences, batch_size) for name, path in models.items()}, repeats=repeats
    )
    first = next(iter(models))
    return [{"model": name, f"training speed relative to {first}": seconds[first] / seconds[name]} for name in models]


def _training(path: str, sentences: Sequence[Mapping], batch_size: int):
    model, tokenizer = AutoModelForNestedNer.from_pretrained(path).train(), load_tokenizer(path)
    items = NestedNerDataset(sentences, tokenizer, model.config).items
    collate = NestedNerCollator(tokenizer.pad_token_id)
    batches = [collate(items[first : first + batch_size]) for first in range(0, len(items), batch_size)]
    # A rate at which nothing is unlearnt, however often the run is repeated.
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-6)

    def run() -> None:
        for batch in batches:
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()

    return run
