"""`hf-spanner predict`: the nested entities of a text, a file or standard input, drawn for people or as JSON Lines."""

import argparse
import contextlib
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from transformers.utils import logging

from ..default import folder_of
from ..harmless import OBEYED
from ..hub.publishing import find
from ..hub.record import RECORD, read_record
from ..loading import load_config, load_model, pipeline
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
  hf-spanner predict --format html --output seen.html --file chapter.txt
  cat sentences.txt | hf-spanner predict --model runs/litbank --lines > entities.jsonl

A line of JSON Lines is {"text", "entities"}; an entity has entity_group, score, word, start and end, counted in
characters of that text. Text is UTF-8.
"""


def main(argv: list[str] | None = None) -> int:
    parser = predict_parser()
    args = parser.parse_intermixed_args(argv)  # texts may stand before and after the options
    if args.labels == "":
        say(label_list(args.model))
        return 0
    source = input_of(args, parser)
    options = decoding_options(args) | label_options(args)
    if args.batch_size < 1:
        raise ValueError(f"--batch-size {args.batch_size} must be at least 1.")

    if args.output and not Path(args.output).absolute().parent.is_dir():
        raise FileNotFoundError(f"--output {args.output}: its folder does not exist.")

    ner = load_pipeline(args.model, **device_options(args))
    results = predict(ner, source, args.words, batch_size=args.batch_size, **options)
    names = [options.get("label_map", {}).get(label, label) for label in ner.model.config.types]
    if args.format in PICTURES:
        drawn = picture(results, args.format, names)
        with open_output(args.output) as stream:
            stream.writelines(drawn)
        return 0
    with open_output(args.output) as stream:
        view = args.format == "view" or (args.format is None and stream.isatty())
        color = args.color == "always" or (args.color == "auto" and use_color(stream))
        if hasattr(stream, "reconfigure"):  # JSON Lines are UTF-8 wherever they are; a terminal shows what it can
            stream.reconfigure(**({"errors": "replace"} if view else {"encoding": "utf-8"}))
        for text, entities in results:
            if view:
                stream.write(render(text, entities, "ansi", color=color, labels=names) + "\n")
                stream.write("\n" if entities else "(no entities)\n\n")
            else:
                stream.write(as_json(text, entities) + "\n")
            stream.flush()
    return 0


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
    parser.add_argument("--output", help="write to this file")
    parser.add_argument(
        "--format",
        choices=["view", "jsonl", *PICTURES],
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
    return parser


# --------------------------------------------------------------------------------------------------------------- input


def input_of(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Iterable[str]:
    """The texts to read, one by one. A missing file is noticed here, before the model is loaded."""
    if args.text:
        if args.file is not None:
            parser.error("give texts or --file, not both.")
        if args.lines:
            parser.error("--lines is for a file or standard input; each TEXT is a text by itself.")
        return args.text
    if args.file in (None, "-"):
        if args.file is None and sys.stdin.isatty():
            parser.error("nothing to read: give a text, --file FILE, or pipe text in.")
        return read_texts(sys.stdin.buffer, "standard input", args.lines)
    if args.output and Path(args.output).resolve() == Path(args.file).resolve():
        raise ValueError(f"--output {args.output} is the input itself: choose another file.")
    if not Path(args.file).is_file():
        raise FileNotFoundError(f"There is no file {args.file!r} to read.")
    return read_texts(Path(args.file).open("rb"), args.file, args.lines)


def read_texts(file: BinaryIO, name: str, lines: bool) -> Iterator[str]:
    """The whole file as one text, or each of its lines without its end. Only a byte order mark is left out."""
    with file:
        if not lines:
            yield _decode(file.read(), name).removeprefix("\ufeff")
            return
        for number, line in enumerate(file, start=1):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            text = _decode(line, f"{name}, line {number},")
            yield text.removeprefix("\ufeff") if number == 1 else text


def _decode(data: bytes, where: str) -> str:
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


# ---------------------------------------------------------------------------------------------------------- prediction


def load_pipeline(name: str, **loading: Any):
    """The pipeline of a folder or a model on the Hub; `loading` as in `load_model`."""
    logging.disable_progress_bar()
    model, tokenizer = load_model(name, **loading)
    return pipeline(model, tokenizer, device=model.device)


def predict(ner, texts: Iterable[str], words: bool = False, **options) -> Iterator[tuple[str, list[dict]]]:
    """Each text with its entities, in order, reading no further ahead than a batch.

    With `words` a text is cut into words at white space, and offsets count in these words joined by a space.
    """
    waiting: deque[str] = deque()

    def inputs() -> Iterator[str | list[str]]:
        for text in texts:
            item = text.split() if words else text
            waiting.append(" ".join(item) if words else text)
            yield item

    for entities in ner(inputs(), is_split_into_words=words, **options):
        yield waiting.popleft(), entities


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


def as_json(text: str, entities: list[dict]) -> str:
    """One line; escaped only if it holds what UTF-8 cannot write (half a surrogate pair) or a terminal would obey."""
    row = {"text": text, "entities": entities}
    line = json.dumps(row, ensure_ascii=False)
    return json.dumps(row) if OBEYED.search(line) else line
