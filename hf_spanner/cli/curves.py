"""`hf-spanner curves`: the mean training loss of trainings by epoch, as PNG and SVG."""

from pathlib import Path

from ..analysis.curves import draw_losses
from ..analysis.figures import require_matplotlib, save_figure
from ..hub.record import RECORD, read_record
from .options import make_parser, say

EPILOG = """\
example:
  hf-spanner curves genia=runs/genia-sng_typing litbank=runs/litbank-sng_typing --output pictures/loss

A RUN is a folder that `hf-spanner train` has written; what it draws is `loss_by_epoch` of its training.json.
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("curves", __doc__, EPILOG)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a training, or NAME=FOLDER")
    parser.add_argument(
        "--output", required=True, help="FILE.png and FILE.svg are written; the ending may be left out"
    )
    parser.add_argument("--formats", nargs="+", choices=["png", "svg", "pdf"], default=["png", "svg"])
    parser.add_argument("--title", default="", help="what stands above")
    args = parser.parse_args(argv)
    require_matplotlib()

    records = {}
    for run in args.runs:
        name, equals, folder = run.partition("=")
        folder = folder if equals else run
        file = Path(folder) / RECORD
        if not file.is_file():
            raise FileNotFoundError(f"{folder} holds no {RECORD}: name the folder of a training.")
        records[name if equals else Path(folder).name] = read_record(file)
    if len(records) < len(args.runs):
        raise ValueError("Two runs have the same name: name them, such as a=runs/1 b=runs/2.")
    stem = Path(args.output)
    stem = stem.with_suffix("") if stem.suffix[1:] in ("png", "svg", "pdf") else stem
    for written in save_figure(draw_losses(records, args.title), stem, args.formats):
        say(written)
    return 0
