"""Repositories that want to run code or to reach outside: with the package nothing runs, nothing is written."""

import json
import pickle

import pytest

pytestmark = pytest.mark.xdist_group("hub trouble")

CODE = """
open({mark!r}, "a").write(__name__)
from transformers import Pipeline, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
class EvilConfig(PreTrainedConfig): model_type = "evil"
class EvilModel(PreTrainedModel): config_class = EvilConfig
class EvilPipeline(Pipeline): pass
class EvilTokenizer(PreTrainedTokenizerFast): pass
"""
AUTO_MAP = {
    "AutoConfig": "evil.EvilConfig",
    "AutoModel": "evil.EvilModel",
    "AutoModelForTokenClassification": "evil.EvilModel",
    "AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizer"],
}
ASKING = {"auto_map": AUTO_MAP, "trust_remote_code": True, "attn_implementation": "evil/kernel"}
PIPELINES = {"nested-ner": {"impl": "evil.EvilPipeline", "pt": ["AutoModelForTokenClassification"]}}

LOAD = """
import hf_spanner, os, transformers
from hf_spanner import cli
from hf_spanner.loading import load_model
ways = {
    "package": hf_spanner.pipeline,
    "model": load_model,
    "transformers": lambda name: transformers.pipeline("nested-ner", model=name),
    "trusting": lambda name: transformers.pipeline("nested-ner", model=name, trust_remote_code=True),
    "auto": transformers.AutoModelForTokenClassification.from_pretrained,
}
answer = {}
for name, chosen in CASES.items():
    for way in chosen:
        try:
            loaded = ways[way](name)
            model = loaded[0] if isinstance(loaded, tuple) else getattr(loaded, "model", loaded)
            answer[f"{name} {way}"] = type(model).__module__
        except Exception as error:
            answer[f"{name} {way}"] = f"{type(error).__name__}: {error}"
        assert not os.path.exists(MARK), f"{name} {way} ran code"
"""


class WritesWhenLoaded:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture(scope="module")
def answers(run, hub, models, tmp_path_factory):
    """What loading each repository gives, each way: the module of the model's class, or the error."""
    home = tmp_path_factory.mktemp("victim")
    mark = str(home / "ran")
    good = {file.name: file.read_bytes() for file in (models / "span_ner").iterdir()}
    no_weights = {name: content for name, content in good.items() if name != "model.safetensors"}
    code = {"evil.py": CODE.format(mark=mark).encode()}
    evil_pickle = pickle.dumps(WritesWhenLoaded(mark))

    def config(file="config.json", **changes):
        return {file: json.dumps({**json.loads(good[file]), **changes}).encode()}

    encoder = {**json.loads(good["config.json"])["encoder_config"], **ASKING}
    asking = config(**ASKING, custom_pipelines=PIPELINES, encoder_config=encoder, transformers_weights="../../secret")
    index = {"metadata": {}, "weight_map": {"a": "../../../out.safetensors"}}
    outside = {"tokenizer_file": "../../../evil.txt", "fast_tokenizer_files": ["/etc/evil.json"]}
    files = {"../../../evil.txt": b"x", "additional_chat_templates/../../../evil.jinja": b"x"}
    repositories = {
        "asks": {**good, **code, **asking},
        "foreign": {**good, **code, **config(model_type="evil", auto_map=AUTO_MAP)},
        "pickle": {**no_weights, "pytorch_model.bin": evil_pickle},
        "disguised": {**no_weights, "model.safetensors": evil_pickle + bytes(9000)},
        "index": {**no_weights, "model.safetensors.index.json": json.dumps(index).encode()},
        "tokenizer": {
            **good,
            **code,
            **config("tokenizer_config.json", tokenizer_class="EvilTokenizer", auto_map=AUTO_MAP),
        },
        "names": {**good, **files, **config("tokenizer_config.json", **outside)},
        "tree": {**good, **files},
    }
    cases = {}
    for name, content in repositories.items():
        hub.repo(f"me/{name}").commit("main", content)
        # Whoever trusts a foreign model or tokenizer has asked for it; of a model of ours, it changes nothing.
        cases[f"me/{name}"] = ["package", "model", "transformers"]
        cases[f"me/{name}"] += {"asks": ["trusting", "auto"], "pickle": ["trusting"]}.get(name, [])
    before = set(home.parent.iterdir())
    found = run(f"CASES, MARK = {cases!r}, {mark!r}\n" + LOAD, home / "cache", DISABLE_SAFETENSORS_CONVERSION="1")
    assert set(home.iterdir()) == {home / "cache"} and set(home.parent.iterdir()) == before, (
        "written outside the cache"
    )
    assert not [file for file in (home / "cache").rglob("*evil*") if file.name != "evil.py"]
    assert not (home / "cache" / "modules").exists() or not list((home / "cache" / "modules").rglob("evil*"))
    return found


def test_code_that_a_configuration_asks_for_is_not_run_and_the_model_is_ours(answers):
    for way in ("package", "model", "transformers", "trusting", "auto"):
        assert answers[f"me/asks {way}"] == "hf_spanner.modeling.modeling_span_ner"


@pytest.mark.parametrize(
    ("repository", "sentence"),
    [
        ("foreign", "ValueError: me/foreign asks to run code of its own (auto_map), which is refused"),
        ("tokenizer", "ValueError: me/tokenizer asks to run code of its own (auto_map), which is refused"),
        ("pickle", "FileNotFoundError: me/pickle has no model.safetensors; weights in any other form are refused"),
        ("disguised", "ValueError: The model.safetensors of me/disguised is refused"),
        ("index", "ValueError: me/index names a file outside its folder, '../../../out.safetensors': refused."),
        (
            "names",
            "The tokenizer of me/names names a file outside its folder, tokenizer_file='../../../evil.txt': refused.",
        ),
    ],
)
def test_what_is_refused_is_said_in_a_sentence(answers, repository, sentence):
    for way in ("package", "model"):
        answer = answers[f"me/{repository} {way}"]
        assert sentence in answer and "\n" not in answer
    if repository != "names":  # transformers looks for no such file
        assert "Error: " in answers[f"me/{repository} transformers"]


def test_files_with_a_way_out_in_their_names_stay_where_they_are(answers):
    for way in ("package", "model", "transformers"):
        assert answers[f"me/tree {way}"] == "hf_spanner.modeling.modeling_span_ner"
