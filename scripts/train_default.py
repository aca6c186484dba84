"""Train the default model: corpora in one inventory, the first edition, then silver, gold, and what comes last.

    python scripts/train_default.py CORPORA --output_dir runs/default [--seed 43]
    python scripts/ship_default.py runs/default/last --data CORPORA --train runs/default/data/gold

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`. What is finished is not made again, and what
was stopped goes on from its last checkpoint; seeds share what comes before gold.
"""

import argparse
from pathlib import Path

import default_data

from hf_spanner.cli.train import is_finished
from hf_spanner.cli.train import main as train
from hf_spanner.data import label_names, load_nested_ner

RECIPES = {"silver": "default_silver.yaml", "gold": "default_gold.yaml", "last": "default.yaml"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("corpora", help="folder with a folder for each corpus")
    parser.add_argument("--output_dir", default="runs/default")
    parser.add_argument("--first", help="the first edition, if there is one; else it is trained")
    parser.add_argument("--seed", type=int, default=42, help="of gold and last; what comes before has one")
    args = parser.parse_args()
    output, corpora = Path(args.output_dir), Path(args.corpora)
    data = output / "data"
    if not (data / "last" / "validation.jsonl").is_file():  # written last
        default_data.main([str(corpora), "--output_dir", str(data)])
    first = args.first or str(output / "first")
    genia, gum = str(corpora / "genia"), str(corpora / "gum")
    if args.first is None and not is_finished(first):
        two = ["--data", genia, gum, "--complete", gum, "--repeats", "1", "2"]
        train(["default_first.yaml", *two, "--output_dir", first, "--resume", "true"])
    labels = ["--labels", *label_names(load_nested_ner(str(data / "gold")), mentions=True)]
    start = first
    for name, seed in (("silver", 42), ("gold", args.seed), ("last", args.seed)):
        folder = str(output / name) if seed == 42 else str(output / f"{name}-{seed}")
        if not is_finished(folder):
            options = ["--data", str(data / name), "--output_dir", folder, "--seed", str(seed), "--resume", "true"]
            train([RECIPES[name], "--model", start, *options, *labels])
        start = folder


if __name__ == "__main__":
    main()
