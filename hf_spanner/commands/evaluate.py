"""`hf-spanner evaluate`: strict scores of a saved model on annotated data, as a table and as JSON."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from ..data import join_sentences, label_names
from ..evaluation import format_groups, score_groups
from ..inference import predict_sentences
from ..metrics import format_scores, score_entities, score_typing
from ..pipelines import load_model
from .decoding import add_decoding_arguments, decoding_options
from .systems import add_data_arguments, load_split


def evaluate_model(model, tokenizer, sentences, batch_size: int = 32, groups: bool = False, **decoding) -> dict:
    """Scores of a model on annotated sentences; `decoding` goes to [`predict_sentences`].

    With `groups`, scores by length, nesting and depth are added (not where the spans were given).
    """
    sentences = list(sentences)
    found = predict_sentences(model, tokenizer, sentences, batch_size, **decoding)
    scores = score_model(model, found, sentences)
    if groups and model.task == "finding":
        scores["groups"] = score_groups(found, sentences)
    return scores


def score_model(model, found: list, sentences: list[Mapping]) -> dict:
    """The scores that suit the model: strict, or of typing alone if it was told the spans."""
    score = score_typing if model.task == "typing" else score_entities
    return score(found, [sentence["entities"] for sentence in sentences], labels=model.config.labels)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hf-spanner evaluate", description=__doc__)
    add_data_arguments(parser)
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained model")
    add_decoding_arguments(parser)
    parser.add_argument(
        "--data-labels",
        action="store_true",
        help="look only at entities with the labels of the data, of a model that knows others too",
    )
    parser.add_argument(
        "--join", type=int, default=1, metavar="N", help="read N neighbouring sentences of a document at once"
    )
    parser.add_argument("--groups", action="store_true", help="also score by entity length, nesting, ...")
    parser.add_argument("--output", help="write the scores to this JSON file")
    parser.add_argument("--predictions", help="write the predicted entities to this JSONL file")
    args = parser.parse_args(argv)
    options = decoding_options(args)

    sentences, data, split = load_split(args.data, args.split, args.format, args.resplit)
    sentences = list(join_sentences(sentences, [args.join]))
    if args.data_labels:
        labels = label_names(data)
        sentences = [{**sentence, "labels": labels} for sentence in sentences]
    model, tokenizer = load_model(args.model)
    known = set(model.config.labels)
    if unknown := sorted({e["label"] for s in sentences for e in s["entities"]} - known):
        print(f"The data has labels the model does not know, so they can only be missed: {', '.join(unknown)}")
    found = predict_sentences(model, tokenizer, sentences, args.batch_size, progress=True, **options)
    scores = score_model(model, found, sentences)
    print(f"{args.model} on {args.data} ({split}, {len(sentences):,} sentences)\n{format_scores(scores)}")
    if args.groups:
        scores["groups"] = score_groups(found, sentences)
        print(f"\n{format_groups(scores['groups'])}")
    if args.output:
        Path(args.output).write_text(json.dumps(scores, indent=1), encoding="utf-8")
    if args.predictions:
        write_predictions(args.predictions, sentences, found)
    return 0


def write_predictions(path: str, sentences: list[Mapping], found: list) -> None:
    """The sentences with predicted entities (and scores) in place of the gold ones, one a line."""
    with Path(path).open("w", encoding="utf-8") as file:
        for sentence, entities in zip(sentences, found, strict=True):
            row = {key: sentence.get(key) for key in ("id", "doc_id", "tokens")}
            row["entities"] = [entity._asdict() for entity in entities]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
