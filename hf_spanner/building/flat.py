"""Flat taggers of transformers, `*ForTokenClassification`, as models of ours: `seq_ner` with the same weights.

The tagger's one affine map becomes that of `seq_ner`, row by row. A word has the tag of its first sub-word, as in
`pipeline("token-classification", aggregation_strategy="first")`, and words are those that this pipeline sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedTokenizerBase

from ..errors import in_one_sentence
from ..foreign import check_config, check_tokenizer, check_weights
from ..loading import check_place, load_tokenizer
from ..modeling.configuration_nested_ner import NestedNerConfig
from ..modeling.decoding import SCHEMES
from ..modeling.encoders import max_positions
from ..modeling.modeling_seq_ner import SeqNerConfig, SeqNerForNestedNer

NEVER = 30.0  # how far the logit of a tag that the tagger does not know lies below one that it knows
_PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}  # by what they mean in BIOES
_INSTEAD = {"B": "BISE", "I": "IBES", "E": "EISB", "S": "SBIE"}  # whose row a missing tag lies below


class Tags(NamedTuple):
    """What the classes of a tagger are."""

    scheme: str  # as people call it
    outside: int  # the class O
    labels: list[str]
    classes: dict[tuple[str, str], int]  # the class of a prefix (of BIOES) and a label

    @property
    def tag_scheme(self) -> str:
        """The scheme of `seq_ner` that can say the same."""
        return "BIOES" if any(prefix in "ES" for prefix, _ in self.classes) else "BIO"


def read_tags(names: Mapping[int, str]) -> Tags:
    """The scheme and the labels of a tagger's classes; a sentence if they are none of entities.

    Args:
        names: its `id2label`.
    """
    by_name = {name: number for number, name in names.items()}
    if len(by_name) < len(names):
        twice = Counter(names.values()).most_common(1)[0][0]
        raise ValueError(f"Two of its tags are called {twice!r}: give each its own name in id2label of config.json.")
    if "O" not in by_name:
        raise ValueError(
            f"Its tags are {_some(names.values())}: there is no O, so every word would be an entity. Give the tags "
            "their names in id2label of config.json, if it has lost them."
        )
    tags = {name: name.partition("-") for name in by_name if name != "O"}
    for name in tags:
        if name[1:2] == "_" and name[0] in _PREFIXES and f"I_{name[2:]}" in by_name:
            raise ValueError(
                f"Its tag {name!r} is not written as {name.replace('_', '-', 1)!r}: rename it in id2label."
            )
        if name[-2:] in ("-B", "-I") and f"{name[:-1]}I" in by_name:
            raise ValueError(f"Its tag {name!r} is not written as '{name[-1]}-{name[:-2]}': rename it in id2label.")
    if all(dash and label and prefix in _PREFIXES for prefix, dash, label in tags.values()):
        known = set(_PREFIXES)
    else:  # as the pipeline of transformers reads them: what has no B- or I- is a label by itself
        known = {"B", "I"}
    classes: dict[tuple[str, str], int] = {}
    used = set()
    for name, (prefix, dash, label) in tags.items():
        prefixed = bool(dash and label) and prefix in known
        key = (_PREFIXES[prefix], label) if prefixed else ("I", name)
        used.add(prefix if prefixed else "I")
        if key in classes:
            raise ValueError(f"Its tag {name!r} means the same as {names[classes[key]]!r}: seq_ner cannot say both.")
        classes[key] = by_name[name]
    if not classes:
        raise ValueError("Its only tag is O: it finds nothing.")
    labels = list(dict.fromkeys(label for _, label in classes))
    scheme = "".join(prefix for prefix in "BIMLESU" if prefix in used)
    called = {"I": "IO", "BI": "BIO", "BIES": "BIOES", "BILU": "BILOU", "BMES": "BMES"}
    return Tags(called.get(scheme, "O" + scheme), by_name["O"], labels, classes)


def tag_rows(tags: Tags, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of `seq_ner`'s affine map. A tag that the tagger does not have (in IO, B-X) is always less likely than
    one with that label that it has, so that it is never the best."""
    weights, biases = [weight[tags.outside]], [bias[tags.outside]]
    for label in tags.labels:
        for prefix in SCHEMES[tags.tag_scheme]:
            there = next(other for other in _INSTEAD[prefix] if (other, label) in tags.classes)
            row = tags.classes[there, label]
            weights.append(weight[row])
            biases.append(bias[row] - (0.0 if there == prefix else NEVER))
    return torch.stack(weights), torch.stack(biases)


def import_tagger(
    name: str,
    word_splitter: str | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> tuple[SeqNerForNestedNer, PreTrainedTokenizerBase, Tags]:
    """A flat tagger as `seq_ner`, its tokenizer, and what its tags were.

    Args:
        name: Hub id or folder of a `*ForTokenClassification` model, with weights in safetensors.
        word_splitter: how raw text is cut into words; by default so that entities are those of the tagger's own
            pipeline: as BERT does where the tokenizer marks sub-words (`##ing`), else at white space.
        revision, token: passed to the Hub.
    """
    check_place(name)
    hub = {"revision": revision, "token": token, "trust_remote_code": False}
    with in_one_sentence(name, revision):
        check_config(name, revision=revision, token=token)
        config = AutoConfig.from_pretrained(name, **hub)
        if isinstance(config, NestedNerConfig):
            raise ValueError(f"{name} is a {config.model_type} model of this package already: it needs no import.")
        if type(config) not in AutoModelForTokenClassification._model_mapping:
            raise ValueError(f"{name} is a {config.model_type!r} model, of which transformers has no tagger.")
        check_weights(name)
        flat, loading = AutoModelForTokenClassification.from_pretrained(
            name, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **hub
        )
    if missing := sorted(loading["missing_keys"]):
        raise ValueError(
            f"{name} is no trained tagger: its weights lack {missing[0]!r}. What is imported is a model for token "
            "classification; on an encoder alone, train with `hf-spanner train --encoder`."
        )
    try:
        tags = read_tags(config.id2label)
    except ValueError as error:
        raise ValueError(f"{name} cannot be a seq_ner. {error}") from error
    with in_one_sentence(name, revision):
        check_tokenizer(name, revision=revision, token=token)
        tokenizer = load_tokenizer(name, **hub)
    head = _head_of(flat.eval(), name)
    model = _as_seq_ner(flat, head, tags, word_splitter or own_splitter(tokenizer), name)
    _check_alike(flat, model, tags, name)
    return model, tokenizer, tags


def own_splitter(tokenizer: PreTrainedTokenizerBase) -> str:
    """The splitter whose words are those that the token-classification pipeline sees with this tokenizer."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    marks = backend is not None and getattr(backend.model, "continuing_subword_prefix", None)
    return "bert" if marks else "whitespace"


def _head_of(flat: Any, name: str) -> nn.Linear:
    """The one affine map from the encoder's states to the tags."""
    parts = [part for child, part in flat.named_children() if child != flat.base_model_prefix]
    layers = [part for part in parts if not isinstance(part, nn.Dropout)]
    if len(layers) != 1 or not isinstance(layers[0], nn.Linear):
        what = ", ".join(type(layer).__name__ for layer in layers)
        raise ValueError(f"{name} cannot be a seq_ner: its head is {what}, and seq_ner's is one affine map (Linear).")
    return layers[0]


@torch.no_grad()
def _as_seq_ner(flat: Any, head: nn.Linear, tags: Tags, word_splitter: str, name: str) -> SeqNerForNestedNer:
    about_tags = ("id2label", "label2id", "architectures", "finetuning_task", "task_specific_params")
    encoder_config = {key: value for key, value in flat.config.to_dict().items() if key not in about_tags}
    dropout = next((part.p for part in flat.children() if isinstance(part, nn.Dropout)), 0.0)
    fields: dict[str, Any] = {
        "encoder_config": encoder_config,
        "labels": tags.labels,
        "word_pooling": "first",
        "word_splitter": word_splitter,
        "dropout": dropout,
        "tag_scheme": tags.tag_scheme,
        "max_subwords": min(max_positions(flat.base_model), 512),
    }
    new = SeqNerForNestedNer(SeqNerConfig(**fields))
    weights = flat.base_model.state_dict()
    if missing := sorted(new.encoder.state_dict().keys() - weights.keys()):
        raise ValueError(f"{name} cannot be a seq_ner: its encoder has no {missing[0]!r}.")
    new.encoder.load_state_dict({key: weights[key] for key in new.encoder.state_dict()})
    bias = torch.zeros(head.out_features) if head.bias is None else head.bias
    rows, biases = tag_rows(tags, head.weight, bias)
    new.tagger.classifier.weight.copy_(rows)
    new.tagger.classifier.bias.copy_(biases)
    return new.eval()  # as `from_pretrained` returns one


@torch.no_grad()
def _check_alike(flat: Any, model: SeqNerForNestedNer, tags: Tags, name: str) -> None:
    """Refuse a tagger that computes something else from its encoder's states than its parts let one think."""
    size = min(flat.config.vocab_size, 1000)
    ids = torch.arange(16).remainder(size).unsqueeze(0)
    theirs = flat(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
    states = model.encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    ours = model.tagger(states)[0]
    rows, lowered = tag_rows(tags, theirs.T, theirs.new_zeros(theirs.size(1)))  # their logits, in the order of ours
    if not torch.allclose(ours.T, rows + lowered.unsqueeze(1), atol=1e-3, rtol=1e-3):
        raise ValueError(f"{name} cannot be a seq_ner: its tags are not one affine map of its encoder's last layer.")


def _some(names: Any) -> str:
    names = sorted(names)
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
