"""`hf-spanner predict`: the nested entities of a text, a file or standard input, drawn for people or as JSON Lines."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from transformers.utils import logging

from .. import __version__
from ..bulk.parts import Parts
from ..bulk.reading import Reading, read_records
from ..bulk.running import Summary, predict_bulk
from ..bulk.sources import Record, Source, as_json, open_source, stream_source, texts_source
from ..data.chars import CharSpan
from ..data.writers.label_studio import json_list, prediction_task
from ..default import folder_of
from ..harmless import harmless
from ..hub.publishing import find
from ..hub.record import RECORD, read_record
from ..loading import load_config
from ..modeling.pipeline_nested_ner import LOOK_AHEAD
from ..rendering import render
from ..rendering.ansi import use_color
from ..rendering.drawing import html
from ..rendering.html import page
from .options import (
    add_decoding_arguments,
    add_device_arguments,
    decoding_options,
    device_options,
    listed,
    make_parser,
    say,
)

PICTURES = ("html", "svg")
EPILOG = """\
examples:
  hf-spanner predict "the mayor of New York"
  hf-spanner predict --model runs/litbank "the mayor of New York"
  hf-spanner predict --model runs/litbank --file chapter.txt
  hf-spanner predict --file sentences.txt --lines --format label-studio --output tasks.json
  hf-spanner predict --format html --output seen.html --file chapter.txt
  cat sentences.txt | hf-spanner predict --model runs/litbank --lines > entities.jsonl
  hf-spanner predict --input corpus.jsonl.gz --output entities.parquet --workers 4
  hf-spanner predict --input corpus.jsonl.gz --output entities.parquet --workers 4 --resume

A line of JSON Lines is {"text", "entities"}; an entity has entity_group, score, word, start and end, counted in
characters of that text. Text is UTF-8. With --format label-studio it is a list of tasks with pre-annotations, to be
imported into a project whose tags are called label and text, as in Label Studio's template for named entities.
Exit code 3: all was read, but for lines that were set aside.
"""
ENDINGS = (".jsonl", ".parquet")  # of what is written in parts
SET_ASIDE = 3  # the exit code if there were lines that could not be read


def main(argv: list[str] | None = None) -> int:
    parser = predict_parser()
    args = parser.parse_intermixed_args(argv)  # texts may stand before and after the options
    if args.labels == "":
        say(label_list(args.model))
        return 0
    logging.disable_progress_bar()
    if args.batch_size < 1:
        raise ValueError(f"--batch-size {args.batch_size} must be at least 1.")
    options = decoding_options(args) | label_options(args)
    columns = {"text_column": args.text_column, "entities_column": args.entities_column}
    reading = Reading(
        args.model, **columns, words=args.words, batch_size=args.batch_size, options=options, **device_options(args)
    )
    if args.output and not Path(args.output).absolute().parent.is_dir():
        raise FileNotFoundError(f"--output {args.output}: its folder does not exist.")
    in_parts = Path(args.output or "").suffix.lower() in ENDINGS and args.format in (None, "jsonl")
    if args.input is not None or (in_parts and args.lines and args.file not in (None, "-")):
        return bulk(args, parser, reading)
    for name in ("text_column", "entities_column", "workers", "resume", "overwrite", "whole_files", "split"):
        if getattr(args, name) != parser.get_default(name):
            parser.error(f"--{name.replace('_', '-')} is for --input.")
    return stream(args, input_of(args, parser), reading)


def bulk(args: argparse.Namespace, parser: argparse.ArgumentParser, reading: Reading) -> int:
    """All of a file, a folder or a data set, in parts that survive a kill."""
    if args.text or (args.input is not None and args.file is not None):
        parser.error("give texts, --file or --input, one of them.")
    if args.output is None:
        parser.error("--input needs --output FILE.jsonl or FILE.parquet.")
    if args.format not in (None, "jsonl"):
        parser.error(f"--format {args.format} is for a few texts, and --input for files: leave it out.")
    name = args.file if args.input is None else args.input
    check_other_file(args.output, name)
    if args.input is None and not Path(name).is_file():
        raise FileNotFoundError(f"There is no file {name!r} to read.")
    kind = "file" if args.whole_files else "txt" if args.input is None else None
    source = open_source(name, kind, args.split)
    overwrite = args.overwrite or (args.input is None and not args.resume)  # --file has always done so
    done = predict_bulk(source, args.output, reading, args.workers, args.resume, overwrite, progress=True)
    if int(os.environ.get("RANK", 0)) == 0:
        say_what_was_done(done, args.output)
    return SET_ASIDE if done.aside else 0


def say_what_was_done(done: Summary, output: str) -> None:
    if done.texts is None:
        told = f"{output} was complete already."
    else:
        before = f", {done.before:,} of them by an earlier run" if done.before else ""
        told = f"{output}: {done.texts:,} texts{before}, {done.speed:,.0f} texts/s."
    if done.aside:
        lines = "1 line" if done.aside == 1 else f"{done.aside:,} lines"
        told += f" {lines} could not be read: see {Parts(output).aside}."
    print(harmless(told), file=sys.stderr)


def stream(args: argparse.Namespace, source: Source, reading: Reading) -> int:
    """Texts, a file or standard input, to a terminal or a file, as they come; what cannot be read is said."""
    predictor, bad = reading.predictor(), 0

    def answers() -> Iterator[list[dict[str, Any]]]:
        nonlocal bad
        for records in read_ahead(source, args.batch_size):
            rows, aside = read_records(predictor, reading, records)
            yield rows
            for line in aside:
                told = f"{line['file']}, line {line['line']}, is set aside: {line['reason']}."
                print(f"hf-spanner predict: {harmless(told)}", file=sys.stderr)
            bad += len(aside)

    with open_output(args.output) as out:
        view = args.format == "view" or (args.format is None and out.isatty())
        color = args.color == "always" or (args.color == "auto" and use_color(out))
        if hasattr(out, "reconfigure"):  # JSON Lines are UTF-8 wherever they are; a terminal shows what it can
            out.reconfigure(**({"errors": "replace"} if view else {"encoding": "utf-8"}))
        labels = [reading.options.get("label_map", {}).get(label, label) for label in predictor.ner.model.config.types]
        if args.format == "label-studio":
            by = f"{args.model} (hf_spanner {__version__})"
            for piece in json_list(
                studio_task(row["text"], row["entities"], by) for rows in answers() for row in rows
            ):
                out.write(piece)
            return SET_ASIDE if bad else 0
        if args.format in PICTURES:
            found = ((row["text"], row["entities"]) for rows in answers() for row in rows)
            out.writelines(picture(found, args.format, labels))
            return SET_ASIDE if bad else 0
        for rows in answers():
            for row in rows:
                if view:
                    out.write(render(row["text"], row["entities"], "ansi", color=color, labels=labels) + "\n")
                    out.write("\n" if row["entities"] else "(no entities)\n\n")
                else:
                    out.write(as_json(row) + "\n")
            out.flush()
    return SET_ASIDE if bad else 0


def read_ahead(source: Source, batch_size: int) -> Iterator[list[Record]]:
    """Records that are read together, so that texts of similar length share a batch; each alone in batches of one."""
    records = iter(source)
    number = batch_size * LOOK_AHEAD if batch_size > 1 else 1
    while together := list(islice(records, number)):
        yield together


def predict_parser() -> argparse.ArgumentParser:
    parser = make_parser("predict", __doc__, EPILOG)
    parser.add_argument("text", nargs="*", metavar="TEXT", help="texts to read")
    parser.add_argument(
        "--model", default="default", help="folder or Hub id of a trained model (default: the one of the package)"
    )
    parser.add_argument(
        "--file", help="read this file instead; - for standard input (the default if no TEXT is given)"
    )
    parser.add_argument("--lines", action="store_true", help="every line of the file is a text, empty ones too")
    parser.add_argument("--words", action="store_true", help="the text is already cut into words, at white space")
    parser.add_argument("--output", help="write to this file; with --input .jsonl or .parquet")
    parser.add_argument(
        "--format",
        choices=["view", "jsonl", *PICTURES, "label-studio"],
        help="default: view on a terminal, else jsonl; html is a page, svg a picture of one text",
    )
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="of the view")
    parser.add_argument(
        "--labels",
        nargs="?",
        const="",
        metavar="LABEL,...",
        help="look for these labels only; without a name: list those that the model knows, with examples, and end",
    )
    parser.add_argument("--label-map", metavar="LABEL=NAME,...", help="other names for labels, such as person=PER")
    add_decoding_arguments(parser)
    add_device_arguments(parser)
    add_bulk_arguments(parser)
    return parser


def add_bulk_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "many texts", "read in parts beside --output, so that nothing is lost or read twice"
    )
    group.add_argument(
        "--input",
        help="a .txt (a text a line), .jsonl, .csv, .tsv or .parquet file, packed (.gz) or not, a folder of such "
        "files, or a data set on the Hub; other columns are kept",
    )
    group.add_argument("--text-column", default="text", help="the column with the texts (default: text)")
    group.add_argument("--entities-column", default="entities", help="the column to add (default: entities)")
    group.add_argument("--split", default="train", help="of a data set (default: train)")
    group.add_argument("--whole-files", action="store_true", help="every .txt file is a text, not every line of it")
    group.add_argument("--workers", type=int, default=1, help="processes that read at once (default: 1)")
    group.add_argument("--resume", action="store_true", help="go on with a run that was killed")
    group.add_argument("--overwrite", action="store_true", help="replace the output, and the parts of an earlier run")


# --------------------------------------------------------------------------------------------------------------- input


def input_of(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Source:
    """The texts to read. A missing file is noticed here, before the model is loaded."""
    if args.text:
        if args.file is not None:
            parser.error("give texts or --file, not both.")
        if args.lines:
            parser.error("--lines is for a file or standard input; each TEXT is a text by itself.")
        return texts_source(args.text)
    if args.file in (None, "-"):
        if args.file is None and sys.stdin.isatty():
            parser.error("nothing to read: give a text, --file FILE, or pipe text in.")
        name, file = "standard input", sys.stdin.buffer
    else:
        check_other_file(args.output, args.file)
        if not Path(args.file).is_file():
            raise FileNotFoundError(f"There is no file {args.file!r} to read.")
        name, file = args.file, Path(args.file).open("rb")  # noqa: SIM115 -- lines are read later
    if args.lines:
        return stream_source(file, name)
    with file:
        return texts_source([decoded(file.read(), name).removeprefix("\ufeff")])


def check_other_file(output: str | None, name: str) -> None:
    if output and Path(output).resolve() == Path(name).resolve():
        raise ValueError(f"--output {output} is the input itself: choose another file.")


def decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}. "
            "Convert it first, for example with `iconv -f latin1 -t utf-8`."
        ) from None


# -------------------------------------------------------------------------------------------------------------- labels


def label_options(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for with --labels and --label-map, for the pipeline."""
    options: dict[str, Any] = {}
    if args.labels is not None:
        options["labels"] = listed(args.labels)
    if args.label_map is not None:
        pairs = [part.split("=", 1) for part in args.label_map.split(",")]
        if any(len(pair) < 2 for pair in pairs):
            raise ValueError(f"Cannot read --label-map {args.label_map!r}: write person=PER,place=LOC.")
        options["label_map"] = {label.strip(): name.strip() for label, name in pairs}
    return options


def label_list(model: str) -> str:
    """The labels of a model, a line each, with examples from its training if there is a record of it."""
    seen = read_record(find(folder_of(model), RECORD)).get("labels", {})
    labels = load_config(model).types
    width = max(map(len, labels))
    rows = (f"{label:<{width}}  {', '.join(seen.get(label, {}).get('examples', []))}".rstrip() for label in labels)
    return "\n".join(rows)


# -------------------------------------------------------------------------------------------------------------- output


def picture(results: Iterable[tuple[str, list[dict]]], format: str, labels: list[str]) -> list[str]:
    """The texts with their entities as a page, or the only one as an SVG file."""
    done = list(results)
    if format == "html":
        return [page("Nested entities", [html(text, found, labels) for text, found in done])]
    if len(done) != 1:
        raise ValueError(f"--format svg draws one text, and there are {len(done)}: write html, or one file for each.")
    return [render(*done[0], "svg", labels=labels) + "\n"]


def open_output(path: str | None) -> contextlib.AbstractContextManager[TextIO]:
    """The file to write to, or standard output."""
    return contextlib.nullcontext(sys.stdout) if path is None else Path(path).open("w", encoding="utf-8")


def studio_task(text: str, entities: list[dict], model_version: str) -> dict[str, Any]:
    """The text and its entities as a task of Label Studio's."""
    spans = [CharSpan(e["start"], e["end"], e["entity_group"], mention=e.get("mention")) for e in entities]
    return prediction_task(text, spans, [e["score"] for e in entities], model_version)
