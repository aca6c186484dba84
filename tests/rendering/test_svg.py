"""The picture for papers: well formed, escaped, and with every bar under its words."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner import render
from hf_spanner.rendering.widths import HELVETICA, printed_width

SVG = "{http://www.w3.org/2000/svg}"


def entity(label, start, end):
    return {"entity_group": label, "start": start, "end": end}


def boxes(picture):
    """The bars of a picture by what their title says: (left, right, top) of each."""
    found = {}
    for group in ET.fromstring(picture).iter(f"{SVG}g"):
        if (title := group.find(f"{SVG}title")) is not None:
            rects = [
                r for r in group.findall(f"{SVG}rect") if float(r.get("height")) > 2 and float(r.get("width")) != 2.5
            ]
            found[title.text] = [
                (float(r.get("x")), float(r.get("x")) + float(r.get("width")), float(r.get("y"))) for r in rects
            ]
    return found


def words(picture):
    """Where each word begins and ends."""
    texts = [t for t in ET.fromstring(picture).iter(f"{SVG}text") if t.get("textLength")]
    return {t.text: (float(t.get("x")), float(t.get("x")) + float(t.get("textLength"))) for t in texts}


def test_bars_stand_under_their_words_and_the_inner_one_is_nearer():
    picture = render("the mayor of New York", [entity("PER", 0, 21), entity("LOC", 13, 21)], "svg")
    bars, places = boxes(picture), words(picture)
    ((left, right, per),), ((inner, end, loc),) = bars["PER"], bars["LOC"]
    assert left == places["the"][0] and inner == places["New"][0]
    assert right == end == pytest.approx(places["York"][1], abs=0.1) and loc < per


def test_a_line_that_runs_from_right_to_left_begins_at_the_right():
    text = "رئيس مدينة نيويورك"
    picture = render(text, [entity("PER", 0, 18), entity("LOC", 5, 18)], "svg")
    places = words(picture)
    assert places["رئيس"][0] > places["مدينة"][0] > places["نيويورك"][0]
    ((left, right, _),), ((inner, end, _),) = boxes(picture)["PER"], boxes(picture)["LOC"]
    assert left == inner and right > end


def test_words_that_run_the_other_way_inside_a_line_are_turned_as_a_whole():
    places = words(render("see رئيس مدينة now", [], "svg"))
    assert places["see"][0] < places["مدينة"][0] < places["رئيس"][0] < places["now"][0]


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=8), st.data())
def test_any_text_and_label_make_well_formed_xml(text, label, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    theme = data.draw(st.sampled_from(["auto", "light", "dark"]))
    root = ET.fromstring(render(text, [entity(label, start, end)], "svg", width=120, theme=theme))
    assert not [e for e in root.iter() if e.tag in (f"{SVG}script", f"{SVG}a", f"{SVG}image")]


def test_long_lines_are_wrapped_to_the_width_asked_for():
    picture = render("word " * 100, [entity("LONG LABEL", 490, 494)], "svg", width=300)
    assert float(ET.fromstring(picture).get("width")) < 330
    assert ET.fromstring(picture).find(f"{SVG}title").text == "1 entity in a text"


def test_widths_are_those_of_the_font():
    fonttools = pytest.importorskip("fontTools.ttLib", reason="fonttools comes with matplotlib")
    from pathlib import Path

    files = [*Path("/usr/share/fonts").rglob("LiberationSans-Regular.ttf")]
    if not files:
        pytest.skip("fonts-liberation, which has Helvetica's widths, is not installed")
    font = fonttools.TTFont(files[0])
    glyphs, advances, em = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
    wrong = {c: (w, 1000 * advances[glyphs[ord(c)]][0] / em) for c, w in HELVETICA.items() if c not in "'-`"}
    assert {c: pair for c, pair in wrong.items() if abs(pair[0] - pair[1]) > 1.5} == {}
    assert printed_width("é東\u0301") == 556 + 1000
