"""Folders that pretend to be a trained model: each is a good one with something done to it.

    python tests/hub/hostile.py GOOD PLACE     makes them, reads each as a user would, prints what came of it as JSON

An audit hook stops whatever would run code of a folder or write outside the target, so that it counts as a fault.
"""

import json
import os
import pickle
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

DEEP = 100_000
SECRET = "the contents of a file that is none of their business"


class Folder:
    """A copy of a good model's folder, to be spoilt."""

    def __init__(self, path: Path):
        self.path = path

    def change(self, name: str, **changes) -> None:
        content = json.loads((self.path / name).read_text(encoding="utf-8"))
        content = {key: value for key, value in {**content, **changes}.items() if value is not ...}
        self.write(name, json.dumps(content))

    def encoder(self, **changes) -> None:
        config = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        self.change("config.json", encoder_config={**config["encoder_config"], **changes})

    def tokenizer(self, **changes) -> dict:
        """What the tokenizer.json says, after these changes."""
        self.change("tokenizer.json", **changes)
        return json.loads((self.path / "tokenizer.json").read_text(encoding="utf-8"))

    def write(self, name: str, content: str | bytes) -> None:
        file = self.path / name
        file.unlink(missing_ok=True)
        file.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)

    def link(self, name: str, to: str) -> None:
        (self.path / name).unlink(missing_ok=True)
        (self.path / name).symlink_to(to)

    def sparse(self, name: str, size: int) -> None:
        with (self.path / name).open("ab") as file:
            file.truncate(size)

    def header(self, change: Callable[[dict], dict | None]) -> None:
        """The header of the weights as `change` makes it, before the same bytes."""
        weights = (self.path / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", weights[:8])[0]
        header = json.loads(weights[8 : 8 + size])
        written = json.dumps(change(header) or header).encode()
        self.write("model.safetensors", struct.pack("<Q", len(written)) + written + weights[8 + size :])

    def record(self, **changes) -> None:
        scores = {"f1": 0.5, "precision": 0.5, "recall": 0.5, "support": 1, "macro_f1": 0.5, "locate_f1": 0.5}
        good = {"results": {"test": {**scores, "per_type": {}}}, "datasets": ["me/data"], "seed": 1}
        self.write("training.json", json.dumps({**good, **changes}))


class RunsWhenLoaded:
    def __init__(self, code: str):
        self.code = code

    def __reduce__(self):
        return exec, (self.code,)


def first_tensor(header: dict) -> dict:
    return next(value for key, value in header.items() if key != "__metadata__")


def lie(**changes) -> Callable[[dict], None]:
    return lambda header: first_tensor(header).update(changes)


def scores(folder: Folder, *splits: str) -> dict:
    folder.record()
    return dict.fromkeys(splits, json.loads((folder.path / "training.json").read_text())["results"]["test"])


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


def cases(place: Path) -> dict[str, Callable[[Folder], None]]:
    """What is done to each folder, by a name that says it."""
    secret, mark = str(place / "secret.txt"), str(place / "ran")
    code = f"open({mark!r}, 'w').write('ran')"
    evil = pickle.dumps(RunsWhenLoaded(code))
    lol = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)
    ])  # fmt: skip

    def module(folder: Folder, **config) -> None:
        folder.write("evil.py", code)
        folder.change("config.json", **config)

    def index(folder: Folder, target: str) -> None:
        (folder.path / "model.safetensors").unlink()
        folder.write("model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": {"a": target}}))

    def only(folder: Folder, name: str) -> None:
        (folder.path / "model.safetensors").unlink()
        folder.write(name, evil)

    return {
        # the configuration
        "config is empty": lambda f: f.write("config.json", ""),
        "config is a list": lambda f: f.write("config.json", "[1, 2]"),
        "config is a number": lambda f: f.write("config.json", "7"),
        "config is cut off": lambda f: f.write("config.json", (f.path / "config.json").read_text()[:200]),
        "config is not UTF-8": lambda f: f.write("config.json", b'{"model_type": "\xff\xfe"}'),
        "config is nested": lambda f: f.write("config.json", nested(DEEP)),
        "config nests objects": lambda f: f.write("config.json", nested(DEEP, '{"a":', "}")),
        "config has a nested field": lambda f: f.change("config.json", x=json.loads(nested(500))),
        "config of 2 GB": lambda f: f.sparse("config.json", 2**31),
        "config is a folder": lambda f: ((f.path / "config.json").unlink(), (f.path / "config.json").mkdir()),
        "config is a pipe": lambda f: ((f.path / "config.json").unlink(), os.mkfifo(f.path / "config.json")),
        "config links outside": lambda f: f.link("config.json", secret),
        "config links to a device": lambda f: f.link("config.json", "/dev/zero"),
        "a billion labels": lambda f: f.change("config.json", num_labels=10**9, id2label=..., label2id=...),
        "a million names": lambda f: f.change("config.json", id2label={i: f"L{i}" for i in range(10**6)}),
        "labels with gaps": lambda f: f.change("config.json", id2label={"0": "A", "7": "B", "9": "C"}),
        "labels are numbers": lambda f: f.change("config.json", id2label={"0": 1, "1": 2, "2": 3}),
        "labels are a string": lambda f: f.change("config.json", id2label="ABC"),
        "labels are escape sequences": lambda f: f.change(
            "config.json", id2label={"0": "\x1b[2J", "1": "\u202eREP", "2": "<script>"}, label2id=...
        ),
        "a trillion words": lambda f: f.encoder(vocab_size=10**12),
        "a billion layers": lambda f: f.encoder(num_hidden_layers=10**9),
        "a billion dimensions": lambda f: f.encoder(hidden_size=10**9),
        "a million dimensions": lambda f: f.encoder(hidden_size=10**6, intermediate_size=10**6),
        "a trillion positions": lambda f: f.encoder(max_position_embeddings=10**12),
        "a number of 400 digits": lambda f: f.change("config.json", max_span_length=10**400),
        "a number of 5000 digits": lambda f: f.write("config.json", '{"max_span_length": ' + "9" * 5000 + "}"),
        "fewer than no layers": lambda f: f.encoder(num_hidden_layers=-5),
        "heads that do not divide": lambda f: f.encoder(num_attention_heads=7),
        "no heads": lambda f: f.encoder(num_attention_heads=0),
        "an encoder of an unknown family": lambda f: f.encoder(model_type="evil"),
        "an encoder of no family": lambda f: f.change("config.json", encoder_config={}),
        "an encoder that is a string": lambda f: f.change("config.json", encoder_config="/etc/passwd"),
        "an encoder inside itself": lambda f: f.encoder(model_type="span_ner"),
        "a number of labels that is a word": lambda f: f.change("config.json", num_labels="3", id2label=...),
        "no labels": lambda f: f.change("config.json", id2label={}),
        "dropout that is no number": lambda f: f.change("config.json", dropout=float("nan")),
        "a field that is a method": lambda f: f.change("config.json", reach=5, to_dict=1),
        "thresholds inside thresholds": lambda f: f.change("config.json", threshold={"PER": {"a": 1}}),
        "calibration that is a word": lambda f: f.change("config.json", calibration="x"),
        "kinds of mention that are a number": lambda f: f.change("config.json", mentions=5),
        "trimmed words that are numbers": lambda f: f.change(
            "config.json", mentions=["name"], trim={"mentions": ["name"], "before": [None, 3]}
        ),
        "spans of no length": lambda f: f.change("config.json", max_span_length=0),
        "spans of any length": lambda f: f.change("config.json", max_span_length=10**6),
        "a threshold of words": lambda f: f.change("config.json", threshold="low"),
        "thresholds of other labels": lambda f: f.change("config.json", threshold={"../x": 0.5}),
        "smoothing by a word": lambda f: f.change("config.json", boundary_smoothing="much"),
        "bundling by a list": lambda f: f.change("config.json", bundle_weight=[1]),
        "a window of one sub-word": lambda f: f.change("config.json", max_subwords=1),
        "an unknown activation": lambda f: f.encoder(hidden_act="__import__('os').abort()"),
        "another model type": lambda f: f.change("config.json", model_type="gpt2"),
        "a model type that is a path": lambda f: f.change("config.json", model_type="../../evil"),
        "no model type": lambda f: f.change("config.json", model_type=...),
        # code
        "code in auto_map": lambda f: module(f, auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}),
        "a foreign type with code": lambda f: module(f, model_type="evil", auto_map={"AutoConfig": "evil.Config"}),
        "code of a pipeline": lambda f: module(f, custom_pipelines={"nested-ner": {"impl": "evil.P", "pt": []}}),
        "kernels to fetch": lambda f: f.change(
            "config.json", attn_implementation="evil/kernel", trust_remote_code=True
        ),
        "code of a tokenizer": lambda f: (
            f.write("evil.py", code),
            f.change("tokenizer_config.json", tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.T", None]}),
        ),
        "a pickle of weights": lambda f: only(f, "pytorch_model.bin"),
        "a pickle as safetensors": lambda f: only(f, "model.safetensors"),
        "a pickle beside the weights": lambda f: (
            f.write("training_args.bin", evil),
            f.write("pytorch_model.bin", evil),
        ),
        "an adapter": lambda f: f.write(
            "adapter_config.json", json.dumps({"base_model_name_or_path": "/etc", "x": 1})
        ),
        "a module that torch imports": lambda f: (f.write("torch.py", code), f.write("__init__.py", code)),
        # weights
        "no weights": lambda f: (f.path / "model.safetensors").unlink(),
        "weights are empty": lambda f: f.write("model.safetensors", b""),
        "weights are cut off": lambda f: f.write(
            "model.safetensors", (f.path / "model.safetensors").read_bytes()[:5000]
        ),
        "a header of 2**63 bytes": lambda f: f.write("model.safetensors", struct.pack("<Q", 2**63) + b"{}"),
        "a header of 90 MB that is not there": lambda f: f.write(
            "model.safetensors", struct.pack("<Q", 90 * 2**20) + b"{}"
        ),
        "a header that is nested": lambda f: f.write(
            "model.safetensors", struct.pack("<Q", 2 * DEEP) + nested(DEEP).encode()
        ),
        "offsets beyond the end": lambda f: f.header(lie(data_offsets=[0, 2**60])),
        "offsets that run backwards": lambda f: f.header(lie(data_offsets=[400, 0])),
        "shapes larger than the data": lambda f: f.header(lie(shape=[10**6, 10**6])),
        "shapes that overflow": lambda f: f.header(lie(shape=[2**62, 2**62])),
        "shapes below nothing": lambda f: f.header(lie(shape=[-1, 4])),
        "an unknown dtype": lambda f: f.header(lie(dtype="PICKLE")),
        "another dtype": lambda f: f.header(lie(dtype="I32")),
        "names that lead elsewhere": lambda f: f.header(lambda h: {f"../../{key}": value for key, value in h.items()}),
        "sizes unlike the configuration": lambda f: f.encoder(intermediate_size=32),
        "shards elsewhere": lambda f: index(f, "../../../etc/passwd"),
        "shards at an absolute path": lambda f: index(f, secret),
        "shards that are pickles": lambda f: (f.write("evil.bin", evil), index(f, "evil.bin")),
        "a shard that is the folder above": lambda f: index(f, ".."),
        "no shards": lambda f: (
            (f.path / "model.safetensors").unlink(),
            f.write("model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": {}})),
        ),
        "an index that is a list": lambda f: (
            (f.path / "model.safetensors").unlink(),
            f.write("model.safetensors.index.json", "[]"),
        ),
        # the tokenizer
        "a tokenizer of 2 GB": lambda f: f.sparse("tokenizer.json", 2**31),
        "a tokenizer that is nested": lambda f: f.write("tokenizer.json", nested(DEEP)),
        "a tokenizer that is empty": lambda f: f.write("tokenizer.json", "{}"),
        "a tokenizer that panics": lambda f: f.tokenizer(
            normalizer={"type": "Precompiled", "precompiled_charsmap": "/////////////w=="}
        ),
        "a tokenizer of other numbers": lambda f: f.tokenizer(
            model={
                **f.tokenizer()["model"],
                "vocab": {k: v + 10**6 for k, v in f.tokenizer()["model"]["vocab"].items()},
            }
        ),
        "a tokenizer elsewhere": lambda f: f.change("tokenizer_config.json", tokenizer_file="../../secret.txt"),
        "a tokenizer that is a link": lambda f: f.link("tokenizer.json", secret),
        "a vocabulary that is a link": lambda f: f.link("vocab.txt", secret),
        "a tokenizer configuration that is a list": lambda f: f.write("tokenizer_config.json", "[]"),
        "a tokenizer configuration that is nested": lambda f: f.write("tokenizer_config.json", nested(DEEP)),
        "a template that runs": lambda f: f.write(
            "chat_template.jinja", "{{ ''.__class__.__mro__[1].__subclasses__() }}"
        ),
        # what is copied when a model is published
        "a record that writes elsewhere": lambda f: f.record(
            results=scores(
                f, "test", "x/y", "x/../../../../outside"
            )  # the second makes the folder that the third leaves
        ),
        "a record with an absolute path": lambda f: f.record(results=scores(f, str(place / "outside"))),
        "a record with a very long name": lambda f: f.record(results=scores(f, "x" * 20_000)),
        "a record with a null in a name": lambda f: f.record(results=scores(f, "a\0b\n")),
        "a record that is a list": lambda f: f.write("training.json", "[]"),
        "a record that is nested": lambda f: f.write("training.json", nested(DEEP, '{"a":', "}")),
        "a record of other types": lambda f: f.record(results={"test": 7}, labels=[1], history=3, sentences="x"),
        "a record with an open quotation": lambda f: f.record(command="train 'x"),
        "a record with a template": lambda f: f.record(command="{{ 7 * 7 }} {% include '/etc/passwd' %}"),
        "a record of 2 GB": lambda f: (f.record(), f.sparse("training.json", 2**31)),
        "a record that is a link": lambda f: f.link("training.json", secret),
        "a recipe that is a bomb": lambda f: f.write("recipe.yaml", lol),
        "a recipe inside itself": lambda f: f.write("recipe.yaml", "a: &a [*a]"),
        "a recipe that runs": lambda f: f.write("recipe.yaml", f"a: !!python/object/apply:exec [{json.dumps(code)}]"),
        "a recipe that is nested": lambda f: f.write("recipe.yaml", "a: " + nested(1200)),
        "a recipe that is a list": lambda f: f.write("recipe.yaml", "[1, 2]"),
        "a recipe that is a link": lambda f: f.link("recipe.yaml", secret),
        "a card that is a link": lambda f: f.link("README.md", secret),
        "a card of 2 GB": lambda f: (f.write("README.md", "mine"), f.sparse("README.md", 2**31)),
        "a card that is not UTF-8": lambda f: f.write("README.md", b"\xff\xfe\x00"),
    }


# ------------------------------------------------------------------------------------------------------------- reading


def watch(place: Path, target: Path, allowed: list[Path], broken: list[str]) -> None:
    """Note, and stop, whatever runs a program, runs code from `place`, or writes there outside of `target`."""
    here = str(place.resolve())

    def hook(event: str, arguments: tuple) -> None:
        wrong = None
        if event in ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class"):
            wrong = f"{event} {arguments[:2]!r:.200}"
        elif event == "exec" and str(getattr(arguments[0], "co_filename", "")).startswith(here):
            wrong = f"ran {arguments[0].co_filename}"
        elif event in ("open", "os.rename", "os.mkdir", "os.link", "os.symlink", "os.remove"):
            path = arguments[0]
            writes = event != "open" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and isinstance(path, (str, bytes, os.PathLike)):
                real = Path(os.path.realpath(os.fsdecode(path)))
                if not any(folder == real or folder in real.parents for folder in [target, *allowed]):
                    wrong = f"{event} {real}"
        if wrong:
            broken.append(wrong)
            raise PermissionError(f"stopped: {wrong}")

    sys.addaudithook(hook)


def main(good: Path, place: Path) -> None:
    import resource

    import transformers

    import hf_spanner
    from hf_spanner.hub.publishing import save_repository
    from hf_spanner.loading import load_model

    place = place.resolve()
    (place / "secret.txt").write_text(SECRET)
    target, temporary = place / "target", place / "tmp"
    temporary.mkdir()
    target.mkdir()
    spoil = cases(place)
    for name, change in spoil.items():
        shutil.copytree(good, place / name)
        change(Folder(place / name))
    before = {file: file.lstat().st_size for file in place.rglob("*") if target not in file.parents}
    hf_spanner.pipeline(*load_model(str(good)))("New York")  # what is imported late is imported now
    save_repository(target / "good", *load_model(str(good)))
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30,) * 2)
    broken: list[str] = []
    watch(place, target, [temporary, Path("/dev/null")], broken)
    answers = {}
    for number, name in enumerate(spoil):
        begin, stage = time.monotonic(), "loading"
        broken.clear()
        try:
            model, tokenizer = load_model(str(place / name))
            stage = "reading"
            hf_spanner.pipeline(model, tokenizer)("the mayor of New York")
            stage = "publishing"
            save_repository(target / str(number), model, tokenizer, name="me/model")
            error = None
        except Exception as caught:
            error = [type(caught).__name__, str(caught)]
        seconds = time.monotonic() - begin
        answers[name] = {"stage": stage, "error": error, "broken": list(broken), "seconds": seconds}
        begin, stopped = time.monotonic(), len(broken)
        try:
            if name != "config of 2 GB":  # transformers reads it to its end before it asks any class of ours
                transformers.pipeline("nested-ner", model=str(place / name))("the mayor of New York")
            plain = None
        except BaseException as caught:  # tokenizers' own panics pass through transformers as they are
            plain = str(caught)
        answers[name] |= {"plain": plain, "plain_broken": broken[stopped:], "plain_seconds": time.monotonic() - begin}
    after = {file: file.lstat().st_size for file in place.rglob("*") if target not in file.parents}
    leaked = [str(file) for file in target.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    changed = [str(file) for file in before.keys() | after.keys() if before.get(file) != after.get(file)]
    changed = [file for file in changed if not file.startswith(str(temporary))]
    print("ANSWER" + json.dumps({"answers": answers, "changed": changed, "leaked": leaked}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
