"""Convert annotated data from any format that the package reads to any that it writes."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..data import READERS, WRITERS, find_splits, read_file, statistics
from ..data.chars import ON_MISALIGNED, SPLIT_SENTENCES
from ..data.readers.brat import DISCONTINUOUS
from ..data.readers.files import plain_name
from ..data.readers.own_words import OWN
from ..data.reshaping import OVERLAPS, remove_overlaps
from ..data.writers import ENDINGS
from .options import make_parser, parse_with_data, say

EPILOG = """\
examples:
  hf-spanner convert NER-de-train.tsv train.jsonl --from conll
  hf-spanner convert germeval/ germeval-jsonl/ --from conll       every split of a folder
  hf-spanner convert corpus.jsonl brat/ --to brat
  hf-spanner convert brat/ corpus.jsonl --discontinuous hull --splitter whitespace
  hf-spanner convert ace04/ ace04_flat/ --overlap flat
  hf-spanner convert corpus.jsonl corpus.spacy --to docbin        for spaCy
  hf-spanner convert inception-export/ corpus.jsonl --layer webanno.custom.Entity
"""


def main(argv: list[str] | None = None) -> int:
    """Convert, and print what was kept and what was not."""
    arguments = parse_with_data(
        _parser(), argv, "OUTPUT", explain="OUTPUT: a folder for brat and cas, else a file or folder"
    )
    options = dict(vars(arguments))
    source, target = Path(options.pop("data")), Path(options.pop("output"))
    format, to, overlap = options.pop("format"), options.pop("to"), options.pop("overlap")
    splits = find_splits(source, format)
    one = list(splits.values()) == [source]  # a file or a brat folder, not a folder with splits
    for split, path in splits.items():
        sentences, report = read_file(path, format, **options)
        destination = _destination(target, plain_name(path).stem if one else split, to, one)
        if destination.resolve() == path.resolve():
            raise ValueError(f"{destination} is the input itself; choose another output.")
        say(report)
        if overlap is not None:
            sentences, removed = remove_overlaps(sentences, overlap)
            say(f"  removed: {removed:,} × entity; kept are {OVERLAPS[overlap]}")
        WRITERS[to](sentences, destination)
        say(f"  written to {destination}")
        say(statistics(sentences))
    return 0


def _destination(target: Path, name: str, to: str, one: bool) -> Path:
    if to not in ENDINGS:
        return target if one else target / name
    return target if one and not target.is_dir() else target / (name + ENDINGS[to])


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("convert", __doc__, EPILOG)
    parser.add_argument(
        "--from", dest="format", choices=sorted(READERS), help="format of the input (default: guessed)"
    )
    parser.add_argument("--to", choices=sorted(WRITERS), default="jsonl", help="format of the output (default: jsonl)")
    parser.add_argument(
        "--overlap",
        choices=OVERLAPS,
        help="which entities to keep: " + "; ".join(f"{name}: {what}" for name, what in OVERLAPS.items()),
    )
    # Absent options stay absent, so that each reader keeps its own defaults and refuses options that it does not have.
    reader = parser.add_argument_group("reader options", argument_default=argparse.SUPPRESS)
    reader.add_argument("--splitter", help="how text is cut into words: compound, fine or whitespace")
    reader.add_argument("--on-misaligned", choices=ON_MISALIGNED, help="a boundary inside a word")
    reader.add_argument(
        "--split-sentences", choices=[*SPLIT_SENTENCES, OWN], help="where a text is cut into sentences"
    )
    reader.add_argument("--discontinuous", choices=DISCONTINUOUS, help="brat mentions of several fragments")
    reader.add_argument("--no-check-text", dest="check_text", action="store_false", help="trust offsets, not texts")
    reader.add_argument("--text-key", help="the field that holds the text")
    reader.add_argument("--predictions", action="store_true", help="Label Studio: what models predicted")
    reader.add_argument("--spans-key", help="DocBin: the group of spans to read (default: all)")
    reader.add_argument("--ents", action="store_true", help="DocBin: read doc.ents in addition to the spans")
    reader.add_argument("--layer", help="CAS: the type of the annotations that are entities")
    reader.add_argument("--feature", help="CAS: the feature that holds the label")
    reader.add_argument("--end-inclusive", action="store_true", help="word spans name their last word")
    reader.add_argument("--token-column", type=int, help="column of the words, from 0")
    reader.add_argument("--tag-columns", type=int, nargs="+", help="columns of the tags, from 0")
    reader.add_argument("--scheme", help="IOB1, BIO, BIOES, BILOU, BMES or BMEWO (default: detected)")
    reader.add_argument("--comment", help="what comment lines begin with (default: #)")
    return parser
