"""Loading: a pipeline, a trained model, its configuration, its tokenizer; a sentence where something is missing."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from .auto import AutoModelForNestedNer
from .default import folder_of
from .errors import in_one_sentence
from .foreign import check_config, check_tokenizer
from .modeling.configuration_nested_ner import NestedNerConfig
from .modeling.modeling_nested_ner import NestedNerPreTrainedModel
from .modeling.pipeline_nested_ner import NestedNerPipeline
from .relabelling import Origin, find_origins, relabel


def pipeline(
    model: str | Path | NestedNerPreTrainedModel | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    revision: str | None = None,
    token: str | None = None,
    **kwargs: Any,
) -> NestedNerPipeline:
    """`transformers.pipeline("nested-ner", ...)`: a pipeline for the model in a folder, on the Hub, or in memory.

    Without a model it is the default model's, which is part of the package (`"default"` names it everywhere). Code
    that a repository brings along is never run.

    ```python
    >>> ner = hf_spanner.pipeline("me/span-ner-genia", batch_size=32)
    >>> ner("The IL-2 receptor alpha gene", nesting=True)
    ```
    """
    if kwargs.pop("trust_remote_code", False):
        raise ValueError(
            "trust_remote_code=True is refused: hf_spanner has the code and never runs a repository's own."
        )
    if model is None or isinstance(model, (str, Path)):  # transformers.pipeline would make one long text of all errors
        loading = {name: kwargs.pop(name) for name in ("dtype", "device_map") if name in kwargs}
        name, loading = folder_of(model), {**kwargs.pop("model_kwargs", {}), **loading}
        model = _load_model(name, revision, token, **loading)
        tokenizer = tokenizer or _load_tokenizer(name, revision, token)
    make: Any = transformers.pipeline  # its overloads name the tasks of transformers alone
    ner: NestedNerPipeline = make("nested-ner", model=model, tokenizer=tokenizer, **kwargs)
    return ner


def load_model(
    name: str,
    labels: list[str] | None = None,
    revision: str | None = None,
    token: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    **config: Any,
) -> tuple[NestedNerPreTrainedModel, PreTrainedTokenizerBase]:
    """A trained model and its tokenizer; or a sentence that says what is missing.

    Code that a repository brings along is never run.

    Args:
        name: a folder, a Hub id, or `"default"`.
        labels: other labels than it was trained with: those it knows by that name go on as they were trained, new
            ones start at random (`hf-spanner train --model` starts them from what the model sees in their entities).
        revision, token: passed to the Hub.
        device: where it goes, as [`placing`] knows it; None for the CPU.
        dtype: of its numbers, such as `"bfloat16"`; None as they were saved.
        **config: fields of the saved configuration to override.
    """
    loading = {} if device is None else placing(device)  # before anything is read
    name, place = folder_of(name), loading.pop("device", None)
    if dtype is not None:
        loading["dtype"] = dtype
    model = _load_model(name, revision, token, config, **loading)
    if labels is not None and model.is_graph:
        raise ValueError(f"{name} is exported and cannot be trained for other labels: load what it was made from.")
    if labels is not None:
        known = set(model.config.labels)
        model = relabel(model, [Origin(label, label if label in known else None, 0, 0) for label in labels])
    if place is not None and not (model.is_graph and device == "auto"):
        model.to(place)
    return model, _load_tokenizer(name, revision, token)


def load_for(
    name: str, labels: Sequence[str], sentences: Iterable[Mapping[str, Any]], **config: Any
) -> tuple[NestedNerPreTrainedModel, Any, list[str]]:
    """A trained model for other labels, its tokenizer, and lines that say what each label starts from.

    A model that knows all of `labels` stays as it is, with the labels that it has beside them.
    """
    old, tokenizer = load_model(name, **config)
    old.config.drop_calibration()  # scores will be others
    if not set(labels) - set(old.config.labels):
        rest = [label for label in old.config.labels if label not in labels]
        return old, tokenizer, [f"{name} keeps its other labels, too: {', '.join(rest)}"] if rest else []
    origins = find_origins(old, tokenizer, sentences, labels)
    return relabel(old, origins), tokenizer, [str(origin) for origin in origins]


def placing(device: str | torch.device) -> dict[str, Any]:
    """Where a model goes, as arguments of [`pipeline`]: to a device that [`find_device`] knows, or, with `"spread"`,
    over all GPUs and, where these have no more room for the layers of a large encoder, the CPU's memory."""
    return {"device_map": "auto"} if device == "spread" else {"device": find_device(device)}


def find_device(name: str | torch.device) -> torch.device:
    """A device by its name, `"cpu"`, `"cuda:1"`, `"mps"`; `"auto"` is a GPU if there is one. Refused if not there."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"There is no device {str(name)!r}: write auto, cpu, cuda, cuda:1, mps or spread.") from None
    number = torch.accelerator.device_count() if found else 0
    if device.type == "cpu" or found and device.type == found.type and (device.index or 0) < number:
        return device
    there = f"cpu and {number} of {found.type}" if found else "the cpu alone"
    raise ValueError(f"The device {str(name)!r} is not available, there is {there}: leave it out, or say auto.")


def load_config(name: str, revision: str | None = None, token: str | None = None, **config: Any) -> NestedNerConfig:
    """The configuration of a trained model, with some fields overridden; or a sentence that says what is missing."""
    name = folder_of(name)
    check_place(name)
    with in_one_sentence(name, revision):
        check_config(name, revision=revision, token=token)
        saved = AutoConfig.from_pretrained(name, revision=revision, token=token, trust_remote_code=False, **config)
        if not isinstance(saved, NestedNerConfig):
            raise ValueError(
                f"{name} is a {saved.model_type!r} checkpoint of another task; what is needed is a nested NER model, "
                "for example one trained with `hf-spanner train`."
            )
        saved.thresholds(saved.threshold)
    return saved


def check_encoder(name: str) -> None:
    """Refuse an encoder that is not there, before anything else is read."""
    with in_one_sentence(name):
        AutoConfig.from_pretrained(name, trust_remote_code=False)


def check_place(name: str) -> None:
    """Refuse what is neither the folder of a model nor may be a model on the Hub."""
    folder = Path(name)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{name} has no config.json: it is not the folder of a trained model.")
    if not folder.is_dir() and (folder.exists() or name.count("/") > 1 or name.startswith((".", "/", "~"))):
        raise FileNotFoundError(f"There is no model folder {name!r}.")


def _load_model(
    name: str,
    revision: str | None,
    token: str | None,
    config: dict[str, Any] | None = None,
    **loading: Any,
) -> NestedNerPreTrainedModel:
    saved = load_config(name, revision, token, **(config or {}))
    hub = {"revision": revision, "token": token, "trust_remote_code": False}
    with in_one_sentence(name, revision):
        model: NestedNerPreTrainedModel = AutoModelForNestedNer.from_pretrained(name, config=saved, **hub, **loading)
    return model


def _load_tokenizer(name: str, revision: str | None, token: str | None) -> PreTrainedTokenizerBase:
    folder = Path(name)
    if folder.is_dir() and not any(folder.glob("tokenizer*")) and not any(folder.glob("vocab*")):
        raise FileNotFoundError(
            f"{name} has no tokenizer: save the one it was trained with there, `tokenizer.save_pretrained({name!r})`."
        )
    with in_one_sentence(name, revision):
        check_tokenizer(name, revision=revision, token=token)
        return load_tokenizer(name, revision=revision, token=token, trust_remote_code=False)


# ---------------------------------------------------------------------------- a word alone as it is inside a text


def load_tokenizer(name_or_path: str | Path, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Load the tokenizer of an encoder or a saved model for word-by-word use.

    Byte-level tokenizers (RoBERTa, ModernBERT) tell a word in a text by the space before it, so they are loaded with
    `add_prefix_space=True`; the setting is saved with the model.
    """
    tokenizer = AutoTokenizer.from_pretrained(name_or_path, **kwargs)
    if _needs_space(tokenizer):
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, **{**kwargs, "add_prefix_space": True})
        if _needs_space(tokenizer):
            backend = tokenizer.backend_tokenizer
            backend.pre_tokenizer = _with_prefix_space(backend.pre_tokenizer)
            if _needs_space(tokenizer):
                raise ValueError(
                    f"The tokenizer of {name_or_path!r} treats a word after a space unlike a word alone, and "
                    "add_prefix_space=True does not change it. Use a fast tokenizer of the same model."
                )
    return tokenizer


def _needs_space(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether " word" and "word" get different ids, as the two would inside a text and at its start."""
    alone, inside = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("word", " word"))
    return bool(alone != inside)


def _with_prefix_space(pre_tokenizer: Any) -> Any:
    """The same pre-tokenizer with its byte-level step adding a prefix space."""
    if isinstance(pre_tokenizer, pre_tokenizers.ByteLevel):
        pre_tokenizer.add_prefix_space = True
    elif isinstance(pre_tokenizer, pre_tokenizers.Sequence):
        sequence: Any = pre_tokenizer  # whose stub knows no length
        steps = [sequence[i] for i in range(len(sequence))]
        return pre_tokenizers.Sequence([_with_prefix_space(step) for step in steps])
    return pre_tokenizer
