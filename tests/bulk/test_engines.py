"""The predictor as a column of datasets, Ray Data and Spark: what two workers find is what one process finds."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
from tests_support import same_entities

import hf_spanner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def predictor(tiny):
    return hf_spanner.Predictor(tiny)


@pytest.fixture
def corpus(tmp_path, texts):
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    return file


def all_same(found, expected):
    return all(same_entities(f, e) for f, e in zip(found, expected, strict=True))


def test_a_batch_gets_a_column_and_keeps_the_others(predictor, tiny, texts):
    batch = {"id": np.arange(len(texts)), "text": np.array(texts, dtype=object)}
    found = predictor(batch)
    assert list(found) == ["id", "text", "entities"] and found["text"] is batch["text"]
    expected = hf_spanner.pipeline(tiny)(texts)
    assert all_same(found["entities"], expected)


def test_a_table_gets_a_column_of_the_same_type_whatever_is_found(predictor, tiny, texts):
    table = pa.table({"id": range(len(texts)), "text": texts})
    found, nothing = predictor(table), predictor(pa.table({"id": [0, 1], "text": ["", None]}))
    assert found.schema == nothing.schema and nothing["entities"].to_pylist() == [[], None]
    assert all_same(found["entities"].to_pylist(), predictor.read(texts))
    nested = hf_spanner.Predictor(tiny, nesting=True, word_indices=True)
    for entities in nested(table)["entities"].to_pylist():
        assert all({"depth", "parent", "start_word", "end_word"} <= set(e) for e in entities)


def test_a_text_that_is_none_has_none_and_what_is_no_text_is_refused(predictor):
    assert predictor({"text": [None, "London", float("nan")]})["entities"][::2] == [None, None]
    with pytest.raises(TypeError, match="reads strings, not int"):
        predictor({"text": ["London", 7]})
    with pytest.raises(ValueError, match="There is no column 'text' among 'body'"):
        predictor({"body": ["London"]})
    with pytest.raises(ValueError, match="There is a column 'entities' already"):
        predictor({"text": ["London"], "entities": [[]]})


def test_words_may_be_lists_or_arrays(tiny):
    predictor = hf_spanner.Predictor(tiny, text_column="tokens", is_split_into_words=True)
    words = "the mayor of New York".split()
    one, other = (predictor({"tokens": [given]})["entities"] for given in (words, np.array(words, dtype=object)))
    assert one == other and all({"start_word", "end_word"} <= set(e) for e in one[0])


def test_options_of_the_pipeline_are_options_of_the_predictor(tiny):
    found = hf_spanner.Predictor(tiny, entities_column="found", threshold=1.0, device="cpu")({"text": ["London"]})
    assert found["found"] == [[]]
    with pytest.raises(ValueError, match="batch_size=0 must be at least 1"):
        hf_spanner.Predictor(tiny, batch_size=0)


def test_datasets_maps_it(predictor, texts):
    data = datasets.Dataset.from_dict({"text": texts}).map(predictor, batched=True, batch_size=50)
    assert all_same(data["entities"], predictor.read(texts))


def run(script, *argv):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    command = [sys.executable, str(ROOT / "scripts" / script), *map(str, argv)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]


def parquet_rows(folder):
    rows = datasets.load_dataset(
        "parquet", data_files=f"{folder}/*.parquet", split="train", cache_dir=f"{folder}-cache"
    )
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_two_workers_of_an_engine_find_what_one_process_finds(engine, predictor, tiny, corpus, texts, tmp_path):
    package = {"ray": "ray", "spark": "pyspark"}[engine]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: the extra [{engine}]")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    options = {"ray": ["--workers", 2, "--batch-size", 20], "spark": ["--master", "local[2]"]}[engine]
    run(f"predict_{engine}.py", corpus, tmp_path / "out", "--model", tiny, *options)
    rows = parquet_rows(tmp_path / "out")
    assert [(row["id"], row["text"]) for row in rows] == list(enumerate(texts))
    assert all_same([row["entities"] for row in rows], predictor.read(texts))
