"""Every corpus of the papers in the form in which it is published, a sentence or two of our own making each.

A maker writes the files into a folder and returns what `hf-spanner data` needs beside it, such as lists of documents.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

from data.corpus_formats import write_ere
from data.test_readers_corpora import GENIA, HAREM, ONTONOTES, write_ace, written

from hf_spanner.data.corpora import load_corpus

Maker = Callable[[Path, str], list[str]]
SPLITS = ("train", "validation", "test")


def in_every_file(text: str) -> Maker:
    """The same text in the first of the names that each split's file may have."""

    def make(folder: Path, name: str) -> list[str]:
        for files in load_corpus(name).files.values():
            written(folder / files[0], text)
        return []

    return make


def lists_beside(folder: Path, validation: str, test: str) -> list[str]:
    lists = written(folder.with_name("lists.json"), json.dumps({"validation": [validation], "test": [test]}))
    return ["--splits", str(lists)]


def make_ace(folder: Path, name: str) -> list[str]:
    """A document of each split by the field's lists; of those that are on no list ACE 2004 trains."""
    lists = load_corpus(name).split["documents"]
    for split in SPLITS:
        write_ace(folder / "data" / "English" / "nw", lists[split][0] if split in lists else "on_no_list")
    return []


def make_kbp(folder: Path, name: str) -> list[str]:
    write_ere([{"words": ["Ann", "of", "Bonn", "."], "spans": [(2, 3, "GPE")]}] * 3, folder, random.Random(0))
    return lists_beside(folder, "D1", "D2")


def make_ontonotes(folder: Path, name: str) -> list[str]:
    for split in ("train", "development", "test"):
        place = folder / "data" / split / "data" / "english" / "annotations" / "bc" / "x" / "00"
        written(place / "x_0000.gold_conll", ONTONOTES)
    return []


def make_cadec(folder: Path, name: str) -> list[str]:
    for number in range(9):
        written(folder / "text" / f"P.{number}.txt", "Pain in arm and leg\n")
        written(folder / "original" / f"P.{number}.ann", "T1\tADR 0 7;16 19\tPain in leg\nT2\tSymptom 8 11\tarm\n")
    return lists_beside(folder, "P.1", "P.2")


def make_genia(folder: Path, name: str) -> list[str]:
    text = GENIA.replace("</abstract>", "<sentence>é x</sentence>" * 98 + "</abstract>")
    written(folder / "GENIA_term_3.02" / "GENIAcorpus3.02.xml", text)
    return []


def make_litbank(folder: Path, name: str) -> list[str]:
    for title in ("105_persuasion", "32_herland", "4276_north_and_south"):
        written(folder / "entities" / "tsv" / f"{title}_brat.tsv", "José\tB-PER\tO\n.\tO\tO\n\n")
    return []


def make_scierc(folder: Path, name: str) -> list[str]:
    record = {"doc_key": "P1", "sentences": [["Maps", "é"], ["neural", "maps"]], "ner": [[[0, 0, "Method"]], []]}
    for split in ("train", "dev", "test"):
        text = json.dumps({**record, "relations": [[], []]}, ensure_ascii=False)
        written(folder / "processed_data" / "json" / f"{split}.json", f"{text}\n")
    return []


def make_nerel(folder: Path, name: str) -> list[str]:
    for split in ("train", "dev", "test"):
        written(folder / "NEREL-v1.1" / split / "a.txt", "Иван\nв Москве.\n")
        written(folder / "NEREL-v1.1" / split / "a.ann", "T1\tPERSON 0 4\tИван\nT2\tCITY 7 13\tМоскве\n")
    return []


def make_harem(folder: Path, name: str) -> list[str]:
    for file in ("CDPrimeiroHAREMprimeiroevento.xml", "CDPrimeiroHAREMMiniHAREM.xml"):
        (folder / file).write_text(HAREM, encoding="latin-1")
    return []


TWITTER = "José\tB-person\nSá\tI-person\nist\tO\n\n"
REUTERS = "-DOCSTART- -X- -X- O\n\nBonn NNP B-NP B-LOC\nbeat VBD O O\nNew NNP B-NP B-ORG\nYork NNP I-NP I-ORG\n\n"
SPERT = [
    {"tokens": ["José", "is"], "entities": [{"type": "Peop", "start": 0, "end": 1}], "relations": [], "orig_id": 1}
]
PUBMED = "9|t|Flu é.\n9|a|Colds é are bad.\n9\t0\t3\tFlu\t{0}\tD1\n9\t7\t12\tColds\t{0}\tD2\n\n"
PUBLISHED: dict[str, Maker] = {
    **dict.fromkeys(("ace04", "ace04_flat", "ace05", "ace05_flat"), make_ace),
    **dict.fromkeys(("conll03", "conllpp"), in_every_file(REUTERS)),
    **dict.fromkeys(("wnut16", "wnut17"), in_every_file(TWITTER)),
    "anercorp": in_every_file("محمد B-PERS\nفي O\n\n"),
    "bc5cdr": in_every_file(PUBMED.format("Disease")),
    "cadec": make_cadec,
    "conll04": in_every_file(json.dumps(SPERT, ensure_ascii=False)),
    "genia": make_genia,
    "germeval14": in_every_file("# http://x\n1\tJosé\tB-PER\tO\n2\tda\tO\tO\n\n"),
    "harem": make_harem,
    "kbp17": make_kbp,
    "litbank": make_litbank,
    "msra": in_every_file("北\tB-NS\n京\tI-NS\n。\tO\n\n"),
    "ncbi": in_every_file(PUBMED.format("Modifier")),
    "nerel": make_nerel,
    "ontonotes5": make_ontonotes,
    "resume": in_every_file("高 B-NAME\n小 M-NAME\n明 E-NAME\n， O\n\n"),
    "scierc": make_scierc,
    "weibo": in_every_file("张0\tB-PER.NAM\n三1\tI-PER.NAM\n好0\tO\n\n"),
}
