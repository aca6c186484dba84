"""Upload a trained model to the Hub. The same as `hf-spanner push`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["push", *sys.argv[1:]]))
