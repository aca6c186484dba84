"""`hf-spanner inspect`: look at the data first. How much there is, what leaks, is out of reach, or was overlooked."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path

from .. import __version__
from ..data.inspection import inspect
from ..data.loading import load_with_reports
from ..harmless import harmless
from ..modeling.words import SPLITTERS
from .options import make_parser, parse_with_data, say

logger = logging.getLogger("hf_spanner")

EPILOG = """\
examples:
  hf-spanner inspect my_data/
  hf-spanner inspect my_data/ --max_span_length 16 --html my_data.html
  hf-spanner inspect my_data/ --json - | jq .findings
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("inspect", __doc__, EPILOG)
    parser.add_argument("--format", help="the data's format, if it cannot be told from the file")
    parser.add_argument(
        "--max_span_length", type=int, default=10, help="the model's longest span, in words (default: 10)"
    )
    parser.add_argument(
        "--word_splitter",
        choices=sorted(SPLITTERS),
        default="compound",
        help="how the model will cut raw text into words (default: compound)",
    )
    parser.add_argument("--examples", type=int, default=5, help="how many of everything are printed (default: 5)")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON; - is standard output, and only that")
    parser.add_argument("--html", metavar="FILE", help="write one HTML page that needs no network")
    args = parse_with_data(parser, argv)
    if args.examples < 0:
        raise ValueError(f"--examples {args.examples} must be a number of examples, at least 0.")

    data, reports = load_with_reports(args.data, format=args.format, splitter=args.word_splitter)
    inspection = inspect(data, args.max_span_length, args.word_splitter, reports)
    title = Path(args.data).resolve().name or args.data
    for report in reports.values():
        if not report.faithful:
            logger.warning("%s", report)
    if args.json != "-":
        from ..report.inspection_text import inspection_text

        say(inspection_text(title, inspection, args.examples))
    if args.json:
        reading = {split: asdict(report) for split, report in reports.items()}
        record = {"data": args.data, "hf_spanner": __version__, "reading": reading, **inspection.as_dict()}
        if args.json == "-":
            print(json.dumps(record))  # nothing but ASCII, so that a terminal obeys nothing
        else:
            write(args.json, json.dumps(record, ensure_ascii=False))
    if args.html:
        from ..report.inspection import inspection_page

        write(args.html, inspection_page(title, inspection, f"hf_spanner {__version__}: {args.data}."))
    return 0


def write(file: str, content: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(content, encoding="utf-8")
    print(harmless(file), file=sys.stderr)
