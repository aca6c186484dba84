"""Score a trained model on annotated data. The same as `hf-spanner evaluate`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["evaluate", *sys.argv[1:]]))
