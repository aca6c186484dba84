"""How fast and how large inference is, beside the bare encoder on the same sentences."""

import multiprocessing
import resource
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..auto import APPROACHES, AutoModelForNestedNer
from ..evaluation.predicting import predict_sentences
from ..loading import load_tokenizer, pipeline
from ..modeling.reading import Reader
from .timing import interleave

COUNTS = ("seeds a sentence", "share kept", "share labelled", "kept an entity")
FLOORS = {"bare": "share of the bare encoder", "bare-sorted": "share of the bare encoder, sorted"}


def bare_encoder(model, tokenizer, texts: Sequence[str], batch_size: int):
    """Tokenizer plus encoder alone, batches in the order given: the floor that no model on this encoder can beat."""

    @torch.inference_mode()
    def run():
        for first in range(0, len(texts), batch_size):
            batch = tokenizer(
                list(texts[first : first + batch_size]), return_tensors="pt", padding=True, truncation=True
            )
            model.encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])

    return run


def sorted_by_length(tokenizer, texts: Sequence[str]) -> list[str]:
    """What the pipeline does within its look-ahead, done for the bare encoder too: the harder comparison."""
    return sorted(texts, key=lambda text: len(tokenizer(text)["input_ids"]), reverse=True)


def count_spans(
    model, tokenizer, sentences: Sequence[Mapping[str, Any]], batch_size: int = 32
) -> dict[str, float | None]:
    """Spans that a model proposes for a sentence, on average, the shares that its filter keeps and it labels, and how
    many it keeps for each gold entity.

    Sentences are read as an evaluation reads them, in their own words. All figures are None for an approach that has
    no list of proposals, the last one if there is no entity.
    """
    reader = Reader(model, tokenizer)
    seeds = kept = labelled = 0
    for _, output in reader.run(reader.cut_sentences(sentences), batch_size):
        if "num_seeds" not in output:
            return dict.fromkeys(COUNTS)
        seeds += output.num_seeds.sum().item()
        kept += output.num_kept.sum().item()
        labelled += (output.spans[..., 0] >= 0).sum().item()
    total, entities = max(seeds, 1), sum(len(sentence.get("entities", ())) for sentence in sentences)
    figures = (seeds / max(len(sentences), 1), kept / total, labelled / total, kept / entities if entities else None)
    return dict(zip(COUNTS, figures, strict=True))


def compare_speed(
    models: dict[str, str], sentences: Sequence[Mapping], batch_size: int = 32, repeats: int = 5, floors: bool = True
) -> list[dict]:
    """Sentences per second of each model's pipeline as a share of its bare encoder's, in one interleaved run.

    Two floors are measured: the encoder fed in the order of the texts (as other pipelines do), and sorted by length,
    without the padding that mixing lengths costs. A model without a transformer underneath has no such floor, and
    `floors=False` leaves them out, for models that are compared with each other only. A model that types given spans
    gets the gold ones of `sentences`, in words; the others read raw text.
    Sentences per second are for orientation: only the ratios can be compared with another run.
    """
    candidates: dict[str, Callable[[], object]] = {}
    rows: list[dict] = []
    spans: dict[str, dict[str, float | None]] = {}
    texts = [" ".join(sentence["tokens"]) for sentence in sentences]
    for name, path in models.items():
        model, tokenizer = AutoModelForNestedNer.from_pretrained(path), load_tokenizer(path)
        if model.task == "typing":
            spans[name] = dict.fromkeys(COUNTS)
            candidates[f"{name}/pipeline"] = partial(predict_sentences, model, tokenizer, sentences, batch_size)
        else:
            spans[name] = count_spans(model, tokenizer, sentences, batch_size)
            candidates[f"{name}/pipeline"] = partial(pipeline(model, tokenizer), texts, batch_size=batch_size)
        if model.config.encoder_config is None or not floors:
            continue
        candidates[f"{name}/bare"] = bare_encoder(model, tokenizer, texts, batch_size)
        ordered = sorted_by_length(tokenizer, texts)
        candidates[f"{name}/bare-sorted"] = bare_encoder(model, tokenizer, ordered, batch_size)
    seconds = interleave(candidates, repeats)
    first = next(iter(models))
    for name in models:
        ours = seconds[f"{name}/pipeline"]
        shares = (seconds[f"{name}/{floor}"] / ours if f"{name}/{floor}" in seconds else None for floor in FLOORS)
        rows.append(
            {
                "model": name,
                **dict(zip(FLOORS.values(), shares, strict=True)),
                f"speed relative to {first}": seconds[f"{first}/pipeline"] / ours,
                "sentences per second": len(texts) / ours,
                **spans[name],
            }
        )
    if all(row["seeds a sentence"] is None for row in rows):  # nobody has anything to tell
        rows = [{key: value for key, value in row.items() if key not in spans[first]} for row in rows]
    return rows


def peak_memory(approach: str, num_words: int, max_span: int = 10) -> float:
    """Peak resident MiB above the loaded model while one text of `num_words` words is read in one window.

    The encoder is one layer deep: what is measured is what stands around it.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measure_memory, (approach, num_words, max_span))


def _measure_memory(approach: str, num_words: int, max_span: int) -> float:
    from transformers import BertConfig

    torch.set_num_threads(1)
    model_class = APPROACHES[approach]
    # One narrow-headed layer: its attention matrix is small beside the span grid of a 384-d model.
    encoder = BertConfig(
        vocab_size=100, hidden_size=384, num_hidden_layers=1, num_attention_heads=1, intermediate_size=384,
        max_position_embeddings=4096,
    )  # fmt: skip
    fields: dict[str, Any] = {"encoder_config": encoder.to_dict(), "labels": list("ABCDE")}
    config = model_class.config_class(**fields, max_span_length=max_span, max_subwords=4096)
    model = model_class(config).eval()

    def read(n: int) -> None:
        batch = {
            "input_ids": torch.ones(1, n, dtype=torch.long),
            "attention_mask": torch.ones(1, n, dtype=torch.long),
            "word_ids": torch.arange(n).unsqueeze(0),
            "num_words": torch.tensor([n]),
        }
        with torch.inference_mode():
            model.decode(model(**batch))

    read(8)
    before = reset_peak()
    read(num_words)
    return (peak() - before) / 1024


def peak() -> int:
    """The largest resident size so far, in KiB."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def reset_peak() -> int:
    """Forget earlier peaks (a child process inherits its parent's) and return what is resident now, in KiB."""
    refs = Path("/proc/self/clear_refs")
    if refs.exists():
        refs.write_text("5")
    return peak()
