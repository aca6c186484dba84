"""Exported models without torch and transformers: onnxruntime, tokenizers, numpy and regex are enough.

    import hf_spanner.onnx

    ner = hf_spanner.onnx.load("out/")          # what `hf-spanner export` wrote, or its name on the Hub
    ner("the mayor of New York")                # as the pipeline: same parameters, same entities

A process starts in a fraction of the time, in a fraction of the memory. How texts are cut, what is believed of the
graph's numbers and how entities are shown are the rules of `modeling/`, the pipeline's own. What is not a graph whole
(`locate_and_label`, `diffusion_ner`, the tags of a CRF) is read with torch, `hf_spanner.pipeline(folder)`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .foreign import GB, MOST_BYTES_OF_A_TOKENIZER, check_file, check_values, read_json
from .modeling.decoding import Entity, softmax, span_candidates, tag_candidates
from .modeling.reading import NestedNerCollator, Reader
from .modeling.rules import LabelRules, Reach
from .modeling.texts import TextReader

GRAPH, HEAD = "model.onnx", "head.safetensors"
DATA = f"{GRAPH}.data"  # the weights of a graph that is too large for one file
CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
INPUTS = ("input_ids", "attention_mask", "word_ids", "num_words", "word_mask")
OUTPUTS = ("logits", "tag_logits")
MOST = {GRAPH: 2 * GB, DATA: 64 * GB, HEAD: 8 * GB}
PARTS = ("network", "encoder")  # what of a model a graph holds


def load(
    name: str | os.PathLike[str],
    batch_size: int = 1,
    threads: int | None = None,
    revision: str | None = None,
    token: str | None = None,
    **parameters: Any,
) -> OnnxReader:
    """A reader of the exported model in a folder or on the Hub.

    Args:
        batch_size: windows of text that are run at once, unless a call says otherwise.
        threads: of ONNX Runtime; by default what OMP_NUM_THREADS says, or as many as there are cores.
        revision, token: passed to the Hub.
        **parameters: of the pipeline, for all calls: `threshold`, `overlap`, `labels`, `mentions`, `nesting`, ...
    """
    folder = _folder(str(name), revision, token)
    config = ExportedConfig(read_json(folder / CONFIG, str(folder)), str(name))
    for file in (GRAPH, DATA):
        if file == GRAPH or (folder / file).exists():
            check_file(folder / file, str(folder), MOST[file])
    return OnnxReader(GraphModel(config, folder, threads), Tokenizer(folder), batch_size, parameters)


def _folder(name: str, revision: str | None, token: str | None) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        if folder.exists() or name.count("/") != 1 or name.startswith((".", "/", "~")):
            raise FileNotFoundError(f"There is no folder {name!r}: `hf-spanner export MODEL {name}` would write it.")
        from huggingface_hub import snapshot_download

        files = [CONFIG, TOKENIZER, TOKENIZER_CONFIG, GRAPH, DATA]
        folder = Path(snapshot_download(name, revision=revision, token=token, allow_patterns=files))
    for file in (CONFIG, TOKENIZER):
        if not (folder / file).exists():
            raise FileNotFoundError(f"{name} has no {file}: name a folder that `hf-spanner export` wrote.")
    return folder


def open_session(file: str | os.PathLike[str], threads: int | None = None) -> Any:
    """ONNX Runtime's session of a graph on the CPU.

    Only the operators of ONNX Runtime itself are known: libraries of others are never loaded.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    said = os.environ.get("OMP_NUM_THREADS", "")
    options.intra_op_num_threads = threads or (int(said) if said.isdigit() else 0)  # 0: its own choice, the cores
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        return onnxruntime.InferenceSession(os.fspath(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has classes of its own for each of its status codes
        why = " ".join(str(error).split())
        name = f"{Path(file).name} of {Path(file).parent}"
        raise ValueError(f"{name} is refused, ONNX Runtime cannot load it ({why:.300}).") from error


def part_of(config: Any) -> str | None:
    """Which part of a model its folder holds as a graph; None if it is an ordinary model."""
    about = getattr(config, "onnx", None)
    if about is None:
        return None
    part = about.get("part") if isinstance(about, dict) else None
    if part not in PARTS:
        raise ValueError(f"onnx={about!r} in config.json says nothing known: export the model again.")
    return str(part)


class ExportedConfig(LabelRules):
    """What the config.json of an exported model says: all fields of its configuration stand in it."""

    threshold: Any
    multi_label: Any
    use_crf: Any
    tag_scheme: Any
    longest: Any
    heads: Any

    def __init__(self, fields: Any, name: str):
        labels = fields.get("id2label") if isinstance(fields, dict) else None
        if not isinstance(labels, dict) or set(labels) != {str(number) for number in range(len(labels))}:
            raise ValueError(f"The {CONFIG} of {name} is not that of a nested NER model: it numbers no labels.")
        self.id2label = {int(number): str(label) for number, label in labels.items()}
        check_values(fields, name)
        self.onnx = fields.get("onnx")
        part = part_of(self)
        if part is None:
            raise ValueError(f"{name} is not exported: `hf-spanner export {name} FOLDER` writes what is read here.")
        if part != "network":
            raise ValueError(
                f"Of this {fields.get('model_type')} model the encoder alone is a graph: read {name} with torch, "
                "hf_spanner.pipeline."
            )
        there = {**fields, **fields["onnx"]}
        if missing := [field for field in FIELDS if field not in there]:
            raise ValueError(f"The {CONFIG} of {name} says nothing of {missing[0]!r}: export the model again.")
        vars(self).update({field: there[field] for field in FIELDS})
        self.check_reading()
        self.check_whole("longest", least=1)
        self.check_choice("heads", (["span"], ["seq"], ["span", "seq"]))
        self.heads = tuple(self.heads)
        self.choose_head(None)
        self.thresholds(self.threshold)

    def reach(self) -> Reach:
        return Reach(longest=self.longest)

    def word_inputs(self) -> None:
        """No graph has any."""

    def choose_head(self, head: str | None) -> str:
        head = super().choose_head(head)
        if head == "seq" and self.use_crf:
            raise ValueError("The tags of a CRF are found with torch: read this model with hf_spanner.pipeline.")
        return head


# Of a configuration, what is asked here and by what reads texts: an export has all of it.
FIELDS = (
    "model_type", "max_subwords", "max_word_subwords", "word_splitter", "overlap", "threshold", "calibration",
    "mentions", "shown_mentions", "trim", "context_sentences", "context_separator", "multi_label", "exclusive_labels",
    "predict_from", "use_crf", "tag_scheme", "heads", "longest",
)  # fmt: skip


def classes_of(config: Any) -> int:
    """How many classes the logits of a configuration's model tell apart."""
    if "span" in config.heads:
        return len(config.labels) + (0 if config.multi_label else 1)
    return {"BIO": 2, "BIOES": 4}[config.tag_scheme] * len(config.labels) + 1


def check_classes(logits: Any, classes: int, name: str) -> None:
    """Refuse a graph that knows other classes than its configuration names."""
    if logits.shape[-1] != classes:
        raise ValueError(
            f"{GRAPH} of {name} tells {logits.shape[-1]} classes apart, and its {CONFIG} {classes}: export the model "
            "again."
        )


class GraphModel:
    """A graph that answers as a model does."""

    training = False
    inference_parameters: tuple[str, ...] = ()

    def __init__(self, config: ExportedConfig, folder: Path, threads: int | None):
        self.config, self.name, self.classes = config, str(folder), classes_of(config)
        self.session = open_session(folder / GRAPH, threads)
        self.outputs = [value.name for value in self.session.get_outputs()]
        if {value.name for value in self.session.get_inputs()} - set(INPUTS) or OUTPUTS[0] not in self.outputs:
            raise ValueError(f"{GRAPH} of {folder} is no graph of `hf-spanner export`: export the model again.")
        if len(config.heads) > 1 and OUTPUTS[1] not in self.outputs:
            raise ValueError(f"{GRAPH} of {folder} has no {OUTPUTS[1]}, as its {CONFIG} says: export the model again.")
        self.inputs = [value.name for value in self.session.get_inputs()]

    def eval(self) -> None:
        """It always is."""

    def choose_head(self, head: str | None) -> str:
        return self.config.choose_head(head)

    def inference_settings(self) -> dict[str, Any]:
        return {}

    def __call__(self, batch: Mapping[str, Any]) -> SimpleNamespace:
        try:
            values = self.session.run(self.outputs, {name: batch[name] for name in self.inputs})
        except Exception as error:
            why = " ".join(str(error).split())
            raise ValueError(f"{GRAPH} of {self.name} cannot be run on this text ({why:.300}).") from error
        check_classes(values[self.outputs.index(OUTPUTS[0])], self.classes, self.name)
        return SimpleNamespace(**dict(zip(self.outputs, values, strict=True)), word_mask=batch["word_mask"])

    def decode(
        self,
        output: Any,
        threshold: float | Mapping[str, float] | None = None,
        overlap: str | None = None,
        head: str | None = None,
    ) -> list[list[Entity]]:
        head, config = self.choose_head(head), self.config

        def candidates(thresholds: list[float | None]) -> list[list[Entity]]:
            labels, types = config.labels, config.label_types
            if head == "span":
                length, longest = output.logits.shape[1:3]
                ends = np.arange(length)[:, None] + np.arange(1, longest + 1)
                mask = ends <= output.word_mask.sum(1)[:, None, None]
                return span_candidates(output.logits, mask, labels, thresholds, config.multi_label, types)
            probabilities = softmax(output.logits if config.heads == ("seq",) else output.tag_logits)
            tags = probabilities.argmax(-1) * output.word_mask
            scores = probabilities.max(-1)
            return tag_candidates(tags.tolist(), scores.tolist(), labels, thresholds, config.tag_scheme)

        return config.decide(candidates, threshold, overlap, head)


class Tokenizer:
    """A tokenizer.json, as `WordEncoder` asks for it."""

    def __init__(self, folder: Path):
        from tokenizers import Tokenizer as Backend

        file = check_file(folder / TOKENIZER, str(folder), MOST_BYTES_OF_A_TOKENIZER)
        try:
            self.backend = Backend.from_file(str(file))
        except BaseException as error:  # of Rust, with no class of its own; a panic is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise ValueError(f"{TOKENIZER} of {folder} is no tokenizer ({error}): export the model again.") from error
        self.backend.no_truncation()
        self.backend.no_padding()
        file = folder / TOKENIZER_CONFIG
        named = read_json(file, str(folder), MOST_BYTES_OF_A_TOKENIZER) if file.exists() else {}
        if not isinstance(named, dict):
            raise ValueError(f"{TOKENIZER_CONFIG} of {folder} is not a JSON object: export the model again.")
        self.pad_token_id, self.sep_token_id = (self._id_of(named.get(key)) for key in ("pad_token", "sep_token"))

    def _id_of(self, token: Any) -> int | None:
        text = token.get("content") if isinstance(token, dict) else token
        return self.backend.token_to_id(text) if isinstance(text, str) else None

    def __call__(self, text: str | Sequence[str], add_special_tokens: bool = True, **_: Any) -> dict[str, Any]:
        if isinstance(text, str):
            return {"input_ids": self.backend.encode(text, add_special_tokens=add_special_tokens).ids}
        read = self.backend.encode_batch(list(text), add_special_tokens=add_special_tokens)
        return {"input_ids": [encoding.ids for encoding in read]}


class GraphReader(Reader):
    """Reads with arrays in place of tensors."""

    def __init__(self, model: GraphModel, tokenizer: Tokenizer):
        super().__init__(model, tokenizer)
        self.collate = NestedNerCollator(tokenizer.pad_token_id, array=np.array)

    def _run_batch(self, items: Sequence[Mapping[str, Any]], **forward: Any) -> Any:
        return self.model(self.collate(items))


class OnnxReader(TextReader):
    """Finds nested entities in texts of any length, as the pipeline does and with its parameters."""

    def __init__(self, model: GraphModel, tokenizer: Tokenizer, batch_size: int, parameters: dict[str, Any]):
        self.model, self.batch_size = model, batch_size
        self.reader = GraphReader(model, tokenizer)
        self._said: set[str] = set()
        self._params = self._sanitize_parameters(**parameters)
        self._preprocess_params = self._params[0]

    def ask(self, inputs: Any, batch_size: int | None = None, **parameters: Any) -> Any:
        given = self._sanitize_parameters(**parameters)
        params = [{**before, **now} for before, now in zip(self._params, given, strict=True)]
        several = isinstance(inputs, (list, tuple, types.GeneratorType, Iterator))
        found = self.get_iterator(inputs if several else [inputs], 0, batch_size or self.batch_size, *params)
        if not several:
            return next(found)
        return list(found) if isinstance(inputs, (list, tuple)) else found
