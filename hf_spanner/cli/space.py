"""`hf-spanner space`: the demo page as a Space of the Hub, with the package in it."""

import tempfile
from pathlib import Path

from ..default import NAME
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner space me/nested --model me/span-ner-litbank
  hf-spanner space me/nested --dry-run space/      write the files, upload nothing; `python space/app.py` runs them
"""


def main(argv: list[str] | None = None) -> int:
    from ..demo.space import push_space, save_space

    parser = make_parser("space", __doc__, EPILOG)
    parser.add_argument("repo_id", help="the Space, owner/name; made if it does not exist")
    parser.add_argument(
        "--model", nargs="+", default=[NAME], metavar="MODEL", help="Hub ids to choose from (default: default)"
    )
    parser.add_argument("--title", default="Nested entities", help="of the page on the Hub")
    parser.add_argument("--private", action="store_true", default=None, help="make it private, if it is new")
    parser.add_argument("--message", help="the commit's message")
    parser.add_argument("--dry-run", metavar="FOLDER", help="write the Space to this folder and upload nothing")
    args = parser.parse_args(argv)
    if args.dry_run:
        files = save_space(args.dry_run, args.model, args.title)
        names = sorted({file.relative_to(args.dry_run).parts[0] for file in files})
        say(f"Written to {args.dry_run}: {', '.join(names)} ({len(files)} files)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        save_space(Path(folder), args.model, args.title)
        commit = push_space(folder, args.repo_id, args.private, args.message)
    say(f"Pushed to {args.repo_id}: {commit.commit_url}")
    return 0
