"""Make the checkpoint that is installed with the package from a trained run, measure it so, and write its card.

    hf-spanner train default.yaml --data genia/ gum/ --complete gum/ --repeats 1 2 --output_dir runs/default
    python scripts/ship_default.py runs/default --data genia/ gum/

Weights are stored in half precision and the vocabulary in eight bits; they are read in single precision, and all
figures of the card are measured after that rounding. The code stays in the package: the folder holds none.
"""

import argparse
import json
import logging
from pathlib import Path

import torch
from transformers.modeling_utils import PreTrainedModel

from hf_spanner.analysis.pictures import BLUE, GREY, require_matplotlib
from hf_spanner.data import label_names, load_nested_ner, resplit_words
from hf_spanner.default import FOLDER
from hf_spanner.evaluation import score_groups, tune_threshold
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.evaluation.thresholds import FLOOR as LEAST
from hf_spanner.evaluation.thresholds import write_threshold
from hf_spanner.hub.cards import About, make_card
from hf_spanner.hub.record import public, read_record, write_record
from hf_spanner.loading import load_model
from hf_spanner.metrics import format_scores, score_entities

ENCODER = "ibm-granite/granite-embedding-30m-english"
COMMAND = "hf-spanner train default.yaml --data genia/ gum/ --complete gum/ --repeats 1 2 --output_dir runs/default"
CARDS = Path(__file__).resolve().parents[1] / "model_cards"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("run", help="folder of the trained model")
    parser.add_argument(
        "--data", nargs="+", required=True, help="what to measure it on: folders with test or validation"
    )
    parser.add_argument(
        "--limits", default=str(CARDS / "default_limits.md"), help="what the card says of its mistakes"
    )
    parser.add_argument("--tolerance", type=float, default=0.003, help="F1 on validation given away for precision")
    args = parser.parse_args()
    require_matplotlib()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)

    model, tokenizer = load_model(args.run)
    corpora = {Path(source).name: read(source, model.config.word_splitter) for source in args.data}
    save_compact(model, tokenizer, FOLDER)
    model, tokenizer = load_model(str(FOLDER))  # as everybody will load it
    threshold = {}
    for name, splits in corpora.items():
        candidates = predict_sentences(model, tokenizer, splits["validation"], threshold=LEAST, overlap="any")
        gold = [sentence["entities"] for sentence in splits["validation"]]
        tuned = round(tune_threshold(candidates, gold, model.config.overlap, args.tolerance).threshold, 2)
        threshold |= dict.fromkeys(splits["validation"][0]["labels"], tuned)
        print(f"{name}: threshold {tuned}, chosen on validation")
    write_threshold(FOLDER / "config.json", threshold)
    model.config.threshold = threshold
    record = public(read_record(str(Path(args.run) / "training.json")))
    record |= {"results": {}, "command": COMMAND, "example": None, "base_model": ENCODER}
    for name, splits in corpora.items():
        for split, sentences in splits.items():
            found = predict_sentences(model, tokenizer, sentences)
            gold = [sentence["entities"] for sentence in sentences]
            scores = score_entities(found, gold, labels=sentences[0]["labels"])
            scores["groups"] = score_groups(found, sentences)
            record["results"][f"{name}, {split}"] = scores
            print(f"{name} ({split})\n{format_scores(scores)}\n")
    write_record(FOLDER, record)
    draw_history(record["history"]).savefig(CARDS / "default_training.svg")
    (CARDS / "default_history.json").write_text(json.dumps(record["history"], indent=1), encoding="utf-8")
    about = About(language="en", license="apache-2.0", base_model=ENCODER)
    about.limits = Path(args.limits).read_text(encoding="utf-8").strip() if Path(args.limits).is_file() else None
    make_card(model, tokenizer, "default", record, about).save(CARDS / "default.md")
    size = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"{FOLDER}: {size / 1e6:.1f} MB")


def read(source: str, splitter: str) -> dict[str, list[dict]]:
    """Validation and test, in the words that raw text is cut into, each sentence with the labels of its corpus."""
    data = load_nested_ner(source)
    labels = label_names(data)
    return {
        split: [{**resplit_words(sentence, splitter), "labels": labels} for sentence in data[split]]
        for split in ("validation", "test")
        if split in data
    }


def save_compact(model, tokenizer, folder: Path) -> None:
    """Weights in half precision, the vocabulary in eight bits, to be read in single precision; no code."""
    folder.mkdir(exist_ok=True)
    model.compact_embeddings()
    half = {name: value.half() if value.is_floating_point() else value for name, value in model.state_dict().items()}
    assert model.dtype == torch.float32  # config.json says how it is read
    _auto_class, type(model)._auto_class, type(model.config)._auto_class = type(model)._auto_class, None, None
    PreTrainedModel.save_pretrained(model, folder, state_dict=half)
    type(model)._auto_class = _auto_class
    tokenizer.save_pretrained(folder)


def draw_history(history: list[dict]):
    """Validation precision, recall and F1 by epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    epochs = [entry["epoch"] for entry in history]
    for key, style in (("precision", "--"), ("recall", ":"), ("f1", "o-")):
        values = [100 * float(entry[f"eval_{key}"]) for entry in history]
        axes.plot(epochs, values, style, color=BLUE if key == "f1" else GREY, label=key.replace("f1", "F1"))
    axes.set_xlabel("epoch")
    axes.set_ylabel("validation, strict, %")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
