"""Speed and memory of trained models, as ratios taken in one interleaved run.

    python scripts/benchmark.py --data FOLDER --models span_ner=runs/litbank-span_ner bl_ner=runs/litbank-bl_ner
    python scripts/benchmark.py --data FOLDER --models span_ner=runs/a sng=runs/b --train 256
    python scripts/benchmark.py --memory span_ner seq_ner
    python scripts/benchmark.py --dspert 10 25
    python scripts/benchmark.py --cold-start
    python scripts/benchmark.py --cold-start default --models float32=out int8=out-int8
    python scripts/benchmark.py --onnx default --models float32=out int8=out-int8 --data FOLDER
    python scripts/benchmark.py --diffusion runs/race/genia/diffusion_ner-42 --data FOLDER --curves docs/curves
    python scripts/benchmark.py --cost docs/figures

Nothing else should run beside it: timings next to other work are worthless.
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import torch
import transformers

from hf_spanner.analysis.figures import require_matplotlib
from hf_spanner.auto import NAMES
from hf_spanner.benchmarks.cold_start import compare_cold_start, compare_light_start
from hf_spanner.benchmarks.cost_curves import BATCHES, CAPS, LENGTHS, cost_curves, cost_table, save_cost
from hf_spanner.benchmarks.diffusion_curves import curves_table, sampling_curves, save_curves
from hf_spanner.benchmarks.dspert_speed import compare_forward
from hf_spanner.benchmarks.onnx_speed import compare_exports
from hf_spanner.benchmarks.reading_speed import compare_speed, peak_memory
from hf_spanner.benchmarks.training_speed import compare_training
from hf_spanner.data import load_nested_ner
from hf_spanner.loading import load_model


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", help="sentences to read: a file or a folder with splits")
    parser.add_argument("--split", default="test")
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME=FOLDER", help="trained models to compare")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--train", type=int, default=0, metavar="N", help="time training too, on N sentences")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--memory", nargs="*", default=[], metavar="APPROACH", help="measure peak memory by text length"
    )
    parser.add_argument(
        "--dspert",
        nargs="*",
        type=int,
        default=[],
        metavar="K",
        help="DSpERT's span Transformer at span cap K, as ratios",
    )
    parser.add_argument(
        "--cold-start",
        nargs="?",
        const="default",
        metavar="MODEL",
        help="first import to first answer, beside a token classifier of transformers; of --models, exports of this "
        "model, also without torch, with the memory that it takes",
    )
    parser.add_argument(
        "--onnx",
        metavar="MODEL",
        help="--models are exports of this model: how fast are they beside it, at batch 1, 32",
    )
    parser.add_argument(
        "--diffusion", metavar="MODEL", help="F1 and relative speed of a diffusion_ner model by steps and noisy spans"
    )
    parser.add_argument("--curves", metavar="FOLDER", help="where --diffusion writes its table and its plot")
    parser.add_argument("--steps", nargs="+", type=int, default=[1, 2, 5, 10], help="γ of --diffusion")
    parser.add_argument("--spans", nargs="+", type=int, default=[10, 20, 30, 60, 100], help="K of --diffusion")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5], help="sampling seeds of --diffusion")
    parser.add_argument(
        "--grid", action="store_true", help="of --diffusion: every γ at every K (Figure 3 of the paper)"
    )
    parser.add_argument(
        "--cost",
        metavar="FOLDER",
        help="time and memory by length of text, batch size and span cap, for every approach: a table and a plot",
    )
    parser.add_argument("--approaches", nargs="+", choices=NAMES, default=list(NAMES), help="of --cost")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, help="words of a text, of --cost")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="of --cost")
    parser.add_argument("--caps", nargs="+", type=int, default=CAPS, help="longest spans in words, of --cost")
    parser.add_argument("--output", help="write the figures to this JSON file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report = {
        "versions": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        "arguments": vars(args),
    }
    if args.onnx:
        sentences = list(load_nested_ner(args.data)[args.split])[: args.sentences]
        exported = dict(model.split("=", 1) for model in args.models)
        report["onnx"] = compare_exports(args.onnx, exported, sentences, repeats=args.repeats)
        print(f"{len(sentences)} sentences, {args.threads} thread(s), median of {args.repeats}")
        print_table(report["onnx"])
    elif args.models and not args.cold_start:
        sentences = list(load_nested_ner(args.data)[args.split])[: args.sentences]
        models = dict(model.split("=", 1) for model in args.models)
        report["speed"] = compare_speed(models, sentences, args.batch_size, args.repeats)
        print(
            f"{len(sentences)} sentences, batch {args.batch_size}, {args.threads} thread(s), median of {args.repeats}"
        )
        print_table(report["speed"])
        if args.train:
            sentences = load_nested_ner(args.data)["train"].select(range(args.train))
            report["training"] = compare_training(models, list(sentences), repeats=args.repeats)
            print_table(report["training"])
    if args.memory:
        lengths = (250, 500, 1000, 2000)
        report["memory"] = [
            {"approach": name, **{f"{n} words (MiB)": peak_memory(name, n) for n in lengths}} for name in args.memory
        ]
        print_table(report["memory"])
    if args.dspert:
        report["dspert"] = [
            {"K": K, "batch": batch, **compare_forward(K=K, batch=batch, repeats=args.repeats)}
            for K in args.dspert
            for batch in (1, 8)
        ]
        print_table(report["dspert"])
    if args.cold_start:
        report["cold_start"] = compare_cold_start(args.cold_start, args.repeats)
        print_table([report["cold_start"]])
        for name, folder in (model.split("=", 1) for model in args.models):
            report[f"light start {name}"] = compare_light_start(args.cold_start, folder, args.repeats)
            print(f"{name}, median of {args.repeats}")
            print_table(report[f"light start {name}"])
    if args.diffusion:
        if args.curves:
            require_matplotlib()  # before the long run
        sentences = list(load_nested_ner(args.data)[args.split])[: args.sentences]
        model, tokenizer = load_model(args.diffusion)
        report["diffusion"] = sampling_curves(
            model, tokenizer, sentences, args.steps, args.spans, args.seeds, args.batch_size, args.repeats, args.grid
        )
        title = (
            f"{Path(args.diffusion).name} on {len(sentences):,} sentences of {Path(args.data).name}, {args.split}; "
            f"{len(args.seeds)} sampling seeds; speed beside γ={model.config.num_steps}, "
            f"K={model.config.num_noisy_spans}, median of {args.repeats}, batch {args.batch_size}"
        )
        print(f"{title}\n\n{curves_table(report['diffusion'])}")
        if args.curves:
            print(*save_curves(report["diffusion"], args.curves, title), sep="\n")
    if args.cost:
        require_matplotlib()  # before the long run
        begun = time.monotonic()
        repeats = min(args.repeats, 3)
        report["cost"] = cost_curves(
            args.approaches, args.lengths, args.batches, args.caps, repeats, args.threads,
            said=lambda text: print(f"{time.monotonic() - begun:6.0f} s  {text}", file=sys.stderr, flush=True),
        )  # fmt: skip
        title = (
            f"Random weights, encoder of 6 layers of 384 (sng: vectors), {args.threads} thread(s), median of {repeats}"
            f", torch {torch.__version__}"
        )
        print(f"{title}; time of a text beside the first of its curve · MiB above the loaded model\n")
        print(cost_table(report["cost"]))
        print(*save_cost(report["cost"], args.cost, title), sep="\n")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


def print_table(rows: list[dict]) -> None:
    names = list(rows[0])
    cells = [[_cell(row[n]) for n in names] for row in rows]
    widths = [max(len(n), *(len(line[i]) for line in cells)) for i, n in enumerate(names)]
    for line in [names, *cells]:
        print(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        )


def _cell(value) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
