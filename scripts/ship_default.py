"""Make the checkpoint that is installed with the package from a trained run, measure it so, and write its card.

    python scripts/train_default.py CORPORA --output_dir runs/default
    python scripts/train_default.py CORPORA --output_dir runs/default --seed 43
    python scripts/ship_default.py runs/default/names runs/default/names-43 \\
        --data CORPORA --train runs/default/data/names

Of several runs the weights are averaged: they start from the same model, so that the mean of them is a model, too.
Weights are stored in half precision and the vocabulary in eight bits; they are read in single precision, and all
figures of the card are measured after that rounding. Thresholds and calibration are chosen on validation data. The
code stays in the package: the folder holds none. `--measure` measures the model that is there, and writes nothing.
"""

import argparse
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from default_data import read_plan
from transformers.modeling_utils import PreTrainedModel

from hf_spanner.analysis.figures import BLUE, GREY, legend_above, new_figure, require_matplotlib, save_figure
from hf_spanner.data import load_nested_ner, resplit_words
from hf_spanner.data.reshaping import of_mentions
from hf_spanner.default import FOLDER
from hf_spanner.evaluation import score_groups, tune_threshold
from hf_spanner.evaluation.calibration import calibration, fit_calibration
from hf_spanner.evaluation.mentions import list_mentions
from hf_spanner.evaluation.predicting import predict_sentences
from hf_spanner.evaluation.scoring import score_predictions
from hf_spanner.evaluation.thresholds import FLOOR as LEAST
from hf_spanner.evaluation.thresholds import write_threshold
from hf_spanner.hub.cards import About, make_card
from hf_spanner.hub.record import label_examples, public, read_record, write_record
from hf_spanner.loading import load_model
from hf_spanner.metrics import format_scores
from hf_spanner.modeling.decoding import Calibration

ENCODER = "ibm-granite/granite-embedding-30m-english"
COMMAND = "python scripts/train_default.py CORPORA --output_dir runs/default --seed 42"  # and 43: see above
CARDS = Path(__file__).resolve().parents[1] / "model_cards"
MENTIONS = ["name", "nominal", "pronoun"]
TRIM = {"mentions": ["name"], "before": ["the", "a", "an"], "after": ["'s", "’s", "'", "’"]}  # of GUM's whole phrases
EACH = 500  # sentences of each corpus that the calibration is fitted to, so that the largest does not decide alone
SHOWN = ["name"]  # what a newcomer expects of a text; the others are there for who asks


@dataclass
class Part:
    """Sentences to choose by or to measure on: a split of a corpus, and how it is looked at."""

    corpus: str
    split: str
    mentions: list[str] | None = None  # kinds that are looked at
    overlap: str | None = None  # "flat" where inner entities are not marked
    chooses: tuple[str, ...] = ()  # labels whose threshold is chosen here
    limit: int | None = None

    @property
    def title(self) -> str:
        kinds = "" if self.mentions is None else f", {' and '.join(self.mentions)}s"
        some = "" if self.limit is None else f", the first {self.limit:,}"
        return f"{self.corpus}, {self.split}{some}{kinds}"


GENERAL = ("person", "organization", "place", "time", "event", "object", "abstract", "substance", "animal", "plant")
PARTS = [
    Part("gum", "validation", chooses=(*GENERAL, "money")),
    Part("gum", "validation", ["name", "nominal"]),
    Part("genia", "validation", chooses=("protein", "DNA", "RNA", "cell_type", "cell_line")),
    Part("genia", "test"),
    Part("bc5cdr", "validation", overlap="flat", chooses=("disease", "chemical", "species")),
    Part("ncbi_disease", "validation", overlap="flat"),
    Part("wikigold", "validation", ["name"], "flat"),
    Part("wikigold", "test", ["name"], "flat"),
    Part("uner_en", "validation", ["name"], "flat"),
    Part("uner_en", "test", ["name"], "flat"),
    Part("btc", "test", ["name"], "flat", limit=1000),
    Part("crossner", "test", ["name"], "flat", limit=1000),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("runs", nargs="+", metavar="run", help="folder of a training; `default`: what is shipped")
    parser.add_argument("--data", required=True, help="folder with a folder for each corpus")
    parser.add_argument("--train", help="its training data, for the card's examples of each label")
    parser.add_argument("--measure", action="store_true", help="measure the model in `run` as it is")
    parser.add_argument("--limit", type=int, help="of each part the first so many sentences, with --measure")
    parser.add_argument(
        "--limits", default=str(CARDS / "default_limits.md"), help="what the card says of its mistakes"
    )
    parser.add_argument("--tolerance", type=float, default=0.003, help="F1 on GUM given away for precision")
    parser.add_argument("--names_tolerance", type=float, default=0.0, help="F1 of names given away for recall")
    parser.add_argument("--keep", action="store_true", help="the shipped weights stay: choose and measure anew")
    args = parser.parse_args()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    root = Path(args.data)
    if args.measure:
        results = measure(*load_runs(args.runs), root, args.limit)
        for title, scores in results.items():
            figures = (scores["precision"], scores["recall"], scores["f1"], scores["ece"] or 0)
            types = ", ".join(f"{label} {100 * row['f1']:.1f}" for label, row in scores["per_type"].items())
            print(f"| {title} | {' | '.join(f'{100 * x:.1f}' for x in figures)} | {types} |")
        return
    require_matplotlib()
    if not args.keep:
        model, tokenizer = load_runs(args.runs)
        model.config.mentions, model.config.shown_mentions, model.config.trim = MENTIONS, SHOWN, TRIM
        save_compact(model, tokenizer, FOLDER)
    model, tokenizer = load_model(str(FOLDER))  # as everybody will load it
    model.config.drop_calibration()
    threshold, line = choose(model, tokenizer, root, args.tolerance, args.names_tolerance)
    write_threshold(FOLDER / "config.json", threshold, calibration=line)
    model.config.threshold, model.config.calibration = threshold, line
    record = public(read_record(str((FOLDER if args.keep else Path(args.runs[0])) / "training.json")))
    record |= {"results": measure(model, tokenizer, root), "command": COMMAND, "example": None, "base_model": ENCODER}
    record["data"] = "twelve corpora"
    if args.train is not None:
        record["labels"] = label_examples(load_nested_ner(args.train)["train"])
    write_record(FOLDER, record)
    save_figure(draw_history(record["history"]), CARDS / "default_training", ["svg"])
    (CARDS / "default_history.json").write_text(json.dumps(record["history"], indent=1), encoding="utf-8")
    about = About(language="en", license="apache-2.0", base_model=ENCODER)
    about.limits = Path(args.limits).read_text(encoding="utf-8").strip() if Path(args.limits).is_file() else None
    make_card(model, tokenizer, "default", record, about).save(CARDS / "default.md")
    size = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"{FOLDER}: {size / 1e6:.1f} MB")


def load_runs(runs: list[str]):
    """The model of the first run, with the mean of the weights of all."""
    models, tokenizers = zip(*(load_model(run) for run in runs), strict=True)
    for model in models:
        model.restore_embeddings()
    states = [model.state_dict() for model in models]
    models[0].load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
    return models[0], tokenizers[0]


def choose(
    model, tokenizer, root: Path, tolerance: float, names_tolerance: float
) -> tuple[dict[str, float], list[list[float]]]:
    """Thresholds, of the labels of each corpus together, and the line that makes scores mean something.

    Those of names are chosen apart, on all corpora that have them, and lower: a name that is missed is seen at once.
    """
    threshold: dict[str, float] = {}
    candidates, gold, names, gold_names = [], [], [], []
    for part in PARTS:
        if part.split != "validation" or (part.mentions and part.corpus == "gum"):
            continue
        sentences = read(root, part, model.config.word_splitter)
        found = predict_sentences(model, tokenizer, sentences, threshold=LEAST, overlap="any", mentions=part.mentions)
        answers = [sentence["entities"] for sentence in sentences]
        if part.chooses:
            given = tolerance if part.corpus == "gum" else 0  # nominals are many, and a newcomer sees what is wrong
            tuned = tune_threshold(found, answers, model.config.overlap, given).threshold
            threshold |= dict.fromkeys(part.chooses, tuned)
            print(f"{part.title}: threshold {tuned:.2f}, before calibration")
        if part.corpus == "gum" or part.mentions == ["name"]:
            names += [[e for e in row if e.mention == "name"] for row in found]
            gold_names += [[e for e in row if e.get("mention", "name") == "name"] for row in answers]
        candidates += found[:EACH]
        gold += answers[:EACH]
    low = tune_threshold(names, gold_names, model.config.overlap, -names_tolerance).threshold
    print(f"names: threshold {low:.2f}, before calibration")
    threshold |= {label: low for label in model.config.labels if label.endswith(":name")}
    line = fit_calibration(candidates, gold, model.config.overlap)
    rise = Calibration(line)
    return {label: round(rise(score), 2) for label, score in threshold.items()}, line


def measure(model, tokenizer, root: Path, limit: int | None = None) -> dict[str, Any]:
    """Scores on every part, and how far scores are from shares of right answers (ECE)."""
    results = {}
    for part in PARTS:
        sentences = read(root, part, model.config.word_splitter)[:limit]
        mentions = part.mentions if model.config.mentions else None
        found = predict_sentences(model, tokenizer, sentences, overlap=part.overlap, mentions=mentions)
        if part.mentions and not mentions:  # an older model: pronouns are left out where the gold has them
            found = without_others(found, read(root, replace(part, mentions=None), model.config.word_splitter), part)
        scores = score_predictions(model, found, sentences)
        scores["groups"] = score_groups(found, sentences)
        reliability = calibration(list_mentions(found, [s["entities"] for s in sentences]))
        scores["ece"] = None if reliability is None else reliability["ece"]
        scores["per_type"] = {k: v for k, v in scores["per_type"].items() if v["support"] or v["predicted"]}
        results[part.title] = scores
        print(
            f"{part.title}: calibration error {100 * (scores['ece'] or 0):.1f}\n{format_scores(scores)}\n", flush=True
        )
    return results


def without_others(found, whole: list[dict[str, Any]], part: Part) -> list[list[Any]]:
    """What was found, but for spans that are mentions of other kinds, which a model that tells them apart drops."""
    others = [
        {(e["start"], e["end"]) for e in s["entities"] if e.get("mention", "name") not in (part.mentions or ())}
        for s in whole[: len(found)]
    ]
    return [[e for e in row if (e.start, e.end) not in of] for row, of in zip(found, others, strict=True)]


def read(root: Path, part: Part, splitter: str) -> list[dict[str, Any]]:
    """Sentences in the words of raw text and the default's labels, each with those it is annotated with."""
    corpus = next(corpus for corpus in read_plan() if corpus.name == part.corpus)
    labels = sorted(set(corpus.labels.values()) - {"money"})
    sentences = []
    for sentence in corpus.read(root, part.split)[: part.limit]:
        entities = corpus.translate(sentence, set())
        for entity in entities:
            if not corpus.kinds:
                del entity["mention"]
            elif entity["label"] == "money":  # as its annotators have it
                entity["label"] = "abstract"
        sentences.append({**resplit_words({**sentence, "entities": entities}, splitter), "labels": labels})
    return of_mentions(sentences, part.mentions)


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
    figure, (axes,) = new_figure()
    epochs = [entry["epoch"] for entry in history]
    for key, style in (("precision", "--"), ("recall", ":"), ("f1", "o-")):
        values = [100 * float(entry[f"eval_{key}"]) for entry in history]
        axes.plot(epochs, values, style, color=BLUE if key == "f1" else GREY, label=key.replace("f1", "F1"))
    axes.set_xlabel("epoch")
    axes.set_ylabel("validation, strict, %")
    legend_above(axes)
    return figure


if __name__ == "__main__":
    main()
