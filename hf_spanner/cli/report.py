"""`hf-spanner report`: understand a model's results, on one HTML page, as JSON and as Markdown."""

import json
from pathlib import Path

from .. import __version__
from ..data.splits import load_split
from ..evaluation import System, list_errors, list_mentions
from ..evaluation.summary import summarise_mentions
from ..report import report_markdown, report_page
from .options import (
    add_report_arguments,
    device_options,
    joined,
    length_bins,
    listed,
    looked_at,
    make_parser,
    parse_with_data,
    say,
    training_sentences,
    write_outputs,
)

EPILOG = """\
examples:
  hf-spanner report --data litbank/ runs/litbank --output reports/litbank
  hf-spanner evaluate --data litbank/ --model runs/litbank --predictions found.jsonl
  hf-spanner report --data litbank/ found.jsonl --output reports/litbank

SYSTEM is a trained model (folder or Hub id), or a JSON Lines file of predictions as `hf-spanner evaluate
--predictions` writes it.
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("report", __doc__, EPILOG)
    add_report_arguments(parser)
    args = parse_with_data(
        parser, argv, "SYSTEM", explain="SYSTEM, or NAME=SYSTEM: a trained model or a file of predictions"
    )

    lengths = length_bins(args.length_bins)
    system = System.named(args.system, **device_options(args))
    sentences, data, split = load_split(args.data, args.split, args.format, args.resplit, system.splitter)
    sentences, kinds = looked_at(args, joined(sentences, args.join_subwords, system.place))
    found = system.predict(sentences, args.batch_size, kinds)
    mentions = list_mentions(found, [s["entities"] for s in sentences])
    labels = listed(args.labels) or (None if system.model is None else system.model.config.types)
    summary = summarise_mentions(
        mentions, sentences, training_sentences(args, data, split, system.splitter), labels, args.resamples, lengths
    )
    if labels and (foreign := sorted({m.label for m in mentions if m.gold} - set(labels))):
        names = ", ".join(foreign)
        summary["notes"].append(f"Labels that the model does not know, so that they can only be missed: {names}.")
    if args.representations:
        summary["representations"] = system.represent(sentences)

    title = args.title or f"{system.name} on {Path(args.data).name}, {split}"
    markdown = report_markdown(title, summary)
    say(markdown)
    if args.output:
        errors = [
            {"sentence": sentences[m.sentence].get("id", m.sentence), "start": m.start, "end": m.end, "label": m.label,
             "side": "missed" if m.gold else "wrong", "kind": kind, "score": m.score}
            for m, kind in list_errors(mentions)
        ]  # fmt: skip
        record = {"title": title, "system": system.place, "data": args.data, "split": split, "hf_spanner": __version__}
        record = {**record, "summary": summary, "errors": errors}
        source = f"hf_spanner {__version__}: {system.place} on {args.data}."
        page = report_page(title, mentions, sentences, summary, source)
        for file in write_outputs(args.output, html=page, json=json.dumps(record, ensure_ascii=False), md=markdown):
            say(file)
    return 0
