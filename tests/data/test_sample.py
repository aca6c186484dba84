"""The sample corpus: what it promises, and that its two files agree."""

import pytest

from hf_spanner.data import check_sentence, label_names, load_nested_ner, statistics, suggest_overlap
from hf_spanner.data.sample import SAMPLE, load_sample, parse_brackets, read_brackets

LABELS = ["DATE", "GENE", "LOC", "ORG", "PER", "PROTEIN", "WORK"]


@pytest.fixture(scope="module")
def sentences():
    return read_brackets()


def test_the_jsonl_is_made_from_the_brackets(sentences):
    assert [
        dict(row) for row in load_nested_ner(SAMPLE)["train"]
    ] == sentences  # else: python -m hf_spanner.data.sample


def test_it_is_data_by_name(tmp_path, monkeypatch):
    data = load_nested_ner("sample")
    assert {split: len(part) for split, part in data.items()} == {"train": 108, "validation": 12}
    assert data["train"][0]["entities"] == load_sample()["train"][0]["entities"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").write_text("")  # what is there has precedence
    with pytest.raises(ValueError):
        load_nested_ner("sample")


def test_every_sentence_is_sound_and_none_comes_twice(sentences):
    for sentence in sentences:
        check_sentence(sentence, labels=LABELS)
        assert sentence["doc_id"]
    assert [sentence["id"] for sentence in sentences] == [f"sample-{n:03}" for n in range(1, len(sentences) + 1)]
    assert len({tuple(sentence["tokens"]) for sentence in sentences}) == len(sentences)


def test_it_shows_what_nested_data_can_hold(sentences):
    counts = statistics(sentences)
    assert counts.sentences == 120 and counts.max_depth == 4 and counts.same_span_pairs >= 1
    assert counts.crossing_pairs == 0 and suggest_overlap(sentences) == "nested"
    assert label_names(sentences) == LABELS and min(counts.labels.values()) >= 20
    assert any(not sentence["entities"] for sentence in sentences)


def test_articles_belong_to_the_entity_they_introduce(sentences):
    """The annotation rule that is easiest to break: no entity begins right after an article that is outside of it."""
    for sentence in sentences:
        starts = {entity["start"] for entity in sentence["entities"]}
        for entity in sentence["entities"]:
            before = entity["start"] - 1
            if before >= 0 and sentence["tokens"][before].lower() == "the":
                assert before in starts, (sentence["id"], sentence["tokens"][before : entity["end"]])


def test_the_last_tenth_is_held_out(sentences):
    data = load_sample()
    assert data["train"] + data["validation"] == sentences
    assert len(data["validation"]) == 12
    assert label_names(data["validation"]) == LABELS
    assert len({sentence["doc_id"] for sentence in data["validation"]} & {s["doc_id"] for s in data["train"]}) == 0


def test_brackets_are_read_with_their_nesting():
    text, entities = parse_brackets("[PER the mayor of [LOC York]] left")
    assert [(e["label"], text[e["start"] : e["end"]]) for e in entities] == [
        ("PER", "the mayor of York"),
        ("LOC", "York"),
    ]


@pytest.mark.parametrize(
    "line, message", [("[PER a", "never closed"), ("a] b", "never opened"), ("[PER ab]cd", "inside a word")]
)
def test_broken_brackets_are_named_with_their_line(tmp_path, line, message):
    file = tmp_path / "x.txt"
    file.write_text(f"fine\n{line}\n")
    with pytest.raises(ValueError, match=rf"x\.txt:2: .*{message}"):
        read_brackets(file)
