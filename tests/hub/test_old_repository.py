"""A repository as an earlier release pushed it, its files under names that are no more: it loads, and is mended."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

import hf_spanner
from hf_spanner.hub.publishing import other_code

ARCHIVE = Path(__file__).resolve().parents[1] / "fixtures" / "old_repository.tar.gz"
with tarfile.open(ARCHIVE) as archive:
    FOUND = json.load(archive.extractfile("old_repository/found.json"))
READ = """
answer = [[[e["start"], e["end"], e["entity_group"], e["score"]] for e in ner(text)] for text in TEXTS]
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return str(folder / "old_repository")


def same(answer):
    for found, expected in zip(answer, FOUND["entities"], strict=True):
        assert [entity[:3] for entity in found] == [entity[:3] for entity in expected]
        assert [entity[3] for entity in found] == pytest.approx([entity[3] for entity in expected], abs=1e-3)


def test_it_loads_with_the_package_and_finds_the_same(old):
    ner = hf_spanner.pipeline(old)
    assert type(ner.model) is hf_spanner.APPROACHES["dspert"]
    same([[[e["start"], e["end"], e["entity_group"], e["score"]] for e in ner(text)] for text in FOUND["texts"]])


def test_it_loads_without_the_package_and_finds_the_same(old, run, tmp_path):
    code = (
        f"from transformers import pipeline\nTEXTS = {FOUND['texts']!r}\n"
        f"ner = pipeline('nested-ner', model={old!r}, trust_remote_code=True)\n"
        "assert type(ner).__module__.startswith('transformers_modules.')\n"
    )
    same(run(code + READ, tmp_path / "cache", package=False, offline=True))


def test_saved_or_pushed_over_it_only_files_of_today_remain(old, tmp_path):
    folder = tmp_path / "repository"
    shutil.copytree(old, folder)
    ner = hf_spanner.pipeline(old)
    ner.save_pretrained(folder)
    code = {file.name for file in folder.glob("*.py")}
    assert {"reading.py", "dspert_transformer.py"} <= code
    assert not code & {"encoding.py", "span_transformer.py", "aggregation.py", "subword_spans.py"}
    ner.save_pretrained(tmp_path / "new")
    assert {"encoding.py", "span_transformer.py"} <= other_code(tmp_path / "new")  # what a push deletes
    same(
        [
            [[e["start"], e["end"], e["entity_group"], e["score"]] for e in hf_spanner.pipeline(str(folder))(text)]
            for text in FOUND["texts"]
        ]
    )


@pytest.mark.parametrize(
    ("old", "names"),
    [
        ("pipelines", ["load_config", "load_model", "load_tokenizer", "pipeline"]),
        ("inference", ["predict_sentences"]),
        ("vectors", ["WordVectors", "read_vectors"]),
    ],
)
def test_old_import_paths_that_cards_printed_work_and_say_so(old, names, run, tmp_path):
    code = (
        "import importlib, warnings\nwarnings.simplefilter('error', DeprecationWarning)\nimport hf_spanner\n"
        "with warnings.catch_warnings(record=True) as said:\n    warnings.simplefilter('always')\n"
        f"    module = importlib.import_module('hf_spanner.{old}')\n"
        f"assert all(hasattr(module, name) for name in {names!r})\n"
        f"answer = any('hf_spanner.{old} is now' in str(warning.message) for warning in said)"
    )
    assert run(code, tmp_path / "cache")
