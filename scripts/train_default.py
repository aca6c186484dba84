"""Train the default model: corpora in one inventory, the first edition, one pass of silver, one of gold.

    python scripts/train_default.py CORPORA --output_dir runs/default [--seed 43]
    python scripts/ship_default.py runs/default/gold --data CORPORA

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`. What is finished is not made again, and what
was stopped goes on from its last checkpoint; so seeds of the last step share what comes before it.
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
    parser.add_argument("--seed", type=int, default=42, help="of the pass over gold")
    args = parser.parse_args()
    output, corpora = Path(args.output_dir), Path(args.corpora)
    data = output / "data"
    if not (data / "gold" / "validation.jsonl").is_file():  # written last
        default_data.main([str(corpora), "--output_dir", str(data)])
    first = args.first or str(output / "first")
    genia, gum = str(corpora / "genia"), str(corpora / "gum")
    if args.first is None and not is_finished(first):
        two = ["--data", genia, gum, "--complete", gum, "--repeats", "1", "2"]
        train(["default_first.yaml", *two, "--output_dir", first, "--resume", "true"])
    labels = ["--labels", *label_names(load_nested_ner(str(data / "gold")), mentions=True)]
    for name, start, seed in (("silver", first, 42), ("gold", str(output / "silver"), args.seed)):
        folder = str(output / name) if seed == 42 else str(output / f"{name}-{seed}")
        if not is_finished(folder):
            recipe = "default.yaml" if name == "gold" else "default_silver.yaml"
            options = ["--data", str(data / name), "--output_dir", folder, "--seed", str(seed), "--resume", "true"]
            train([recipe, "--model", start, *options, *labels])


if __name__ == "__main__":
    main()
