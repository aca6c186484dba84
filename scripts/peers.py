"""Train a neighbour on a folder of ours and write what it finds in the test split; run by the neighbour's own Python.

    PEER/bin/python scripts/peers.py spacy FOLDER --output found.jsonl
    PEER/bin/python scripts/peers.py span_marker FOLDER --encoder ENCODER --output found.jsonl

`pip install spacy` and `pip install span_marker "transformers<5"` make the two environments; this file needs nothing
of hf_spanner. FOLDER holds train, validation and test as JSON Lines by words. spaCy's spancat is trained on all
entities with the settings of its own quickstart (it learns its own vectors), SpanMarker on the outermost ones, which
is all it can say. `scripts/few_shot.py` calls this and scores what is found on all entities.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.pop(0)  # this folder has an evaluate.py, which is not what SpanMarker imports


def read(folder, split):
    return [json.loads(line) for line in (Path(folder) / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def outermost(sentence):
    """Of overlapping entities the longest."""
    kept = []
    for e in sorted(sentence["entities"], key=lambda e: (e["start"] - e["end"], e["start"])):
        if all(e["end"] <= other["start"] or e["start"] >= other["end"] for other in kept):
            kept.append(e)
    return kept


def spacy_spancat(folder, seed, longest, steps, **_):
    import spacy
    from spacy.cli.init_config import init_config
    from spacy.tokens import Doc, DocBin, Span
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train
    from spacy.util import load_config

    vocab = spacy.blank("en").vocab
    with tempfile.TemporaryDirectory() as place:
        for split in ("train", "validation"):
            docs = []
            for sentence in read(folder, split):
                doc = Doc(vocab, words=sentence["tokens"])
                doc.spans["sc"] = [Span(doc, e["start"], e["end"], label=e["label"]) for e in sentence["entities"]]
                docs.append(doc)
            DocBin(docs=docs).to_disk(f"{place}/{split}.spacy")
        config = init_config(lang="en", pipeline=["spancat"], optimize="efficiency", silent=True)
        config.to_disk(f"{place}/config.cfg")
        overrides = {
            "paths.train": f"{place}/train.spacy",
            "paths.dev": f"{place}/validation.spacy",
            "training.seed": seed,
            "training.max_steps": steps,
            "training.eval_frequency": max(steps // 8, 1),
            "components.spancat.suggester": {
                "@misc": "spacy.ngram_range_suggester.v1",
                "min_size": 1,
                "max_size": longest,
            },
        }
        nlp = init_nlp(load_config(f"{place}/config.cfg", overrides, interpolate=False), use_gpu=-1)
        (Path(place) / "out").mkdir()
        train(nlp, Path(place) / "out", use_gpu=-1)
        nlp = spacy.load(f"{place}/out/model-best")
    found = []
    for sentence in read(folder, "test"):
        doc = nlp(Doc(nlp.vocab, words=sentence["tokens"]))
        found.append([{"start": s.start, "end": s.end, "label": s.label_} for s in doc.spans["sc"]])
    return found


def span_marker(folder, seed, longest, steps, encoder):
    from datasets import Dataset
    from span_marker import SpanMarkerModel, Trainer
    from transformers import TrainingArguments

    labels = sorted({e["label"] for sentence in read(folder, "train") for e in sentence["entities"]})
    names = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
    rows = []
    for sentence in read(folder, "train"):
        tags = [0] * len(sentence["tokens"])
        for e in outermost(sentence):
            tags[e["start"] : e["end"]] = [names.index(f"I-{e['label']}")] * (e["end"] - e["start"])
            tags[e["start"]] = names.index(f"B-{e['label']}")
        rows.append({"tokens": sentence["tokens"], "ner_tags": tags})
    model = SpanMarkerModel.from_pretrained(encoder, labels=names, model_max_length=256, entity_max_length=longest)
    with tempfile.TemporaryDirectory() as place:
        args = TrainingArguments(
            place, learning_rate=5e-5, per_device_train_batch_size=8, max_steps=steps, warmup_ratio=0.1,
            save_strategy="no", report_to="none", disable_tqdm=True, seed=seed, use_cpu=True,
        )  # fmt: skip
        Trainer(model=model, args=args, train_dataset=Dataset.from_list(rows)).train()
    model.eval()
    found = []
    for sentence in read(folder, "test"):
        found.append(
            [
                {"start": e["word_start_index"], "end": e["word_end_index"], "label": e["label"]}
                for e in model.predict(sentence["tokens"])
            ]
        )
    return found


PEERS = {"spacy": spacy_spancat, "span_marker": span_marker}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder")
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--output", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=int, default=12, help="words of the longest entity that is looked for")
    parser.add_argument("--steps", type=int, help="default: 5 passes in batches of 8, and 400 steps")
    args = parser.parse_args()
    sentences = read(args.folder, "test")
    steps = args.steps or 5 * math.ceil(len(read(args.folder, "train")) / 8) + 400
    found = PEERS[args.peer](args.folder, seed=args.seed, longest=args.longest, steps=steps, encoder=args.encoder)
    with open(args.output, "w", encoding="utf-8") as file:
        for sentence, entities in zip(sentences, found, strict=True):
            file.write(json.dumps({"id": sentence["id"], "tokens": sentence["tokens"], "entities": entities}) + "\n")


if __name__ == "__main__":
    main()
