"""Train every approach under one small budget on several corpora, and compare them.

    python scripts/race.py --data genia/ litbank/ gum/ --output_dir runs/race --results model_cards/race
    python scripts/race.py --table model_cards/race --output_dir model_cards/race

Runs that are done are not repeated, so the race can be stopped and gone on with. More seeds for some:

    python scripts/race.py --data genia/ --entrants biaffine_ner dspert_shallow --seeds 42 43 44 --output_dir runs/race

Training takes hours on one CPU core. The reading speeds (--speed) want a machine with nothing else to do.
"""

import argparse
import json
from pathlib import Path

from hf_spanner.benchmarks.race import ENTRANTS, compare_best, reading_speeds, run_entrant, write_race


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", nargs="+", default=[], help="folders with train, validation and test files")
    parser.add_argument("--entrants", nargs="+", default=ENTRANTS, help=f"recipes of race/: {', '.join(ENTRANTS)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=[42])
    parser.add_argument("--encoder", help="a folder, in place of the Hub id of the recipes")
    parser.add_argument("--output_dir", required=True, help="for models, logs, predictions and results")
    parser.add_argument("--results", help="where CORPUS.json goes (default: the output folder)")
    parser.add_argument("--speed", action="store_true", help="measure how fast they read, too")
    parser.add_argument(
        "--table", metavar="FOLDER", help="train nothing: table and plot of the results that are there"
    )
    args = parser.parse_args()
    if args.table is not None:
        print(write_race(args.table, args.output_dir))
        return
    if not args.data:
        parser.error("--data: name the corpora to train on, or --table FOLDER.")
    results = Path(args.results or args.output_dir)
    results.mkdir(parents=True, exist_ok=True)
    for data in args.data:
        folder = Path(args.output_dir) / Path(data).name
        for entrant in args.entrants:
            for seed in args.seeds:
                run_entrant(entrant, data, folder, seed, args.encoder)
        rows = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
        outcome = {"corpus": folder.name, "rows": rows, "best": compare_best(folder, data, rows)}
        file = results / f"{folder.name}.json"
        before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        outcome["reading"] = reading_speeds(folder, data, rows) if args.speed else before.get("reading", {})
        file.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
