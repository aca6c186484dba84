"""Train the default model: corpora in one inventory, then five trainings, each of which goes on from the one before.

    python scripts/train_default.py CORPORA --output_dir runs/default [--seed 43]
    python scripts/ship_default.py runs/default/names --data CORPORA --train runs/default/data/names

CORPORA holds a folder for each corpus of `scripts/default_corpora.yaml`. `first` is the first edition (GUM and GENIA);
`silver`, `gold` and `last` make the second of it, `names` the third. What is finished is not made again, and what was
stopped goes on from its last checkpoint. `--given last=FOLDER` starts from a second edition that exists already.
`--seed` is that of the last training. Other flags go to every training: `--bf16 true` halves its time where the
processor has bfloat16.
"""

import argparse
from pathlib import Path

import default_data

from hf_spanner.cli.train import is_finished
from hf_spanner.cli.train import main as train
from hf_spanner.data import label_names, load_nested_ner

RECIPES = {
    "first": "default_first.yaml",
    "silver": "default_silver.yaml",
    "gold": "default_gold.yaml",
    "last": "default_last.yaml",
    "names": "default.yaml",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("corpora", help="folder with a folder for each corpus")
    parser.add_argument("--output_dir", default="runs/default")
    parser.add_argument(
        "--given", metavar="NAME=FOLDER", help="a training that exists already; those before it are left out"
    )
    parser.add_argument("--seed", type=int, default=42, help="of the last training")
    args, others = parser.parse_known_args()
    output, corpora = Path(args.output_dir), Path(args.corpora)
    data = output / "data"
    if not (data / "names" / "validation.jsonl").is_file():  # written last
        default_data.main([str(corpora), "--output_dir", str(data)])
    labels = ["--labels", *label_names(load_nested_ner(str(data / "gold")), mentions=True)]
    given, _, start = (args.given or "").partition("=")
    names = list(RECIPES)
    if args.given and (given not in names[:-1] or not start):
        parser.error(f"--given {args.given}: NAME=FOLDER, where NAME is one of {', '.join(names[:-1])}")
    for name in names[names.index(given) + 1 :] if given else names:
        seed = args.seed if name == names[-1] else 42
        folder = str(output / name) if seed == 42 else str(output / f"{name}-{seed}")
        if not is_finished(folder):
            if name == "first":
                genia, gum = str(corpora / "genia"), str(corpora / "gum")
                options = ["--data", genia, gum, "--complete", gum, "--repeats", "1", "2"]
            else:
                options = ["--model", start, "--data", str(data / name), "--seed", str(seed), *labels]
            train([RECIPES[name], *options, "--output_dir", folder, "--resume", "true", *others])
        start = folder


if __name__ == "__main__":
    main()
