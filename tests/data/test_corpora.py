"""The papers' corpora: descriptions that hold together, and from a source to splits in our form."""

import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from data.published import PUBLISHED
from data.test_readers_corpora import GENIA, ONTONOTES, write_ace, written
from hub_server import Hub

import hf_spanner
from hf_spanner import cli
from hf_spanner.data import load_nested_ner
from hf_spanner.data.corpora import Corpus, Printed, corpus_names, load_corpus
from hf_spanner.data.corpora.comparing import FIGURES, compare, comparison_table
from hf_spanner.data.corpora.preparing import prepare
from hf_spanner.data.readers import READERS
from hf_spanner.data.reshaping import OVERLAPS

ALL = [load_corpus(name) for name in corpus_names()]
RECIPES = Path(hf_spanner.__file__).parent / "recipes"


def run(capsys, *argv):
    code = cli.main(["data", *map(str, argv)])
    out = capsys.readouterr()
    return code, out.out + out.err


def lines(sentences, path):
    rows = [{"tokens": t.split(), "entities": [], **more} for t, more in sentences]
    return written(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_every_corpus_with_recipes_is_described():
    ours = {"papers", "race", "small"}
    assert {folder.name for folder in RECIPES.iterdir() if folder.is_dir()} - ours == set(corpus_names())


@pytest.mark.parametrize("corpus", ALL, ids=lambda corpus: corpus.name)
def test_a_description_names_what_exists(corpus):
    assert corpus.format in READERS and corpus.citation.strip().startswith("@") and corpus.key
    assert corpus.licence and corpus.ask and corpus.files and corpus.papers
    assert set(corpus.files) in ({"all"}, {"train", "test"}, {"train", "validation", "test"})
    assert corpus.split or corpus.splits_from or "all" not in corpus.files
    for printed in corpus.printed:
        assert printed.overlap in {None, *OVERLAPS}
        assert all(figures.keys() <= FIGURES.keys() for figures in printed.parts.values())
    assert all(len(file.sha256) == 64 for file in corpus.download if file.sha256)


def prepared(name, source, lists, work):
    """What `hf-spanner data` would write: words and entities of every split."""
    work.mkdir()
    splits = prepare(load_corpus(name), source, work, str, *lists[1:])
    return {split: [(s["tokens"], s["entities"]) for s in part] for split, part in splits.items()}


@pytest.mark.parametrize("name", corpus_names())
def test_a_corpus_as_published_is_found_and_read_alike_however_it_lies_there(name, tmp_path):
    folder = tmp_path / "download" / "corpus"
    folder.mkdir(parents=True)
    lists = PUBLISHED[name](folder, name)
    plain = prepared(name, folder, lists, tmp_path / "plain")
    assert all(plain.values()) and any(entities for _, entities in plain["train"])
    archive = shutil.make_archive(str(tmp_path / "packed" / "corpus"), "zip", folder)
    (subfolder,) = [p for p in folder.iterdir() if p.is_dir() and p.name != "text"] or [folder]
    places = {"parent": folder.parent, "archive": archive, "its folder": Path(archive).parent, "below": subfolder}
    for place, source in places.items():
        assert prepared(name, source, lists, tmp_path / place) == plain, place
    for changed, (old, new) in {"Windows": (b"\n", b"\r\n"), "mark": (b"", b"\xef\xbb\xbf")}.items():
        copy = shutil.copytree(folder, tmp_path / f"{changed} copy")
        for file in (path for path in copy.rglob("*") if path.is_file()):
            file.write_bytes(file.read_bytes().replace(old, new) if old else new + file.read_bytes())
        assert prepared(name, copy, lists, tmp_path / changed) == plain, changed


@pytest.mark.parametrize("name", corpus_names())
def test_a_corpus_in_another_encoding_is_refused_in_a_sentence(name, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    lists = PUBLISHED[name](folder, name)
    for file in (path for path in folder.rglob("*") if path.is_file()):
        file.write_bytes(file.read_text(encoding="utf-8", errors="replace").encode("utf-16"))
    with pytest.raises(
        ValueError, match=r"is not UTF-8 .*; convert|broken XML .*; correct it, or convert it to UTF-8"
    ):
        prepared(name, folder, lists, tmp_path / "work")


def test_split_lists_name_every_document_once():
    for name, sizes in {"ace05": (370, 43, 51), "ace04": (0, 41, 46), "litbank": (0, 10, 10)}.items():
        lists = load_corpus(name).split["documents"]
        parts = [lists.get(split, []) for split in ("train", "validation", "test")]
        assert tuple(map(len, parts)) == sizes
        assert len(set().union(*parts)) == sum(sizes)


def test_the_flat_variants_are_what_locate_and_label_counts_outside_nesting():
    """Two papers confirm each other: entities less those in nesting are Ji et al.'s."""
    for name in ("ace04", "ace05"):
        table = load_corpus(name).printed[0].parts
        flat = load_corpus(f"{name}_flat").printed[0].parts
        for split in ("train", "validation", "test"):
            assert table[split]["entities"] - table[split]["in_nesting"] == flat[split]["entities"]


def test_without_a_name_all_are_listed_with_licence_citation_and_where_to_ask(capsys):
    code, out = run(capsys)
    assert code == 0
    for corpus in ALL:
        assert f"{corpus.name}: {corpus.title}" in out and f"citation: {corpus.key}" in out
    assert out.count("licence: ") == len(ALL) == out.count("from: ")


def test_genia_from_its_archive_to_splits_figures_and_a_readme(capsys, tmp_path):
    written(
        tmp_path / "GENIA_term_3.02" / "GENIAcorpus3.02.xml",
        GENIA.replace("</abstract>", "<sentence>x</sentence>" * 98 + "</abstract>"),
    )
    with tarfile.open(tmp_path / "GENIAcorpus3.02.tgz", "w:gz") as archive:
        archive.add(tmp_path / "GENIA_term_3.02", "GENIA_term_3.02")
    code, out = run(capsys, "genia", "--source", tmp_path / "GENIAcorpus3.02.tgz", "--output", tmp_path / "out")
    assert code == 0 and "100 sentences, expected 18,546: they are split in the same shares." in out
    assert "| DSpERT, Table 6 | all | entities | 56,046 | 2 | -56,044 |" in out.replace("entities inside", "inside")
    assert "2 × part of a coordinated term" in out
    data = load_nested_ner(tmp_path / "out")
    assert {split: len(part) for split, part in data.items()} == {"train": 81, "validation": 9, "test": 10}
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "CC BY 3.0" in readme and "kim2003genia" in readme and "| 18,546 | 100 |" in readme


def test_ace_is_split_by_the_lists_of_the_field_and_the_rest_is_left_aside(capsys, tmp_path):
    folder = tmp_path / "data" / "English"
    write_ace(folder / "nw" / "adj", "AFP_ENG_20030304.0250")
    write_ace(folder / "bc" / "adj", "CNN_IP_20030328.1600.07")
    write_ace(folder / "un" / "adj", "alt.vacation.las-vegas_1")
    code, out = run(capsys, "ace05_flat", "--source", tmp_path, "--output", tmp_path / "out")
    assert code == 0 and "left aside: 1 documents with 4 sentences on no list" in out
    assert "missing: 462 of 464 listed documents" in out and "train, removed: 2 × entity" in out
    data = load_nested_ner(tmp_path / "out")
    assert set(data["train"]["doc_id"]) == {"AFP_ENG_20030304.0250"} and "test" not in data
    assert set(data["validation"]["doc_id"]) == {"CNN_IP_20030328.1600.07"}
    assert sum(len(entities) for entities in data["train"]["entities"]) == 4


def test_ontonotes_is_split_by_folder_without_the_new_testament(capsys, tmp_path):
    for split in ("train", "development", "test"):
        folder = tmp_path / "data" / split / "data" / "english" / "annotations"
        written(folder / "bc" / "x" / "00" / "x_0000.gold_conll", ONTONOTES)
        written(
            folder / "pt" / "nt" / "40" / "nt_4001.gold_conll", ONTONOTES.replace("bc/x/00/x_0000", "pt/nt/40/nt_4001")
        )
    code, out = run(capsys, "ontonotes5", "--source", tmp_path)
    assert code == 0 and out.count("left out: 2 sentences of documents that no paper has") == 3
    assert "| Ji et al., Table 1 | test | entities | 11,257 | 2 |" in out


def test_cadec_has_texts_and_annotations_in_two_folders_and_is_split_by_a_list(capsys, tmp_path):
    for number in range(3):
        written(tmp_path / "cadec" / "text" / f"P.{number}.txt", "Pain in arm and leg")
        written(
            tmp_path / "cadec" / "original" / f"P.{number}.ann", "T1\tADR 0 7;16 19\tPain in leg\n#1\tNote T1\tx\n"
        )
    code, out = run(capsys, "cadec", "--source", tmp_path / "cadec")
    assert code == 2 and "comes in one piece: pass --splits with lists of documents (SNG does not say" in out
    lists = written(tmp_path / "splits.json", json.dumps({"validation": ["P.1"], "test": ["P.2"]}))
    code, out = run(capsys, "cadec", "--source", tmp_path / "cadec", "--splits", lists, "--output", tmp_path / "out")
    data = load_nested_ner(tmp_path / "out")
    assert code == 0 and {split: len(part) for split, part in data.items()} == {"train": 1, "validation": 1, "test": 1}
    assert [e["mention"] for e in data["test"][0]["entities"]] == ["fragment:T1"] * 2
    assert sorted(path.name for path in (tmp_path / "cadec").iterdir()) == ["original", "text"]  # nothing was added
    code, out = run(capsys, "cadec", "--source", tmp_path / "cadec" / "original", "--splits", lists)
    assert code == 0 and "test: 1 sentences, 5 words, 2 entities (ADR 2)" in out


def test_weibo_loses_the_places_of_characters_and_kinds_of_names(capsys, tmp_path):
    for split in ("train", "dev", "test"):
        written(tmp_path / f"weiboNER_2nd_conll.{split}", "张0\tB-PER.NAM\n三1\tI-PER.NAM\n好0\tO\n50\tO\n")
    code, _ = run(capsys, "weibo", "--source", tmp_path, "--output", tmp_path / "out")
    (row,) = load_nested_ner(tmp_path / "out")["train"]
    assert code == 0 and row["tokens"] == ["张", "三", "好", "5"]
    assert row["entities"] == [{"start": 0, "end": 2, "label": "PER"}]


def test_resume_has_bmes_tags(capsys, tmp_path):
    for split in ("train", "dev", "test"):
        written(tmp_path / f"{split}.char.bmes", "高 B-NAME\n小 M-NAME\n明 E-NAME\n， O\n男 S-RACE\n")
    code, out = run(capsys, "resume", "--source", tmp_path)
    assert code == 0 and "train: 1 sentences, 5 words, 2 entities (NAME 1, RACE 1)" in out


def test_ncbi_merges_its_kinds_of_disease(capsys, tmp_path):
    for split in ("train", "develop", "test"):
        text = (
            "9|t|Colon cancer cells.\n9|a|\n9\t0\t12\tColon cancer\tModifier\tD1\n9\t6\t12\tcancer\tDiseaseClass\tD2\n"
        )
        written(tmp_path / f"NCBI{split}set_corpus.txt", text)
    code, out = run(capsys, "ncbi", "--source", tmp_path)
    assert code == 0 and "2 entities (Disease 2)" in out


def litbank_file(folder, name):
    return written(folder / "entities" / "tsv" / f"{name}_brat.tsv", "Ann\tB-PER\tO\n.\tO\tO\n\n")


def test_litbank_is_split_by_lists_whose_names_are_not_quite_its_files(capsys, tmp_path):
    """The repository calls a document `32_herland_brat.tsv`, with or without that ending in lists."""
    for name in ("105_persuasion", "32_herland", "4276_north_and_south"):
        litbank_file(tmp_path / "litbank-1", name)
    for source in (tmp_path, tmp_path / "litbank-1", tmp_path / "litbank-1" / "entities" / "tsv"):
        code, out = run(capsys, "litbank", "--source", source, "--output", tmp_path / "out")
        data = load_nested_ner(tmp_path / "out")
        assert code == 0 and {split: part["doc_id"] for split, part in data.items()} == {
            "train": ["105_persuasion"], "validation": ["32_herland"], "test": ["4276_north_and_south"],
        }  # fmt: skip
    lists = written(tmp_path / "lists" / "test.ids", "105_persuasion_brat.tsv\n").parent
    code, out = run(capsys, "litbank", "--source", tmp_path / "litbank-1", "--splits", lists)
    assert code == 0 and "test: 1 sentences" in out and "train: 2 sentences" in out


NCBI = {split: f"NCBI{split}set_corpus" for split in ("train", "develop", "test")}


def test_the_archives_of_a_corpus_may_lie_in_a_folder_as_they_were_downloaded(capsys, tmp_path):
    for name in NCBI.values():
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr(f"{name}.txt", "9|t|Flu.\r\n9|a|\r\n9\t0\t3\tFlu\tModifier\tD1\r\n")
            archive.writestr(f"__MACOSX/{name}.txt", "nothing that can be read")
    code, out = run(capsys, "ncbi", "--source", tmp_path)
    assert code == 0 and out.count("1 entities (Disease 1)") == 3 and "not as published" not in out


def test_a_split_whose_file_is_missing_is_named_and_the_others_are_read(capsys, tmp_path):
    for split in ("train", "test"):
        written(tmp_path / f"{NCBI[split]}.txt", "9|t|Flu.\n9|a|\n9\t0\t3\tFlu\tModifier\tD1\n")
    code, out = run(capsys, "ncbi", "--source", tmp_path)
    assert code == 0 and "test: 1 sentences" in out and "entities (Disease 1)" in out
    assert "holds no validation data, which is called NCBIdevelopset_corpus.txt: that split is left out." in out


def test_a_folder_with_two_copies_is_not_read_as_one(capsys, tmp_path):
    for copy in ("old", "new"):
        for name in ("eng.train", "eng.testa", "eng.testb"):
            written(tmp_path / copy / name, "Bonn B-LOC\n")
    code, out = run(capsys, "conll03", "--source", tmp_path)
    assert code == 2 and "holds 2 × eng.train (new/eng.train, old/eng.train): name the folder of one of them." in out
    code, out = run(capsys, "conll03", "--source", tmp_path / "new")
    assert code == 0 and "train: 1 sentences" in out


def test_a_source_without_a_sentence_is_an_error(capsys, tmp_path):
    for name in NCBI.values():
        written(tmp_path / f"{name}.txt", "")
    code, out = run(capsys, "ncbi", "--source", tmp_path, "--output", tmp_path / "out")
    assert code == 2 and f"{tmp_path} holds no sentence of NCBI Disease." in out and not (tmp_path / "out").exists()


def test_one_document_of_ace_may_be_the_source(capsys, tmp_path):
    write_ace(tmp_path, "AFP_ENG_20030304.0250")
    code, out = run(capsys, "ace05", "--source", tmp_path / "AFP_ENG_20030304.0250.apf.xml")
    assert code == 0 and "train: 4 sentences, 18 words, 6 entities" in out


def test_a_converted_copy_is_read_by_what_it_holds(capsys, tmp_path):
    for split, text in (("train", "a b c"), ("dev", "d e"), ("test", "f")):
        lines([(text, {"doc_id": split})], tmp_path / f"{split}.jsonl")
    code, out = run(capsys, "scierc", "--source", tmp_path)
    assert code == 0 and "is not as published (" in out and "validation: 1 sentences, 2 words" in out
    with zipfile.ZipFile(tmp_path / "papers.zip", "w") as archive:
        archive.writestr("train.txt", "something else, which is no data")
    assert run(capsys, "scierc", "--source", tmp_path) == (code, out), "an archive beside it is no matter"


def test_downloading_is_asked_for_and_comes_from_where_the_description_says(capsys, tmp_path, monkeypatch):
    code, out = run(capsys, "ace04", "--source", "download")
    assert code == 2 and "cannot be downloaded: ask at https://catalog.ldc.upenn.edu/LDC2005T09" in out
    from hf_spanner.data import corpora

    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with Hub() as hub:
        tags = b"Bonn B-location\n"
        hub.repo("me/w", "dataset").commit("main", {f"{name}": tags for name in ("train", "dev", "test")})
        files = [
            corpora.Download(f"{hub.endpoint}/datasets/me/w/resolve/main/{n}", n) for n in ("train", "dev", "test")
        ]
        known = load_corpus("wnut16")
        known.download = files
        monkeypatch.setattr("hf_spanner.cli.data.load_corpus", lambda name: known)
        code, out = run(capsys, "wnut16", "--source", "download", "--cache", tmp_path / "cache")
    assert code == 0 and out.count("no sum is known to compare with") == 3
    assert "| Ji et al., Table 1 | train | entities | 2,104 | 1 | -2,103 |" in out


@pytest.mark.parametrize(
    "content, complaint",
    [("{a: 1}", "expected lists of documents"), ("[x", "neither YAML nor JSON"), ("{dev: [a]}", "expected lists")],
)
def test_bad_lists_of_documents_are_one_sentence(capsys, tmp_path, content, complaint):
    lines([("a", {"doc_id": "x"})], tmp_path / "train.jsonl")
    lists = written(tmp_path / "lists.yaml", content)
    code, out = run(capsys, "litbank", "--source", tmp_path / "train.jsonl", "--splits", lists)
    assert code == 2 and complaint in out


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (["genai"], "There is no corpus 'genai'; did you mean 'genia'?"),
        (
            ["genia", "--source", "nowhere"],
            "nowhere does not exist; name a folder, an archive or a file, or 'download'.",
        ),
    ],
)
def test_mistakes_are_one_sentence(capsys, argv, complaint):
    code, out = run(capsys, *argv)
    assert code == 2 and complaint in out


def test_split_lists_may_be_files_in_a_folder_with_folders_before_the_names(tmp_path):
    lines([(text, {"doc_id": text}) for text in "abc"], tmp_path / "all" / "train.jsonl")
    written(tmp_path / "lists" / "dev.txt", "bn/adj/b\n")
    written(tmp_path / "lists" / "test.ids", "c\n")
    corpus = Corpus("x", "X", "en", "free", "here", "@misc{x,}", ["P"])
    splits = prepare(corpus, tmp_path / "all", tmp_path, str, tmp_path / "lists")
    assert {split: [s["doc_id"] for s in part] for split, part in splits.items()} == {
        "train": ["a"], "validation": ["b"], "test": ["c"],
    }  # fmt: skip


def test_figures_are_compared_to_the_digits_that_are_printed():
    corpus = Corpus("x", "X", "en", "free", "here", "@misc{x,}", ["P"])
    sentence = {"id": "1", "doc_id": None, "tokens": list("abc"), "entities": [{"start": 0, "end": 1, "label": "A"}]}
    corpus.printed = [Printed("T", {"train": {"mean_length": 2.33, "entities": 2}, "test": {"words": 1}}, note="why.")]
    splits = {"train": [sentence, sentence, {**sentence, "tokens": ["a"]}]}
    rows = compare(corpus, splits)
    assert [row.equal for row in rows] == [True, False, False]
    table = comparison_table(corpus, rows)
    assert "| T | train | words of a sentence, mean | 2.33 | 2.33 | = |" in table
    assert "| T | train | entities | 2 | 3 | +1 |" in table and "| T | test | words | 1 | – | not there |" in table
    assert table.endswith("T: why.")
