"""The HTML view: the text as it is, every entity around its own words, nothing obeyed, and in Chromium legible."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from chromium import Page, find_chromium
from hypothesis import given
from hypothesis import strategies as st
from tests_support import Checker

import hf_spanner
from hf_spanner import Entity, render
from hf_spanner.rendering.html import html_view, page, style_sheet
from hf_spanner.rendering.layout import Mark
from hf_spanner.rendering.markup import Html

EVIL = "<script>document.title='evil'</script> \"quoted\" 'x' \u202egnp.\x1b[31m ${alert(1)} {{this}} &amp;"
DEEP = "the head of the office of the mayor of New York"


def entity(label, start, end, **more):
    return {"entity_group": label, "start": start, "end": end, **more}


NESTED = [entity("PER", 0, 47, score=0.91), entity("ORG", 12, 47), entity("PER", 26, 47), entity("LOC", 39, 47)]


class Marks(HTMLParser):
    """The text of a view, and that inside every `<mark>`, by its title and lane."""

    def __init__(self, view: str):
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.found = "", [], []
        self.feed(re.sub("<style>.*?</style>", "", view, flags=re.DOTALL))

    def handle_starttag(self, tag, attributes):
        if tag == "mark":
            values = dict(attributes)
            self.open.append([values["title"], values.get("data-label"), ""])
            self.found.append(self.open[-1])

    def handle_endtag(self, tag):
        if tag == "mark":
            self.open.pop()

    def handle_data(self, data):
        self.text += data
        for mark in self.open:
            mark[2] += data


@given(st.text(alphabet="ab <&\n\u202e\x1b東", min_size=1, max_size=30), st.data())
def test_the_text_is_whole_and_every_entity_is_around_its_own_letters(text, data):
    spans = st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text)))
    found = data.draw(st.lists(spans.filter(lambda s: s[0] < s[1]), max_size=5))
    view = render(text, [entity(f"L{i}", *span) for i, span in enumerate(found)])
    Checker(view)
    marks = Marks(view)
    shown = marks.text
    assert len(shown) == len(text)
    assert all(a == b or (a in "\u202e\x1b" and b in "\ufffd␛") for a, b in zip(text, shown, strict=True))
    for i, (start, end) in enumerate(found):
        parts = "".join(part for title, _, part in marks.found if title == f"L{i}")
        assert parts.split() == shown[start:end].split() or "".join(parts.split()) == "".join(shown[start:end].split())


def test_what_is_markup_in_texts_and_labels_is_shown():
    view = render(EVIL, [entity('<b onclick="x">\'\u202e', 0, 8)])
    assert "<script" not in view and "<b " not in view and "\u202e" not in view and "\x1b" not in view
    assert "&lt;script&gt;" in view and "\\u202e" in view


def test_nested_entities_are_elements_inside_each_other_with_all_there_is_to_say_on_the_outside():
    view = render("New York", [entity("person", 0, 8, score=0.914, mention="nominal"), entity("place", 0, 8)])
    assert 'title="person, nominal, 0.91"' in view and 'data-label="place"' in view
    assert view.index('title="place') < view.index('title="person')  # of one span: the first label is the inner one


def test_an_entity_that_crosses_another_is_taken_up_again_without_its_label():
    marks = Marks(render("alpha beta gamma delta", [entity("A", 0, 16), entity("B", 6, 22)])).found
    assert [(label, text) for _, label, text in marks] == [
        ("A", "alpha beta gamma"), ("B", "beta gamma"), (None, " delta")
    ]  # fmt: skip


def test_over_a_line_break_the_label_says_that_the_entity_goes_on():
    marks = Marks(render("New\nYork", [entity("LOC", 0, 8)])).found
    assert [mark[1:] for mark in marks] == [["LOC", "New"], ["… LOC", "York"]]


@pytest.mark.parametrize("format", ["html", "svg", "ansi"])
def test_anything_can_be_drawn(format):
    words = " ".join(f"w{i}" for i in range(40))
    forty = [entity(f"label {i}", m.start(), m.end()) for i, m in enumerate(re.finditer(r"\S+", words))]
    deep = [entity(f"L{i}", 0, i + 1) for i in range(8)]
    twice = [entity("A", 0, 2), entity("B", 0, 2), entity("A", 0, 2)]
    for text, found in [
        ("", []),
        ("nothing", []),
        (words, forty),
        ("x" * 8, deep),
        ("xx", twice),
        ("\n", [entity("N", 0, 1)]),
    ]:
        drawn = render(text, found, format)
        assert all(e["entity_group"] in drawn for e in found)


def test_words_and_entities_over_words_are_drawn_as_their_text_is():
    words = ["the", "mayor", "of", "New", "York"]
    by_words = render(words, [Entity(0, 5, "PER", 0.5), {"start": 3, "end": 5, "label": "LOC"}])
    assert by_words == render(" ".join(words), [entity("PER", 0, 21, score=0.5), entity("LOC", 13, 21)])
    indices = [entity("LOC", 13, 21, start_word=3, end_word=5)]
    assert render(words, indices) == render(" ".join(words), [entity("LOC", 13, 21)])


@pytest.mark.parametrize(
    "text, found, told",
    [
        ("abc", [entity("A", 1, 9)], "covers characters 1 to 9, and the text has 3"),
        (["a", "b"], [entity("A", 1, 9)], "covers words 1 to 9, and the text has 2"),
        ("abc", [{"start": 0, "end": 1}], "has start, end and entity_group"),
        ("abc", [entity("A", 1, 1)], "'A' covers characters 1 to 1, which is nothing to draw"),
        ("abc", [entity("A", "0", "1")], "start and end are whole numbers"),
        ("abc", [entity("A", 0, 1, score="high")], "score is one"),
    ],
)
def test_entities_of_another_text_are_refused_in_a_sentence(text, found, told):
    with pytest.raises(ValueError, match=told):
        render(text, found)


def test_formats_themes_and_swapped_arguments_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="no format 'pdf': choose from html, svg, ansi"):
        render("a", [], "pdf")
    with pytest.raises(ValueError, match="no theme 'blue'"):
        render("a", [], theme="blue")
    with pytest.raises(TypeError, match="entities first"):
        hf_spanner.show("New York", [])
    with pytest.raises(TypeError, match="entities first, a list"):
        hf_spanner.show(entity("LOC", 0, 8), "New York")
    for swapped in ("New York", None, entity("LOC", 0, 8)):
        with pytest.raises(TypeError, match="the text comes first"):
            render([], swapped)
    for text in (None, b"New York", 7):
        with pytest.raises(TypeError, match="expected a string, or a list of words"):
            render(text, [])
    with pytest.raises(TypeError, match="draw each text with its own"):
        render(["a b", "c d"], [[entity("A", 0, 1)], []])
    with pytest.raises(ValueError, match="width=0 must be at least 1"):
        render("a", [], "ansi", width=0)


def test_offsets_and_scores_of_numpy_are_numbers():
    found = entity("A", np.int64(0), np.int64(2), score=np.float32(0.5))
    assert render("abc", [found]) == render("abc", [entity("A", 0, 2, score=0.5)])


def test_a_notebook_shows_html_and_everything_else_plain_text():
    shown = hf_spanner.show([entity("LOC", 0, 8)], "New York", theme="dark")
    assert shown._repr_html_() == render("New York", [entity("LOC", 0, 8)], theme="dark")
    assert repr(shown) == "New York\n└ LOC ─┘"
    with pytest.raises(ValueError, match="has 3"):
        hf_spanner.show([entity("LOC", 0, 8)], "New")


def test_light_and_dark_can_be_chosen_or_left_to_the_reader():
    assert "prefers-color-scheme" in style_sheet(themes=["auto"])
    assert "prefers-color-scheme" not in render("a", [], theme="dark") and 'data-theme="dark"' in render(
        "a", [], theme="dark"
    )


# ------------------------------------------------------------------------------------------------------- in a browser


@pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed (apt-get install chromium)")
def test_the_view_in_chromium(tmp_path):
    """Bars stand under their words in lanes, labels are read aloud and not copied, nothing is run or fetched."""
    file = tmp_path / "view.html"
    arabic = "رئيس مدينة نيويورك التقى كبير الاقتصاديين"
    views = [render(DEEP, NESTED), render(EVIL, [entity("X", 0, 8)]), render(arabic, [entity("PER", 0, 18)])]
    file.write_text(page("views", map(Html, views)), encoding="utf-8")
    with Page(tmp_path / "profile") as browser:
        browser.open(file)
        marks = browser.run(
            """[...document.querySelectorAll('.nested-ner')[0].querySelectorAll('mark')].map((m) => {
                const words = document.createRange(); words.selectNodeContents(m);
                const [box, text] = [m.getClientRects()[0], words.getBoundingClientRect()];
                const y = getComputedStyle(m).backgroundPositionY.split(',')[0];
                return {label: m.dataset.label, bar: box.top + parseFloat(y), left: box.left, right: box.right,
                        ends: box.bottom, text: [text.left, text.right]};
            })"""
        )
        assert [mark["label"] for mark in marks] == ["PER", "ORG", "PER", "LOC"]
        bars = [mark["bar"] for mark in marks]
        assert all(
            above - below > 10 for above, below in zip(bars, bars[1:], strict=False)
        )  # the innermost is highest
        assert all(mark["ends"] >= mark["bar"] + 14 for mark in marks)  # the padding holds the bar
        lefts = [mark["left"] for mark in marks]
        assert lefts == sorted(lefts) and max(m["right"] for m in marks) - min(m["right"] for m in marks) < 1
        browser.run("getSelection().selectAllChildren(document.querySelectorAll('.line')[0])")
        assert browser.run("getSelection().toString()").strip() == DEEP  # labels are no part of it
        browser.call("Accessibility.enable")
        tree = browser.call("Accessibility.getFullAXTree")["nodes"]
        names = [node.get("name", {}).get("value") for node in tree]
        assert {"PER", "ORG", "LOC", "4 entities"} <= set(names)
        right = "getComputedStyle(document.querySelectorAll('.nested-ner')[2].querySelector('.line')).direction"
        assert browser.run(right) == "rtl"
        assert browser.run("document.title") == "views" and browser.complaints == []
        assert all(url.startswith(("file:", "about:", "data:")) for url in browser.requests)


@pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed (apt-get install chromium)")
def test_labels_are_legible_where_they_stand_out_and_where_a_phone_has_no_room(tmp_path):
    text = "New York and the rest of a sentence that is wider than a phone, which ends here"
    far = text.index("phone")
    marks = [Mark(0, 8, "chemical", stands_out=True, sign="✗"), Mark(far, len(text), "a label of many words " * 4)]
    views = [html_view(text, marks, {mark.label: place for mark in marks}) for place in (0, 12)]  # solid, striped
    file = tmp_path / "view.html"
    file.write_text(page("views", views), encoding="utf-8")
    with Page(tmp_path / "profile") as browser:
        browser.open(file)
        labels = browser.run(
            """[...document.querySelectorAll('mark.out')].map((m) => {
                const label = getComputedStyle(m, '::before'), probe = document.createElement('i');
                probe.style = 'color: var(--label); background: var(--paper)';
                m.append(probe);
                const shade = getComputedStyle(probe);
                return [label.color === shade.backgroundColor, label.backgroundColor === shade.color,
                        parseFloat(label.width) <= m.getBoundingClientRect().width];
            })"""
        )
        assert labels == [[True, True, True]] * 2  # in the paper's colour on the label's, and inside its bar
        for width in (1280, 390):
            browser.size(width, 900)
            assert browser.run("document.documentElement.scrollWidth") <= width
            up_and_down = (
                "[...document.querySelectorAll('.nested-ner')].every((v) => v.scrollHeight <= v.clientHeight)"
            )
            assert browser.run(up_and_down)
