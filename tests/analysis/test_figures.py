"""All pictures have one width, at which they can be read on a phone: nothing in them is small, nothing is cut off."""

import re

import numpy as np
import pytest

from hf_spanner.analysis.curves import draw_lines
from hf_spanner.analysis.figures import LETTERS, WIDTH, legend_above, new_figure, save_figure, wrap
from hf_spanner.analysis.offsets import BARS, draw_offsets
from hf_spanner.analysis.pictures import PICTURES, draw_representations
from hf_spanner.analysis.probabilities import NONE, GoldProbabilities
from hf_spanner.benchmarks.cost_curves import CURVES, draw_cost
from hf_spanner.benchmarks.diffusion_curves import draw_curves
from hf_spanner.benchmarks.race import draw_race, read_race
from hf_spanner.benchmarks.step_cost import draw

pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install hf_spanner[plots])")
PHONE = 390  # pixels


def thoughts(labels):
    """A model that is mostly right about so many labels."""
    random = np.random.default_rng(0)
    gold = random.integers(0, labels, 40 * labels)
    logits = random.normal(size=(len(gold), labels + 1)) * 1.5
    logits[np.arange(len(gold)), gold] += 4
    p = np.exp(logits)
    names = [f"ORGANIZATION-{chr(97 + i)}" for i in range(labels)]
    return GoldProbabilities([*names, NONE], (p / p.sum(1, keepdims=True)).astype(np.float32), gold, out_of_reach=3)


def pictures():
    for labels in (3, 20):
        for kind, picture in PICTURES.items():
            yield f"{kind} {labels}", lambda picture=picture, n=labels: picture(thoughts(n), "runs/litbank on litbank")
    pca = {
        "points": [[float(i % 7), float(i % 5)] for i in range(60)],
        "labels": [f"label-{i % 20}" for i in range(60)],
    }
    found = {"pca": {**pca, "shares": [0.5, 0.2]}, "entities": 60, "out_of_reach": 2}
    yield "representations", lambda: draw_representations(found, "dspert on GENIA")
    counts = dict.fromkeys(BARS, 12_345)
    yield "offsets", lambda: draw_offsets({"entities": counts, "proposals": counts}, "locate_and_label on GENIA")
    lines = {f"an approach with a name {i}": [(0.1, [0.5, 0.6]), (0.9, [0.4, 0.8])] for i in range(9)}
    yield "lines", lambda: draw_lines(lines, "weight α", "F1", "Bundling, a title of more than one line, on GENIA")
    yield "race", lambda: draw_race(read_race("model_cards/race"))
    times = {"biaffine_ner": {20: 1.0, 40: 2.0}, "locate_and_label": {20: 1.0, 40: 1.5}}
    yield "step cost", lambda: draw(times)
    row = {"num_steps": 2, "num_noisy_spans": 30, "early_stop": False, "f1": [0.6, 0.62], "speed": 1.0}
    rows = [{**row, "curve": curve} for curve in ("num_steps", "num_noisy_spans")]
    title = "diffusion_ner on 128 sentences of genia, test; 5 sampling seeds; speed beside γ=5, K=30"
    yield "diffusion curves", lambda: draw_curves(rows, title)
    yield "diffusion grid", lambda: draw_curves([{**row, "curve": "grid"}], title)
    cost = [
        {"approach": name, "curve": curve, "x": x, "texts": 1, "words": x, "seconds": x / 1e3, "mib": x}
        for name in times
        for curve in CURVES
        for x in (10, 100)
    ]
    yield "cost", lambda: draw_cost(cost, "Random weights, encoder of 6 layers of 384, 1 thread(s), median of 3")


@pytest.mark.parametrize("draw", [pytest.param(draw, id=name) for name, draw in pictures()])
def test_a_picture_fits_a_phone_with_letters_that_can_be_read(draw, tmp_path):
    from matplotlib.text import Text

    figure = draw()
    (file,) = save_figure(figure, tmp_path / "picture", ["svg"])
    svg = file.read_text(encoding="utf-8")
    width, unit = re.search(r'<svg [^>]*?width="([\d.]+)(\w+)"', svg).groups()
    assert unit == "pt" and float(width) * 96 / 72 <= PHONE - 30  # of margins
    assert "<title>" in svg  # for screen readers
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # inches
    assert drawn.x0 >= -0.02 and drawn.x1 <= WIDTH + 0.02 and drawn.y0 >= -0.02, drawn
    assert drawn.y1 <= figure.get_figheight() + 0.02
    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_text().strip()):
        assert text.get_fontsize() >= LETTERS - 1, text
    for name in (text for axes in figure.axes for text in axes.texts if not text.get_in_layout()):
        box = name.get_window_extent()  # names in a plot
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, name
    panels = [axes.get_window_extent() for axes in figure.axes]
    assert all(box.width > figure.bbox.width / 2.5 and box.height > figure.dpi for box in panels), panels


def test_legends_and_titles_take_no_room_from_the_plot():
    plain, _ = new_figure()
    figure, (axes,) = new_figure("A title\nin two lines", note="a note " * 30)
    for number in range(20):
        axes.plot([1, 2], label=f"a label with a long name {number}")
    legend_above(axes)
    figure.draw_without_rendering()
    plain.draw_without_rendering()
    assert figure.get_figwidth() == plain.get_figwidth() == WIDTH
    assert axes.get_window_extent().height > 0.85 * plain.axes[0].get_window_extent().height


def test_lines_are_wrapped_where_they_must_and_breaks_stay():
    assert wrap("one\n\ntwo") == "one\n\ntwo"
    assert max(map(len, wrap("word " * 40).split("\n"))) < 60
