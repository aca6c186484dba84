"""Exported models read without torch and transformers: what the pipeline finds in the same folder.

That they find the same for every approach is tested with the exports of the matrix, in `exporting/test_export.py`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from approaches import ROWS
from tests_support import records

pytest.importorskip("onnx", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxscript", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxruntime", reason="needs hf_spanner[onnx]")

import hf_spanner.onnx
from hf_spanner.exporting import export

WORDS = "the mayor of New York met the head of the Bank of England in London Größe 東京 IL-2 \u200b \ud800 x".split(
    " "
)


def exported(row, tokenizer, folder: Path, **settings) -> str:
    torch.manual_seed(0)
    model = row.make(tokenizer, threshold=0.2, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    model.save_pretrained(folder / "source")
    tokenizer.save_pretrained(folder / "source")
    export(str(folder / "source"), folder / "out", records(), say=lambda line: None)
    return str(folder / "out")


def assert_same(one, other):
    """The very entities; scores but for the last digits."""
    for found, expected in zip(one, other, strict=True):
        assert [{**e, "score": 0} for e in found] == [{**e, "score": 0} for e in expected]
        assert [e["score"] for e in found] == pytest.approx([e["score"] for e in expected], abs=1e-6)


def test_calibration_mentions_and_trimmed_names_are_the_pipeline_s(tokenizer, tmp_path):
    row = next(row for row in ROWS if row.name == "span_ner")
    folder = exported(row, tokenizer, tmp_path)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    labels = ["person:name", "person:nominal", *(f"other {n}" for n in range(len(config["id2label"]) - 2))]
    config |= {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
        "mentions": ["name", "nominal"],
        "shown_mentions": ["name"],
        "trim": {"mentions": ["name"], "before": ["the"], "after": ["x"]},
        "calibration": [[0.3, 0.1], [0.6, 0.5]],
        "threshold": {"person": 0.05, "person:nominal": 0.2},
    }
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    light, ner = hf_spanner.onnx.load(folder), hf_spanner.pipeline(folder)
    texts = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
    for parameters in ({}, {"mentions": ["name", "nominal"]}, {"mentions": "nominal", "threshold": 0.01}):
        assert_same(light(texts, **parameters), ner(texts, **parameters))
    assert any(e["mention"] == "name" for entities in light(texts) for e in entities)


CODE = """
import sys
import hf_spanner.onnx
ner = hf_spanner.onnx.load(sys.argv[1])
assert isinstance(ner("the mayor of New York"), list)
heavy = sorted({"torch", "transformers", "datasets", "scipy", "onnx"} & set(sys.modules))
assert not heavy, heavy
import transformers
from transformers.pipelines import PIPELINE_REGISTRY
assert "nested-ner" in PIPELINE_REGISTRY.supported_tasks, "registered as soon as transformers is there"
"""


def run(code: str, *argv: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory) -> str:
    return exported(next(r for r in ROWS if r.name == "span_ner"), tokenizer, tmp_path_factory.mktemp("exported"))


def test_nothing_heavy_is_imported(folder):
    run(CODE, folder)


@pytest.mark.parametrize(
    "first", ["from importlib.util import find_spec; find_spec('transformers'); find_spec('hf_spanner.cli')",
              "from hf_spanner.modeling.configuration_nested_ner import NestedNerConfig",
              "try:\n    import hf_spanner.nonsense\nexcept ImportError: pass\nimport transformers",
              "import hf_spanner.data", "hf_spanner.modeling.spans.span_mask"]
)  # fmt: skip
def test_whatever_is_imported_first_the_approaches_are_registered(first):
    run(f"import hf_spanner\n{first}\nfrom transformers import AutoConfig\nAutoConfig.for_model('span_ner')")


def test_what_cannot_be_read_is_said_in_a_sentence(folder, tokenizer, tmp_path):
    def copy(name: str, **fields) -> str:
        place = shutil.copytree(folder, tmp_path / name)
        config = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps({**config, **fields}))
        return str(place)

    def spoilt(file: str, content: str) -> str:
        place = copy(f"{file} {len(content)}")
        (Path(place) / file).write_text(content)
        return place

    config = json.loads((Path(folder) / "config.json").read_text())
    about, first_label = config["onnx"], config["id2label"]["0"]
    words = json.loads((Path(folder) / "tokenizer.json").read_text())
    panics = json.dumps({**words, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////////////w=="}})
    no_graph, no_words = copy("no graph"), copy("no words")
    (Path(no_graph) / "model.onnx").unlink()
    (Path(no_words) / "tokenizer.json").unlink()
    for name, told in (
        (str(tmp_path / "nowhere"), "There is no folder"),
        (str(Path(folder).parent / "source"), "is not exported: `hf-spanner export"),
        (copy("encoder", onnx={**about, "part": "encoder"}), "the encoder alone is a graph"),
        (copy("old", onnx={"part": "network"}), "says nothing of 'heads': export the model again"),
        (copy("crf", onnx={**about, "heads": ["seq"]}, use_crf=True), "tags of a CRF are found with torch"),
        (no_graph, "model.onnx of .* is no plain file"),
        (no_words, "has no tokenizer.json"),
        (copy("many", id2label={n: f"L{n}" for n in range(100_001)}), "has 100,001 labels, more than 100,000"),
        (copy("no names", id2label={"0": None, "1": "A"}), "labels that are no names"),
        (copy("word", onnx={**about, "heads": 7}), r"heads=7 is unknown: choose one of"),
        (copy("head", onnx={**about, "heads": ["span", "seq"]}), "has no tag_logits, as its config.json says"),
        (copy("longest", onnx={**about, "longest": "x"}), "longest='x' must be a whole number of at least 1"),
        (copy("subwords", max_subwords="x"), "max_subwords='x' must be a whole number"),
        (copy("context", context_sentences=[1]), r"context_sentences=\[1\] must be a whole number"),
        (copy("splitter", word_splitter=[1]), r"word_splitter=\[1\] is unknown"),
        (copy("flag", multi_label="yes"), "multi_label='yes' is unknown"),
        (copy("threshold", threshold={first_label: "x"}), "A threshold is a probability between 0 and 1, not 'x'"),
        (copy("points", calibration=[[0, "a"]]), "must rise from 0 to 1"),
        (copy("kinds", mentions=5), "mentions must be a list of names, not 5"),
        (copy("shown", mentions=["name"], shown_mentions=7), "shown_mentions=7 must be a list of kinds"),
        (copy("trim", mentions=["name"], trim={"mentions": ["name"], "before": 7}), "must have lists of words"),
        (spoilt("tokenizer.json", "[]"), "tokenizer.json of .* is no tokenizer"),
        (spoilt("tokenizer.json", panics), "tokenizer.json of .* is no tokenizer .*precompiled"),
        (spoilt("tokenizer_config.json", "[]"), "tokenizer_config.json of .* is not a JSON object"),
    ):
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=told):
            hf_spanner.onnx.load(name)
    with pytest.raises(ValueError, match="classes apart, and its config.json 2: export the model again"):
        hf_spanner.onnx.load(copy("few", id2label={"0": "A"}))("New York")


def test_a_graph_and_a_configuration_with_other_classes_are_refused_by_torch_too(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "few")
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "id2label": {"0": "A"}, "label2id": {"A": 0}}))
    with pytest.raises(ValueError, match="classes apart, and its config.json 2: export the model again"):
        hf_spanner.pipeline(*hf_spanner.load_model(str(place)))("New York")
