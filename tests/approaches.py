"""The matrix: one row is one approach (or a variant worth its own row), and buys it every test of `test_matrix.py`.

A row is a name and how to build a tiny model with random weights for a tokenizer; `nested` says whether it can find
entities inside entities.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from tests_support import LABELS, encoder_config

import hf_spanner
from hf_spanner.modeling.modeling_nested_ner import NestedNerPreTrainedModel


@dataclass
class Row:
    name: str
    approach: str
    settings: dict = field(default_factory=dict)
    nested: bool = True
    learning_rate: float = 3e-3
    steps: int = 150  # until the sentences are known by heart
    build: Callable | None = None  # for approaches without a transformer underneath

    def __str__(self) -> str:
        return self.name

    def make(self, tokenizer, **settings) -> NestedNerPreTrainedModel:
        """A model in evaluation mode."""
        settings = {"max_span_length": 12, "max_subwords": 64, **self.settings, **settings}
        if self.build is not None:
            return self.build(tokenizer, LABELS, settings).eval()
        model_class = hf_spanner.APPROACHES[self.approach]
        encoder = encoder_config("bert", len(tokenizer)).to_dict()
        return model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, **settings)).eval()


def sng(tokenizer, labels, settings) -> NestedNerPreTrainedModel:
    """SNG on random vectors, one for each sub-word of the tokenizer."""
    return hf_spanner.APPROACHES["sng"].from_vectors(torch.randn(len(tokenizer), 32), labels=labels, **settings)


SNG = {"word_pooling": "mean", "freeze_vectors": False, "lstm_size": 32}

# A model that has just learnt its sentences is less sure than the paper's φ asks.
DIFFUSION = {"max_span_length": None, "num_noisy_spans": 20, "ffn_size": 64, "threshold": 0.6}

ROWS = [
    Row("seq_ner", "seq_ner", nested=False),
    Row("seq_ner-bioes", "seq_ner", {"tag_scheme": "BIOES"}, nested=False),
    Row("seq_ner-crf", "seq_ner", {"use_crf": True}, nested=False),
    Row("span_ner", "span_ner"),
    Row("span_ner-boundary", "span_ner", {"span_representation": "boundary", "max_negatives": None}),
    Row("span_ner-pooling", "span_ner", {"span_representation": "pooling"}),
    Row("span_ner-multi_label", "span_ner", {"multi_label": True}),
    Row("span_ner-ffn", "span_ner", {"ffn_size": 24, "word_pooling": "mean"}),
    Row("bl_ner", "bl_ner"),
    Row(
        "bl_ner-seq-crf",
        "bl_ner",
        {"predict_from": "seq", "use_crf": True, "bundle_weight": 0.5, "crf_loss": "sentence"},
        nested=False,
    ),
    Row("dspert", "dspert", {"lstm_size": 64, "ffn_size": 64}, learning_rate=4e-3),
    Row("dspert-shallow", "dspert", {"span_depth": 0, "bilstm": "none", "ffn_size": 64}),
    Row(
        "dspert-shared",
        "dspert",
        {"share_weights": True, "bilstm": "shared", "lstm_size": 64, "aggregation": "additive", "ffn_size": 64},
    ),
    Row("dspert-subword", "dspert", {"span_unit": "subword", "max_span_length": 40, "bilstm": "none", "ffn_size": 64}),
    Row("biaffine_ner", "biaffine_ner", {"max_span_length": None, "lstm_size": 32, "affine_size": 32}),
    Row("biaffine_ner-subword", "biaffine_ner", {"span_unit": "subword", "max_span_length": 40, "affine_size": 32}),
    Row("cnn_ner", "cnn_ner", {"affine_size": 32, "grid_size": 24}),
    Row("locate_and_label", "locate_and_label", {"windows": None}),
    Row("locate_and_label-bundled", "locate_and_label", {"windows": None, "bundle_weight": 0.1}),
    Row(
        "locate_and_label-multi_label",
        "locate_and_label",
        {"multi_label": True, "lstm_size": 32, "last_layers": 2, "negative_ratio": None, "classifier_gamma": 2.0},
    ),
    Row("sng", "sng", SNG, build=sng, learning_rate=1e-2),
    Row(
        "sng-multi_label",
        "sng",
        {**SNG, "multi_label": True, "max_negatives": None, "lstm_size": 64},
        build=sng,
        learning_rate=1e-2,
    ),
    Row("diffusion_ner", "diffusion_ner", DIFFUSION, learning_rate=1e-2, steps=300),
    Row(
        "diffusion_ner-left_right",
        "diffusion_ner",
        {
            **DIFFUSION,
            "span_state": "left_right",
            "span_representation": "mean",
            "eta": 1.0,
            "lstm_layers": 0,
            "time_embedding": "sinusoid",
        },
        learning_rate=5e-3,
        steps=200,
    ),
]
