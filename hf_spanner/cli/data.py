"""`hf-spanner data`: the corpora of the papers, from an official archive or your own copy to our form."""

from __future__ import annotations

import dataclasses
import tempfile
import textwrap
from pathlib import Path

from ..data.corpora import Corpus, corpus_names, load_corpus
from ..data.corpora.comparing import compare, comparison_table
from ..data.corpora.preparing import prepare
from ..data.describe import statistics
from ..data.reshaping import OVERLAPS
from ..data.writers import write_jsonl
from ..data.writers.files import write_text
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner data                                                    all corpora: licence, citation, where to ask
  hf-spanner data genia                                              one of them, with what the papers count in it
  hf-spanner data genia --source download --output genia/
  hf-spanner data ace05 --source LDC2006T06.tgz --output ace05/      your own copy
  hf-spanner data genia --source genia/                              only compare a copy with the papers' figures
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("data", __doc__, EPILOG)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the corpus; without it all are listed")
    parser.add_argument(
        "--source", help="the corpus as published (a folder, archive or file) or converted; or 'download'"
    )
    parser.add_argument(
        "--output", metavar="FOLDER", help="where train.jsonl, ... and a README.md go; without it: nowhere"
    )
    parser.add_argument("--splits", metavar="FILE", help="documents by split: YAML or JSON, or a folder of lists")
    parser.add_argument("--overlap", choices=OVERLAPS, help="which entities to keep (default: as the papers have it)")
    parser.add_argument("--cache", metavar="FOLDER", help="where downloads are kept (default: in HF_HOME)")
    args = parser.parse_args(argv)
    if args.name is None:
        if given := [f"--{name}" for name, value in vars(args).items() if value is not None]:
            parser.error(f"{given[0]} needs the NAME of a corpus")
        say(_list())
        return 0
    corpus = load_corpus(args.name)
    if args.overlap is not None:
        corpus = dataclasses.replace(corpus, overlap=args.overlap)
    say(_description(corpus))
    if args.source is None:
        if args.output is not None:
            parser.error(f"--output needs --source PATH{' or --source download' if corpus.download else ''}")
        say("\n" + comparison_table(corpus, compare(corpus, {})))
        return 0
    with tempfile.TemporaryDirectory(prefix="hf_spanner-") as work:
        say("")
        splits = prepare(corpus, args.source, Path(work), say, args.splits, _cache(args.cache, corpus))
    for split, sentences in splits.items():
        say(f"{split}: {statistics(sentences)}")
    comparison = comparison_table(corpus, compare(corpus, splits))
    say("\n" + comparison)
    if args.output is not None:
        folder = Path(args.output)
        for split, sentences in splits.items():
            write_jsonl(sentences, folder / f"{split}.jsonl")
        write_text(f"# {corpus.title}\n\n{_description(corpus)}\n\n{comparison}\n", folder / "README.md")
        say(f"\nwritten to {folder}: {', '.join(f'{split}.jsonl' for split in splits)}, README.md")
    return 0


def _cache(asked: str | None, corpus: Corpus) -> Path:
    from huggingface_hub.constants import HF_HOME

    return Path(asked) if asked else Path(HF_HOME) / "hf_spanner" / corpus.name


def _list() -> str:
    """All corpora, a few lines each."""
    lines = []
    for name in corpus_names():
        corpus = load_corpus(name)
        how = "--source download, or your own copy" if corpus.download else "your own copy"
        lines.append(f"{name}: {corpus.title} ({corpus.language}; {', '.join(corpus.papers)})")
        for what in (f"licence: {corpus.licence}", f"citation: {corpus.key}", f"from: {corpus.ask} ({how})"):
            lines += textwrap.wrap(what, 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)


def _description(corpus: Corpus) -> str:
    lines = [
        f"{corpus.title} ({corpus.language}), in the papers {', '.join(corpus.papers)}.",
        f"licence: {corpus.licence}",
        f"from: {corpus.ask}",
        *(f"download: {file.url}" + (f" (sha256 {file.sha256})" if file.sha256 else "") for file in corpus.download),
        *([f"note: {corpus.note}"] if corpus.note else []),
        "citation:",
        *(f"    {line}" for line in corpus.citation.strip().splitlines()),
    ]
    return "\n".join(lines)
