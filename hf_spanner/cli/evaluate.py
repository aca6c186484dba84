"""`hf-spanner evaluate`: strict scores of a saved model on annotated data, as a table and as JSON."""

import json
from pathlib import Path

from ..data import join_sentences, label_names
from ..data.reshaping import of_mentions
from ..data.splits import load_split
from ..evaluation import format_groups, write_predictions
from ..evaluation.predicting import predict_sentences
from ..evaluation.scoring import score_predictions
from ..loading import load_model
from ..metrics import format_scores
from .options import (
    add_data_arguments,
    add_decoding_arguments,
    add_join_subwords,
    add_length_bins,
    decoding_options,
    device_options,
    joined,
    length_bins,
    make_parser,
    parse_with_data,
    say,
)


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("evaluate", __doc__)
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
    add_join_subwords(parser)
    parser.add_argument("--groups", action="store_true", help="also score by entity length, nesting, ...")
    add_length_bins(parser)
    parser.add_argument("--output", help="write the scores to this JSON file")
    parser.add_argument("--predictions", help="write the predicted entities to this JSONL file")
    args = parse_with_data(parser, argv)
    if args.join != 1 and args.join_subwords is not None:
        raise ValueError("--join counts sentences and --join-subwords their sub-words: leave one of them out.")
    options, lengths = decoding_options(args), length_bins(args.length_bins)

    model, tokenizer = load_model(args.model, **device_options(args))
    sentences, data, split = load_split(args.data, args.split, args.format, args.resplit, model.config.word_splitter)
    sentences = list(join_sentences(joined(sentences, args.join_subwords, args.model), [args.join]))
    if args.data_labels:
        labels = label_names(data)
        sentences = [{**sentence, "labels": labels} for sentence in sentences]
    sentences = of_mentions(sentences, options.get("mentions"))
    known = set(model.config.types)
    if unknown := sorted({e["label"] for s in sentences for e in s["entities"]} - known):
        say(f"The data has labels the model does not know, so they can only be missed: {', '.join(unknown)}")
    found = predict_sentences(model, tokenizer, sentences, args.batch_size, progress=True, **options)
    groups = args.groups or args.length_bins is not None
    scores = score_predictions(model, found, sentences, groups, lengths)
    say(f"{args.model} on {args.data} ({split}, {len(sentences):,} sentences)\n{format_scores(scores)}")
    if "groups" in scores:
        say(f"\n{format_groups(scores['groups'])}")
    if args.output:
        Path(args.output).write_text(json.dumps(scores, indent=1), encoding="utf-8")
    if args.predictions:
        write_predictions(args.predictions, sentences, found)
    return 0
