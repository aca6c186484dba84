"""The configuration that every approach shares."""

import copy
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, TypeVar

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from .decoding import Calibration, split_mention
from .rules import LabelRules, Reach, check_labels
from .word_inputs import WordInputs

logger = logging.getLogger(__name__)

# Where a config.json names its repository's own code. With the package imported its classes are used, never those.
CODE_FIELDS = ("auto_map", "custom_pipelines")
# What a config.json may not decide: whom to trust, kernels to fetch, which file holds the weights.
REFUSED_FIELDS = (
    "trust_remote_code",
    "attn_implementation",
    "_attn_implementation",
    "experts_implementation",
    "_experts_implementation",
    "transformers_weights",
)


Config = TypeVar("Config", bound="NestedNerConfig")


class NestedNerConfig(LabelRules, PreTrainedConfig):
    """What every approach to nested NER needs to know; each adds its own hyper-parameters under its paper's names.

    Args:
        encoder_config: the configuration of any `AutoModel` encoder, as an object or a dict with its `model_type`.
        labels: the entity types, e.g. `["PER", "ORG"]`; a shorthand for `id2label`, which holds exactly these
            ("none" is internal: class 0 of the logits).
        max_span_length: the largest number K of words in a span that the approach looks at.
        max_subwords: the encoder's window in sub-words, special tokens included. Longer texts are read in several,
            overlapping windows.
        max_word_subwords: how many sub-words of a word are read, its first; None for all. (The authors of DSpERT: 5.)
        word_pooling: how a word's vector is made from its sub-words: `"max"`, `"mean"` or `"first"`.
        word_splitter: how raw text is cut into words: `"compound"`, `"fine"`, `"bert"` or `"whitespace"` (see
            `words.py`).
        overlap: which predictions may stand together: `"flat"`, `"nested"` (no crossing) or `"any"`.
        threshold: the least score of a prediction: one number, a dict by type or kind of mention (`person:name`), or
            None (it must beat "none").
        calibration: points (score, share of right answers) of a rising line that makes scores mean something; None
            for scores as they are. `threshold` is in calibrated scores.
        mentions: the kinds of mention that the model tells apart, such as `["name", "nominal", "pronoun"]`: its label
            `person:nominal` is the type `person` and the kind `nominal`. Of a label without a kind it is the first.
        shown_mentions: the kinds that the pipeline shows if it is not told which; None for all.
        trim: words that names do not begin or end with where names alone are looked for, `{"mentions": ["name"],
            "before": ["the"], "after": ["'s"]}`: of a model that was taught whole phrases ("[the Bank of England]").
        context_sentences: how many neighbouring sentences of the same document are read, on either side, for context.
        context_separator: whether the tokenizer's separator stands between a sentence and its context, as in the code
            of DiffusionNER; that of Locate and Label has none.
        multi_label: let a span carry several labels (a sigmoid for each label in place of one softmax).
        exclusive_labels: whether a span is known to have one label at most, though labels come from several corpora: a
            span with an entity is then an example without all other labels, also those its sentence is not annotated
            with, and of several labels that `multi_label` finds for a span the best is kept.
        dropout: dropout before the classifier.
        encoder_dropout: all dropout rates inside the encoder (hidden states and attention); None for its own.
        fresh_layers: how many of the encoder's last layers start at random in `from_encoder`: those of an encoder that
            was trained to give one vector a sentence may hold little else.
        boundary_smoothing: ε, how much of its label an entity shares with the spans around it in training (see
            `boundary_smoothing.py`); 0 for hard targets. For every approach that classifies the span grid.
        smoothing_size: D, how far that reaches.
        smooth_long_entities: whether entities of more than K words share with the spans around them too.
        bundle_weight: α of bundling learning (Ji et al., 2022). If set, a tagging head is trained beside the own one:
            `α·L_seq + (1-α)·L_span`.
        predict_from: `"span"` or `"seq"`: which head of a bundled model predicts.
        use_crf: whether the tagging head ends in a linear-chain CRF.
        crf_loss: `"word"`, the CRF's negative log-likelihood by word, as large as a softmax's loss; or `"sentence"`,
            of a sentence as a whole (Eq. 10 of Ji et al.), as many times larger as sentences have words. With n words
            a sentence α then weighs the tags of a bundle as α·n / (α·n + 1 - α) does by word: 0.1 as 0.7 of 20 words.
        tag_scheme: `"BIO"` or `"BIOES"`: the tags of the tagging head.
        loss_reduction: `"span"`, the mean over the spans (of a tagging head: the words) of a batch, or `"sentence"`:
            their sum, averaged over sentences. With batches of similar length the former weighs a span of a short
            sentence many times more.
        distil_weight: w of distillation: `(1-w)·L_own + w·L_teacher` for the span head, where training sentences come
            with what teachers say of their spans (`hf-spanner train --teacher`).
        distil_temperature: T, by which teachers' and student's probabilities are softened before they are compared.
        int8_embeddings: whether the encoder's vocabulary is kept in eight bits (see `encoders.py`), to be read and not
            trained; `model.compact_embeddings()` makes it so.
    """

    model_type = "nested_ner"
    sub_configs = {"encoder_config": AutoConfig}
    # What a Trainer does not gather: the shapes differ by batch. What it gathers are the `predictions`.
    keys_to_ignore_at_inference = [
        "losses",
        "logits",
        "tag_logits",
        "num_words",
        "span_representations",
        "hidden_states",
        "attentions",
    ]
    # What looks at a file's values before they are believed; set by hf_spanner, a repository's own code has none.
    check_values: ClassVar[Callable[[Mapping[str, Any], str], None] | None] = None
    full_batch = False  # whether all of an epoch makes one step (sng)
    _auto_class = "AutoConfig"  # saved with the file that defines it: the folder runs without the package

    encoder_config: Any = None  # a PreTrainedConfig from `__post_init__` on, or None
    max_span_length: int | None = 10
    max_subwords: int = 512
    max_word_subwords: int | None = None
    word_pooling: str = "max"
    word_splitter: str = "compound"
    overlap: str = "nested"
    threshold: float | dict[str, float] | None = None
    calibration: list[list[float]] | None = None
    mentions: list[str] | None = None
    shown_mentions: list[str] | None = None
    trim: dict[str, list[str]] | None = None
    context_sentences: int = 0
    context_separator: bool = False
    multi_label: bool = False
    exclusive_labels: bool = False
    dropout: float = 0.1
    encoder_dropout: float | None = None
    fresh_layers: int = 0
    boundary_smoothing: float = 0.0
    smoothing_size: int = 1
    smooth_long_entities: bool = True
    bundle_weight: float | None = None
    predict_from: str = "span"
    use_crf: bool = False
    crf_loss: str = "word"
    tag_scheme: str = "BIO"
    loss_reduction: str = "span"
    distil_weight: float = 0.5
    distil_temperature: float = 1.0
    int8_embeddings: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        if (labels := kwargs.pop("labels", None)) is not None:
            self.id2label = dict(enumerate(check_labels(labels)))
        for name in kwargs:
            known = getattr(type(self), name, None)
            if callable(known) or (isinstance(known, property) and known.fset is None):
                raise ValueError(f"{name}={kwargs[name]!r} cannot be set: it follows from the other fields.")
        if isinstance(self.encoder_config, dict):
            encoder_config = without_refused(self.encoder_config, CODE_FIELDS)
            self.encoder_config = AutoConfig.for_model(encoder_config.pop("model_type"), **encoder_config)
        if self.encoder_config is not None:
            # A path on the machine that trained the model means nothing elsewhere; the model has one dtype, its own.
            self.encoder_config._name_or_path, self.encoder_config.dtype = "", None
            self.pad_token_id = getattr(self.encoder_config, "pad_token_id", None)
            if self.encoder_dropout is not None:
                set_dropout(self.encoder_config, self.encoder_dropout)
        super().__post_init__(**kwargs)
        if self.id2label is not None:
            names: dict[Any, Any] = self.id2label
            self.label2id = {label: index for index, label in names.items()}
        self._check()

    def _check(self) -> None:
        self.check_reading()
        self.check_choice("word_pooling", ("first", "mean", "max"))
        self.check_choice("loss_reduction", ("span", "sentence"))
        self.check_choice("crf_loss", ("word", "sentence"))
        self.check_whole("max_span_length", least=1)
        self.check_range("dropout", "encoder_dropout", "bundle_weight", "distil_weight", least=0, most=1)
        self.check_range("boundary_smoothing", least=0)
        if self.boundary_smoothing >= 1:
            raise ValueError(f"boundary_smoothing={self.boundary_smoothing} must be at least 0 and less than 1.")
        self.check_range("smoothing_size", least=1)
        self.check_range("distil_temperature", least=0)
        if not self.distil_temperature:
            raise ValueError(f"distil_temperature={self.distil_temperature} must be more than 0; 1 softens nothing.")

    def check_inference(self, settings: dict[str, Any]) -> None:
        """For approaches with inference parameters of their own: raise a ValueError for values out of range."""

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> PreTrainedConfig:
        """What knows the vocabulary: the encoder's configuration, or this one, if there is no encoder."""
        return self if self.encoder_config is None else self.encoder_config

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """As always; in memory nothing changes."""
        with code_fields_kept(self):
            super().save_pretrained(save_directory, *args, **kwargs)

    @classmethod
    def get_config_dict(cls, pretrained_model_name_or_path: str | os.PathLike[str], **kwargs: Any) -> Any:
        """As always; the configuration of another model is refused."""
        config_dict, kwargs = super().get_config_dict(pretrained_model_name_or_path, **kwargs)
        of, name = config_dict.get("model_type"), str(pretrained_model_name_or_path)
        if cls.model_type != NestedNerConfig.model_type and of not in (None, cls.model_type):
            raise ValueError(
                f"{name} is a {of!r} checkpoint, not a {cls.model_type!r} one. If it is an encoder, build a model on "
                f"it with `from_encoder({name!r}, labels=[...])`; a trained model of any approach is loaded with "
                "`AutoModelForNestedNer.from_pretrained`."
            )
        return config_dict, kwargs

    @classmethod
    def from_dict(cls, config_dict: dict, **kwargs):
        """As always, but what a file says about code to run is dropped, unless this class itself came from a repo."""
        if cls.check_values is not None:
            cls.check_values(config_dict, str(kwargs.get("name_or_path") or "the model"))
        return super().from_dict(without_refused(config_dict, () if is_remote(cls) else CODE_FIELDS), **kwargs)

    def with_labels(self: Config, labels: list[str]) -> Config:
        """A copy for other labels: what was tuned for the old ones is as it was before."""
        config = copy.deepcopy(self)
        config.id2label = dict(enumerate(check_labels(labels)))
        config.label2id = {label: index for index, label in config.id2label.items()}
        config.drop_calibration()
        if not any(split_mention(label, config.mentions)[0] != label for label in labels):
            config.mentions = config.shown_mentions = config.trim = None
        if isinstance(config.threshold, dict):
            config.threshold = type(config).threshold
        return config

    def drop_calibration(self) -> None:
        """Scores are as they were before a calibration, and the threshold is in these."""
        if self.calibration is not None:
            raw = Calibration(self.calibration).inverse
            if isinstance(self.threshold, dict):
                self.threshold = {label: raw(share) for label, share in self.threshold.items()}
            elif self.threshold is not None:
                self.threshold = raw(self.threshold)
        self.calibration = None

    @property
    def hidden_size(self) -> int:
        return self.encoder_config.hidden_size

    @property
    def num_classes(self) -> int:
        """Of a span's logits: the labels and, unless each has a sigmoid of its own, none."""
        return len(self.labels) + (0 if self.multi_label else 1)

    @property
    def heads(self) -> tuple[str, ...]:
        """What predicts: the approach's own head, `"span"`, and of a bundled model `"seq"` too."""
        return ("span",) if self.bundle_weight is None else ("span", "seq")

    @property
    def task(self) -> Literal["finding", "typing"]:
        """Whether entities are found in a text, or spans that are given (as `entities`) are typed."""
        return "finding"

    def reach(self) -> Reach:
        """What the approach can answer with at all."""
        return Reach(longest=self.max_span_length)

    def word_inputs(self) -> WordInputs | None:
        """What makes the inputs that the approach reads beside sub-words; None if there are none."""
        return None


@contextmanager
def code_fields_kept(config: PreTrainedConfig) -> Iterator[None]:
    """Saving makes a configuration say where its classes are found: one in memory has them, and stays as it was."""
    before = {name: getattr(config, name) for name in CODE_FIELDS if hasattr(config, name)}
    try:
        yield
    finally:
        for name in CODE_FIELDS:
            if hasattr(config, name):
                delattr(config, name)
        config.update(before)


def is_remote(cls: type) -> bool:
    """Whether a class was loaded from a model's repository (with `trust_remote_code=True`), not from a package."""
    return cls.__module__.startswith("transformers_modules.")


def without_refused(config_dict: dict[str, Any], also: tuple[str, ...] = ()) -> dict[str, Any]:
    """A configuration as read from a file, without what a file may not decide; that is said if it was there."""
    if refused := [name for name in REFUSED_FIELDS if config_dict.get(name)]:
        logger.warning(
            "config.json asks for %s, which is refused: pass it to `from_pretrained` if you want it.",
            ", ".join(f"{name}={config_dict[name]!r}" for name in refused),
        )
    return {name: value for name, value in config_dict.items() if name not in (*REFUSED_FIELDS, *also)}


def set_dropout(encoder_config: PreTrainedConfig, rate: float) -> None:
    """Set the dropout rates of an encoder, under whatever names its family has for them."""
    names = (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
        "embedding_dropout",
        "mlp_dropout",
    )
    known = [name for name in names if hasattr(encoder_config, name)]
    if not known:
        raise ValueError(
            f"encoder_dropout={rate}: a {encoder_config.model_type!r} encoder has no dropout rate that is known here. "
            "Set encoder_dropout=None."
        )
    for name in known:
        setattr(encoder_config, name, rate)
