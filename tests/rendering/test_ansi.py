"""The nested view, compared character by character."""

import io
import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data.sample import parse_brackets
from hf_spanner.rendering import render
from hf_spanner.rendering.ansi import use_color
from hf_spanner.rendering.layout import wrap
from hf_spanner.rendering.widths import char_width, text_width


def entity(label, start, end):
    return {"entity_group": label, "start": start, "end": end}


def view(brackets, width=80, **options):
    text, marked = parse_brackets(brackets)
    entities = [entity(e["label"], e["start"], e["end"]) for e in marked]
    return render(text, entities, "ansi", width=width, **{"color": False, **options})


def drawing(text):
    return dedent(text).strip("\n")


def test_four_deep_inner_ones_nearest_to_the_text():
    assert view("[PER the head of [ORG the office of [PER the mayor of [LOC New York]]]] left") == drawing(
        """
        the head of the office of the mayor of New York left
                                               └ LOC ─┘
                                  └─ PER ─────────────┘
                    └─ ORG ───────────────────────────┘
        └─ PER ───────────────────────────────────────┘
        """
    )


def test_one_span_with_two_labels_shows_both():
    assert view("[WORK [PER Martin Hale]] is a novel") == drawing(
        """
        Martin Hale is a novel
        └─ PER ───┘
        └─ WORK ──┘
        """
    )


def test_crossing_entities_stand_under_each_other():
    entities = [entity("A", 0, 16), entity("LONG LABEL", 6, 22), entity("B", 6, 16)]
    assert render("alpha beta gamma delta", entities, "ansi", width=60, color=False) == drawing(
        """
        alpha beta gamma delta
              └─ B ────┘
        └─ A ──────────┘
              └─ LONG LABEL ─┘
        """
    )


def test_the_order_of_entities_does_not_matter():
    text = "alpha beta gamma delta"
    entities = [entity("A", 0, 16), entity("C", 6, 22), entity("B", 6, 16)]
    assert render(text, entities, "ansi", width=60, color=False) == render(
        text, entities[::-1], "ansi", width=60, color=False
    )


def test_a_label_too_long_for_its_bracket_stands_beside_it_and_touches_no_other():
    assert view("to [LOC UK] and [LOC US] in [DATE May] by [PER X]") == drawing(
        """
        to UK and US in May by X
           └┘ LOC └┘ LOC       ╵ PER
                        └─┘ DATE
        """
    )


def test_at_the_right_edge_the_label_stands_before_its_bracket():
    assert view("we met in [LOC UK]", width=12) == "we met in UK\n      LOC └┘"


def test_an_entity_goes_on_over_a_line_break():
    assert view("said [ORG the Parliament of [LOC the Republic of [LOC Ireland]]] today", width=32) == drawing(
        """
        said the Parliament of the
                               └─… LOC
             └─ ORG ─────────────…
        Republic of Ireland today
                    └ LOC ┘
        …─ LOC ───────────┘
        …─ ORG ───────────┘
        """
    )


def test_newlines_tabs_and_carriage_returns_keep_brackets_in_place():
    assert view("[PER A\r\nB]\t[LOC Oslo]\n\nend") == "A\n… PER\nB   Oslo\n… PER\n    └──┘ LOC\n\nend"


def test_wide_characters_take_two_columns_and_break_anywhere():
    brackets = "[LOC 東京]の[PER 市長]と[ORG 日本銀行]"
    assert view(brackets) == drawing(
        """
        東京の市長と日本銀行
        └──┘ LOC
              └──┘ PER
                    └ ORG ─┘
        """
    )
    assert view(brackets, width=12) == "東京の市長と\n└──┘ LOC\n  PER └──┘\n日本銀行\n└ ORG ─┘"


def test_combining_marks_emoji_families_and_flags_are_measured():
    assert view("[LOC cafe\u0301 noir] [PER 👩\u200d👩\u200d👧 Ana] [ORG ❤\ufe0f Inc.] [LOC 🇫🇷 here]").splitlines()[
        1
    ] == ("└─ LOC ─┘ └PER─┘ └ ORG ┘ └ LOC ┘")
    assert [text_width(t) for t in ("e\u0301", "👍🏽", "👩\u200d👩\u200d👧", "🇫🇷", "各", "각", "\u200b", "")] == [
        1, 2, 2, 2, 2, 2, 0, 0
    ]  # fmt: skip


def test_a_long_word_is_broken_at_the_edge():
    assert view("[WORK abcdefghijklmnopqrstuvwxyz] x", width=10) == drawing(
        """
        abcdefghij
        └─ WORK ─…
        klmnopqrst
        …─ WORK ─…
        uvwxyz x
        …WORK┘
        """
    )


def test_escape_sequences_and_lone_surrogates_are_shown_and_not_obeyed():
    text = "a \x1b[31mred \ud800"
    assert render(text, [entity("X", 2, 10)], "ansi", width=80, color=False) == "a ␛[31mred �\n  └─ X ──┘"


def test_empty_text_and_text_without_entities():
    assert render("", [], "ansi", width=80, color=False) == ""
    assert render("  \n", [], "ansi", width=80) == ""
    assert render("nothing here", [], "ansi", width=80, color=True) == "nothing here"


def test_colours_are_stable_and_the_innermost_colours_the_text():
    drawn = view("[PER the mayor of [LOC York]]", color=True, labels=["LOC", "PER"])
    loc, per = "\x1b[38;5;33m", "\x1b[38;5;166m"
    assert drawn.splitlines()[0] == f"{per}the mayor of \x1b[0m{loc}York\x1b[0m"
    assert re.sub(r"\x1b\[[\d;]*m", "", drawn) == view("[PER the mayor of [LOC York]]")
    assert view("[ANY x]", color=True) == view("[ANY x]", color=True)


def test_colour_needs_a_terminal_and_no_objection(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert use_color(Terminal()) and not use_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color(Terminal())


@given(st.text(max_size=60), st.integers(2, 30))
def test_every_character_is_in_exactly_one_line_that_fits(text, width):
    lines = wrap(text, width)
    assert [start + i for start, cells in lines for i in range(len(cells))] == list(range(len(text)))
    for _, cells in lines:
        assert all(cell.left <= cell.right <= width for cell in cells)
        assert all(a.right == b.left for a, b in zip(cells, cells[1:], strict=False))


@given(st.text(min_size=1, max_size=40), st.data())
def test_any_text_with_any_spans_is_drawn_without_control_characters(text, data):
    spans = data.draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=5))
    entities = [entity("LAB", min(span), max(span)) for span in spans if span[0] != span[1]]
    drawn = render(text, entities, "ansi", width=20, color=False)
    assert not [c for c in drawn if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff")]


@pytest.mark.parametrize(
    "character, expected", [("a", 1), ("é", 1), ("東", 2), ("\u0301", 0), ("😀", 2), ("\u00ad", 1)]
)
def test_width_of_a_character(character, expected):
    assert char_width(character) == expected
