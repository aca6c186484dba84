"""Find the entities of a corpus on a Ray cluster; without one, on this machine.

    pip install 'hf_spanner[ray]'
    python scripts/predict_ray.py corpus.jsonl entities/ --workers 2

The corpus is a file or folder of .jsonl, .csv or .parquet with a column `text`; the output is a folder of parquet
files with all columns and `entities`.
"""

import argparse
from pathlib import Path

import ray

import hf_spanner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("output", help="a folder")
    parser.add_argument("--model", default="default", help="a folder that all machines see, a Hub id, or 'default'")
    parser.add_argument("--workers", type=int, default=2, help="copies of the model")
    parser.add_argument("--gpus", type=float, default=0, help="of each copy")
    parser.add_argument("--batch-size", type=int, default=4096, help="texts that a copy reads at once")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--address", help="of a cluster; 'auto' for the one this machine belongs to")
    args = parser.parse_args()
    if args.address:
        ray.init(address=args.address)
    else:
        ray.init(num_cpus=args.workers + 1, include_dashboard=False)
    readers = {".csv": ray.data.read_csv, ".parquet": ray.data.read_parquet}
    corpus = Path(args.corpus)
    endings = {file.suffix for file in (corpus.iterdir() if corpus.is_dir() else [corpus])}
    texts = readers.get(min(endings, default=""), ray.data.read_json)(args.corpus)
    found = texts.map_batches(
        hf_spanner.Predictor,
        fn_constructor_kwargs={"model": args.model, "text_column": args.text_column},
        batch_format="pyarrow",
        batch_size=args.batch_size,
        num_cpus=1,
        num_gpus=args.gpus,
        compute=ray.data.ActorPoolStrategy(size=args.workers),
    )
    found.write_parquet(args.output)
    print(f"{args.output}: {ray.data.read_parquet(args.output).count():,} texts")


if __name__ == "__main__":
    main()
