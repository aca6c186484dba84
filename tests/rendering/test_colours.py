"""The palette, measured: contrast, and how far apart its colours are for colour-blind readers."""

import itertools

import numpy as np
import pytest

from hf_spanner.rendering.colours import INK, PALETTE, PAPER, contrast, places, shades, style_of

# What is left of linear RGB without one kind of cone (Machado, Oliveira and Fernandes, 2009, severity 1).
SEEN = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour, seen):
    """CIE L*a*b* of a colour as it is seen."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(SEEN[seen]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_the_lines_of_any_two_colours_are_told_apart(theme, seen):
    """A difference of 2.3 is just noticeable; here every pair has four times as much."""
    lines = [lab(shades(place, theme).line, seen) for place in range(len(PALETTE))]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(lines, 2)) > 9


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_can_be_read_on_their_bars_and_on_the_page(theme):
    assert contrast(INK[theme], PAPER[theme]) > 12
    for place in range(len(PALETTE)):
        shade = shades(place, theme)
        assert contrast(shade.ink, shade.fill) >= 4.5
        assert contrast(shade.ink, PAPER[theme]) >= 4.5  # on a hollow bar, or reversed where an entity stands out
        assert contrast(shade.line, PAPER[theme]) >= 1.6


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_27_labels_look_different_and_a_models_labels_keep_their_looks():
    names = [f"label {i}" for i in range(27)]
    for found in (places(names), places([], names), places(names[20:], names[:20])):
        assert len({(found[n] % len(PALETTE), style_of(found[n])) for n in names}) == 27
    assert places(["b"], ["a", "b", "c"])["b"] == places(["c", "b"], ["a", "b", "c"])["b"] == 1
    assert places(["person"]) == {"person": places(["person", "person"])["person"]}
