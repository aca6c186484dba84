"""Models exported for ONNX Runtime: the same entities, loaded like any other model, and refused where it must be."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy
import pytest
import torch
from approaches import ROWS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests_support import make_batch, records, without_gold
from transformers import pipeline

import hf_spanner
from hf_spanner.cli import main
from hf_spanner.evaluation.predicting import predict_sentences

onnx = pytest.importorskip("onnx", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxscript", reason="needs hf_spanner[onnx]")
pytest.importorskip("onnxruntime", reason="needs hf_spanner[onnx]")

import hf_spanner.onnx  # noqa: E402
from hf_spanner.exporting import export  # noqa: E402
from hf_spanner.exporting.graph import ENCODER_ALONE  # noqa: E402
from hf_spanner.exporting.quantising import choose  # noqa: E402
from hf_spanner.exporting.smoothing import column_ranges, scale_rows, smooth  # noqa: E402
from hf_spanner.onnx import GRAPH, open_session  # noqa: E402

SOME = "the mayor of New York Bank England receptor 東京 \u200b IL-2 x".split(" ")
WORDS = st.lists(st.sampled_from(SOME), max_size=30)


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def row(request):
    return request.param


@pytest.fixture(scope="module")
def pair(row, tokenizer, tmp_path_factory):
    """A model whose scores lie well apart, and the folder it was exported to."""
    torch.manual_seed(0)
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("exported")
    model = row.make(tokenizer, threshold=0.2)  # so that models that have learnt nothing find something
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    model.save_pretrained(source)
    tokenizer.save_pretrained(source)
    told = []
    export(str(source), folder, records(), say=told.append)
    assert "all equal" in told[0]
    return model, hf_spanner.load_model(str(folder))[0], folder


def found(model, tokenizer, sentences, batch_size=32, **decoding):
    answers = predict_sentences(model, tokenizer, sentences, batch_size, **decoding)
    return [{(e.start, e.end, e.label): e.score for e in entities} for entities in answers]


def assert_same(exported, torch):
    """The very entities; scores but for the last digits."""
    assert [row.keys() for row in exported] == [row.keys() for row in torch]
    for row, expected in zip(exported, torch, strict=True):
        assert row == pytest.approx(expected, abs=1e-3)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=6), st.integers(1, 4))
def test_an_exported_model_gives_the_same_entities_whatever_the_batch(pair, tokenizer, texts, batch_size):
    model, exported, _ = pair
    sentences = [{"tokens": words} for words in texts]
    assert_same(found(exported, tokenizer, sentences, batch_size), found(model, tokenizer, sentences, batch_size))


def test_long_texts_thresholds_and_heads_are_the_model_s_own(pair, tokenizer):
    model, exported, _ = pair
    sentences = [{"tokens": "the mayor of New York met the head of the Bank of England".split() * 12}]
    for decoding in ({}, {"threshold": 0.3, "overlap": "any"}, *({"head": head} for head in model.heads)):
        assert_same(found(exported, tokenizer, sentences, **decoding), found(model, tokenizer, sentences, **decoding))


def test_an_exported_folder_is_a_model_like_any_other(pair, tokenizer, tmp_path, capsys):
    model, _, folder = pair
    text = "the mayor of New York met the head of the Bank of England"
    expected = hf_spanner.pipeline(model, tokenizer)(text)
    for ner in (pipeline("nested-ner", model=str(folder)), hf_spanner.pipeline(folder)):
        answer = ner(text)
        assert [{**e, "score": None} for e in answer] == [{**e, "score": None} for e in expected]
    assert main(["predict", "--model", str(folder), "--format", "jsonl", text]) == 0
    assert len(json.loads(capsys.readouterr().out)["entities"]) == len(expected)
    assert main(["push", str(folder), "me/model", "--dry-run", str(tmp_path)]) == 0
    files = {file.name for file in folder.iterdir()}
    assert {file.name for file in tmp_path.iterdir()} == files
    assert {GRAPH, "config.json", "tokenizer.json", "README.md"} <= files and "model.safetensors" not in files
    assert not any(file.endswith(".py") for file in files)
    assert (tmp_path / GRAPH).read_bytes() == (folder / GRAPH).read_bytes()
    assert "for ONNX Runtime in single precision" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert hf_spanner.pipeline(tmp_path)(text) == answer


def test_what_belongs_to_training_is_refused_in_a_sentence(pair, tokenizer):
    _, exported, _ = pair
    batch = make_batch(tokenizer)
    for call, told in (
        (lambda: exported(**batch), "has no loss"),
        (lambda: exported.train(), "cannot be trained"),
        (lambda: exported.to("meta"), "runs on the CPU"),
        (lambda: exported.to(torch.bfloat16), "not as torch.bfloat16"),
        (lambda: exported(**without_gold(batch), output_hidden_states=True), "load the model that it was made from"),
        (lambda: exported.get_input_embeddings(), "no embeddings"),
    ):
        with pytest.raises(ValueError, match=told):
            call()


# ------------------------------------------------------------------------------------------------- without torch


@pytest.fixture(scope="module")
def both(pair, row):
    """The reader without torch and the pipeline of an export; of the head that can be read without, if one cannot."""
    *_, folder = pair
    if row.approach in ENCODER_ALONE or row.name.endswith("-crf"):
        with pytest.raises(ValueError, match="with torch"):
            hf_spanner.onnx.load(folder)
        pytest.skip(f"{row.name} is read with torch")
    return hf_spanner.onnx.load(folder), hf_spanner.pipeline(folder)


def assert_alike(one, other):
    for found, expected in zip(one, other, strict=True):
        assert [{**e, "score": 0} for e in found] == [{**e, "score": 0} for e in expected]
        assert [e["score"] for e in found] == pytest.approx([e["score"] for e in expected], abs=1e-6)


LONG = st.lists(st.sampled_from([*SOME, "\ud800", "\n"]), max_size=150).map(" ".join)  # up to some windows


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LONG, min_size=1, max_size=4), st.integers(1, 4))
def test_entities_without_torch_are_those_of_the_pipeline(both, texts, batch_size):
    light, ner = both
    assert_alike(light(texts, batch_size=batch_size), ner(texts, batch_size=batch_size))


def test_parameters_without_torch_mean_what_they_mean_in_the_pipeline(both):
    light, ner = both
    texts, label = [" ".join(SOME * 8), "", "New York"], ner.model.config.labels[0]
    for parameters in (
        {"threshold": 0.0, "overlap": "any"},
        {"threshold": {label: 0.9}, "nesting": True, "word_indices": True},
        {"labels": [label], "label_map": {label: "other"}},
        {"stride": 20},
        *({"head": head} for head in ner.model.heads),
    ):
        assert_alike(light(texts, **parameters), ner(texts, **parameters))
    words = texts[0].split()
    assert_alike([light(words, is_split_into_words=True)], [ner(words, is_split_into_words=True)])
    assert_alike(light(text for text in texts), ner(texts))
    assert_alike([light(texts[0])], [ner(texts[0])])
    for wrong in ({"threshold": 2}, {"labels": ["nonsense"]}, {"overlap": "none"}, {"head": "tail"}, {"nonsense": 1}):
        with pytest.raises((ValueError, TypeError)) as ours:
            light("x", **wrong)
        with pytest.raises((ValueError, TypeError)) as theirs:
            ner("x", **wrong)
        assert str(ours.value) == str(theirs.value)


# ------------------------------------------------------------------------------------------------ without the matrix


@pytest.fixture(scope="module")
def source(tokenizer, tmp_path_factory):
    """A tiny trained model's folder."""
    folder = tmp_path_factory.mktemp("one")
    (row,) = (row for row in ROWS if row.name == "span_ner")
    torch.manual_seed(0)
    row.make(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def exported(source, tmp_path_factory):
    """The same, exported with eight bits, and what was said."""
    folder, told = tmp_path_factory.mktemp("int8"), []
    export(str(source), folder, records(), int8=True, most_lost=0.0, say=told.append)
    return folder, told


def test_int8_says_what_it_does_and_loses_no_more_than_it_may(exported):
    folder, told = exported
    assert "with all in eight bits" in told[0]
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))["export"]
    assert record["int8"] and set(record["plan"].values()) <= {"scaled rows", "float32"}
    assert record["check"]["exported_f1"] >= record["check"]["f1"]
    operators = {node.op_type for node in onnx.load(str(folder / GRAPH)).graph.node}
    assert operators & {"MatMulInteger", "DynamicQuantizeMatMul"} or set(record["plan"].values()) == {"float32"}
    assert not list(folder.glob("*float32*")) and not list(folder.glob("*.rows*"))


def test_layers_are_mended_the_most_harmful_first_until_f1_is_back():
    harm = {"good": 0.0, "bad": 0.05, "worse": 0.2}
    gain = {"scaled rows": 0.5, "float32": 1.0}

    def score(plan):
        return 0.8 - sum(harm[kind] * (1 - gain.get(plan.get(kind), 0)) for kind in harm)

    assert choose(harm, score, 0.8, 0.3).plan == {}
    assert choose(harm, score, 0.8, 0.16).plan == {"worse": "scaled rows"}
    assert choose(harm, score, 0.8, 0.03).plan == {"worse": "float32", "bad": "scaled rows", "good": "scaled rows"}
    last = choose(harm, score, 0.8, 0.0)
    assert last.plan["worse"] == last.plan["bad"] == "float32" and last.plan["good"] == "scaled rows"
    assert last.alone == {"good": pytest.approx(0.55), "bad": pytest.approx(0.6), "worse": pytest.approx(0.75)}
    assert last.told()[1].startswith("worse: scaled rows (left out of int8: 75.00); F1 is now")


def test_smoothing_and_scaled_rows_change_no_number(tmp_path):
    """A product and a Gemm whose weights are turned, of the same activations; among these a row of zeros."""
    rng = numpy.random.default_rng(0)
    a, b = (rng.normal(size=size).astype("float32") for size in ((6, 4), (3, 6)))
    make = onnx.helper.make_node
    nodes = [
        make("Relu", ["x"], ["h"]),
        make("MatMul", ["h", "a"], ["y"], name="first"),
        make("Gemm", ["h", "b"], ["z"], name="second", transB=1),
    ]
    values = [onnx.helper.make_tensor_value_info(name, 1, ["n", None]) for name in "xyz"]
    weights = [onnx.numpy_helper.from_array(a, "a"), onnx.numpy_helper.from_array(b, "b")]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    opset = [onnx.helper.make_opsetid("", 20)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=10), str(tmp_path / "g.onnx"))
    x = numpy.concatenate([rng.normal(size=(5, 6)) * [1, 1, 100, 1, 0, 1], numpy.zeros((1, 6))]).astype("float32")
    ranges = column_ranges(tmp_path / "g.onnx", [{"x": x}])
    assert numpy.allclose(ranges["h"], numpy.maximum(x, 0).max(0))
    smooth(tmp_path / "g.onnx", tmp_path / "s.onnx", ranges)
    scale_rows(tmp_path / "s.onnx", tmp_path / "r.onnx", ["first", "second"])
    h = numpy.maximum(x, 0)
    for name in ("g", "s", "r"):
        y, z = open_session(tmp_path / f"{name}.onnx").run(["y", "z"], {"x": x})
        assert numpy.allclose(y, h @ a, rtol=1e-4, atol=1e-4) and numpy.allclose(z, h @ b.T, rtol=1e-4, atol=1e-4)


def spoilt(exported, folder: Path, name: str) -> Path:
    """A copy of an exported folder with something done to it."""
    shutil.copytree(exported, folder, dirs_exist_ok=True)
    graph, config = folder / GRAPH, folder / "config.json"
    fields = json.loads(config.read_text(encoding="utf-8"))
    if name == "no graph":
        graph.unlink()
    elif name == "an empty graph":
        graph.write_bytes(b"")
    elif name == "a graph that is cut off":
        graph.write_bytes(graph.read_bytes()[:5000])
    elif name == "a graph of 4 GB":
        with graph.open("ab") as file:
            file.truncate(2**32)
    elif name == "a graph that is a link":
        graph.rename(folder.parent / "elsewhere.onnx")
        graph.symlink_to(folder.parent / "elsewhere.onnx")
    elif name == "another part":
        config.write_text(json.dumps({**fields, "onnx": {"part": "../../etc"}}), encoding="utf-8")
    elif name == "a list for a part":
        config.write_text(json.dumps({**fields, "onnx": [1]}), encoding="utf-8")
    elif name == "a graph of something else":
        value = onnx.helper.make_tensor_value_info("x", 1, [1])
        node = onnx.helper.make_node("Relu", ["x"], ["y"])
        made = onnx.helper.make_graph([node], "g", [value], [onnx.helper.make_tensor_value_info("y", 1, [1])])
        opset = [onnx.helper.make_opsetid("", 20)]
        onnx.save(onnx.helper.make_model(made, opset_imports=opset, ir_version=10), str(graph))
    else:
        model = onnx.load(str(graph))
        if name == "an operator of a library":
            model.graph.node[0].op_type, model.graph.node[0].domain = "RunsCode", "evil"
            model.opset_import.append(onnx.helper.make_opsetid("evil", 1))
        else:  # weights elsewhere
            secret = folder.parent / "secret.bin"
            secret.write_bytes(b"\0" * 10**6)
            where = "../secret.bin" if name == "weights outside" else str(secret)
            weight = max(model.graph.initializer, key=lambda value: len(value.raw_data))
            for key, value in (("location", where), ("offset", "0"), ("length", str(len(weight.raw_data)))):
                weight.external_data.add(key=key, value=value)
            weight.ClearField("raw_data")
            weight.data_location = onnx.TensorProto.EXTERNAL
        graph.write_bytes(model.SerializeToString())
    return folder


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no graph", "has no model.onnx"),
        ("an empty graph", "is refused"),
        ("a graph that is cut off", "is refused"),
        ("a graph of 4 GB", "4,096 MB, more than 2,048: refused"),
        ("a graph that is a link", "outside the folder: refused"),
        ("another part", "says nothing known"),
        ("a list for a part", "says nothing known"),
        ("a graph of something else", "it is no graph of"),
        ("an operator of a library", "is refused"),
        ("weights outside", "is refused"),
        ("weights at an absolute path", "is refused"),
    ],
)
def test_a_folder_that_only_pretends_is_refused_in_one_sentence(exported, tmp_path, name, told):
    folder = spoilt(exported[0], tmp_path / "spoilt", name)
    with pytest.raises((ValueError, FileNotFoundError), match=told) as error:
        hf_spanner.load_model(str(folder))
    assert "\n" not in str(error.value) and len(str(error.value)) < 700 and str(error.value).endswith(".")


def test_an_export_replaces_no_trained_model_and_exports_no_export(source, exported, tmp_path, capsys):
    before = sorted(file.name for file in source.iterdir())
    assert main(["export", "default", str(source)]) == 2
    assert "choose another folder" in capsys.readouterr().err
    assert sorted(file.name for file in source.iterdir()) == before
    assert main(["export", str(exported[0]), str(tmp_path)]) == 2
    assert "is exported already" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (ModuleNotFoundError("No module named 'onnxscript'", name="onnxscript"), "pip install hf_spanner[onnx]"),
    ],
    ids=["full", "read-only", "no onnx"],
)
def test_an_export_that_cannot_be_written_says_why_and_leaves_what_was_there(
    source, tmp_path, monkeypatch, capsys, error, told
):
    def fails(model, tokenizer, folder):
        (folder / GRAPH).write_bytes(b"half")
        raise error

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    monkeypatch.setattr("hf_spanner.exporting.write_graph", fails)
    assert main(["export", str(source), str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert told in said and said.count("hf-spanner export:") == 1
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_a_large_model_s_weights_lie_beside_its_graph_also_in_the_cache_of_the_hub(source, tmp_path, monkeypatch):
    """There every file is a link to a blob."""
    monkeypatch.setattr("hf_spanner.exporting.graph.ONE_FILE", 0)
    folder, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    export(str(source), folder, records(), say=lambda line: None)
    assert (folder / f"{GRAPH}.data").stat().st_size > 10_000
    blobs.mkdir()
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(blobs / str(number))
        file.symlink_to(Path("..", "..", "blobs", str(number)))
    assert hf_spanner.load_model(str(folder))[0].is_graph


def test_other_labels_and_numbers_are_refused(exported):
    for choice, told in (
        ({"labels": ["A"]}, "is exported and cannot be trained"),
        ({"dtype": "bfloat16"}, "leave it"),
    ):
        with pytest.raises(ValueError, match=told):
            hf_spanner.load_model(str(exported[0]), **choice)
    assert hf_spanner.load_model(str(exported[0]), device="auto")[0].device.type == "cpu"


def test_a_model_that_types_given_spans_is_refused(tokenizer, tmp_path):
    table = torch.randn(len(tokenizer), 8)
    model = hf_spanner.APPROACHES["sng"].from_vectors(table, labels=["A", "B"], spans="gold", lstm_size=8)
    model.save_pretrained(tmp_path / "sng")
    tokenizer.save_pretrained(tmp_path / "sng")
    with pytest.raises(ValueError, match="types spans that are given"):
        export(str(tmp_path / "sng"), tmp_path / "out", records())


def test_other_entities_fail_an_export_in_single_precision(source, tmp_path, monkeypatch):
    """A graph whose weights were spoilt on the way is not written."""

    def spoil(graph):
        model = onnx.load(str(graph))
        for value in model.graph.initializer:
            if value.data_type == onnx.TensorProto.FLOAT and len(value.raw_data) > 1000:
                numbers = onnx.numpy_helper.to_array(value)
                value.CopyFrom(onnx.numpy_helper.from_array(numbers[::-1].copy(), value.name))
        onnx.save(model, str(graph))

    monkeypatch.setattr("hf_spanner.exporting.fuse", spoil)
    with pytest.raises(ValueError, match="gives other entities than torch"):
        export(str(source), tmp_path, records(), say=lambda line: None)
    assert not (tmp_path / "config.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["genia", "litbank"])
def test_the_default_finds_the_same_in_whole_test_sets(corpus, tmp_path):
    """With HF_SPANNER_DATA, the folder of the corpora."""
    if "HF_SPANNER_DATA" not in os.environ:
        pytest.skip("set HF_SPANNER_DATA to a folder with genia/ and litbank/")
    data = str(Path(os.environ["HF_SPANNER_DATA"]) / corpus)
    assert main(["export", "default", str(tmp_path), "--data", data, "--split", "test"]) == 0
    assert json.loads((tmp_path / "training.json").read_text())["export"]["check"]["differing"] == 0


def test_the_default_finds_the_same_in_the_sample_corpus(tmp_path, capsys):
    assert main(["export", "default", str(tmp_path)]) == 0
    assert "120 sentences: all equal" in capsys.readouterr().out
