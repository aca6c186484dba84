"""`hf-spanner import`: a flat tagger of transformers (`*ForTokenClassification`) becomes a seq_ner model."""

from __future__ import annotations

from pathlib import Path

from transformers.utils import logging

from ..building.flat import import_tagger
from ..loading import pipeline
from ..modeling.words import SPLITTERS
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner import dslim/bert-base-NER models/conll
  hf-spanner predict --model models/conll "the mayor of New York"

Its entities are those of transformers' own pipeline with aggregation_strategy="first".
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("import", __doc__, EPILOG)
    parser.add_argument("model", help="Hub id or folder of a model for token classification")
    parser.add_argument("output", help="the folder to write")
    parser.add_argument(
        "--word-splitter", choices=sorted(SPLITTERS), help="how text is cut into words (default: as its own pipeline)"
    )
    parser.add_argument("--revision", help="branch, tag or commit on the Hub")
    args = parser.parse_args(argv)
    output = Path(args.output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ValueError(f"{output} exists and is not an empty folder: choose another one.")
    logging.disable_progress_bar()
    model, tokenizer, tags = import_tagger(args.model, args.word_splitter, args.revision)
    pipeline(model, tokenizer).save_pretrained(output)
    config = model.config
    say(f"{args.model}: {tags.scheme} tags of {len(tags.labels)} labels: {', '.join(tags.labels)}")
    say(f"  words are cut by {config.word_splitter!r} and tagged by their first sub-word, in {config.tag_scheme}")
    say(f"  written to {output}")
    return 0
