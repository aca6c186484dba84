"""Lines, lanes and pieces: what every output is drawn from."""

from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.rendering.layout import Mark, lay_out, stack
from hf_spanner.rendering.widths import print_width, printed_width

texts = st.text(alphabet="ab \n\té東́رئ\u202e", max_size=40)


@st.composite
def drawn(draw):
    text = draw(texts.filter(len))
    places = st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text)), st.sampled_from(["A", "LONG"]))
    marks = [Mark(a, max(b, a + 1), label) for a, b, label in draw(st.lists(places, max_size=6, unique=True))]
    return text, list(dict.fromkeys(marks))


@given(drawn(), st.sampled_from([6000, 20000]))
def test_pieces_cover_every_letter_of_their_entity_and_share_no_place_with_others(case, width):
    text, marks = case
    lines = lay_out(text, marks, width, print_width, lambda mark: printed_width(mark.label))
    assert [i for line in lines for i in range(line.start, line.end)] == list(range(len(text)))
    for mark in marks:
        pieces = [(line, piece) for line in lines for piece in line.pieces if piece.mark == mark]
        covered = {i for _, piece in pieces for i in range(piece.first, piece.last)}
        letters = {i for i in range(mark.start, mark.end) if not text[i].isspace()}
        assert letters <= covered <= set(range(mark.start, mark.end))
        assert all(piece.begins == (mark.start >= line.start) for line, piece in pieces)
    for line in lines:
        for i, one in enumerate(line.pieces):
            for other in line.pieces[:i]:
                if one.left < other.right and other.left < one.right:
                    assert one.lane != other.lane


def test_the_inner_entity_is_nearer_to_the_text_and_crossing_ones_have_lanes_of_their_own():
    marks = [Mark(0, 16, "outer"), Mark(6, 10, "inner"), Mark(8, 22, "crossing"), Mark(6, 10, "same span")]
    (line,) = lay_out("alpha beta gamma delta", marks)
    assert {piece.mark.label: piece.lane for piece in line.pieces} == {
        "inner": 0, "same span": 1, "crossing": 2, "outer": 3
    }  # fmt: skip


def test_two_annotations_of_one_text_have_lanes_on_either_side():
    (line,) = lay_out("New York", [Mark(0, 8, "A", above=True), Mark(0, 8, "B"), Mark(4, 8, "C")])
    assert (line.lanes(above=True), line.lanes()) == (1, 2)


def test_text_is_drawn_apart_for_a_label_that_is_wider_and_only_once_for_nested_ones():
    marks = [Mark(0, 2, "organization"), Mark(0, 2, "organization", above=True)]
    (line,) = lay_out("UK x", marks, label_width=lambda mark: 12)
    assert [cell.room for cell in line.cells] == [0, 10, 0, 0]
    assert line.cells[2].left == 12 and {piece.right for piece in line.pieces} == {12}


def test_ranges_that_touch_share_a_lane():
    assert stack([(0, 2), (2, 4), (1, 3), (10**9, 10**9 + 1)]) == [0, 0, 1, 0]
