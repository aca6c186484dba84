"""Corpora that nobody may pass on: from files made to their formats to a figure of a table, by commands of users."""

import json
import random
from pathlib import Path

import pytest
from data.corpus_formats import write_ere
from data.test_readers_corpora import ONTONOTES, write_ace, written

from hf_spanner import cli
from hf_spanner.data.corpora import corpus_names, load_corpus

LICENSED = [name for name in corpus_names() if load_corpus(name).needs]
SPLITS = ("train", "validation", "test")
CONLL = "-DOCSTART- -X- -X- O\n\nBonn NNP B-NP B-LOC\nbeat VBD O O\nNew NNP B-NP B-ORG\nYork NNP I-NP I-ORG\n\n"


def make_ace(folder: Path, name: str) -> list[str]:
    """A document of each split by the field's lists; of those that are on no list ACE 2004 trains."""
    lists = load_corpus(name).split["documents"]
    for split in SPLITS:
        write_ace(folder / "data" / "English" / "nw", lists[split][0] if split in lists else "on_no_list")
    return []


def make_kbp(folder: Path, name: str) -> list[str]:
    write_ere([{"words": ["Ann", "of", "Bonn", "."], "spans": [(2, 3, "GPE")]}] * 3, folder, random.Random(0))
    lists = written(folder.with_name("lists.json"), json.dumps({"validation": ["D1"], "test": ["D2"]}))
    return ["--splits", str(lists)]


def make_conll(folder: Path, name: str) -> list[str]:
    for files in load_corpus(name).files.values():
        written(folder / files[0], CONLL)
    return []


def make_msra(folder: Path, name: str) -> list[str]:
    for files in load_corpus(name).files.values():
        written(folder / files[0], "北\tB-NS\n京\tI-NS\n。\tO\n\n")
    return []


def make_ontonotes(folder: Path, name: str) -> list[str]:
    for split in ("train", "development", "test"):
        place = folder / "data" / split / "data" / "english" / "annotations" / "bc" / "x" / "00"
        written(place / "x_0000.gold_conll", ONTONOTES)
    return []


def make_cadec(folder: Path, name: str) -> list[str]:
    for number in range(9):
        written(folder / "text" / f"P.{number}.txt", "Pain in arm and leg")
        written(folder / "original" / f"P.{number}.ann", "T1\tADR 0 7;16 19\tPain in leg\nT2\tSymptom 8 11\tarm\n")
    lists = written(folder.with_name("lists.json"), json.dumps({"validation": ["P.1"], "test": ["P.2"]}))
    return ["--splits", str(lists)]


MAKERS = {
    **dict.fromkeys(("ace04", "ace04_flat", "ace05", "ace05_flat"), make_ace),
    **dict.fromkeys(("conll03", "conllpp"), make_conll),
    "kbp17": make_kbp,
    "msra": make_msra,
    "ontonotes5": make_ontonotes,
    "cadec": make_cadec,
}
COUNTED = {  # a table that counts each; CADEC's counts nobody prints: it is trained on
    **dict.fromkeys(("ace04", "ace05", "kbp17", "conll03", "ontonotes5"), ("dspert", "table6")),
    **dict.fromkeys(("ace04_flat", "ace05_flat", "conllpp"), ("bundling", "table1")),
    "msra": ("diffusion_ner", "table7"),
    "cadec": ("sng", "table2"),
}


def test_every_licensed_corpus_has_files_made_to_its_format():
    assert sorted(MAKERS) == LICENSED == sorted(COUNTED)


@pytest.mark.parametrize("name", LICENSED)
def test_a_licensed_corpus_becomes_figures_of_a_table(name, tmp_path, capsys):
    source, root = tmp_path / "source", tmp_path / "corpora"
    source.mkdir()
    lists = MAKERS[name](source, name)
    assert cli.main(["data", name, "--source", str(source), "--output", str(root / name), *lists]) == 0
    paper, table = COUNTED[name]
    argv = ["reproduce", paper, table, "--data-root", str(root), "--output_dir", str(tmp_path / "out")]
    if name == "cadec":
        argv += ["--budget", "small"]
    assert cli.main(argv) == 0
    outcome = json.loads((tmp_path / "out" / "tables" / paper / f"{table}.json").read_text())
    assert name not in outcome["missing"] and name not in outcome["stand-ins"]
    ours = [cell for cell in outcome["cells"] if any(name in source for source in cell["from"])]
    assert ours and all(cell["mean"] is not None for cell in ours), ours
    assert max(cell["mean"] for cell in ours) > 0
