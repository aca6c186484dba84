"""Train a nested NER model from a recipe and flags. The same as `hf-spanner train`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["train", *sys.argv[1:]]))
