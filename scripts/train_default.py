"""Train the default model: the first edition, and from it all corpora in one inventory.

    python scripts/train_default.py CORPORA --output_dir runs/default [--seed 43]
    python scripts/ship_default.py runs/default/second --data CORPORA --train runs/default/data

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`. What is finished is not made again, and what
was stopped goes on from its last checkpoint; seeds share the first edition and the data.
"""

import argparse
from pathlib import Path

import default_data

from hf_spanner.cli.train import is_finished
from hf_spanner.cli.train import main as train
from hf_spanner.data import label_names, load_nested_ner


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("corpora", help="folder with a folder for each corpus")
    parser.add_argument("--output_dir", default="runs/default")
    parser.add_argument("--first", help="the first edition, if there is one; else it is trained")
    parser.add_argument("--seed", type=int, default=42, help="of the second; the first has one")
    args = parser.parse_args()
    output, corpora = Path(args.output_dir), Path(args.corpora)
    first = args.first or str(output / "first")
    genia, gum = str(corpora / "genia"), str(corpora / "gum")
    if args.first is None and not is_finished(first):
        two = ["--data", genia, gum, "--complete", gum, "--repeats", "1", "2"]
        train(["default_first.yaml", *two, "--output_dir", first, "--resume", "true"])
    data, second = output / "data", output / ("second" if args.seed == 42 else f"second-{args.seed}")
    if not (data / "validation.jsonl").is_file():  # written last
        default_data.main([str(corpora), "--first", first, "--output_dir", str(data)])
    if not is_finished(second):
        labels = ["--labels", *label_names(load_nested_ner(str(data)), mentions=True)]
        options = ["--data", str(data), "--output_dir", str(second), "--seed", str(args.seed), "--resume", "true"]
        train(["default.yaml", "--model", first, *options, *labels])


if __name__ == "__main__":
    main()
