"""`hf-spanner compare`: which of several systems is better, where, whether the difference is real, who finds what."""

import json
from pathlib import Path

from .. import __version__
from ..data.splits import load_split
from ..evaluation import System, list_mentions
from ..evaluation.summary import compare_mentions
from ..report import comparison_markdown, comparison_page
from ..report.several import verdicts
from .options import add_report_arguments, make_parser, training_sentences, write_outputs

EPILOG = """\
examples:
  hf-spanner compare litbank/ span=runs/span_ner bl=runs/bl_ner --output reports/bundling
  hf-spanner compare genia/ shallow=runs/shallow deep=runs/dspert --representations --output reports/depth
  hf-spanner compare litbank/ span.jsonl seq.jsonl

The first system is what the others are held against. A SYSTEM is a trained model (folder or Hub id), or a JSON Lines
file of predictions as `hf-spanner evaluate --predictions` writes it (the way to compare the heads of a bundled model).
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("compare", __doc__, EPILOG)
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
