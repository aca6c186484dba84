"""F1 against the number of training sentences: ours without flags, and what a user would take instead.

    python scripts/few_shot.py --data litbank/ genia/ --sizes 25 50 100 200 500 1500 --seeds 1 2 3 \\
        --output_dir runs/few_shot --results model_cards/few_shot.jsonl
    python scripts/few_shot.py --plot model_cards/few_shot.jsonl --output_dir model_cards

Three systems on the same sentences: the default model trained on, `span_ner` on a small encoder, and transformers'
token classification on that encoder with BIO tags of the outermost entities, as long as ours, scored on all entities.
With `--peers spacy=PYTHON span_marker=PYTHON` also the neighbours, each in its own environment (`scripts/peers.py`).
Rows that are there are not measured again.
"""

import argparse
import json
import math
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from hf_spanner import load_nested_ner, load_tokenizer
from hf_spanner.analysis.figures import COLOURS, legend_above, new_figure, save_figure
from hf_spanner.benchmarks.sweep import draw, measure, read_rows, spread
from hf_spanner.data import entities_to_tags, label_names
from hf_spanner.evaluation.predictions import read_predictions
from hf_spanner.metrics import score_entities
from hf_spanner.modeling.decoding import Entity, resolve_overlaps, tag_entities
from hf_spanner.training.settings import BATCH, PACES

TAGGER = "transformers' token classification"


def outermost(sentence: dict[str, Any]) -> list[tuple[int, int, str]]:
    """The entities that BIO tags can say: of overlapping ones the longest."""
    scored = [Entity(e["start"], e["end"], e["label"], float(e["end"] - e["start"])) for e in sentence["entities"]]
    return [(e.start, e.end, e.label) for e in resolve_overlaps(scored, "flat")]


def tagger(data: str, size: int, seed: int, encoder: str, folder: Path, test: int | None) -> dict[str, Any]:
    """Train transformers' token classification, and score it on all entities of the test split."""
    splits = load_nested_ner(str(draw(data, size, seed, folder / "data", 200, test)))
    tags = ["O", *(f"{prefix}-{label}" for label in label_names(splits) for prefix in "BI")]
    tokenizer = load_tokenizer(encoder)

    def encode(sentence: dict[str, Any]) -> dict[str, Any]:
        words = entities_to_tags(outermost(sentence), len(sentence["tokens"]))
        encoded = tokenizer(sentence["tokens"], is_split_into_words=True, truncation=True)
        ids = encoded.word_ids()
        first = [i for i, word in enumerate(ids) if word is not None and word != ids[i - 1]]
        labels = [tags.index(words[word]) if i in first else -100 for i, word in enumerate(ids)]
        return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"], "labels": labels}

    set_seed(seed)
    model = AutoModelForTokenClassification.from_pretrained(encoder, num_labels=len(tags), dtype=torch.float32)
    pace = PACES["fresh small"]
    train = [encode(sentence) for sentence in splits["train"]]
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(folder / "tagger"),
            learning_rate=pace.encoder,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=32,
            max_steps=pace.passes * math.ceil(len(train) / BATCH) + pace.steps,
            warmup_steps=0.1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=seed,
        ),
        train_dataset=train,
        data_collator=DataCollatorForTokenClassification(tokenizer),
    )
    trainer.train()
    gold = list(splits["test"])
    prediction = trainer.predict([encode(sentence) for sentence in gold])
    found = []
    for scores, labels in zip(prediction.predictions, prediction.label_ids, strict=True):
        best = scores[labels != -100].argmax(-1).tolist()
        found.append(tag_entities(best, [1.0] * len(best), label_names(splits)))
    shutil.rmtree(folder / "tagger", ignore_errors=True)
    score = score_entities(found, [sentence["entities"] for sentence in gold])
    return {
        "corpus": Path(data).name,
        "size": size,
        "seed": seed,
        "start": TAGGER,
        "test": round(100 * score["f1"], 2),
    }


PEERS = {"spacy": "spaCy's spancat", "span_marker": "SpanMarker"}


def peer(name: str, python: str, data: str, size: int, seed: int, encoder: str, folder: Path, test: int | None):
    """Train a neighbour in its own environment, and score what it finds in the test split."""
    drawn = draw(data, size, seed, folder / "data", 200, test)
    found, script = folder / f"{name}.jsonl", Path(__file__).with_name("peers.py")
    command = [python, str(script), name, str(drawn), "--encoder", encoder, "--output", str(found)]
    with (folder / f"{name}.log").open("a", encoding="utf-8") as log:
        subprocess.run([*command, "--seed", str(seed)], stdout=log, stderr=subprocess.STDOUT, check=True)
    gold = list(load_nested_ner(str(drawn))["test"])
    score = score_entities(read_predictions(found, gold), [sentence["entities"] for sentence in gold])
    return {"corpus": Path(data).name, "size": size, "seed": seed, "test": round(100 * score["f1"], 2)}


def plot(rows: list[dict[str, Any]], folder: Path) -> Path:
    """One panel a corpus: the mean over seeds, and every run as a point."""
    corpora, ticks = sorted({row["corpus"] for row in rows}), sorted({row["size"] for row in rows})
    starts = list(dict.fromkeys(row["start"] for row in rows))
    figure, panels = new_figure(panels=len(corpora), xscale="log")
    for axes, corpus in zip(panels, corpora, strict=True):
        for start, colour in zip(starts, COLOURS):
            runs: dict[int, list[float]] = {}
            for row in rows:
                if (row["corpus"], row["start"]) == (corpus, start):
                    runs.setdefault(row["size"], []).append(row["test"])
            sizes = sorted(runs)
            means = [sum(runs[n]) / len(runs[n]) for n in sizes]
            axes.plot(sizes, means, marker="o", color=colour, label=start)
            for size in sizes:
                axes.scatter([size] * len(runs[size]), runs[size], s=8, color=colour, alpha=0.5)
        axes.set(xlabel="training sentences", ylabel=f"{corpus}, test F1")
        axes.set_xticks(ticks, labels=[str(size) for size in ticks])
        axes.minorticks_off()
    legend_above(panels[0])
    return save_figure(figure, folder / "few_shot", ["png"])[0]


def few_shot_table(rows: list[dict[str, Any]]) -> str:
    """A line for each corpus and system, a column a size: mean ± standard deviation of the test F1."""
    sizes = sorted({row["size"] for row in rows})
    lines = ["| | | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---|---" + "|---:" * len(sizes) + "|"]
    for corpus, start in dict.fromkeys((row["corpus"], row["start"]) for row in rows):
        cells = []
        for size in sizes:
            runs = [row["test"] for row in rows if (row["corpus"], row["start"], row["size"]) == (corpus, start, size)]
            cells.append(f"{spread(runs)} ({len(runs)})" if runs else "")
        lines.append(f"| {corpus} | {start} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", nargs="+", default=[], help="folders with train, validation and test files")
    parser.add_argument("--sizes", nargs="+", type=int, default=[25, 50, 100, 200, 500, 1500])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2", help="a Hub id or a folder")
    parser.add_argument("--systems", nargs="+", default=["default", "fresh", "tagger"], help="which of the three")
    parser.add_argument("--peers", nargs="+", default=[], metavar="NAME=PYTHON", help="spacy and span_marker")
    parser.add_argument("--test", type=int, help="read so many test sentences only")
    parser.add_argument("--output_dir", default="runs/few_shot")
    parser.add_argument("--results", default="runs/few_shot.jsonl", help="one line a run")
    parser.add_argument("--plot", metavar="FILE", help="measure nothing: table and plot of the results that are there")
    args = parser.parse_args()
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if args.plot is not None:
        rows = read_rows(Path(args.plot))
        print(few_shot_table(rows))
        print(plot(rows, folder))
        return
    results = Path(args.results)
    results.parent.mkdir(parents=True, exist_ok=True)
    flags = {"default": "--model default", "fresh": f"--approach span_ner --encoder {shlex.quote(args.encoder)}"}
    names = {"default": "the default model", "fresh": "span_ner on a small encoder", "tagger": TAGGER, **PEERS}
    pythons = dict(entry.split("=", 1) for entry in args.peers)
    for seed in args.seeds:
        for size in args.sizes:
            for data in args.data:
                for system in [*args.systems, *pythons]:
                    done = {(row["corpus"], row["size"], row["seed"], row["start"]) for row in read_rows(results)}
                    if (Path(data).name, size, seed, names[system]) in done:
                        continue
                    if system == "tagger":
                        row = tagger(data, size, seed, args.encoder, folder, args.test)
                    elif system in pythons:
                        row = peer(system, pythons[system], data, size, seed, args.encoder, folder, args.test)
                    else:
                        row = measure(data, size, seed, shlex.split(flags[system]), "", folder, 200, args.test)
                    row["start"] = names[system]
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(Path(data).name, size, seed, names[system], row["test"], flush=True)


if __name__ == "__main__":
    main()
