"""How fast exported models read beside the one in torch, and the pipeline beside the graph alone."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..loading import load_model, pipeline
from ..modeling.reading import Reader
from ..modeling.words import split_words
from .timing import interleave


def bare_graph(model: Any, tokenizer: Any, texts: Sequence[str], batch_size: int) -> Callable[[], None]:
    """The graph alone, on batches that are ready, sorted by length: what no pipeline around it can beat."""
    reader = Reader(model, tokenizer)
    splitter = model.config.word_splitter
    words = ([text[start:end] for start, end in split_words(text, splitter)] for text in texts)
    items = [item for text in words for item in reader.cut(text).items]
    items.sort(key=lambda item: len(item["input_ids"]), reverse=True)
    batches = [reader.collate(items[first : first + batch_size]) for first in range(0, len(items), batch_size)]

    def run() -> None:
        for batch in batches:
            model.run(**batch)

    return run


def compare_exports(
    source: str,
    exported: Mapping[str, str],
    sentences: Sequence[Mapping[str, Any]],
    batch_sizes: Sequence[int] = (1, 32),
    repeats: int = 5,
) -> list[dict[str, Any]]:
    """For each exported model and batch size: its pipeline's speed beside torch's, and as a share of its bare graph's,
    all in one interleaved run."""
    texts = [" ".join(sentence["tokens"]) for sentence in sentences]
    models = {name: load_model(folder) for name, folder in {"torch": source, **exported}.items()}
    candidates: dict[tuple[str, int, str], Callable[[], object]] = {}
    for size in batch_sizes:
        for name, (model, tokenizer) in models.items():
            candidates[name, size, "pipeline"] = partial(pipeline(model, tokenizer), texts, batch_size=size)
            if name != "torch":
                candidates[name, size, "bare"] = bare_graph(model, tokenizer, texts, size)
    seconds = interleave(candidates, repeats)
    return [
        {
            "model": name,
            "batch": size,
            "speed beside torch": seconds["torch", size, "pipeline"] / seconds[name, size, "pipeline"],
            "share of the bare graph": seconds[name, size, "bare"] / seconds[name, size, "pipeline"],
        }
        for size in batch_sizes
        for name in exported
    ]
