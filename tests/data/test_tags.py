"""Tag schemes: hand-worked decoding, goodwill for careless tags, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner.data import detect_scheme, entities_to_tags, tags_to_entities
from hf_spanner.data.tags import decode_tags

GOLD = [(0, 2, "PER"), (2, 3, "PER"), (4, 7, "LOC")]
WRITTEN = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC",
    "BIO": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC",
    "BIOES": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC",
    "BILOU": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC",
    "BMES": "B-PER E-PER S-PER O B-LOC M-LOC E-LOC",
    "BMEWO": "B-PER E-PER W-PER O B-LOC M-LOC E-LOC",
}


@pytest.mark.parametrize("scheme", WRITTEN)
def test_every_scheme_is_detected_and_read(scheme):
    tags = WRITTEN[scheme].split()
    assert detect_scheme([tags]) == scheme
    assert decode_tags(tags, scheme) == (GOLD, 0)
    assert tags_to_entities(tags) == GOLD


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "BILOU", "BMES", "BMEWO"])
def test_every_scheme_is_written(scheme):
    assert entities_to_tags(GOLD, 7, scheme) == WRITTEN[scheme].split()


@pytest.mark.parametrize(
    ("tags", "scheme", "entities", "repairs"),
    [
        ("O I-PER I-PER", "BIO", [(1, 3, "PER")], 1),
        ("B-PER I-LOC I-LOC", "BIO", [(0, 1, "PER"), (1, 3, "LOC")], 1),
        ("B-PER I-PER O", "BIOES", [(0, 2, "PER")], 1),
        ("O E-PER E-PER", "BIOES", [(1, 2, "PER"), (2, 3, "PER")], 2),
        ("S-PER I-PER E-PER", "BIOES", [(0, 1, "PER"), (1, 3, "PER")], 1),
        ("U-A L-B", "BILOU", [(0, 1, "A"), (1, 2, "B")], 1),
        ("B-A-b I-A-b", "BIO", [(0, 2, "A-b")], 0),
        ("", "BIO", [], 0),
    ],
)
def test_careless_tags_are_read_with_goodwill_and_counted(tags, scheme, entities, repairs):
    assert decode_tags(tags.split(), scheme) == (entities, repairs)


def test_what_is_not_a_tag_or_not_of_the_scheme_is_refused():
    with pytest.raises(ValueError, match="'NNP' is not a tag"):
        tags_to_entities(["NNP"])
    with pytest.raises(ValueError, match="Tag 'E-PER' does not belong to scheme BIO"):
        tags_to_entities(["B-PER", "E-PER"], "BIO")
    with pytest.raises(ValueError, match="Scheme 'BILO' is unknown; choose one of IOB1, BIO"):
        tags_to_entities(["O"], "BILO")
    with pytest.raises(ValueError, match="mixes tags of BIOES and BILOU"):
        detect_scheme([["S-A"], ["U-A"]])


def test_one_layer_refuses_nested_entities_and_spans_that_do_not_fit():
    with pytest.raises(ValueError, match=r"Span \[1, 2\) of label 'LOC' overlaps"):
        entities_to_tags([(0, 3, "PER"), (1, 2, "LOC")], 3)
    with pytest.raises(ValueError, match=r"Span \[2, 4\) .* 3 words"):
        entities_to_tags([(2, 4, "PER")], 3)


@st.composite
def flat_entities(draw):
    lengths = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "A", "B", "B-x"])), max_size=8))
    position, entities = 0, []
    for length, label in lengths:
        if label:
            entities.append((position, position + length, label))
        position += length
    return entities, position


@given(flat_entities(), st.sampled_from(["BIO", "IOB2", "BIOES", "IOBES", "BILOU", "BMES", "BMEWO"]))
def test_flat_entities_come_back_from_every_scheme(case, scheme):
    entities, num_words = case
    tags = entities_to_tags(entities, num_words, scheme)
    assert len(tags) == num_words
    assert decode_tags(tags, scheme) == (entities, 0)
    assert tags_to_entities(tags) == entities


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B", "E-A", "S-B"]), max_size=12))
def test_any_tags_give_flat_entities_that_cover_exactly_the_tagged_words(tags):
    entities = tags_to_entities(tags, "BIOES")
    covered = [word for start, end, _ in entities for word in range(start, end)]
    assert covered == [word for word, tag in enumerate(tags) if tag != "O"]
    assert all(tags[word][2:] == label for start, end, label in entities for word in range(start, end))
