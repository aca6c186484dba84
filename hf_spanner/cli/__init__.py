"""The command `hf-spanner`: finds the sub-command, runs it, and says errors that a user can mend in one sentence."""

import difflib
import importlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..errors import origin
from ..harmless import harmless


class Command(NamedTuple):
    """A sub-command: a module with `main(argv) -> int`, imported only when it is called."""

    name: str
    module: str
    help: str


COMMANDS = (
    Command("train", "hf_spanner.cli.train", "train a model from a recipe and flags"),
    Command("adapt", "hf_spanner.cli.adapt", "let an encoder read text of a domain before it is trained"),
    Command("evaluate", "hf_spanner.cli.evaluate", "score a model on annotated data"),
    Command("predict", "hf_spanner.cli.predict", "find the entities of a text, a file or standard input"),
    Command(
        "data", "hf_spanner.cli.data", "get the papers' corpora: list them, convert your copy, compare its counts"
    ),
    Command("serve", "hf_spanner.cli.serve", "answer requests over HTTP with a model"),
    Command(
        "convert",
        "hf_spanner.cli.convert",
        "convert annotated data: JSON Lines, brat, CoNLL, spaCy, CAS, Label Studio",
    ),
    Command("import", "hf_spanner.cli.import_flat", "make a flat tagger of transformers a seq_ner model"),
    Command("inspect", "hf_spanner.cli.inspect", "look at annotated data first: size, leaks, reach, inconsistencies"),
    Command("export", "hf_spanner.cli.export", "write a model for ONNX Runtime, fast on a CPU, in float32 or int8"),
    Command("push", "hf_spanner.cli.push", "upload a model with its card, recipe and results to the Hub"),
    Command("report", "hf_spanner.cli.report", "understand a model's results: one HTML page, JSON and Markdown"),
    Command("compare", "hf_spanner.cli.compare", "which of several models is better, where, and for sure?"),
    Command("tune", "hf_spanner.cli.tune", "search learning rates and span length for your data: a recipe"),
    Command("tune-threshold", "hf_spanner.cli.tune_threshold", "find the threshold with the best validation F1"),
    Command("demo", "hf_spanner.cli.demo", "a page in the browser: text in, nested view out"),
    Command("space", "hf_spanner.cli.space", "the same page as a Space of the Hub"),
    Command("pictures", "hf_spanner.cli.pictures", "draw what a model thinks of the gold entities"),
    Command("curves", "hf_spanner.cli.curves", "draw the training loss by epoch"),
    Command("reproduce", "hf_spanner.cli.reproduce", "make a paper's table again, beside its printed figures"),
)

# Packages that only some commands and options need, and what installs them.
OPTIONAL = {
    "peft": "hf_spanner[peft]",
    "matplotlib": "hf_spanner[plots]",
    "gradio": "hf_spanner[demo]",
    "spacy": "hf_spanner[spacy]",
    "cassis": "hf_spanner[cas]",
    "optuna": "hf_spanner[tune]",
    "scipy": "scipy",
    "onnx": "hf_spanner[onnx]",
    "onnxruntime": "hf_spanner[onnx]",
    "onnxscript": "hf_spanner[onnx]",
    "fastapi": "hf_spanner[serve]",
    "starlette": "hf_spanner[serve]",
    "uvicorn": "hf_spanner[serve]",
    "ray": "hf_spanner[ray]",
    "pyspark": "hf_spanner[spark]",
    "wandb": "wandb",
    "tensorboard": "tensorboard",
    "tensorboardX": "tensorboard",
    "sentencepiece": "sentencepiece",
    "tiktoken": "tiktoken",
}


def main(argv: list[str] | None = None) -> int:
    """Run `hf-spanner COMMAND ...` and return its exit code: 0, or 2 for an error that the user can mend."""
    argv, traceback = _take_traceback(list(sys.argv[1:] if argv is None else argv))
    _open_streams()
    name = argv[0] if argv else None
    try:
        if name in (None, "-h", "--help", "help"):
            print(usage())
            code = 0
        elif name in ("-V", "--version"):
            print(version())
            code = 0
        elif (command := {c.name: c for c in COMMANDS}.get(name)) is None:
            print(f"hf-spanner: {unknown(name)}", file=sys.stderr)
            code = 2
        else:
            with _called_as(f"hf-spanner {name}", argv[1:]), _harmless_logs():
                code = importlib.import_module(command.module).main(argv[1:])
        sys.stdout.flush()
        return code or 0
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _forget_stdout()
        return 141
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, ImportError) as error:
        told = missing_package(error) or one_line(error)
        ours = all(origin(error))
        if traceback or not (ours or _is_of_the_input(error)):
            raise  # a mistake in the program, not in the input
        print(f"hf-spanner {name}: {told}", file=sys.stderr)
        if not ours and getattr(error, "errno", None) is None and not isinstance(error, ImportError):
            print("(--traceback shows where this was raised)", file=sys.stderr)  # not written for this command
        return 2


def usage() -> str:
    """What `hf-spanner --help` prints."""
    rows = "\n".join(f"  {command.name:<14} {command.help}" for command in COMMANDS)
    return (
        "usage: hf-spanner COMMAND ...\n\nNested named entity recognition with Hugging Face models.\n\n"
        f"commands:\n{rows}\n\n"
        "options:\n"
        "  --help       this text; after a command, that command's options\n"
        "  --version    the version\n"
        "  --traceback  show where an error was raised (or set HF_SPANNER_TRACEBACK=1)\n\n"
        "examples:\n"
        "  hf-spanner train litbank/span_ner.yaml --data FOLDER --output_dir runs/litbank\n"
        '  hf-spanner predict --model runs/litbank "the mayor of New York"'
    )


def version() -> str:
    """What `hf-spanner --version` prints."""
    from .. import __version__

    return f"hf-spanner {__version__}"


def unknown(name: str) -> str:
    """The sentence for a command that does not exist."""
    names = [command.name for command in COMMANDS]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(names)}."
    return f"there is no command {name!r}; {hint}"


def one_line(error: Exception) -> str:
    """The error's message on one line, with nothing in it that a terminal would obey."""
    return harmless(" ".join(str(error).split())) or type(error).__name__


def missing_package(error: Exception) -> str | None:
    """The sentence for a package that is not installed, if it is one of those that only some commands need."""
    name = (getattr(error, "name", None) or "").split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or name not in OPTIONAL:
        return None
    return f"This needs {name}, which is not installed: `pip install {OPTIONAL[name]}`."


def _take_traceback(argv: list[str]) -> tuple[list[str], bool]:
    """The arguments without `--traceback`, and whether it was there (or HF_SPANNER_TRACEBACK is set)."""
    stop = argv.index("--") if "--" in argv else len(argv)
    rest = [argument for argument in argv[:stop] if argument != "--traceback"]
    asked = len(rest) < stop or os.environ.get("HF_SPANNER_TRACEBACK", "0") not in ("", "0")
    return rest + argv[stop:], asked


@contextmanager
def _called_as(program: str, argv: list[str]) -> Iterator[None]:
    """`sys.argv` as if the sub-command were a program: parsers take their name from it, and `train` records it."""
    before, sys.argv = sys.argv, [program, *argv]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _harmless_logs() -> Iterator[None]:
    """Warnings speak of labels, words and files, too."""

    class Record(logging.LogRecord):
        def getMessage(self) -> str:
            return harmless(super().getMessage(), keep="\n\t")

    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(Record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)


def _is_of_the_input(error: BaseException) -> bool:
    """Whether an error that others raised is about what the user gave, or a package that is missing."""
    if isinstance(error, ImportError):
        return missing_package(error) is not None
    if isinstance(error, OSError):
        return True
    ours, _ = origin(error)  # `int("x")` in our own code is our mistake, and so is every TypeError
    return isinstance(error, ValueError) and not ours


def _open_streams() -> None:
    """Standard streams that were closed (`<&-`) lead nowhere: Python has None in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 -- until the process ends


def _forget_stdout() -> None:
    """Point standard output at nothing, so that Python's last flush does not complain of the closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
