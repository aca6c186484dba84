"""Understand a model's results: one HTML page, JSON and Markdown. The same as `hf-spanner report`."""

import sys

from hf_spanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["report", *sys.argv[1:]]))
