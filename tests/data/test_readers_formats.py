"""What a reader may meet: gzip, tables, folders in folders; and the reasons, counts and sentences it answers with."""

import csv
import gzip
import json
import os

import datasets
import pyarrow.parquet as pq
import pytest

from hf_spanner.data import find_splits, guess_format, load_nested_ner, read_file

TEXT = "The mayor of Bonn"
SPANS = [{"start": 0, "end": 17, "label": "PER"}, {"start": 13, "end": 17, "label": "GPE"}]
TOKENS = TEXT.split()
ENTITIES = [{"start": 0, "end": 4, "label": "PER"}, {"start": 3, "end": 4, "label": "GPE"}]
BY_WORDS, BY_CHARACTERS = {"tokens": TOKENS, "entities": ENTITIES}, {"text": TEXT, "entities": SPANS}
CONLL = "The B-PER O\nmayor I-PER O\nof I-PER O\nBonn I-PER B-GPE\n"


def check(path, format, **options):
    """The one sentence is there, whole, and the format was found out, with a reason."""
    sentences, report = read_file(path, **options)
    assert [(s["tokens"], s["entities"]) for s in sentences] == [(TOKENS, ENTITIES)]
    assert report.format == format and report.reason and f"read as {format}: {report.reason}" in str(report)
    assert not report.lost and not report.changed
    return report


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.jsonl", json.dumps(BY_WORDS), "jsonl"),
        ("a.json", json.dumps([BY_WORDS]), "spert"),
        ("a.json", json.dumps([BY_CHARACTERS]), "jsonl-chars"),
        ("a.json", json.dumps([BY_CHARACTERS], indent=2), "jsonl-chars"),
        ("a.jsonl", json.dumps(BY_CHARACTERS), "jsonl-chars"),
        ("a.conll", CONLL, "conll"),
        ("a.csv", f'text,entities\n{TEXT},"{json.dumps(SPANS).replace(chr(34), chr(34) * 2)}"\n', "csv"),
        ("a.csv", "tokens;ner_tags;other\nThe mayor;B-PER I-PER;x\n", None),
        ("odd.name", CONLL, "conll"),
        ("odd", json.dumps(BY_WORDS), "jsonl"),
    ],
)
def test_the_content_decides_packed_or_not(tmp_path, name, content, format):
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        data = content.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        if format is None:
            assert read_file(path)[0][0]["entities"] == [{"start": 0, "end": 2, "label": "PER"}]
        else:
            check(path, format)
            assert guess_format(path) == format
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(json.dumps(BY_WORDS).encode()))
    check(tmp_path / "packed.jsonl", "jsonl")


def test_a_csv_file_with_one_word_a_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Sentence #,Word,POS,Tag\nSentence: 1,Ann,NN,B-PER\n,ran,VB,O\nSentence: 2,Bonn,NN,B-GPE\n")
    sentences, _ = read_file(path)
    assert [s["tokens"] for s in sentences] == [["Ann", "ran"], ["Bonn"]]
    assert [s["entities"][0]["label"] for s in sentences] == ["PER", "GPE"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", r"a\.csv:1: found the columns \['a', 'b'\], expected 'tokens' with 'entities'"),
        ("text,entities\nAnn\n", r"a\.csv:2: 1 cells, expected 2 as in the first line"),
        ("tokens,entities\n\"['Ann' 'ran']\",[]\n", r"a\.csv:2: the cell 'tokens' is .*expected a JSON list"),
        ('text,entities\n"Ann,[]\n', r"a\.csv:2: no row of a CSV file"),
        ("text,text,entities\na,b,[]\n", r"a\.csv:2: the heading 'text' stands twice"),
    ],
)
def test_a_bad_csv_file_is_named_with_its_line(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_file(tmp_path / "a.csv", "csv")


@pytest.mark.parametrize("record", [BY_WORDS, BY_CHARACTERS], ids=["words", "characters"])
def test_parquet_and_arrow_are_read(tmp_path, record):
    data = datasets.Dataset.from_list([record])
    data.to_parquet(tmp_path / "train.parquet")
    data.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"odd": data}).save_to_disk(tmp_path / "several")
    check(tmp_path / "train.parquet", "parquet")
    check(tmp_path / "one", "arrow")
    check(next((tmp_path / "one").glob("*.arrow")), "arrow")
    assert find_splits(tmp_path / "several") == {"odd": tmp_path / "several" / "odd"}
    for source in (tmp_path / "train.parquet", tmp_path / "one", data):
        assert load_nested_ner(source)["train"][0]["entities"] == ENTITIES
    assert load_nested_ner(tmp_path / "several")["odd"][0]["entities"] == ENTITIES


def test_parquet_knows_the_names_of_its_classes(tmp_path):
    entity = {
        "start": datasets.Value("int32"),
        "end": datasets.Value("int32"),
        "label": datasets.ClassLabel(names=["GPE", "PER"]),
    }
    kind = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "entities": datasets.List(entity)})
    pq.write_table(datasets.Dataset.from_list([BY_WORDS], features=kind).data.table, tmp_path / "a.parquet")
    check(tmp_path / "a.parquet", "parquet")


def test_several_columns_of_tags_in_a_csv_file_are_layers(tmp_path):
    (tmp_path / "a.csv").write_text("id,word,tag,ner\n1,FC,B-ORG,O\n1,Bonn,I-ORG,B-LOC\n")
    assert [e["label"] for e in read_file(tmp_path / "a.csv")[0][0]["entities"]] == ["ORG", "LOC"]


def test_a_damaged_table_is_one_sentence(tmp_path):
    datasets.Dataset.from_list([BY_WORDS]).to_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"a\.parquet is damaged or no table \(Arrow"):
        read_file(tmp_path / "a.parquet")
    datasets.Dataset.from_list([BY_WORDS]).save_to_disk(tmp_path / "saved")
    next((tmp_path / "saved").glob("*.arrow")).write_bytes(b"")
    with pytest.raises(ValueError, match="saved is no complete folder of save_to_disk"):
        load_nested_ner(tmp_path / "saved")


def test_a_damaged_gzip_file_is_one_sentence(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(BY_WORDS).encode())[:-6])
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz: the gzip file is cut short or damaged"):
        read_file(tmp_path / "a.jsonl.gz")


# Folders


def brat(folder, name="doc"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(TEXT)
    (folder / f"{name}.ann").write_text(f"T1\tPER 0 17\t{TEXT}\nT2\tGPE 13 17\tBonn\n")


def test_brat_documents_in_sub_folders_are_read_and_called_by_their_path(tmp_path):
    brat(tmp_path / "corpus")
    brat(tmp_path / "corpus" / "a" / "b")
    brat(tmp_path / "corpus" / ".hidden")
    (tmp_path / "corpus" / "a" / "stats.json").write_text("{}")
    sentences, report = read_file(tmp_path / "corpus")
    assert [s["doc_id"] for s in sentences] == ["a/b/doc", "doc"] and report.entities == 4
    assert report.ignored == {"file beside the brat documents": 1}
    assert len(load_nested_ner(tmp_path)["train"]) == 2


def test_a_split_may_be_a_folder_of_files_and_lie_deeper(tmp_path):
    for name in ("data/train/a.jsonl", "data/train/x/b.jsonl", "data/dev/a.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(BY_WORDS) + "\n")
    (tmp_path / "data" / "train" / "c.conll").write_text(CONLL)
    (tmp_path / "data" / "train" / "README.txt").write_text("About this corpus.")
    data = load_nested_ner(tmp_path)
    assert {split: len(part) for split, part in data.items()} == {"train": 3, "validation": 1}
    assert read_file(tmp_path / "data" / "train")[1].ignored == {"text file without tags": 1}


def test_several_data_sets_in_one_folder_are_told_apart_by_the_user(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.jsonl").write_text(json.dumps(BY_WORDS))
    with pytest.raises(ValueError, match="holds several data sets, each with splits: one, two. Name one"):
        find_splits(tmp_path)


def test_brat_documents_beside_a_folder_with_splits_are_said(tmp_path, caplog):
    brat(tmp_path / "more")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text(json.dumps(BY_WORDS))
    assert find_splits(tmp_path) == {"train": tmp_path / "data" / "train.jsonl"}
    assert "left aside, as no split is called so: more." in caplog.text


def test_data_that_no_split_is_called_after_is_left_aside_aloud(tmp_path, caplog):
    (tmp_path / "train.jsonl").write_text(json.dumps(BY_WORDS))
    (tmp_path / "more.jsonl").write_text(json.dumps(BY_WORDS))
    assert list(find_splits(tmp_path)) == ["train"]
    assert "more.jsonl" in caplog.text and "left aside" in caplog.text


def test_packed_splits_are_found_by_their_names(tmp_path):
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(json.dumps(BY_WORDS).encode()))
    data = load_nested_ner(tmp_path)
    assert list(data) == ["train", "validation"] and data["train"][0]["id"] == "train.0"


# Nothing disappears


def test_one_bad_tag_costs_that_tag_and_not_its_layer(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(CONLL + "\nAnn B_PER O\nLee I-PER B-ORG\n")
    sentences, report = read_file(path)
    assert report.entities == 4 and sentences[1]["entities"][0] == {"start": 1, "end": 2, "label": "ORG"}
    assert report.lost == {"value in column 1 that is no tag of its scheme": 1}
    assert report.examples["value in column 1 that is no tag of its scheme"] == [f"{path}:6: 'B_PER'"]
    assert read_file(path, tag_columns=[1, 2])[1].lost == report.lost


def test_one_tag_of_another_scheme_costs_that_tag(tmp_path):
    (tmp_path / "a.conll").write_text("a B-X\nb E-X\nc S-X\nd U-X\n")
    sentences, report = read_file(tmp_path / "a.conll")
    assert report.entities == 2 and report.lost == {"value in column 1 that is no tag of its scheme": 1}


def test_a_bad_tag_among_json_tags_costs_that_tag(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"tokens": ["a", "b"], "ner_tags": ["B-X", "X"]}))
    _, report = read_file(tmp_path / "a.jsonl")
    assert report.entities == 1 and report.lost == {"value that is no tag of its scheme": 1}


def test_a_column_with_few_tags_is_counted(tmp_path):
    (tmp_path / "a.conll").write_text("a x O\nb y O\nc O O\nd B-X B-Y\ne z O\n")
    _, report = read_file(tmp_path / "a.conll")
    assert report.lost == {"tag in column 1, which holds more other values than tags": 1}


def test_a_line_that_begins_a_document_hides_no_tag(tmp_path):
    (tmp_path / "a.conll").write_text("-DOCSTART- O\n\na B-X\n\n-DOCSTART- B-Y\n")
    sentences, report = read_file(tmp_path / "a.conll")
    assert [s["doc_id"] for s in sentences] == ["a.doc0", "a.doc0"] and report.entities == 2


def test_a_label_that_is_a_string_is_one_label_and_not_its_letters(tmp_path):
    region = {"start": 0, "end": 17, "labels": "PER"}
    (tmp_path / "a.json").write_text(json.dumps([{"text": TEXT, "label": [region]}]))
    sentences, report = read_file(tmp_path / "a.json")
    assert sentences[0]["entities"] == ENTITIES[:1]
    assert report.format == "label-studio"
    assert report.changed == {"label written as a string, taken for a list of one": 1}


def test_labels_that_are_one_string_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(BY_WORDS))
    for load in (read_file, load_nested_ner):
        with pytest.raises(ValueError, match=r"labels='PER' is one string, expected several; write \['PER'\]"):
            load(tmp_path / "a.jsonl", labels="PER")


def test_spans_in_a_label_studio_task_that_are_no_regions_are_counted(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([BY_CHARACTERS]))
    _, report = read_file(tmp_path / "a.json", "label-studio")
    assert report.entities == 0 and report.lost == {"item of 'entities' without 'labels'": 2}


def test_fields_of_an_entity_that_nobody_reads_are_counted_by_name(tmp_path):
    entities = [{**entity, "head": 1, "id": 3, "text": "x"} for entity in ENTITIES]
    (tmp_path / "a.jsonl").write_text(json.dumps({**BY_WORDS, "entities": entities}))
    report = check(tmp_path / "a.jsonl", "jsonl")
    assert report.ignored == {"field 'head' of an entity": 2} and report.faithful


def test_entities_under_a_second_name_are_counted(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({**BY_WORDS, "ner": [[0, 1, "X"]], "tags": ["O"] * 4}))
    _, report = read_file(tmp_path / "a.jsonl")
    assert report.lost == {"entity under 'ner', beside 'entities'": 1}
    assert report.ignored == {"word or tag under 'tags', beside 'entities'": 4}


def test_a_field_that_stands_twice_is_refused_since_one_would_be_forgotten(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"], "entities": [[0, 1, "X"]], "entities": []}')
    with pytest.raises(ValueError, match=r"a\.jsonl:1: broken JSON, an object has the field 'entities' twice"):
        read_file(tmp_path / "a.jsonl")


def test_a_brat_mention_whose_id_was_damaged_is_counted(tmp_path):
    brat(tmp_path / "c")
    (tmp_path / "c" / "doc.ann").write_text("U1\tPER 0 17\tThe mayor of Bonn\nT2\tGPE 13 17\tBonn\n")
    assert read_file(tmp_path / "c")[1].lost == {"mention whose id does not begin with T": 1}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[" * 100_000, "nested too deeply|Expecting"),
        ("[" * 900 + "]" * 900, "has to be an object"),
        ("9" * 5000, "broken JSON, Exceeds the limit"),
        ("NaN", "has to be an object"),
        ('[0, 1, "\\ud800"]', "a label is .*half of a surrogate pair"),
        ('[0, 99999999999999999999, "X"]', "out of range"),
        ('[0, NaN, "X"]', "needs whole numbers"),
    ],
)
def test_json_that_no_python_likes_is_a_sentence(tmp_path, value, message):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"], "entities": [' + value + "]}")
    with pytest.raises(ValueError, match=rf"a\.jsonl:1: .*({message})"):
        read_file(tmp_path / "a.jsonl")


def test_a_list_longer_than_what_is_read_at_a_time(tmp_path):
    records = [{**BY_CHARACTERS, "note": "ü\n" * number} for number in range(0, 4000, 7)]
    (tmp_path / "a.json").write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")
    sentences, report = read_file(tmp_path / "a.json")
    assert len(sentences) == len(records) and report.entities == 2 * len(records) and report.faithful


# The model's own words


def test_texts_are_cut_by_the_splitter_that_is_given_and_words_are_kept(tmp_path):
    text = "anti-Russian mood"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text, "entities": [[5, 12, "X"]]}))
    fine = load_nested_ner(tmp_path / "a.jsonl", splitter="fine")["train"][0]
    assert fine["tokens"] == ["anti", "-", "Russian", "mood"] and fine["entities"][0]["start"] == 2
    in_memory = datasets.Dataset.from_list([{"text": text, "entities": [{"start": 5, "end": 12, "label": "X"}]}])
    assert load_nested_ner(in_memory, splitter="fine")["train"][0]["tokens"] == fine["tokens"]
    (tmp_path / "b.jsonl").write_text(json.dumps({"tokens": ["anti-Russian"], "entities": []}))
    assert load_nested_ner(tmp_path / "b.jsonl", splitter="fine")["train"][0]["tokens"] == ["anti-Russian"]


def test_a_word_can_be_cut_where_an_entity_begins(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "anti-Russian mood", "entities": [[5, 12, "X"], [0, 17, "Y"]]})
    )
    sentences, report = read_file(tmp_path / "a.jsonl", on_misaligned="split")
    assert sentences[0]["tokens"] == ["anti-", "Russian", "mood"]
    assert sentences[0]["entities"] == [{"start": 1, "end": 2, "label": "X"}, {"start": 0, "end": 3, "label": "Y"}]
    assert report.changed == {"boundary inside a word, the word was cut there": 1}


def test_options_that_a_data_set_in_memory_does_not_have_are_refused():
    with pytest.raises(ValueError, match="A dataset with columns has no option 'token_column'"):
        load_nested_ner(datasets.Dataset.from_list([BY_WORDS]), token_column=1)


def test_loading_does_not_hold_the_sentences_in_memory(tmp_path):
    (tmp_path / "a.jsonl").write_text((json.dumps(BY_WORDS) + "\n") * 2500)
    data = load_nested_ner(tmp_path / "a.jsonl")["train"]
    assert len(data) == 2500 and data[2499]["entities"] == ENTITIES
    assert data.cache_files, "the rows are mapped from a file"


def test_a_pipe_is_refused_since_it_can_be_read_once_only(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    for read in (read_file, load_nested_ner):
        with pytest.raises(ValueError, match=r"a\.jsonl is neither a file nor a folder"):
            read(tmp_path / "a.jsonl")


def test_a_no_break_space_is_part_of_a_word_in_a_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('tokens,entities\n10\xa0km to Bonn,"[[2, 3, ""GPE""]]"\n', encoding="utf-8")
    (sentence,), report = read_file(path)
    assert sentence["tokens"] == ["10\xa0km", "to", "Bonn"] and report.faithful
    assert [(e["start"], e["end"]) for e in sentence["entities"]] == [(2, 3)]


def test_entities_in_lists_by_field_under_a_second_name_are_counted(tmp_path):
    entity = {"start": 0, "end": 1, "label": "PER"}
    by_field = {"start": [0, 0], "end": [1, 1], "label": ["X", "Y"]}
    record = {"tokens": ["Ann"], "entities": [entity], "ner": by_field}
    datasets.Dataset.from_list([record]).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    for name in ("a.parquet", "a.jsonl"):
        _, report = read_file(tmp_path / name)
        assert report.entities == 1 and report.lost == {"entity under 'ner', beside 'entities'": 2}


def test_a_label_studio_result_without_its_value_is_counted_as_lost(tmp_path):
    task = {"data": {"text": "Ann"}, "annotations": [{"result": [{"start": 0, "end": 3, "labels": ["PER"]}]}]}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    _, report = read_file(tmp_path / "a.json")
    assert report.lost == {"result of type None": 1}


def test_a_line_break_inside_a_cell_is_as_long_as_it_is_written(tmp_path):
    text = "Anna\r\nlives in Bonn.\r\n\rYes, in\nUlm"
    entities = [[text.index(name), text.index(name) + len(name), "X"] for name in ("Anna", "Bonn", "Ulm")]
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "entities"], [text, json.dumps(entities)]])
    (sentence,), report = read_file(tmp_path / "a.csv")
    found = [sentence["tokens"][entity["start"] : entity["end"]] for entity in sentence["entities"]]
    assert found == [["Anna"], ["Bonn"], ["Ulm"]] and report.faithful


def test_a_label_studio_annotation_is_cancelled_by_true_alone(tmp_path):
    value = {"start": 0, "end": 4, "labels": ["LOC"]}
    task = {"data": {"text": "Bonn"}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}
    for said, kept in ((False, 1), (True, 0), (0, 1), (None, 1)):
        task["annotations"][0]["was_cancelled"] = said
        (tmp_path / "a.json").write_text(json.dumps([task]))
        assert read_file(tmp_path / "a.json", "label-studio")[1].entities == kept
    task["annotations"][0]["was_cancelled"] = "false"
    (tmp_path / "a.json").write_text(json.dumps([task]))
    with pytest.raises(ValueError, match=r"'was_cancelled' is 'false', expected true or false"):
        read_file(tmp_path / "a.json", "label-studio")


def test_a_brat_mention_without_its_id_is_counted(tmp_path):
    (tmp_path / "a.txt").write_text("Bonn")
    (tmp_path / "a.ann").write_text("LOC 0 4\tBonn\n")
    assert read_file(tmp_path / "a.ann")[1].lost == {"mention without an id": 1}


def test_a_saved_dataset_without_a_split_is_refused(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": []}')
    for source in (tmp_path, datasets.DatasetDict()):
        with pytest.raises(ValueError, match="holds no split"):
            load_nested_ner(source)


def test_columns_of_tags_without_words_are_refused_since_tags_are_no_words(tmp_path):
    (tmp_path / "a.conll").write_text("B-PER\tO\nI-PER\tB-GPE\nO\tO\n")
    with pytest.raises(ValueError, match=r"a.conll:1: column 0, where words are expected, holds nothing but tags"):
        read_file(tmp_path / "a.conll")
    assert read_file(tmp_path / "a.conll", token_column=0)[1].entities == 1
    (tmp_path / "a.conll").write_text("B-52\tB-PER\nI-95\tO\n")
    assert read_file(tmp_path / "a.conll")[1].entities == 1


def test_label_studio_regions_in_a_wrong_place_are_counted(tmp_path):
    region = {"start": 0, "end": 4, "labels": ["LOC"]}
    tasks = [
        {"text": "Bonn", "label": region, "annotator": 1},
        {"data": {"text": "Bonn"}, "annotations": [{"result": [{"value": {"value": region}}]}]},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    _, report = read_file(tmp_path / "a.json", "label-studio")
    assert report.lost == {"region of 'label' outside a list": 1, "result of type None": 1}


def test_what_is_wrong_with_xml_is_said_in_short(tmp_path):
    (tmp_path / "a.xml").write_text(f'<?xml version="1.0" encoding="{"x" * 5000}"?><set/>')
    with pytest.raises(ValueError, match=r"a.xml:1: broken XML") as told:
        read_file(tmp_path / "a.xml", "genia")
    assert len(str(told.value)) < 600


def test_a_label_studio_annotation_whose_result_is_gone_is_counted(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"data": {"text": "Bonn"}, "annotations": [{"RESULT": []}]}]))
    assert read_file(tmp_path / "a.json", "label-studio")[1].lost == {"annotation without a 'result'": 1}
