"""Find the nested entities of texts with the Python API. (`hf-spanner predict` reads files and draws.)

python scripts/predict.py "The mayor of New York met the head of the Bank of England." --model runs/mine
"""

import argparse

import hf_spanner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--model", default="default", help="a folder, a Hub id, or 'default'")
    parser.add_argument("--threshold", type=float, help="the least score of an entity; the model's own if not given")
    args = parser.parse_args()
    ner = hf_spanner.pipeline(args.model, batch_size=8, nesting=True)
    options = {} if args.threshold is None else {"threshold": args.threshold}
    for entities in ner(args.texts, **options):
        for entity in entities:
            print("  " * entity["depth"] + f"{entity['word']}  {entity['entity_group']}  {entity['score']:.2f}")
        print()


if __name__ == "__main__":
    main()
