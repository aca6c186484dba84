"""The loader: files, folders, datasets in memory and on disk, and what it says when it cannot."""

import json
import logging
from pathlib import Path

import datasets
import pytest

from hf_spanner.data import (
    features,
    find_splits,
    label_names,
    load_nested_ner,
    read_file,
    statistics,
    suggest_overlap,
    write_brat,
    write_jsonl,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the corpora are not at {SHARED}")


def sentence(number, *spans, tokens=("The", "mayor", "of", "Bonn")):
    entities = [{"start": s, "end": e, "label": label} for s, e, label in spans]
    return {"id": f"s{number}", "doc_id": None, "tokens": list(tokens), "entities": entities}


NESTED = [sentence(0, (0, 4, "PER"), (3, 4, "GPE")), sentence(1)]


@pytest.fixture
def folder(tmp_path):
    for name in ("train", "dev", "test"):
        write_jsonl(NESTED, tmp_path / f"{name}.jsonl")
    (tmp_path / "README.md").write_text("train")
    return tmp_path


def test_a_folder_gives_its_splits_in_our_form(folder):
    before = sorted(folder.rglob("*"))
    data = load_nested_ner(str(folder))
    assert isinstance(data, datasets.DatasetDict) and list(data) == ["train", "validation", "test"]
    for split in data.values():
        assert split.features == features() and split.to_list() == NESTED
    assert sorted(folder.rglob("*")) == before, "nothing may be left beside the data"


def test_a_file_is_the_split_train(folder):
    data = load_nested_ner(folder / "dev.jsonl")
    assert list(data) == ["train"] and data["train"].to_list() == NESTED


def test_splits_are_chosen_or_renamed(folder):
    assert list(load_nested_ner(folder, splits=["test"])) == ["test"]
    assert list(load_nested_ner(folder, splits="test")) == ["test"]
    assert list(load_nested_ner(folder, splits={"train": "dev.jsonl", "extra": "test.jsonl"})) == ["train", "extra"]
    with pytest.raises(ValueError, match="has no split 'dev'; it has 'train', 'validation', 'test'"):
        load_nested_ner(folder, splits=["dev"])
    with pytest.raises(FileNotFoundError, match="gone.jsonl does not exist"):
        load_nested_ner(folder, splits={"train": "gone.jsonl"})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["NER-de-train.tsv", "NER-de-dev.tsv", "NER-de-test.tsv"], ["train", "validation", "test"]),
        (["genia_train.json", "genia_valid.json", "types.json"], ["train", "validation"]),
        (["train.jsonl", "train_old.jsonl"], ["train"]),
        (["Train.jsonl", ".train.jsonl.swp", "train.md"], ["train"]),
    ],
)
def test_split_names_are_found_in_file_names(tmp_path, files, expected):
    for name in files:
        (tmp_path / name).write_text("")
    assert list(find_splits(tmp_path)) == expected


def test_a_file_for_two_splits_is_left_aside_aloud(tmp_path, caplog):
    for name in ("x_train.json", "x_dev.json", "x_train_dev.json"):
        (tmp_path / name).write_text("[]")
    assert [path.name for path in find_splits(tmp_path).values()] == ["x_train.json", "x_dev.json"]
    assert "x_train_dev.json is left aside: its name speaks of train and validation" in caplog.text


def test_endings_are_split_names_if_the_format_is_given(tmp_path):
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (tmp_path / name).write_text("Ann I-PER\n")
    assert list(load_nested_ner(tmp_path, format="conll")) == ["train", "validation", "test"]


def test_a_folder_that_does_not_say_which_file_is_which_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match="holds no file that is named after a split .* found nothing. Call the files so"
    ):
        load_nested_ner(tmp_path)
    (tmp_path / "corpus.jsonl").write_text("")
    with pytest.raises(ValueError, match="found corpus.jsonl"):
        load_nested_ner(tmp_path)
    for name in ("train.jsonl", "train.conll"):
        (tmp_path / name).write_text("")
    with pytest.raises(ValueError, match="several candidates for the split 'train': train.conll, train.jsonl"):
        load_nested_ner(tmp_path)


def test_brat_folders_are_one_split_or_several(tmp_path):
    documents = [{**NESTED[0], "doc_id": "a"}, {**NESTED[0], "doc_id": "train-accident"}]
    write_brat(documents, tmp_path / "train")
    write_brat(documents[:1], tmp_path / "dev")
    several = load_nested_ner(tmp_path)
    assert {split: data["doc_id"][:] for split, data in several.items()} == {
        "train": ["a", "train-accident"],
        "validation": ["a"],
    }
    one = load_nested_ner(tmp_path / "train", splitter="whitespace")
    assert list(one) == ["train"] and one["train"]["entities"][0] == NESTED[0]["entities"]


def test_brat_pairs_named_after_splits_are_splits(tmp_path):
    write_brat([{**NESTED[0], "doc_id": "train"}, {**NESTED[0], "doc_id": "test"}], tmp_path)
    assert list(load_nested_ner(tmp_path)) == ["train", "test"]


def test_losses_are_a_warning_and_a_faithful_reading_is_not(folder, caplog):
    caplog.set_level(logging.INFO, logger="hf_spanner")
    load_nested_ner(folder, splits=["train"])
    assert [(r.levelname, r.name) for r in caplog.records] == [("INFO", "hf_spanner")]
    assert (
        "train.jsonl: 2 sentences, 8 words, 2 entities kept\n  read as jsonl: JSON, one object" in caplog.messages[0]
    )
    caplog.clear()
    (folder / "dup.jsonl").write_text(json.dumps(sentence(0, (0, 1, "X"), (0, 1, "X"))))
    load_nested_ner(folder / "dup.jsonl")
    assert caplog.records[0].levelname == "WARNING" and "not kept: 1 × duplicate" in caplog.messages[0]


def test_an_empty_file_is_an_empty_split_and_a_warning(tmp_path, caplog):
    (tmp_path / "train.jsonl").write_text("")
    data = load_nested_ner(tmp_path)
    assert len(data["train"]) == 0 and data["train"].features == features()
    assert "nothing was read" in caplog.text


def test_given_labels_are_checked_everywhere(folder):
    load_nested_ner(folder, labels=["PER", "GPE"])
    with pytest.raises(ValueError, match=r"train\.jsonl, sentence 's0': label 'GPE'"):
        load_nested_ner(folder, labels=["PER"])
    with pytest.raises(ValueError, match=r"dataset\[train\], sentence 's0': label 'GPE'"):
        load_nested_ner(load_nested_ner(folder), labels=["PER"])


def test_reader_options_reach_the_reader(tmp_path):
    (tmp_path / "a.tsv").write_text("B-X\tAnn\n")
    data = load_nested_ner(tmp_path / "a.tsv", token_column=1, tag_columns=[0])
    assert data["train"][0]["tokens"] == ["Ann"]
    with pytest.raises(ValueError, match="has no option 'tokens_column'; it knows token_column, tag_columns"):
        load_nested_ner(tmp_path / "a.tsv", tokens_column=1)


@pytest.mark.parametrize("source", ["/no/such/folder", "no/such/folder", "data/train.jsonl", "train.conll", "a b"])
def test_a_path_that_does_not_exist_is_no_hub_name(source):
    with pytest.raises(FileNotFoundError, match=f"^{source} does not exist, and it is not the name"):
        load_nested_ner(source)


def test_an_existing_path_wins_over_a_hub_name(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("the Hub was asked"))
    assert len(load_nested_ner(folder.name)["train"]) == 2


def test_a_hub_name_goes_to_load_dataset_with_its_options(monkeypatch):
    calls = []

    def fake(name, **options):
        calls.append((name, options))
        return datasets.DatasetDict({"train": datasets.Dataset.from_list(NESTED, features=features())})

    monkeypatch.setattr(datasets, "load_dataset", fake)
    assert load_nested_ner("owner/name", revision="abc")["train"].to_list() == NESTED
    assert calls == [("owner/name", {"revision": "abc"})]


def test_a_failing_hub_is_one_sentence_with_its_cause(monkeypatch):
    def fail(*_, **__):
        raise ConnectionError("no route\nand a long story")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(
        ValueError, match=r"'owner/name' is no existing path .*\(ConnectionError: no route\)"
    ) as caught:
        load_nested_ner("owner/name")
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_a_dataset_with_class_labels_gets_their_names():
    data = datasets.Dataset.from_list(NESTED, features=features(["GPE", "PER"]))
    loaded = load_nested_ner(data)["train"]
    assert loaded.to_list() == NESTED and loaded.features == features()
    assert statistics(data) == statistics(loaded) == statistics(NESTED)
    assert label_names(data) == ["GPE", "PER"]


def test_entities_as_a_dict_of_lists_are_understood():
    columns = {
        "tokens": [NESTED[0]["tokens"]],
        "entities": [{"start": [0, 3], "end": [4, 4], "label": ["PER", "GPE"]}],
    }
    loaded = load_nested_ner(datasets.Dataset.from_dict(columns))["train"]
    assert loaded.to_list() == [{**NESTED[0], "id": "0"}]


def test_ner_tags_with_names_become_entities():
    names = ["O", "B-PER", "I-PER"]
    tags = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "ner_tags": datasets.List(datasets.ClassLabel(names=names)),
        }
    )
    data = datasets.Dataset.from_dict({"tokens": [["Ann", "Lee", "ran"]], "ner_tags": [[1, 2, 0]]}, features=tags)
    assert load_nested_ner(data)["train"][0]["entities"] == [{"start": 0, "end": 2, "label": "PER"}]
    as_text = datasets.Dataset.from_dict({"tokens": [["Ann", "Lee"]], "ner_tags": [["B-PER", "I-PER"]]})
    assert load_nested_ner(as_text)["train"][0]["entities"] == [{"start": 0, "end": 2, "label": "PER"}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"], "label": [1]}, "found the columns 'text', 'label', expected 'tokens' with 'entities'"),
        ({"tokens": [["a"]], "ner_tags": [[3]]}, r"the 'ner_tags' \[3\] are not tags and have no names"),
        ({"tokens": [["a"]], "ner_tags": [["person"]]}, "column 'ner_tags' cannot be read: 'person' is not a tag"),
        ({"tokens": [["a"]], "ner_tags": [["O", "O"]]}, "row 0: 2 tags do not fit the words"),
        ({"tokens": [["a"]], "entities": [["x"]]}, "column 'entities' is .*expected a list of objects"),
        (
            {"tokens": [["a"]], "entities": [[{"start": 0, "end": 2, "label": "X"}]]},
            r"row 0: span \[0, 2\) .* out of range for 1 words",
        ),
    ],
)
def test_a_dataset_in_another_form_is_refused(columns, message):
    with pytest.raises(ValueError, match=rf"dataset\[train\].*{message}"):
        load_nested_ner(datasets.Dataset.from_dict(columns))


@pytest.mark.parametrize("wrong", [-1, None])
def test_a_class_without_a_name_is_not_taken_for_the_last(wrong):
    data = datasets.Dataset.from_list([sentence(0, (0, 1, wrong))], features=features(["GPE", "PER"]))
    with pytest.raises(ValueError, match=rf"row 0: class {wrong} has no name among \['GPE', 'PER'\]"):
        load_nested_ner(data)


def test_a_dataset_saved_to_disk_is_loaded(tmp_path, folder):
    data = load_nested_ner(folder)
    data.save_to_disk(tmp_path / "saved")
    data["train"].save_to_disk(tmp_path / "one")
    assert load_nested_ner(tmp_path / "saved")["validation"].to_list() == NESTED
    assert load_nested_ner(tmp_path / "one")["train"].to_list() == NESTED
    with pytest.raises(ValueError, match="format='jsonl' is for files"):
        load_nested_ner(tmp_path / "one", format="jsonl")


def test_statistics_of_a_hand_worked_sentence():
    tokens = list("abcdefgh")
    counts = statistics(
        [
            sentence(0, (0, 8, "A"), (1, 5, "B"), (1, 5, "C"), (1, 3, "A"), (2, 3, "A"), (4, 6, "D"), tokens=tokens),
            sentence(1, (0, 1, "A"), (1, 2, "A"), tokens=tokens),
        ]
    )
    assert (counts.sentences, counts.words, counts.entities) == (2, 16, 8)
    assert counts.labels == {"A": 5, "B": 1, "C": 1, "D": 1}
    assert counts.nested == 5  # all of the first sentence but the outermost
    assert counts.max_depth == 4  # [0,8) > [1,5) > [1,3) > [2,3)
    assert counts.longest == 8
    assert counts.same_span_pairs == 1
    assert counts.crossing_pairs == 2  # [4,6) with both entities at [1,5)
    assert "overlap='any'" in str(counts)


@pytest.mark.parametrize(
    ("spans", "overlap"),
    [
        ([], "flat"),
        ([(0, 2, "A"), (2, 4, "A")], "flat"),
        ([(0, 2, "A"), (0, 2, "B")], "nested"),
        ([(0, 3, "A"), (0, 2, "B")], "nested"),
        ([(0, 3, "A"), (1, 3, "B")], "nested"),
        ([(0, 3, "A"), (2, 4, "B"), (0, 1, "B")], "any"),
    ],
)
def test_overlap_is_suggested_by_the_widest_pair(spans, overlap):
    assert suggest_overlap([sentence(0, *spans), sentence(1)]) == overlap
    assert suggest_overlap(load_nested_ner(datasets.Dataset.from_list([sentence(0, *spans)], features()))) == overlap


@needs_shared_data
def test_genia_is_counted_as_published():
    sentences, report = read_file(SHARED / "genia" / "train.jsonl")
    assert report.faithful
    counts = statistics(sentences)
    assert (counts.sentences, counts.words, counts.entities) == (15_023, 381_974, 46_164)
    assert (counts.nested, counts.max_depth, counts.longest) == (4_379, 4, 17)
    assert (counts.same_span_pairs, counts.crossing_pairs, counts.overlap) == (22, 0, "nested")


@needs_shared_data
@pytest.mark.parametrize(("name", "overlap", "labels"), [("litbank", "nested", 6), ("wnut17", "flat", 6)])
def test_overlap_and_labels_of_the_corpora(name, overlap, labels):
    data = load_nested_ner(SHARED / name)
    assert list(data) == ["train", "validation", "test"]
    assert suggest_overlap(data) == overlap and len(label_names(data)) == labels


def test_part_of_speech_tags_are_kept_where_there_are_any(tmp_path):
    tagged = {"tokens": ["a", "cat"], "entities": [], "pos": ["DT", "NN"]}
    lines = [json.dumps(tagged), json.dumps({"tokens": ["b"], "entities": []})]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    data = load_nested_ner(tmp_path)
    assert data["train"]["pos"][:] == [["DT", "NN"], None]
    assert load_nested_ner(data)["train"]["pos"][:] == [["DT", "NN"], None]
    write_jsonl(data["train"], tmp_path / "train.jsonl")
    assert load_nested_ner(tmp_path)["train"]["pos"][:] == [["DT", "NN"], None]
    (tmp_path / "train.jsonl").write_text(json.dumps({**tagged, "pos": ["DT"]}))
    with pytest.raises(ValueError, match="'pos' is .*, expected 2 part-of-speech tags, one a word"):
        load_nested_ner(tmp_path)
