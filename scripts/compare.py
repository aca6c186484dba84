"""Compare two or more models on the same data. The same as `hf-spanner compare`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["compare", *sys.argv[1:]]))
