"""Corpora that nobody may pass on: from files made to their formats to a figure of a table, by commands of users."""

import json

import pytest
from data.published import PUBLISHED

from hf_spanner import cli
from hf_spanner.data.corpora import corpus_names, load_corpus

LICENSED = [name for name in corpus_names() if load_corpus(name).needs]
COUNTED = {  # a table that counts each; CADEC's counts nobody prints: it is trained on
    **dict.fromkeys(("ace04", "ace05", "kbp17", "conll03", "ontonotes5"), ("dspert", "table6")),
    **dict.fromkeys(("ace04_flat", "ace05_flat", "conllpp"), ("bundling", "table1")),
    "msra": ("diffusion_ner", "table7"),
    "cadec": ("sng", "table2"),
}


def test_every_licensed_corpus_has_files_made_to_its_format():
    assert sorted(COUNTED) == LICENSED and set(LICENSED) <= set(PUBLISHED)


@pytest.mark.parametrize("name", LICENSED)
def test_a_licensed_corpus_becomes_figures_of_a_table(name, tmp_path, capsys):
    source, root = tmp_path / "source", tmp_path / "corpora"
    source.mkdir()
    lists = PUBLISHED[name](source, name)
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
