"""Removing overlaps, and the statistics of the papers' tables, by hand and by their laws."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_spanner import cli
from hf_spanner.data import read_file, statistics, suggest_overlap
from hf_spanner.data.reshaping import OVERLAPS, remove_overlaps

WORDS = ["the", "mayor", "of", "New", "York", "City"]


def sentence(*spans):
    entities = [{"start": s, "end": e, "label": label} for s, e, label in spans]
    return {"id": "1", "doc_id": None, "tokens": WORDS, "entities": entities}


def left(keep, *spans):
    (result,), removed = remove_overlaps([sentence(*spans)], keep)
    found = [(e["start"], e["end"], e["label"]) for e in result["entities"]]
    assert removed == len(spans) - len(found)
    return found


MAYOR, CITY, NEW_YORK, THE = (0, 6, "PER"), (3, 6, "GPE"), (3, 5, "LOC"), (0, 1, "X")


@pytest.mark.parametrize(
    "keep, wanted",
    [
        ("flat", []),
        ("outermost", [MAYOR]),
        ("innermost", [NEW_YORK, THE]),
        ("one_label", [MAYOR, CITY, NEW_YORK, THE]),
    ],
)
def test_what_is_left_of_a_nest(keep, wanted):
    assert left(keep, MAYOR, CITY, NEW_YORK, (3, 5, "ORG"), THE) == wanted


def test_flat_keeps_what_overlaps_nothing():
    assert left("flat", THE, CITY, NEW_YORK) == [THE]
    assert left("outermost", (0, 3, "A"), (2, 6, "B"), (1, 2, "C")) == [(2, 6, "B"), (1, 2, "C")]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.sampled_from("AB")), max_size=6, unique=True),
    st.sampled_from(sorted(OVERLAPS)),
)
def test_what_is_left_has_no_overlap_and_loses_nothing_that_had_none(spans, keep):
    before = sentence(*((start, min(start + size, 6), label) for start, size, label in spans))
    (after,), removed = remove_overlaps([before], keep)
    assert len(before["entities"]) - removed == len(after["entities"])
    if keep == "one_label":
        assert statistics([after]).same_span_pairs == 0
    else:
        assert suggest_overlap([after]) == "flat"
    alone = [e for e in before["entities"] if not any(
        o is not e and o["start"] < e["end"] and e["start"] < o["end"] for o in before["entities"])]  # fmt: skip
    assert all(e in after["entities"] for e in alone)
    assert keep != "flat" or after["entities"] == alone


def test_nesting_is_counted_on_both_sides_and_by_sentence():
    counts = statistics([sentence(MAYOR, CITY, NEW_YORK), sentence(THE), sentence((0, 2, "A"), (0, 2, "B"))])
    assert (counts.nested, counts.in_nesting, counts.sentences_with_nesting) == (2, 3, 1)
    assert counts.mean_length == 6 and counts.nesting_percentage == 50
    assert "1 with nesting; entities inside another or around one 3 (50.00 %)" in str(counts)


def test_convert_removes_overlaps_and_says_how_many(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(json.dumps(sentence(MAYOR, CITY, THE)))
    assert cli.main(["convert", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--overlap", "innermost"]) == 0
    assert "removed: 1 × entity; kept are of entities that overlap the shortest" in capsys.readouterr().out
    assert len(read_file(tmp_path / "b.jsonl")[0][0]["entities"]) == 2
