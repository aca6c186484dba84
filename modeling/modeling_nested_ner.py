"""The base of every approach: an encoder, words from its sub-words, a head, and (if bundled) a tagging head too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import torch
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init
from transformers.utils import ModelOutput, can_return_tuple

from .configuration_nested_ner import NestedNerConfig, Reach, check_labels
from .decoding import Entity, entities_to_tensor, span_candidates
from .encoders import (
    CompactVocabulary,
    Int8Embedding,
    encoder_config_of,
    encoder_kwargs,
    last_layers,
    load_encoder,
    max_positions,
)
from .graphs import in_graph
from .imitation import imitation_loss, teacher_grid
from .losses import Gold, reduce_loss
from .pooling import pool_words
from .saving import SelfContainedModel
from .spans import span_mask
from .tagging import CRF, TaggingHead

Model = TypeVar("Model", bound="NestedNerPreTrainedModel")

RARE = -5.0  # the logit that a span has some label, before anything is learnt


@dataclass
class NestedNerOutput(ModelOutput):
    """What `forward` returns.

    Attributes:
        loss: if `entities` were given: the sum of
        losses: its terms by name, weighted.
        logits: the approach's own; for span approaches `(B, T, K, m + 1)` on the grid of `spans.py`, class 0 = none.
        tag_logits: `(B, T, 2m + 1)` of the tagging head, if there is one; 4m + 1 with `tag_scheme="BIOES"`.
        num_words: `(B,)`, so that the output can be decoded by itself.
        span_representations: pre-logit vectors of the spans, where an approach has them and they were asked for; NaN
            for spans of words that are out of its reach in sub-words.
        hidden_states, attentions: the encoder's, if asked for.
        predictions: `(B, P, 6)` = place (text, window), start, end, label id, score of the entities found, padded with
            -1, before overlaps are resolved: in evaluation mode, if `places` were given. Batches of these can be
            gathered by any Trainer; the configuration names the rest in `keys_to_ignore_at_inference`.
    """

    loss: torch.Tensor | None = None
    losses: dict[str, torch.Tensor] | None = None
    logits: torch.Tensor | None = None
    tag_logits: torch.Tensor | None = None
    num_words: torch.Tensor | None = None
    span_representations: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor | None, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None
    predictions: torch.Tensor | None = None

    @property
    def is_grid(self) -> bool:
        """Whether the logits are scores of all spans, on the grid of `spans.py`."""
        return self.logits is not None and self.logits.ndim == 4


@dataclass
class WordStates:
    """A batch of sentences after the encoder: what heads work on."""

    words: torch.Tensor  # (B, T, d)
    mask: torch.Tensor  # (B, T), a prefix of true values in every row
    num_words: torch.Tensor  # (B,)
    sentence: torch.Tensor  # (B, d), the vector of [CLS]
    encoder: Any  # the encoder's own output, a ModelOutput
    attention_mask: torch.Tensor  # (B, S)
    word_ids: torch.Tensor  # (B, S)
    inputs: torch.Tensor | None = None  # (B, S) sub-words, or (B, S, d) their embeddings, whichever was given
    output_span_representations: bool = False  # whether the caller wants them
    inference: dict[str, Any] = field(default_factory=dict)  # the approach's own inference parameters, for this call

    @cached_property
    def lengths(self) -> Any:
        """`num_words` for the host, which is all it has to ask a GPU for: it waits once, and only if someone asks.

        A list of numbers; in a graph, which is for all of them, the tensor itself.
        """
        if in_graph():
            return self.num_words
        return self.num_words.tolist()


class NestedNerPreTrainedModel(CompactVocabulary, SelfContainedModel):
    """Encoder → words → head → entities.

    What an approach implements: `recognise`, and `candidates` unless its logits are the span grid. What it may
    override: `run_encoder`, if it reads more of the encoder than its last layer, and of its configuration `reach()`,
    `heads` and `task`. What it may set: `pretrained_prefixes` and `inference_parameters`. Nothing else asks about it.

    ```python
    >>> model = SpanNerForNestedNer.from_encoder("bert-base-cased", labels=["PER", "ORG"], max_span_length=8)
    >>> output = model(input_ids, attention_mask, word_ids, num_words, entities)  # a batch of the collator
    >>> output.loss.backward()
    >>> model.decode(output)
    [[Entity(start=0, end=2, label='PER', score=0.98)], ...]
    ```
    """

    __call__: Callable[..., NestedNerOutput]
    config: NestedNerConfig
    config_class: type[NestedNerConfig] = NestedNerConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    # The loss is a mean over a batch: under gradient accumulation and several processes the Trainer must scale it.
    accepts_loss_kwargs = False

    # Parameters that come from the pretrained encoder and train with its learning rate.
    pretrained_prefixes: tuple[str, ...] = ("encoder.",)
    # Fields of the configuration that `forward`, and with it the pipeline, also takes as arguments for one call.
    inference_parameters: tuple[str, ...] = ()

    def __init__(self, config: NestedNerConfig):
        super().__init__(config)
        self.encoder: Any = self.make_encoder(config)
        if config.int8_embeddings:
            table = self.encoder.get_input_embeddings()
            self.encoder.set_input_embeddings(Int8Embedding(table.num_embeddings, table.embedding_dim))
        self.tagger: TaggingHead | None = None
        if "seq" in config.heads:
            size, labels, tags = config.hidden_size, len(config.labels), config.tag_scheme
            self.tagger = TaggingHead(size, labels, config.dropout, config.use_crf, tags, config.crf_loss)

    def make_encoder(self, config: Any) -> Any:
        """The encoder with random weights; its output has `last_hidden_state (B, S, d)`."""
        if config.encoder_config is None:
            raise ValueError(
                f"{type(config).__name__} has no encoder_config: build the model with "
                f"`{type(self).__name__}.from_encoder(name_or_path, labels=[...])`."
            )
        return AutoModel.from_config(config.encoder_config, **encoder_kwargs(config.encoder_config))

    @classmethod
    def from_encoder(
        cls: type[Model],
        name_or_path: str,
        labels: list[str],
        *,
        revision: str | None = None,
        token: str | None = None,
        **config: Any,
    ) -> Model:
        """Build the model on a pretrained encoder; everything else starts at random.

        This is the only place where an encoder's weights are loaded: a saved model is complete by itself.

        Args:
            name_or_path: a Hub id or a folder of any `AutoModel` encoder, or of a nested NER model, whose encoder is
                taken.
            labels: the entity types.
            revision, token: passed to the Hub.
            **config: fields of the approach's configuration.
        """
        hub = {"revision": revision, "token": token, "trust_remote_code": False}
        saved = AutoConfig.from_pretrained(name_or_path, **hub)
        encoder_config = encoder_config_of(saved)
        max_subwords = config.pop("max_subwords", None)
        fields = {"encoder_config": encoder_config.to_dict(), "labels": check_labels(labels), **config}
        settings = cls.config_class(**fields)
        model = cls(settings)
        encoder = load_encoder(name_or_path, saved, **hub)
        model.encoder.load_state_dict(encoder.state_dict())
        if settings.fresh_layers:
            module: Any
            for module in last_layers(model.encoder, settings.fresh_layers).modules():
                module._is_hf_initialized = False
                model.encoder._init_weights(module)
        settings.encoder_config._name_or_path = ""
        # Trained on sentences, no approach gains from more than 512 at once; it is there for who asks.
        settings.max_subwords = max_subwords or min(max_positions(encoder), 512)
        if settings.max_subwords > max_positions(encoder):
            raise ValueError(
                f"max_subwords={max_subwords} is more than the {max_positions(encoder)} positions of {name_or_path!r}."
            )
        model.after_encoder_loaded()
        return model

    def after_encoder_loaded(self) -> None:
        """For approaches that initialise more from the encoder than the encoder itself."""

    # ------------------------------------------------------------------------------------------------ forward

    def encode(
        self,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        word_ids: torch.Tensor | None,
        num_words: torch.Tensor | None,
        word_mask: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> WordStates:
        """Run the encoder and pool its sub-words into words."""
        if (input_ids is None) == (kwargs.get("inputs_embeds") is None):
            raise ValueError(
                "forward needs `input_ids` (B, S), or `inputs_embeds` (B, S, d) in their place: give one."
            )
        if word_ids is None or num_words is None:
            raise ValueError(
                "forward needs `word_ids` (B, S) and `num_words` (B,) beside `input_ids`: let `NestedNerCollator` or "
                "the 'nested-ner' pipeline make the batch."
            )
        if attention_mask is None:
            attention_mask = torch.ones_like(word_ids)
        encoded: Any = self.run_encoder(input_ids, attention_mask, **kwargs)
        states: torch.Tensor = encoded.last_hidden_state
        word_ids = word_ids.masked_fill(attention_mask == 0, -1)
        if word_mask is None:  # a graph cannot ask how many words there are: there are no more than sub-words
            width = word_ids.size(1) if in_graph() else max(int(num_words.max()), 1)
            word_mask = torch.arange(width, device=states.device) < num_words.unsqueeze(1)
        first = attention_mask.argmax(1)  # 0, unless padded on the left
        return WordStates(
            words=pool_words(states, word_ids, word_mask.size(1), self.config.word_pooling),
            mask=word_mask,
            num_words=num_words,
            sentence=states[torch.arange(states.size(0), device=states.device), first],
            encoder=encoded,
            attention_mask=attention_mask,
            word_ids=word_ids,
            inputs=kwargs.get("inputs_embeds") if input_ids is None else input_ids,
        )

    def run_encoder(self, input_ids: torch.Tensor | None, attention_mask: torch.Tensor, **kwargs: Any) -> ModelOutput:
        """The encoder's output; words are made of its `last_hidden_state (B, S, d)`. Who needs more asks here."""
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        """The approach itself: logits, and with `gold` the terms of the loss, `losses`."""
        raise NotImplementedError(f"{type(self).__name__} must implement `recognise`.")

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        word_ids: torch.Tensor | None = None,
        num_words: torch.Tensor | None = None,
        entities: torch.Tensor | None = None,
        annotated_labels: torch.Tensor | None = None,
        flat: torch.Tensor | None = None,
        teacher: torch.Tensor | None = None,
        teacher_longest: torch.Tensor | None = None,
        places: torch.Tensor | None = None,
        word_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | list[int] | None = None,
        output_attentions: bool | None = None,
        output_span_representations: bool = False,
        **kwargs: Any,
    ) -> NestedNerOutput:
        """
        Args:
            input_ids, attention_mask: `(B, S)` sub-words.
            word_ids: `(B, S)` the word of each sub-word, -1 for special, padding and context tokens.
            num_words: `(B,)`.
            entities: `(B, E, 3)` gold start, end (exclusive), label id; padded with -1.
            annotated_labels: `(B, m)` the labels that a sentence is annotated with, if corpora of different labels are
                trained together: the others take no part in its loss.
            flat: `(B,)` whether a sentence is annotated with its outermost entities alone, so that nothing is known of
                the spans inside or across them: these take no part in its loss.
            teacher, teacher_longest: `(B, C, 2 + m)` and `(B,)`, what teachers say of spans (see `imitation.py`), for
                approaches that score the span grid: a term of the loss, `distil_weight` of it.
            places: `(B, 2)` which window of which text this is; in evaluation mode `predictions` come back with it.
            word_mask: `(B, T)` the words that there are. It says what `num_words` says, but a width is known to the
                host: without it the host asks the device for the longest text, and waits.
            inputs_embeds: `(B, S, d)`, in place of `input_ids`.
            output_hidden_states, output_attentions: return the encoder's; by default as the configuration says. Of
                hidden states a list may name the layers, from 0; the others are None.
            output_span_representations: return the spans' pre-logit vectors, if the approach has them.
            **kwargs: the inputs by word for which the configuration asks (see `word_inputs.py`), and the approach's
                `inference_parameters`. With `return_dict=False` the output is a tuple, without what is None.
        """
        inference = {key: value for key, value in kwargs.items() if key in self.inference_parameters}
        inputs = self.config.word_inputs()
        known = inputs.names if inputs else ()
        kwargs = {key: value for key, value in kwargs.items() if key in known and value is not None}
        if inputs_embeds is not None:
            kwargs["inputs_embeds"] = inputs_embeds
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        asked = {"output_hidden_states": bool(output_hidden_states), "output_attentions": bool(output_attentions)}
        states = self.encode(input_ids, attention_mask, word_ids, num_words, word_mask, **asked, **kwargs)
        states.output_span_representations = output_span_representations
        states.inference = self.inference_settings(**inference)
        gold = None if entities is None else Gold(entities, annotated_labels, flat)
        output = self.recognise(states, gold)
        if output_span_representations and output.span_representations is None:
            raise ValueError(f"{self.config.model_type} has no span representations to give; dspert and span_ner do.")
        if teacher is not None and teacher_longest is not None:
            weight, own = self.config.distil_weight, output.losses or {}
            output.losses = {name: (1 - weight) * term for name, term in own.items()}
            output.losses["teacher"] = weight * self.imitation(output, states, teacher, teacher_longest)
        if self.is_bundled and self.tagger is not None:
            output.tag_logits = self.tagger(states.words)
            if gold is not None:  # L = α·L_seq + (1 - α)·L_span
                alpha = self.config.bundle_weight
                assert alpha is not None and output.losses is not None  # a bundled model; given gold
                tags = self.tagger.loss(output.tag_logits, gold, states.mask, self.config.loss_reduction)
                own = {name: (1 - alpha) * term for name, term in output.losses.items()}
                output.losses = {"tags": alpha * tags, **own}
        if output.losses is not None:
            total: Any = sum(output.losses.values())  # a tensor: there is a term at least
            output.loss = total
        output.num_words = num_words
        output.hidden_states = states.encoder.get("hidden_states") if output_hidden_states else None
        output.attentions = states.encoder.get("attentions") if output_attentions else None
        if output.hidden_states is not None and isinstance(output_hidden_states, (list, tuple)):
            layers = enumerate(output.hidden_states[1:])
            output.hidden_states = tuple(x if number in output_hidden_states else None for number, x in layers)
        if places is not None and not self.training:
            output.predictions = self.placed_entities(output, places)
        return output

    def imitation(
        self, output: NestedNerOutput, states: WordStates, teacher: torch.Tensor, longest: torch.Tensor
    ) -> torch.Tensor:
        """How far the scores of all spans are from what teachers say of them, reduced as the own loss is."""
        logits, config = output.logits, self.config
        if logits is None or not output.is_grid:
            raise ValueError(
                f"{config.model_type} does not score all spans, so that it cannot learn their probabilities from a "
                "teacher: train it on the teacher's entities, or choose an approach such as span_ner."
            )
        probabilities, taught = teacher_grid(teacher, longest, states.num_words, *logits.shape[1:3])
        total = imitation_loss(logits, probabilities, taught, config.multi_label, config.distil_temperature)
        if config.full_batch:
            return total
        return reduce_loss(total, taught.sum(), len(logits), config.loss_reduction)

    def inference_settings(self, **given: Any) -> dict[str, Any]:
        """The approach's own inference parameters: those given (and not None), the configuration's for the others."""
        if unknown := sorted(set(given) - set(self.inference_parameters)):
            known = f"only {', '.join(self.inference_parameters)}" if self.inference_parameters else "none"
            raise TypeError(f"{self.config.model_type} knows no inference parameter {unknown[0]!r}, {known}.")
        settings = {name: getattr(self.config, name) for name in self.inference_parameters}
        settings |= {name: value for name, value in given.items() if value is not None}
        self.config.check_inference(settings)
        return settings

    @property
    def heads(self) -> tuple[str, ...]:
        """What predicts: `("span",)`, `("seq",)`, or both of a bundled model."""
        return self.config.heads

    @property
    def task(self) -> Literal["finding", "typing"]:
        """Whether the model finds entities in a text, or types spans that it is given."""
        return self.config.task

    def reach(self) -> Reach:
        """What the model can answer with at all."""
        return self.config.reach()

    @property
    def output_layer(self) -> nn.Linear | None:
        """The map from span representations to logits, of an approach that has them."""
        return None

    @property
    def output_bias(self) -> torch.Tensor | None:
        """The bias of the labels' logits, of an approach that has one."""
        return None if self.output_layer is None else self.output_layer.bias

    @property
    def is_bundled(self) -> bool:
        return len(self.config.heads) > 1

    # ------------------------------------------------------------------------------------------------- decode

    def candidates(self, output: Any, thresholds: list[float | None]) -> list[list[Entity]]:
        """Scored entities of the approach's own head, before overlaps are resolved; `output` is its own too."""
        mask = span_mask(output.num_words, output.logits.size(1), output.logits.size(2))
        config = self.config
        return span_candidates(output.logits, mask, config.labels, thresholds, config.multi_label, config.label_types)

    def decode(
        self,
        output: NestedNerOutput,
        threshold: float | Mapping[str, float] | None = None,
        overlap: str | None = None,
        head: str | None = None,
    ) -> list[list[Entity]]:
        """Entities of each sentence, in text order. Deterministic; ties fall by score, start, end, label.

        Args:
            threshold: the least score, one number or by label; by default the configuration's.
            overlap: `"flat"`, `"nested"` or `"any"`; by default the configuration's.
            head: `"span"` or `"seq"` of a bundled model; by default `config.predict_from`.
        """
        head = self.choose_head(head)

        def candidates(thresholds: list[float | None]) -> list[list[Entity]]:
            if head == "span":
                return self.candidates(output, thresholds)
            logits = output.tag_logits
            if logits is None or output.num_words is None or self.tagger is None:
                raise ValueError(
                    "There are no tag_logits or num_words in this output: decode what `forward` returned."
                )
            mask = torch.arange(logits.size(1), device=logits.device) < output.num_words.unsqueeze(1)
            return self.tagger.candidates(logits, mask, self.config.labels, thresholds)

        return self.config.decide(candidates, threshold, overlap, head)

    @torch.compiler.disable
    def placed_entities(self, output: NestedNerOutput, places: torch.Tensor) -> torch.Tensor:
        """`(B, P, 6)`: what `decode` finds before overlaps are resolved, each entity behind the place of its text."""
        found = entities_to_tensor(
            self.decode(output, overlap="any"), {v: k for k, v in enumerate(self.config.labels)}
        )
        found = found.to(places.device, torch.float32)
        return torch.cat([places.to(found).unsqueeze(1).expand(-1, found.size(1), -1), found], dim=-1)

    def choose_head(self, head: str | None) -> str:
        """Which head predicts: the one asked for, if the model has it."""
        return self.config.choose_head(head)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, CRF):
            for parameter in module.parameters():
                init.zeros_(parameter)

    @torch.no_grad()
    def initialize_weights(self) -> None:
        """Initialise what no checkpoint has filled; modules that say how they start (`initialise`) have the last word.

        `_init_weights` cannot do that: transformers does not call it for a module without parameters of its own.
        """
        super().initialize_weights()
        module: Any
        for module in self.modules():
            if hasattr(module, "initialise"):
                module.initialise()
        # Of all spans and labels few belong together: begin there, and not with a loss of log 2 for each of them.
        if self.config.multi_label and self.output_bias is not None:
            init.constant_(self.output_bias, RARE)
