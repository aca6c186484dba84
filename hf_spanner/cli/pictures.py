"""`hf-spanner pictures`: pictures of what a model thinks of the gold entities, as PNG and SVG."""

import json
from pathlib import Path

from ..analysis.figures import require_matplotlib, save_figure
from ..analysis.offsets import boundary_offsets, draw_offsets
from ..analysis.pictures import PICTURES, draw_pictures, draw_representations
from ..analysis.probabilities import gold_probabilities
from ..analysis.representations import describe_representations, span_representations
from ..data.schema import Sentence
from ..data.splits import load_split
from ..loading import load_model
from ..modeling.decoding import label_among
from .options import add_data_arguments, add_join_subwords, device_options, joined, make_parser, parse_with_data, say

EPILOG = """\
pictures:
  pca              the class probabilities of every gold span, on their first two principal components
  violin           how probable the model finds the gold label, where it is right and where it is wrong
  volcano          how far the model's favourite is from the gold label, against how sure it is
  representations  the vectors of the gold entities, on their first two principal components; of approaches that have
                   such vectors, such as dspert
  offsets          how far locate_and_label moves the boundaries of its proposals; the counts are in offsets.json too
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("pictures", __doc__, EPILOG)
    add_data_arguments(parser)
    add_join_subwords(parser)
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained model")
    parser.add_argument("--output", required=True, help="the folder for the pictures")
    parser.add_argument(
        "--pictures", nargs="+", choices=[*PICTURES, "representations", "offsets"], default=list(PICTURES)
    )
    parser.add_argument("--formats", nargs="+", choices=["png", "svg", "pdf"], default=["png", "svg"])
    parser.add_argument("--title", help="what stands above the pictures (default: model, data and split)")
    parser.add_argument("--max-sentences", type=int, help="look at the first N sentences only")
    args = parse_with_data(parser, argv)
    require_matplotlib()

    model, tokenizer = load_model(args.model, **device_options(args))
    sentences, _, split = load_split(args.data, args.split, args.format, args.resplit, model.config.word_splitter)
    sentences = joined(sentences[: args.max_sentences], args.join_subwords, args.model)
    sentences, unknown = _with_known_labels(sentences, set(model.config.labels))
    if unknown:
        say(f"{unknown:,} entities have labels that the model does not know: they are left out.")

    title, files = args.title or f"{Path(args.model).name} on {Path(args.data).name}, {split}", []
    if "representations" in args.pictures:
        found = span_representations(model, tokenizer, sentences, args.batch_size, progress=True)
        figure = draw_representations(describe_representations(found), title)
        files += save_figure(figure, Path(args.output) / "representations", args.formats)
    if "offsets" in args.pictures:
        counts = boundary_offsets(model, tokenizer, sentences, args.batch_size, progress=True)
        files += save_figure(draw_offsets(counts, title), Path(args.output) / "offsets", args.formats)
        files.append(Path(args.output) / "offsets.json")
        files[-1].write_text(json.dumps(counts, indent=1, ensure_ascii=False), encoding="utf-8")
    if of_probabilities := [kind for kind in args.pictures if kind in PICTURES]:
        thoughts = gold_probabilities(model, tokenizer, sentences, args.batch_size)
        right, total = thoughts.right.sum(), len(thoughts)
        say(f"{total:,} gold entities, {right:,} ({right / total:.1%}) with their label as the most probable class")
        if thoughts.out_of_reach:
            say(f"{thoughts.out_of_reach:,} more are out of the model's reach: they are left out.")
        files += draw_pictures(thoughts, args.output, title, of_probabilities, args.formats)
    for file in files:
        say(file)
    return 0


def _with_known_labels(sentences: list[Sentence], known: set[str]) -> tuple[list[Sentence], int]:
    """The sentences without entities of labels that the model was not trained on, and how many those are."""
    kept: list[Sentence] = [
        {
            **s,
            "entities": [e for e in s["entities"] if label_among(known, e["label"], e.get("mention")) in known],
        }
        for s in sentences
    ]
    return kept, sum(len(s["entities"]) for s in sentences) - sum(len(s["entities"]) for s in kept)
