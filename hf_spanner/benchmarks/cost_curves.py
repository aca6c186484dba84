"""What reading costs: time and memory by length of text, batch size and span cap, for every approach, in one run.

Weights are random, as nothing here depends on them: an encoder of six layers of 384 (the size of MiniLM), no entity is
found. Every approach is loaded in a process of its own; they take turns.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, PreTrainedTokenizerFast

from ..analysis.figures import COLOURS, legend_above, new_figure, save_figure
from ..auto import APPROACHES
from ..modeling.reading import Reader
from .reading_speed import peak, reset_peak

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 20_000)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
CAPS = (2, 5, 10, 20, 40)
CAP = 10  # the span cap where it is not what changes
TEXTS, WORDS = 64, 40  # texts, and words of each, where length is not what changes
CURVES = {"length": "words of a text", "batch": f"batch ({TEXTS} texts of {WORDS} words)", "cap": "span cap in words"}
VOCABULARY = 1000


class Point(NamedTuple):
    """One measurement: so many texts of so many words, read in such batches by a model with this span cap."""

    curve: str
    x: int
    texts: int
    words: int
    batch: int
    cap: int


def points(lengths: Iterable[int], batches: Iterable[int], caps: Iterable[int]) -> list[Point]:
    """The measurements of the three curves."""
    rows = [Point("length", n, 1, n, 32, CAP) for n in lengths]
    rows += [Point("batch", n, TEXTS, WORDS, n, CAP) for n in batches]
    return rows + [Point("cap", n, TEXTS, WORDS, 32, n) for n in caps]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One sub-word a word."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, *(f"w{i}" for i in range(VOCABULARY - len(special)))]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def make_model(approach: str, cap: int, size: int = 384, layers: int = 6) -> Any:
    """A model with random weights and five labels; sng, which has no encoder, on random vectors."""
    torch.manual_seed(0)
    model_class: Any = APPROACHES[approach]
    settings = {"labels": list("ABCDE"), "max_span_length": cap, "threshold": 1.0}
    if approach == "sng":
        return model_class.from_vectors(torch.randn(VOCABULARY, size), **settings)
    encoder = BertConfig(
        vocab_size=VOCABULARY, hidden_size=size, num_hidden_layers=layers, num_attention_heads=max(1, size // 32),
        intermediate_size=4 * size, max_position_embeddings=512,
    )  # fmt: skip
    return model_class(model_class.config_class(encoder_config=encoder.to_dict(), max_subwords=512, **settings))


def measure(model: Any, tokenizer: PreTrainedTokenizerFast, point: Point) -> tuple[float, float]:
    """Seconds, and MiB at most above what is resident before."""
    draw = torch.Generator().manual_seed(point.words)
    numbers = torch.randint(0, VOCABULARY - 4, (point.texts, point.words), generator=draw).tolist()
    texts = [[f"w{number}" for number in row] for row in numbers]
    reader = Reader(model, tokenizer)
    _give_back()
    before = reset_peak()
    begun = time.perf_counter()
    for _ in reader.read([reader.cut(words) for words in texts], point.batch):
        pass
    return time.perf_counter() - begun, (peak() - before) / 1024


def _give_back() -> None:
    """Have the memory that is free also free for the system, or the peak before hides the next one."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _serve(approach: str, threads: int, size: int, layers: int, link: Connection) -> None:
    """A process of an approach: measures what it is asked for until there is nothing more."""
    torch.set_num_threads(threads)
    tokenizer, model, cap = make_tokenizer(), None, None
    while (point := link.recv()) is not None:
        if model is None or point.cap != cap:
            model, cap = make_model(approach, point.cap, size, layers), point.cap
            measure(model, tokenizer, Point("", 0, 2, 5, 2, cap))  # warm
        link.send(measure(model, tokenizer, point))


def cost_curves(
    approaches: Sequence[str] = tuple(APPROACHES),
    lengths: Sequence[int] = LENGTHS,
    batches: Sequence[int] = BATCHES,
    caps: Sequence[int] = CAPS,
    repeats: int = 3,
    threads: int = 1,
    size: int = 384,
    layers: int = 6,
    said: Callable[[str], object] = lambda text: None,
) -> list[dict[str, Any]]:
    """A row for each approach and point: `approach`, `curve`, `x`, median `seconds` and `mib` of the repeats.

    Approaches without a span cap take no part in its curve.
    """
    context = multiprocessing.get_context("spawn")
    links, processes = {}, []
    for approach in approaches:
        links[approach], theirs = context.Pipe()
        process = context.Process(target=_serve, args=(approach, threads, size, layers, theirs), daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
    rows = []
    try:
        for point in points(lengths, batches, caps):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in approaches}
            for _ in range(repeats):
                for name, link in links.items():
                    if point.curve != "cap" or has_cap(name):
                        link.send(point)
                        found[name].append(link.recv())
            for name, measured in found.items():
                if measured:
                    seconds, mib = (statistics.median(values) for values in zip(*measured))
                    about = {"curve": point.curve, "x": point.x, "texts": point.texts, "words": point.words}
                    rows.append({"approach": name, **about, "seconds": seconds, "mib": mib})
            said(f"{point.curve} {point.x:,}")
        for link in links.values():
            link.send(None)
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    return rows


def has_cap(approach: str) -> bool:
    """Whether the span cap decides how many spans a model scores."""
    config_class: Any = APPROACHES[approach].config_class  # whose `__init__` transformers makes
    return config_class(labels=["A"]).reach().longest is not None


def cost_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as one Markdown table: a line a point, a column an approach, `relative time of a text · MiB`."""
    names, times = list(dict.fromkeys(row["approach"] for row in rows)), relative_times(rows)
    cells = {
        (row["curve"], row["x"], row["approach"]): f"{time:,.{1 if time < 100 else 0}f} · {row['mib']:,.0f}"
        for row, time in zip(rows, times, strict=True)
    }
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for curve, x in dict.fromkeys((row["curve"], row["x"]) for row in rows):
        line = (cells.get((curve, x, name), "–") for name in names)
        lines.append(f"| {CURVES[curve]}: {x:,} | {' | '.join(line)} |")
    return "\n".join(lines)


def relative_times(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """The time of a text beside that of the first row of its curve: seconds say nothing outside the run."""
    of_a_text = [row["seconds"] / row["texts"] for row in rows]
    first = {row["curve"]: seconds for row, seconds in zip(reversed(rows), reversed(of_a_text), strict=True)}
    return [seconds / first[row["curve"]] for row, seconds in zip(rows, of_a_text, strict=True)]


def draw_cost(rows: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """The time of a text and MiB, one below the other for each curve; a line an approach."""
    figure, panels = new_figure(title, panels=2 * len(CURVES), height=2.6, xscale="log", yscale="log")
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    names = list(dict.fromkeys(row["approach"] for row in rows))
    timed = [{**row, "time": time} for row, time in zip(rows, relative_times(rows), strict=True)]
    for (curve, name), of_time, of_memory in zip(CURVES.items(), panels[::2], panels[1::2], strict=True):
        for approach, colour in zip(names, itertools.cycle(COLOURS)):
            line = [row for row in timed if (row["curve"], row["approach"]) == (curve, approach)]
            if not line:
                continue
            x, style = [row["x"] for row in line], {"marker": "o", "markersize": 3, "color": colour}
            of_time.plot(x, [row["time"] for row in line], label=approach, **style)
            of_memory.plot(x, [max(row["mib"], 0.1) for row in line], **style)
        of_time.set(xlabel=name, ylabel="time of a text")
        of_memory.set(xlabel=name, ylabel="MiB above the loaded model")
        ticks = sorted({row["x"] for row in rows if row["curve"] == curve})
        for panel in (of_time, of_memory):
            panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=30 if max(ticks, default=0) > 999 else 0)
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_minor_locator(NullLocator())
    legend_above(panels[0])
    return figure


def save_cost(rows: Sequence[Mapping[str, Any]], folder: str | Path, title: str = "") -> list[Path]:
    """`cost_curves.md`, `.json`, `.png` and `.svg` in `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw_cost(rows, title)
    table, data = folder / "cost_curves.md", folder / "cost_curves.json"
    table.write_text(f"{title}\n\n{cost_table(rows)}\n", encoding="utf-8")
    data.write_text(json.dumps({"title": title, "rows": list(rows)}, indent=1), encoding="utf-8")
    return [table, data, *save_figure(figure, folder / "cost_curves")]
