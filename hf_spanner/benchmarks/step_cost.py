"""What a training step costs: counted for encoders that do not fit here, timed against the length of the texts.

```
python -m hf_spanner.benchmarks.step_cost --arithmetic             # memory and time on common GPUs, worked out
python -m hf_spanner.benchmarks.step_cost --lengths 20 40 80 160 320 --plot model_cards/step_cost.svg
```

The first runs one step of one and of two texts on the CPU and counts exactly: parameters, floating-point operations
(torch's counter), and the bytes that the backward pass keeps (torch's saved-tensor hooks). All but the parameters grow
by the text, so the rest is multiplication. The second takes CPU seconds, the least of several turns.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig

from ..analysis.figures import COLOURS, legend_above, new_figure, save_figure
from ..auto import APPROACHES
from .host_syncs import LABELS, SMALL, some_batch

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
ENCODERS = {"base": BASE, "large": LARGE}
VOCABULARY = 30_000
# Memory in GB, dense half-precision operations a second (the makers' figures); a step reaches about a third of these.
GPUS = {"T4": (16, 65e12), "A10G": (24, 125e12), "A100": (40, 312e12), "H100": (80, 989e12)}
REACHED = 1 / 3
OPTIMISER = 16  # bytes a parameter: weight, gradient and AdamW's two means in single precision
SPARE = 1.5e9  # of a GPU's memory, for its own context and what is fragmented


class Cost(NamedTuple):
    """Of one step."""

    parameters: int
    operations: int
    kept: int  # bytes that wait for the backward pass

    @classmethod
    def of(cls, model: torch.nn.Module, batch: dict[str, Any]) -> "Cost":
        """Counted while it runs, forward and backward; a tensor that is kept twice counts once."""
        storages: dict[int, int] = {}
        own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                storages[storage.data_ptr()] = storage.nbytes()
            return tensor

        counter = FlopCounterMode(display=False)
        with counter:
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                loss = model(**batch).loss
            loss.backward()
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return cls(parameters, counter.get_total_flops(), sum(storages.values()))


def model_on(approach: str, encoder: dict[str, int]) -> Any:
    """A model of an approach as it is by default, with random weights, in training mode."""
    model_class: Any = APPROACHES[approach]
    if approach == "sng":
        return model_class.from_vectors(torch.randn(100, 300), LABELS).train()
    settings = {"attention_heads": encoder["num_attention_heads"]} if approach == "diffusion_ner" else {}
    config = AutoConfig.for_model("bert", vocab_size=VOCABULARY, max_position_embeddings=2048, **encoder).to_dict()
    return model_class(model_class.config_class(encoder_config=config, labels=LABELS, **settings)).train()


def per_text(approach: str, encoder: dict[str, int], words: int) -> tuple[Cost, Cost]:
    """What a step costs whatever the batch, and what each text of so many words adds."""
    model, costs = model_on(approach, encoder), []
    for size in (1, 2):
        batch = some_batch(1, words)
        costs.append(Cost.of(model, {name: torch.cat([value] * size) for name, value in batch.items()}))
        model.zero_grad()
    one, two = costs
    more = Cost(0, two.operations - one.operations, two.kept - one.kept)
    return Cost(one.parameters, one.operations - more.operations, max(one.kept - more.kept, 0)), more


def arithmetic(approaches: Iterable[str], words: int) -> list[str]:
    """The table: the largest batch on each GPU in mixed precision, and texts a second."""
    rows = [
        f"Texts of {words} words ({2 * words} sub-words); largest batch, texts a second:\n",
        "| approach | encoder | parameters | GFLOP a text | MB a text |" + "".join(f" {name} |" for name in GPUS),
        "|---|---|---:|---:|---:|" + "---:|" * len(GPUS),
    ]
    for name, encoder in ENCODERS.items():
        for approach in approaches:
            fixed, more = per_text(approach, encoder, words)
            kept = more.kept / 2  # in half precision, as autocast keeps nearly all of it
            cells = []
            for memory, speed in GPUS.values():
                room = memory * 1e9 - SPARE - OPTIMISER * fixed.parameters - fixed.kept
                batch = int(room / kept)
                rate = speed * REACHED / more.operations
                cells.append(f" {batch:,}, {rate:,.0f} |" if batch > 0 else " does not fit |")
            figures = f"{fixed.parameters / 1e6:,.0f}M | {more.operations / 1e9:,.0f} | {kept / 1e6:,.0f}"
            rows.append(f"| `{approach}` | {name} | {figures} |" + "".join(cells))
            print(rows[-1], flush=True)
    return rows


# ----------------------------------------------------------------------------------------------------- by length


def times_by_length(
    approaches: Iterable[str], lengths: list[int], texts: int, repeats: int
) -> dict[str, dict[int, float]]:
    """CPU seconds of a step, by approach and words in a text: the least of turns taken in alternation."""
    runs: dict[tuple[str, int], Callable[[], None]] = {}
    for approach in approaches:
        model = model_on(approach, SMALL)
        for length in lengths:
            runs[approach, length] = _step(model, some_batch(texts, length))
    least = dict.fromkeys(runs, float("inf"))
    for turn in range(repeats + 1):  # the first one warms up
        for key, run in runs.items():
            start = time.process_time()
            run()
            if turn:
                least[key] = min(least[key], time.process_time() - start)
    return {approach: {length: least[approach, length] for length in lengths} for approach, _ in runs}


def _step(model: Any, batch: dict[str, Any]) -> Callable[[], None]:
    def run() -> None:
        model.zero_grad()
        model(**batch).loss.backward()

    return run


def draw(times: dict[str, dict[int, float]]) -> Any:
    """Time beside that of the shortest texts, on logarithmic axes: a straight line of slope 1 is linear."""
    figure, (axes,) = new_figure(height=3.6, xscale="log", yscale="log")
    markers = "osv^D<>Px"
    for number, (approach, row) in enumerate(times.items()):
        first = next(iter(row.values()))
        style: dict[str, Any] = {"marker": markers[number % len(markers)], "color": COLOURS[number], "linewidth": 1.2}
        axes.plot(list(row), [value / first for value in row.values()], label=approach, **style)
    lengths = list(next(iter(times.values())))
    axes.plot(lengths, [length / lengths[0] for length in lengths], "k--", linewidth=1, label="linear")
    axes.set(xlabel="words in a text", ylabel="time of a step, the shortest = 1")
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.set_xticks([], minor=True)
    legend_above(axes)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--approaches", nargs="+", default=sorted(APPROACHES), choices=sorted(APPROACHES))
    parser.add_argument("--arithmetic", action="store_true", help="count, for base and large encoders")
    parser.add_argument("--words", type=int, default=40, help="of a text, with --arithmetic")
    parser.add_argument("--lengths", type=int, nargs="+", help="words of a text, to be timed")
    parser.add_argument("--batch", type=int, default=4, help="texts a step, with --lengths")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plot", help="write the plot of --lengths to this file")
    args = parser.parse_args()
    if args.arithmetic:
        print("\n".join(arithmetic(args.approaches, args.words)))
    if args.lengths:
        times = times_by_length(args.approaches, sorted(args.lengths), args.batch, args.repeats)
        print("| approach |" + "".join(f" {length} |" for length in sorted(args.lengths)))
        print("|---|" + "---:|" * len(args.lengths))
        for approach, row in times.items():
            first = next(iter(row.values()))
            print(f"| `{approach}` |" + "".join(f" {value / first:.1f} |" for value in row.values()))
        if args.plot:
            file = Path(args.plot)
            save_figure(draw(times), file.with_suffix(""), [file.suffix[1:] or "svg"])


if __name__ == "__main__":
    main()
