"""`hf-spanner compare`: which of several systems is better, where, whether the difference is real, who finds what."""

import argparse
import json
from pathlib import Path

from .. import __version__
from ..data.splits import load_split
from ..evaluation import System, list_mentions
from ..evaluation.mentions import Mention
from ..evaluation.summary import compare_mentions, pool_runs
from ..loading import load_config
from ..report import comparison_markdown, comparison_page
from ..report.several import verdicts
from .options import (
    add_report_arguments,
    device_options,
    joined,
    length_bins,
    looked_at,
    make_parser,
    parse_with_data,
    say,
    training_sentences,
    write_outputs,
)

EPILOG = """\
examples:
  hf-spanner compare --data litbank/ span=runs/span_ner bl=runs/bl_ner --output reports/bundling
  hf-spanner compare --data genia/ shallow=runs/shallow deep=runs/dspert --representations --output reports/depth
  hf-spanner compare --data litbank/ span.jsonl seq.jsonl
  hf-spanner compare --data litbank/ span=runs/span/seed-1,runs/span/seed-2 bl=runs/bl/seed-1,runs/bl/seed-2

The first system is what the others are held against. A SYSTEM is a trained model (folder or Hub id), or a JSON Lines
file of predictions as `hf-spanner evaluate --predictions` writes it (the way to compare the heads of a bundled model).
Several runs of a system have commas between them: means are compared then, over runs and sentences.
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("compare", __doc__, EPILOG)
    add_report_arguments(parser)
    args = parse_with_data(
        parser, argv, "SYSTEMS...", explain="SYSTEM, or NAME=SYSTEM: a trained model or a file of predictions"
    )
    if len(args.systems) < 2:
        raise ValueError(f"A comparison needs at least two systems, not only {args.systems[0]!r}.")

    splitter, lengths = one_splitter(args), length_bins(args.length_bins)
    sentences, data, split = load_split(args.data, args.split, args.format, args.resplit, splitter)
    train = training_sentences(args, data, split, splitter)
    first = System.runs_named(args.systems[0])[1][0]
    sentences, kinds = looked_at(args, joined(sentences, args.join_subwords, first))
    gold = [sentence["entities"] for sentence in sentences]
    runs: dict[str, list[list[Mention]]] = {}
    places, described = {}, {}
    for name, named in map(System.runs_named, args.systems):
        if name in runs:
            raise ValueError(f"Two systems are called {name!r}: name them, such as a={named[0]}.")
        runs[name], places[name] = [], ",".join(named)
        for place in named:
            system = System.named(f"{name}={place}", **device_options(args))
            runs[name].append(list_mentions(system.predict(sentences, args.batch_size, kinds), gold))
            if args.representations and name not in described:  # of several runs, the first
                described[name] = system.represent(sentences)
    comparison = compare_mentions(runs, sentences, train, resamples=args.resamples, lengths=lengths)
    mentions = {name: pool_runs(each, len(sentences)) for name, each in runs.items()}
    sentences = sentences * len(next(iter(runs.values())))
    for name, figures in described.items():
        comparison["systems"][name]["representations"] = figures

    title = args.title or f"{', '.join(mentions)} on {Path(args.data).name}, {split}"
    markdown = comparison_markdown(title, comparison)
    say(markdown)
    say("\n".join(verdicts(comparison)))
    if args.output:
        record = {"title": title, "systems": places, "data": args.data, "split": split, "hf_spanner": __version__}
        for entities in comparison["only"].values():
            for entity in entities:
                entity["id"] = sentences[entity["sentence"]].get("id")
        source = f"hf_spanner {__version__}: {', '.join(f'{n} = {p}' for n, p in places.items())}; data: {args.data}."
        page = comparison_page(title, mentions, sentences, comparison, source)
        record["comparison"] = comparison
        for file in write_outputs(args.output, html=page, json=json.dumps(record, ensure_ascii=False), md=markdown):
            say(file)
    return 0


def one_splitter(args: argparse.Namespace) -> str | None:
    """How all of the models cut text into words; data that comes as text must have the same words for each of them."""
    places = [place for system in args.systems for place in System.runs_named(system)[1]]
    splitters = {load_config(place).word_splitter: place for place in places if not Path(place).is_file()}
    first, *others = splitters or [None]
    if others and args.resplit is None:
        words = [load_split(args.data, args.split, args.format, splitter=name)[0] for name in splitters]
        if any([s["tokens"] for s in words[0]] != [s["tokens"] for s in more] for more in words[1:]):
            how = ", ".join(f"{place} by {name!r}" for name, place in splitters.items())
            raise ValueError(
                f"{args.data} is text, and the systems cut it into different words ({how}): choose one cut for all "
                f"with --resplit, such as --resplit {first}."
            )
    return first
