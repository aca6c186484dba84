"""Convert annotated data between formats. The same as `hf-spanner convert`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["convert", *sys.argv[1:]]))
