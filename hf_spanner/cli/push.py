"""`hf-spanner push`: a trained model to the Hub, with tokenizer, code, card, recipe and results."""

from pathlib import Path

from ..hub.cards import About
from ..hub.publishing import publish, save_repository
from ..loading import load_model
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner push runs/litbank me/span-ner-litbank --language en --license cc-by-4.0
  hf-spanner push runs/litbank me/span-ner-litbank --dry-run repository/      write the files, upload nothing
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("push", __doc__, EPILOG)
    parser.add_argument("model", help="folder (or Hub id) of a trained model")
    parser.add_argument("repo_id", help="the repository, owner/name; made if it does not exist")
    parser.add_argument("--private", action="store_true", default=None, help="make it private, if it is new")
    parser.add_argument("--revision", help="the branch to push to (default: main)")
    parser.add_argument("--message", help="the commit's message")
    parser.add_argument("--dry-run", metavar="FOLDER", help="write the repository to this folder and upload nothing")
    card = parser.add_argument_group("what only you know, for the card")
    card.add_argument("--language", nargs="+", help="such as en, or en de")
    card.add_argument("--license", help="of the weights, such as apache-2.0")
    card.add_argument("--datasets", nargs="+", help="Hub ids of the data it was trained on")
    card.add_argument("--base-model", help="Hub id of the encoder, if the record does not know it")
    card.add_argument("--tags", nargs="+")
    card.add_argument("--limits", help="a sentence about what the model should not be used for")
    args = parser.parse_args(argv)
    about = {name: getattr(args, name) for name in About.names()}

    model, tokenizer = load_model(args.model)
    if args.dry_run:
        save_repository(args.dry_run, model, tokenizer, about=About(**about), name=args.repo_id)
        files = sorted(file.relative_to(args.dry_run) for file in Path(args.dry_run).rglob("*") if file.is_file())
        say(f"Written to {args.dry_run}: {', '.join(map(str, files))}")
        return 0
    commit = publish(
        model,
        args.repo_id,
        tokenizer=tokenizer,
        commit_message=args.message,
        private=args.private,
        revision=args.revision,
        **about,
    )
    say(f"Pushed to {args.repo_id}: {commit.commit_url}")
    return 0
