"""`hf-spanner reproduce`: a paper's table made again, with our column beside the paper's; the ledger; the claims."""

import argparse
import shlex
from pathlib import Path

from transformers.utils.logging import disable_progress_bar

from ..reproduce.printing import markdown, write_outcome
from ..reproduce.runner import Reproduction
from ..reproduce.runs import Commands, Place, read_budgets
from ..reproduce.tables import PAPERS, Table, read_table, table_names
from . import pictures
from .options import make_parser, parse_inference, say
from .train import load_data, parse, run_task

EPILOG = """\
examples:
  hf-spanner reproduce --list
  hf-spanner reproduce dspert table3 --dry-run
  hf-spanner reproduce dspert table3 --budget small
  hf-spanner reproduce dspert table3 --data-root corpora/ --output_dir runs/reproduce
  hf-spanner reproduce --claims --data-root corpora/ --encoder sentence-transformers/all-MiniLM-L6-v2

A paper without a table lists its tables; `all` makes all.
A corpus lies in DATA_ROOT/NAME (ace04, genia, ...; `hf-spanner data` gets them). What is done is not done again.
Budgets: full, the paper's own recipe and seeds; small, two steps on a toy encoder and a sample, to see that all runs;
claims, the recipes of the race on a small encoder that you name.
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("reproduce", __doc__, EPILOG)
    parser.add_argument("paper", nargs="?", choices=PAPERS)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as table3 or figure2; all: every one")
    parser.add_argument(
        "--list", action="store_true", help="the ledger: all tables, figures and equations of the papers"
    )
    parser.add_argument("--claims", action="store_true", help="what the papers claim, held against what comes out")
    parser.add_argument("--data-root", type=Path, help="the folder with a folder for each corpus")
    parser.add_argument("--encoder", help="in place of the papers' encoders: a Hub id or a folder")
    parser.add_argument("--budget", choices=list(read_budgets()), help="default: full, and claims for --claims")
    parser.add_argument("--seeds", type=int, nargs="+", help="in place of the table's or the budget's")
    parser.add_argument("--sentences", type=int, nargs=3, metavar=("TRAIN", "VALIDATION", "TEST"), help="of a corpus")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of all trainings, or of one corpus: genia/vectors=PubMed.txt",
    )
    parser.add_argument("--output_dir", type=Path, default=Path("runs/reproduce"), help="default: runs/reproduce")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--only", nargs="+", metavar="CLAIM", help="of --claims: those with these names")
    parser.add_argument(
        "--page",
        type=Path,
        help="of --claims: write the page of the outcome here, too (with --dry-run: of what is done)",
    )
    args = parser.parse_intermixed_args(argv)
    if args.list:
        from ..reproduce.ledger import ledger_text

        say(ledger_text(args.output_dir, args.data_root, args.paper))
        return 0
    disable_progress_bar()  # of every model that is loaded
    place = place_of(args)
    if args.claims:
        from ..reproduce.claims import make_claims

        say(make_claims(place, args.seeds, args.paper, args.only, args.dry_run, args.page))
        return 0
    if args.paper is None:
        parser.error(f"name a paper ({', '.join(PAPERS)}), --list or --claims")
    if not args.tables:
        for name in table_names(args.paper):
            table = read_table(args.paper, name)
            say(f"{name:<16} {table.item}: {table.title}")
        return 0
    names = table_names(args.paper) if args.tables == ["all"] else args.tables
    tables = [read_table(args.paper, name) for name in names]
    failed = [failure for table in tables for failure in reproduce(table, place, args)]
    if failed:
        raise ValueError(f"{len(failed)} figures could not be made. {failed[0]}")
    return 0


def place_of(args: argparse.Namespace) -> Place:
    """Where and with what the tables are made."""
    from dataclasses import replace

    budget = read_budgets()[args.budget or ("claims" if args.claims else "full")]
    if args.sentences:
        budget = replace(budget, sentences=tuple(args.sentences))
    if args.data_root is not None and not args.data_root.is_dir():
        raise FileNotFoundError(f"--data-root {args.data_root} is no folder: it should hold one for each corpus.")
    return Place(
        output=args.output_dir,
        budget=budget,
        commands=COMMANDS,
        data_root=args.data_root,
        encoder=args.encoder,
        settings=parse_inference(args.set),
        say=say,
    )


def reproduce(table: Table, place: Place, args: argparse.Namespace) -> list[str]:
    """Make one table and print it; returns why figures are missing, if any are."""
    work = Reproduction(table, place, args.seeds)
    if args.dry_run:
        say("\n".join(work.plan()))
        return []
    work.train()
    figures = work.figures()
    outcome = work.outcome(figures)
    files = write_outcome(table, outcome, figures, place.output / "tables" / table.paper)
    say(f"\n{markdown(table, outcome)}\n")
    for file in files:
        say(file)
    return [f"{table.item}: {figure.failed}" for figure in figures if figure.failed]


def train(argv: list[str]) -> None:
    """`hf-spanner train`, unless it is done."""
    run_task(parse(argv, f"hf-spanner train {shlex.join(argv)}"))


def data(argv: list[str]):
    """The splits as a training sees them."""
    task = parse(argv, "")
    task.quiet = True
    return load_data(task)


COMMANDS = Commands(train=train, data=data, pictures=pictures.main)
