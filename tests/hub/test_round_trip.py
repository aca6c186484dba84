"""Push, then pull: with the package, without it, and offline; every approach finds what it found before."""

import pytest
from tests_support import SENTENCES

import hf_spanner

pytestmark = pytest.mark.xdist_group("hub round trip")

TEXTS = [" ".join(words) for words, _ in SENTENCES]
FIND = f"""
def entities(ner):
    return [[[e["entity_group"], e["start"], e["end"], e["score"]] for e in found] for found in ner({TEXTS!r})]
"""
PUSH = """
import os, hf_spanner
from transformers import AutoModelForTokenClassification, pipeline
answer = {}
for number, name in enumerate(sorted(os.listdir(MODELS))):
    ner = pipeline("nested-ner", model=f"{MODELS}/{name}")
    if number % 2:
        ner.push_to_hub(f"me/{name}")
    else:
        ner.model.push_to_hub(f"me/{name}")  # finds the tokenizer beside the weights
    answer[name] = entities(ner)
"""
PULL = """
import hf_spanner, huggingface_hub, sys
from transformers import AutoModel, AutoModelForTokenClassification, pipeline
answer = {}
for name in NAMES:
    ner = pipeline("nested-ner", model=f"me/{name}")
    assert type(ner) is hf_spanner.NestedNerPipeline and type(ner.model) is hf_spanner.APPROACHES[name]
    answer[name] = entities(ner)
assert not any(name.startswith("transformers_modules") for name in sys.modules), "code of a repository was run"
"""
PULL_BARE = """
import sys
for name in ("hf_spanner", "modeling", "scipy", "datasets", "evaluate", "accelerate"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(f"{name} can be imported here")
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline
answer = {}
for name in NAMES:
    ner = pipeline("nested-ner", model=f"me/{name}", trust_remote_code=True)
    assert type(ner).__module__.startswith("transformers_modules.me."), type(ner)
    answer[name] = entities(ner)
    model = AutoModelForTokenClassification.from_pretrained(f"me/{name}", trust_remote_code=True)
    again = type(ner)(model=model, tokenizer=AutoTokenizer.from_pretrained(f"me/{name}", trust_remote_code=True))
    assert entities(again) == answer[name]
"""
SAVE_AGAIN = """
ner.save_pretrained("saved again")
answer["files"] = sorted(__import__("os").listdir("saved again"))
answer["again"] = entities(pipeline("nested-ner", model="saved again", trust_remote_code=True)) == answer[name]
"""


@pytest.fixture(scope="module")
def pushed(run, models, tmp_path_factory):
    """What every approach found before it was pushed."""
    return run(FIND + PUSH.replace("MODELS", repr(str(models))), tmp_path_factory.mktemp("pusher") / "cache")


@pytest.fixture(scope="module")
def names(pushed):
    assert set(pushed) == set(hf_spanner.APPROACHES)
    assert all(any(found) for found in pushed.values()), "a model that finds nothing proves nothing"
    return f"NAMES = {sorted(pushed)!r}\n"


def same(found, expected):
    for name, texts in expected.items():
        for mine, theirs in zip(found[name], texts, strict=True):
            assert [e[:3] for e in mine] == [e[:3] for e in theirs], name
            assert [e[3] for e in mine] == pytest.approx([e[3] for e in theirs], abs=1e-5), name


def test_with_the_package_nothing_of_the_repository_is_run_also_offline(run, hub, pushed, names, tmp_path):
    same(run(FIND + names + PULL, tmp_path / "cache", token=None), pushed)
    hub.requests.clear()
    same(run(FIND + names + PULL, tmp_path / "cache", token=None, offline=True), pushed)
    assert hub.requests == []


def test_without_the_package_the_repository_is_enough_also_offline(run, hub, pushed, names, tmp_path):
    same(run(FIND + names + PULL_BARE, tmp_path / "cache", token=None, package=False), pushed)
    hub.requests.clear()
    again = run(FIND + names + PULL_BARE + SAVE_AGAIN, tmp_path / "cache", token=None, package=False, offline=True)
    assert again.pop("again")  # what was loaded from the Hub can be saved, code and all
    assert {"model.safetensors", "pipeline_nested_ner.py", "tokenizer.json"} <= set(again.pop("files"))
    same(again, pushed)
    assert hub.requests == []


def test_a_repository_has_the_files_it_needs_and_no_others(hub, pushed):
    base = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "README.md",
        ".gitattributes",
    }
    shared = (
        "boundary_smoothing configuration_nested_ner decoding reading subwords modeling_nested_ner "
        "pipeline_nested_ner pooling rules texts"
    )
    shared = {
        f"{name}.py"
        for name in f"{shared} encoders folders graphs imitation losses saving spans tagging word_inputs words".split()
    }
    own = {
        "seq_ner": {"modeling_seq_ner.py"},
        "span_ner": {"modeling_span_ner.py"},
        "bl_ner": {"modeling_bl_ner.py", "modeling_span_ner.py"},
        "biaffine_ner": {"modeling_biaffine_ner.py", "bilstm.py", "span_units.py"},
        "sng": {"modeling_sng.py", "sng_networks.py"},
    }
    for name in pushed:
        files = set(hub.repo(f"me/{name}").files())
        code = {file for file in files if file.endswith(".py")}
        assert files - code <= base and base - {".gitattributes"} <= files
        assert shared < code and f"modeling_{name}.py" in code
        if name in own:
            assert code == shared | own[name]
        for other in set(pushed) - {name}:  # nothing of another approach, unless the approach is built on it
            file = f"modeling_{other}.py"
            assert file not in code or any(
                f"from .{file[:-3]} import".encode() in hub.repo(f"me/{name}").files()[c] for c in code
            )
