"""Score a trained model on annotated data with the Python API. (`hf-spanner evaluate` and `report` say more.)

python scripts/evaluate.py runs/mine litbank/ --split test
"""

import argparse

import hf_spanner
from hf_spanner.metrics import format_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder, a Hub id, or 'default'")
    parser.add_argument("data", help="a folder with splits, a file, a Hub data set, or 'sample'")
    parser.add_argument("--split", default="test")
    args = parser.parse_args()
    model, tokenizer = hf_spanner.load_model(args.model)
    sentences = hf_spanner.load_nested_ner(args.data)[args.split]
    print(format_scores(hf_spanner.evaluate(model, tokenizer, sentences, progress=True)))


if __name__ == "__main__":
    main()
