"""`hf-spanner demo`: a page in the browser, with which texts are read on this machine."""

from ..default import NAME
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner demo
  hf-spanner demo --model default runs/mine      two models, to be compared

Nothing leaves the machine, and the page is not seen from outside it. Ctrl-C ends it.
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("demo", __doc__, EPILOG)
    parser.add_argument(
        "--model",
        nargs="+",
        default=[NAME],
        metavar="MODEL",
        help="folders or Hub ids to choose from (default: default)",
    )
    parser.add_argument("--port", type=int, default=7860, help="of the page's address (default: 7860)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda:1, mps (default: a GPU if there is one)")
    args = parser.parse_args(argv)
    import gradio  # noqa: F401  before anything is loaded

    from ..demo.page import serve
    from ..loading import find_device

    say(f"The page is at http://127.0.0.1:{args.port}/ (Ctrl-C ends it).")
    serve(args.model, args.port, device=find_device(args.device))
    return 0
