"""`hf-spanner serve`: a model behind HTTP, for programs that do not speak Python."""

import argparse
import sys
from dataclasses import fields

from transformers.utils import logging

from ..bulk.reading import Reading
from .options import add_device_arguments, device_options, make_parser

EPILOG = """\
examples:
  hf-spanner serve
  hf-spanner serve --model runs/litbank --port 8080
  curl -s localhost:8000/predict -d '{"inputs": "The mayor of New York"}'

POST /predict takes {"inputs": text or [texts], "parameters": {"threshold", "labels", "nesting", ...}} and answers what
the pipeline answers. /docs describes it (OpenAPI), /health and /metrics are for those who watch over it. There is no
password: only programs of this machine are served unless --host says otherwise.
"""


def main(argv: list[str] | None = None) -> int:
    args = serve_parser().parse_args(argv)
    from ..serving.app import Limits  # an optional package
    from ..serving.running import serve

    limits = Limits(**{f.name: getattr(args, f"max_{f.name}") for f in fields(Limits)})
    for field in fields(Limits):
        if getattr(limits, field.name) <= 0:
            raise ValueError(f"--max-{field.name} {getattr(limits, field.name)} must be more than 0.")
    if not 0 <= args.port < 65536:
        raise ValueError(f"--port {args.port} is none: give one from 1 to 65535.")
    logging.disable_progress_bar()
    predictor = Reading(args.model, batch_size=args.batch_size, **device_options(args)).predictor()
    print(f"{args.model} is served on http://{args.host}:{args.port}/predict", file=sys.stderr, flush=True)
    serve(predictor, args.host, args.port, limits, args.model)
    return 0


def serve_parser() -> argparse.ArgumentParser:
    parser = make_parser("serve", __doc__, EPILOG)
    parser.add_argument("--model", default="default", help="folder or Hub id (default: the one of the package)")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for everybody (default: this machine alone)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-bytes", type=int, default=1_000_000, help="of a request (default: 1,000,000)")
    parser.add_argument("--max-texts", type=int, default=256, help="of a request (default: 256)")
    parser.add_argument("--max-characters", type=int, default=200_000, help="of a request's texts (default: 200,000)")
    parser.add_argument(
        "--max-seconds", type=float, default=30.0, help="for its body, and for its answer (default: 30)"
    )
    parser.add_argument("--max-waiting", type=int, default=4096, help="texts that may wait (default: 4096)")
    add_device_arguments(parser)
    return parser
