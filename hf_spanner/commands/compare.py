"""`hf-spanner compare`: which of several systems is better, where, whether the difference is real, who finds what."""

import argparse
import json
import sys
from pathlib import Path

from .. import __version__
from ..evaluation import list_mentions
from ..evaluation.summary import compare_mentions
from ..report import comparison_markdown, comparison_page
from ..report.several import verdicts
from .systems import System, add_report_arguments, load_split, training_sentences, write_outputs

EPILOG = """\
examples:
  hf-spanner compare litbank/ span=runs/span_ner bl=runs/bl_ner --output reports/bundling
  hf-spanner compare genia/ shallow=runs/shallow deep=runs/dspert --representations --output reports/depth
  hf-spanner compare litbank/ span.jsonl seq.jsonl
  hf-spanner compare --race model_cards/race --output reports/race

The first system is what the others are held against. A SYSTEM is a trained model (folder or Hub id), or a JSON Lines
file of predictions as `hf-spanner evaluate --predictions` writes it (the way to compare the heads of a bundled model).
With --race it makes the table of what `scripts/race.py` has measured, and its plot (FILE.svg and FILE.png).
"""


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if "--race" in argv:
        return show_race(argv)
    parser = argparse.ArgumentParser(
        prog="hf-spanner compare",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_report_arguments(parser)
    parser.add_argument("systems", nargs="+", metavar="[NAME=]SYSTEM", help="trained models or files of predictions")
    args = parser.parse_args(argv)
    if len(args.systems) < 2:
        raise ValueError(f"A comparison needs at least two systems, not only {args.systems[0]!r}.")

    sentences, data, split = load_split(args.data, args.split, args.format, args.resplit)
    train = training_sentences(args, data, split)
    gold = [sentence["entities"] for sentence in sentences]
    mentions, places, described = {}, {}, {}
    for text in args.systems:
        system = System.named(text)
        if system.name in mentions:
            raise ValueError(f"Two systems are called {system.name!r}: name them, such as a={system.place}.")
        mentions[system.name] = list_mentions(system.predict(sentences, args.batch_size), gold)
        places[system.name] = system.place
        if args.representations:
            described[system.name] = system.represent(sentences)
    comparison = compare_mentions(mentions, sentences, train, resamples=args.resamples)
    for name, figures in described.items():
        comparison["systems"][name]["representations"] = figures

    title = args.title or f"{', '.join(mentions)} on {Path(args.data).name}, {split}"
    markdown = comparison_markdown(title, comparison)
    print(markdown)
    print("\n".join(verdicts(comparison)))
    if args.output:
        record = {"title": title, "systems": places, "data": args.data, "split": split, "hf_spanner": __version__}
        for entities in comparison["only"].values():
            for entity in entities:
                entity["id"] = sentences[entity["sentence"]].get("id")
        source = f"hf_spanner {__version__}: {', '.join(f'{n} = {p}' for n, p in places.items())}; data: {args.data}."
        page = comparison_page(title, mentions, sentences, comparison, source)
        record["comparison"] = comparison
        for file in write_outputs(args.output, html=page, json=json.dumps(record, ensure_ascii=False), md=markdown):
            print(file)
    return 0


def show_race(argv: list[str]) -> int:
    """The table and the plot of a race, from its saved results."""
    from ..benchmarks.race import draw_race, race_table, read_race

    parser = argparse.ArgumentParser(prog="hf-spanner compare")
    parser.add_argument("--race", required=True, metavar="FOLDER", help="where `scripts/race.py` left its results")
    parser.add_argument("--output", help="write FILE.md, FILE.svg and FILE.png")
    args = parser.parse_args(argv)
    corpora = read_race(args.race)
    table = race_table(corpora)
    print(table)
    if args.output:
        (file,) = write_outputs(args.output, md=table + "\n")
        figure = draw_race(corpora)
        pictures = [file.with_suffix(f".{suffix}") for suffix in ("svg", "png")]
        for picture in pictures:
            figure.savefig(picture, dpi=150)
        print(*[file, *pictures], sep="\n")
    return 0
