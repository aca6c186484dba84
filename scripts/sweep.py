"""Measure settings of a training on a few sentences of several corpora: what the rules without flags come from.

    python scripts/sweep.py --data litbank/ genia/ gum/ wnut17/ --sizes 50 200 1000 0 --seeds 1 2 3 \\
        --start "--model default" --settings "" "--learning_rate 5e-5 --head_learning_rate 1e-3" \\
        --output_dir runs/sweep --results model_cards/sweep.jsonl
    python scripts/sweep.py --table model_cards/sweep.jsonl

Settings are flags of `hf-spanner train`; "" is a training without flags. Each seed draws other sentences. Rows that
are there are not measured again, so a sweep can be stopped and gone on with. Size 0 is the whole corpus.
"""

import argparse
import json
import shlex
from pathlib import Path

from hf_spanner.benchmarks.sweep import identity, measure, public_start, read_rows, table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", nargs="+", default=[], help="folders with train and validation files")
    parser.add_argument("--sizes", nargs="+", type=int, default=[50, 200, 1000, 0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument(
        "--start", nargs="+", default=["--model default"], help='such as "--approach span_ner --encoder X"'
    )
    parser.add_argument("--settings", nargs="+", default=[""], help='such as "--learning_rate 1e-4"; "" for none')
    parser.add_argument("--validation", type=int, help="read so many validation sentences only")
    parser.add_argument("--test", type=int, help="likewise of the test split")
    parser.add_argument("--output_dir", default="runs/sweep", help="for draws, logs and models")
    parser.add_argument("--results", default="runs/sweep.jsonl", help="one line a run")
    parser.add_argument("--table", metavar="FILE", help="measure nothing: the table of the results that are there")
    args = parser.parse_args()
    if args.table is not None:
        print(table(read_rows(Path(args.table))))
        return
    results = Path(args.results)
    results.parent.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        for size in args.sizes:
            for data in args.data:
                for start in map(shlex.split, args.start):
                    for settings in args.settings:
                        name = (Path(data).name, size or None, seed, public_start(start), settings)
                        if name in {identity(row) for row in read_rows(results)}:
                            continue
                        row = measure(
                            data,
                            size or None,
                            seed,
                            start,
                            settings,
                            Path(args.output_dir),
                            args.validation,
                            args.test,
                        )
                        with results.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(row) + "\n")
                        print(*name, row["validation"], row["test"], flush=True)


if __name__ == "__main__":
    main()
