"""What denoising steps (γ) and noisy spans (K) give and cost at inference, on any trained diffusion_ner model."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.curves import plot_lines
from ..analysis.figures import BLUE, GREY, RED, legend_above, new_figure, save_figure
from ..evaluation.predicting import predict_sentences
from ..metrics import score_entities
from .timing import interleave

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F1, SPEED = "F1 (band: range\nover sampling seeds)", "sentences per second,\nrelative"
CURVES = {"num_steps": "denoising steps γ", "num_noisy_spans": "noisy spans K"}


def sampling_curves(
    model,
    tokenizer,
    sentences: Iterable[Mapping],
    steps: Sequence[int] = (1, 2, 5, 10),
    spans: Sequence[int] = (10, 20, 30, 60, 100),
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    batch_size: int = 32,
    repeats: int = 3,
    grid: bool = False,
) -> list[dict[str, Any]]:
    """One row a point: γ varies at the model's own K, with and without early stop, and K at the model's own γ.

    With `grid`, every γ at every K instead (Figure 3 of the paper), all steps being made. F1 is given for every
    sampling seed; speed as sentences per second relative to the model's own γ and K, timed in turns with all others.
    """
    if "num_noisy_spans" not in model.inference_parameters:
        raise ValueError(f"{model.config.model_type} does not denoise spans: the curves are of a diffusion_ner model.")
    sentences = list(sentences)
    own = {"num_steps": model.config.num_steps, "num_noisy_spans": model.config.num_noisy_spans, "early_stop": False}
    points = [("num_steps", {**own, "num_steps": n, "early_stop": early}) for early in (False, True) for n in steps]
    points = [(curve, point) for curve, point in points if not (point["early_stop"] and point["num_steps"] == 1)]
    points += [("num_noisy_spans", {**own, "num_noisy_spans": n}) for n in spans]
    if grid:
        points = [("grid", {**own, "num_steps": n, "num_noisy_spans": k}) for k in spans for n in steps]

    def run(seed: int = seeds[0], **point):
        return predict_sentences(model, tokenizer, sentences, batch_size, seed=seed, **point)

    gold = [sentence["entities"] for sentence in sentences]

    def key(point: Mapping) -> tuple:
        return tuple(point.values())

    distinct = {key(point): point for point in [own, *(point for _, point in points)]}  # the curves cross at own
    seconds = interleave({name: partial(run, **point) for name, point in distinct.items()}, repeats)
    f1 = {name: [score_entities(run(seed, **p), gold)["f1"] for seed in seeds] for name, p in distinct.items()}
    return [
        {"curve": curve, **point, "f1": f1[key(point)], "speed": seconds[key(own)] / seconds[key(point)]}
        for curve, point in points
    ]


def curves_table(rows: Sequence[Mapping]) -> str:
    """The rows as a Markdown table: mean F1 over sampling seeds, how far they lie apart, and speed."""
    lines = [
        "| γ | K | early stop | F1 (mean) | F1 (standard deviation) | F1 (least to most) | relative speed |",
        "|---:|---:|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        f1 = [100 * value for value in row["f1"]]
        spread = statistics.stdev(f1) if len(f1) > 1 else 0.0
        lines.append(
            f"| {row['num_steps']} | {row['num_noisy_spans']} | {'yes' if row['early_stop'] else 'no'} "
            f"| {statistics.mean(f1):.2f} | {spread:.2f} | {min(f1):.2f} to {max(f1):.2f} | {row['speed']:.2f} |"
        )
    return "\n".join(lines)


def draw_curves(rows: Sequence[Mapping], title: str = "") -> Figure:
    """F1 (mean, and the range over seeds) and relative speed by γ, then by K. Of a grid there is γ alone, with a line
    for each K."""
    if rows and rows[0]["curve"] == "grid":
        return _draw_grid(rows, title)
    figure, panels = new_figure(title.replace("; ", "\n", 1), panels=4, height=2.3)
    for (curve, name), of_f1, of_speed in zip(CURVES.items(), panels[::2], panels[1::2], strict=True):
        for early, colour in ((False, BLUE), (True, RED)):
            points = [row for row in rows if row["curve"] == curve and row["early_stop"] is early]
            if not points:
                continue
            x = [row[curve] for row in points]
            label = "early stop" if early else "all steps"
            of_f1.plot(x, [100 * statistics.mean(row["f1"]) for row in points], "o-", color=colour, label=label)
            of_f1.fill_between(
                x, *([100 * end(row["f1"]) for row in points] for end in (min, max)), color=colour, alpha=0.2, lw=0
            )
            of_speed.plot(x, [row["speed"] for row in points], "o-", color=colour, label=label)
        of_speed.axhline(1, color=GREY, linewidth=0.8)
        of_f1.set(xlabel=name, ylabel=F1)
        of_speed.set(xlabel=name, ylabel=SPEED)
    legend_above(panels[0])
    return figure


def _draw_grid(rows: Sequence[Mapping], title: str) -> Figure:
    """A panel for F1 and one for speed, by γ; a line for each K."""
    figure, (of_f1, of_speed) = new_figure(title.replace("; ", "\n", 1), panels=2)
    f1 = {f"K = {k}": [(r["num_steps"], r["f1"]) for r in rows if r["num_noisy_spans"] == k] for k in _values(rows)}
    speed = {
        f"K = {k}": [(r["num_steps"], r["speed"]) for r in rows if r["num_noisy_spans"] == k] for k in _values(rows)
    }
    plot_lines(of_f1, f1, 100)
    plot_lines(of_speed, speed)
    for panel, name in ((of_f1, F1), (of_speed, SPEED)):
        panel.set(xlabel=CURVES["num_steps"], ylabel=name)
    legend_above(of_f1)
    return figure


def _values(rows: Sequence[Mapping]) -> list[int]:
    return list(dict.fromkeys(row["num_noisy_spans"] for row in rows))


def save_curves(rows: Sequence[Mapping], folder: str | Path, title: str = "") -> list[Path]:
    """`diffusion_curves.md`, `.png` and `.svg` in `folder`."""
    figure = draw_curves(rows, title)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "diffusion_curves.md"
    table.write_text((f"{title}\n\n" if title else "") + curves_table(rows) + "\n", encoding="utf-8")
    return [table, *save_figure(figure, folder / "diffusion_curves")]
