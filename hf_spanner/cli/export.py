"""Export a trained model for ONNX Runtime, in single precision or with int8 weights: faster on a CPU, same entities.

The folder is a model like any other: for pipeline("nested-ner"), predict, evaluate, push. Both are read with before it
is written: in single precision their entities must be equal, with --int8 no more than 0.2 points of F1 may be lost."""

from ..data.splits import load_split
from ..default import folder_of
from ..exporting import MOST_LOST, export
from ..loading import load_config
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner export default out/
  hf-spanner export runs/mine out/ --int8 --data FOLDER     layers are chosen by F1 on FOLDER's validation split
  hf-spanner predict --model out/ "the mayor of New York"
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("export", __doc__, EPILOG)
    parser.add_argument("model", help="folder or Hub id of a trained model, or default")
    parser.add_argument("output", help="the folder to write")
    parser.add_argument("--int8", action="store_true", help="weights in eight bits, where F1 allows")
    parser.add_argument(
        "--max-loss", type=float, default=100 * MOST_LOST, help="points of F1 that --int8 may cost (default: 0.2)"
    )
    parser.add_argument("--data", default="sample", help="on which both are compared (default: the sample corpus)")
    parser.add_argument("--split", default="validation", help="of the data (default: validation)")
    parser.add_argument("--format", help="the data's format, if it cannot be told from the file")
    args = parser.parse_args(argv)
    if args.max_loss < 0:
        raise ValueError(f"--max-loss {args.max_loss} must not be negative.")
    config = load_config(folder_of(args.model))
    sentences, data, _ = load_split(args.data, args.split, args.format, splitter=config.word_splitter)
    if args.data == "sample":  # it is small: all of it
        sentences = [sentence for part in data.values() for sentence in part]
    export(args.model, args.output, sentences, args.int8, args.data, args.max_loss / 100, say)
    say(f"Written to {args.output}.")
    return 0
