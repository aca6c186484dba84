"""Locate and Label (Shen et al., 2021): propose seeds, filter them, move their boundaries, label the rest, decode."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers.utils import ModelOutput

from .configuration_nested_ner import NestedNerConfig, Reach
from .decoding import Entity, span_candidates
from .graphs import refuse_graph
from .locate_and_label_layers import SpanMlp, SpanReader
from .locate_and_label_spans import (
    Spans,
    boundary_loss,
    distinct,
    focal_loss,
    gold_spans,
    join,
    overlap_loss,
    pair,
    sample_examples,
    seed_spans,
    shift,
    soft_nms,
    soft_weights,
)
from .locate_and_label_tokens import TokenRepresentation
from .losses import Gold
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .spans import cuts, fill_cells, first_labels
from .word_inputs import WORD_INPUTS, WordInputs


class LocateAndLabelConfig(NestedNerConfig):
    """Locate and Label. The paper's L is `max_span_length`, its δ is `threshold`.

    Args:
        windows: sizes of the seed spans, as far as they do not exceed L; None for all sizes up to L.
        alpha1: the least IoU with an entity of a seed that shall be kept and moved there.
        alpha2: the least IoU with an entity of a moved span that gets its label; 1.0: it must match exactly.
        eta: η, how strongly a partial match counts less in training; 0: no soft examples, all count alike.
        negative_ratio: seeds without an entity drawn for each positive one in training; None for all of them.
        extra_negatives: and how many more in each sentence (the authors' code).
        gamma: γ of the filter's focal loss.
        classifier_gamma: the same for the classifier: 0, cross entropy, in the paper; 2 in the authors' code.
        lambda1, lambda2, lambda3: weights of the losses of filter, regressor and classifier (Eq. 17). Each is a mean
            over the spans it looks at, or with `loss_reduction="sentence"` their sum, as Eq. 12-16 have it, averaged
            over sentences. The regressor looks at fewer spans than the others: of sums it is a smaller part.
        use_filter: without it all seeds are moved and labelled.
        use_regressor: without it seeds stay where they are, and only spans of the windows' sizes can be found.
        filter_threshold: the least probability of a seed that is kept (the authors' 1/6; for KBP17 1/2).
        soft_nms_decay: u, by which a score falls beside a better one; 1: no Soft-NMS.
        soft_nms_iou: k, the IoU from which on it does.
        all_sizes: propose seeds of all sizes up to L when reading, and of `windows` in training alone, as the authors
            do when they evaluate.
        threshold: δ, the least score after that.
        dropout: before filter, regressor and classifier, and on the inputs below.
        last_layers: how many of the encoder's last layers are averaged; the authors take 4.
        lstm_size: of a BiLSTM over the words, both directions together; 0 for none.
        vector_dim: of word vectors; 0 for none. They are frozen and part of the model: see `from_encoder`.
        vector_words, vectors_lowercase: how many there are, and whether they know lower-case words only.
        char_size: of a BiLSTM over each word's characters, in each direction; 0 for none.
        pos_dim: of embeddings of part-of-speech tags; 0 for none.
        pos_tags: the tags that have an embedding of their own.
        pos_tagger: the spaCy pipeline that tags text which comes without tags.
    """

    model_type = "locate_and_label"
    keys_to_ignore_at_inference = [
        *NestedNerConfig.keys_to_ignore_at_inference,
        "spans",
        "num_seeds",
        "num_kept",
        "proposals",
        "offsets",
        "soft_nms_decay",
    ]

    max_span_length: int = 15
    windows: list[int] | None = field(default_factory=lambda: [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15])
    alpha1: float = 0.7
    alpha2: float = 1.0
    eta: float = 1.0
    negative_ratio: float | None = 5
    extra_negatives: int = 2
    gamma: float = 2.0
    classifier_gamma: float = 0.0
    lambda1: float = 1.0
    lambda2: float = 0.1
    lambda3: float = 1.0
    use_filter: bool = True
    use_regressor: bool = True
    filter_threshold: float = 1 / 6
    soft_nms_decay: float = 0.9
    soft_nms_iou: float = 0.6
    all_sizes: bool = False
    threshold: float | dict[str, float] | None = 0.5
    dropout: float = 0.5
    last_layers: int = 1
    lstm_size: int = 0
    vector_dim: int = 0
    vector_words: int = 0
    vectors_lowercase: bool = False
    char_size: int = 0
    pos_dim: int = 0
    pos_tags: list[str] = field(default_factory=list)
    pos_tagger: str | None = None

    def _check(self) -> None:
        super()._check()
        if self.windows is not None and not (
            isinstance(self.windows, list) and self.windows and all(isinstance(w, int) and w > 0 for w in self.windows)
        ):
            raise ValueError(f"windows={self.windows!r} must be a list of sizes in words, e.g. [1, 2, 3, 5].")
        if not self.seed_sizes:
            raise ValueError(
                f"windows={self.windows} are all larger than max_span_length={self.max_span_length}: there is no seed."
            )
        self.check_range("alpha1", "alpha2", "filter_threshold", "soft_nms_iou", least=0, most=1)
        self.check_inference({"soft_nms_decay": self.soft_nms_decay, "all_sizes": self.all_sizes})
        self.check_range("eta", "negative_ratio", "extra_negatives", "gamma", "classifier_gamma", least=0)
        self.check_range("lambda1", "lambda2", "lambda3", "lstm_size", "vector_dim", "char_size", "pos_dim", least=0)
        if self.lstm_size % 2:
            raise ValueError(f"lstm_size={self.lstm_size} must be even: one half for each direction.")
        if self.boundary_smoothing:
            raise ValueError(
                f"boundary_smoothing={self.boundary_smoothing}: locate_and_label weighs spans near an entity by eta "
                "instead. Set boundary_smoothing=0."
            )
        layers = None if self.encoder_config is None else self.encoder_config.num_hidden_layers
        if self.last_layers < 1 or (layers is not None and self.last_layers > layers):
            raise ValueError(f"last_layers={self.last_layers} must lie between 1 and the encoder's {layers}.")

    @property
    def seed_sizes(self) -> list[int]:
        """Sizes of the seeds, in words."""
        sizes = range(1, self.max_span_length + 1) if self.windows is None else sorted(set(self.windows))
        return [size for size in sizes if size <= self.max_span_length]

    def reach(self) -> Reach:
        """Seeds as they are; or moved to any length, of which none is learnt where no seed covers a share of α1."""
        if not self.use_regressor:
            return Reach(longest=self.max_span_length, sizes=None if self.all_sizes else tuple(self.seed_sizes))
        return Reach(learnt=int(self.seed_sizes[-1] / self.alpha1) if self.alpha1 else None)

    def check_inference(self, settings: dict[str, Any]) -> None:
        decay = settings["soft_nms_decay"]
        if not 0 <= decay <= 1:
            raise ValueError(f"soft_nms_decay={decay} must lie between 0 and 1.")
        if not isinstance(settings["all_sizes"], bool):
            raise ValueError(f"all_sizes={settings['all_sizes']!r} must be true or false.")

    @property
    def concatenated_size(self) -> int:
        """Of all that is known of a word, before the BiLSTM."""
        return self.encoder_config.hidden_size + self.pos_dim + self.vector_dim + 2 * self.char_size

    @property
    def hidden_size(self) -> int:
        """d, of h_i."""
        return self.lstm_size or self.concatenated_size

    def word_inputs(self) -> WordInputs | None:
        if not (self.vector_dim or self.char_size or self.pos_dim):
            return None
        return WordInputs(
            vectors=self.vector_dim > 0,
            lowercase=self.vectors_lowercase,
            characters=self.char_size > 0,
            pos_tags=self.pos_tags if self.pos_dim else None,
            pos_tagger=self.pos_tagger,
        )


@dataclass
class LocateAndLabelOutput(NestedNerOutput):
    """`logits (B, P, m + 1)` of the `spans (B, P, 2)` that were labelled, padded with -1; P differs by batch.

    Attributes:
        num_seeds: `(B,)` proposed spans.
        num_kept: `(B,)` those that passed the filter.
        proposals: `(N, 2)` start and end of these, sentence by sentence; N is the sum of `num_kept`.
        offsets: `(N, 2)` how far the regressor moves their boundaries, in words, before rounding.
        soft_nms_decay: `(B,)` u, if this call was given another than the configuration's.
    """

    spans: torch.Tensor | None = None
    num_seeds: torch.Tensor | None = None
    num_kept: torch.Tensor | None = None
    proposals: torch.Tensor | None = None
    offsets: torch.Tensor | None = None
    soft_nms_decay: torch.Tensor | None = None


class LocateAndLabelForNestedNer(NestedNerPreTrainedModel):
    """A two-stage identifier: seeds → filter → regressor → classifier → Soft-NMS.

    ```python
    >>> model = LocateAndLabelForNestedNer.from_encoder("bert-base-cased", labels=["PER", "ORG"], windows=[1, 2, 4, 8])
    >>> output = model(**batch)
    >>> output.num_kept.sum() / output.num_seeds.sum()  # what the filter let pass
    ```
    """

    config: LocateAndLabelConfig
    config_class = LocateAndLabelConfig
    inference_parameters = ("soft_nms_decay", "all_sizes")

    def __init__(self, config: LocateAndLabelConfig):
        super().__init__(config)
        size, dropout = config.hidden_size, config.dropout
        self.tokens = TokenRepresentation(config)
        self.filter = SpanMlp(size, 1, dropout, "inner") if config.use_filter else None
        self.regressor = SpanMlp(size, 2, dropout, "outer") if config.use_regressor else None
        self.classifier = SpanMlp(size, config.num_classes, dropout, "inner")
        self.post_init()

    @classmethod
    def from_encoder(cls, name_or_path: str, labels: list[str], *, vectors=None, **config):
        """Build the model on a pretrained encoder and, if given, word vectors.

        Args:
            vectors: word vectors with `words`, `table()` and `lowercase`, as from `hf_spanner.read_vectors`.
            **config: see the base class.
        """
        if vectors is not None:
            table = vectors.table()  # padding, unknown words, then the words
            config |= {"vector_words": len(vectors.words), "vector_dim": table.size(1)}
            config.setdefault("vectors_lowercase", vectors.lowercase)
        model = super().from_encoder(name_or_path, labels, **config)
        if model.tokens.vectors is not None and vectors is not None:
            model.tokens.vectors.fill(vectors.words, table[2:], table[1])
        return model

    # ------------------------------------------------------------------------------------------ token representation

    def run_encoder(self, input_ids: torch.Tensor | None, attention_mask: torch.Tensor, **kwargs: Any) -> ModelOutput:
        if self.config.last_layers == 1:
            return super().run_encoder(input_ids, attention_mask, **kwargs)
        encoded: Any = super().run_encoder(input_ids, attention_mask, **{**kwargs, "output_hidden_states": True})
        encoded.last_hidden_state = torch.stack(encoded.hidden_states[-self.config.last_layers :]).mean(0)
        return encoded

    def encode(
        self,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
        word_ids: torch.Tensor | None,
        num_words: torch.Tensor | None,
        word_mask: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> WordStates:
        refuse_graph(self.config.model_type, "how many spans it labels hangs on what its filter keeps")
        inputs = {name: kwargs.pop(name) for name in WORD_INPUTS if name in kwargs}
        states = super().encode(input_ids, attention_mask, word_ids, num_words, word_mask, **kwargs)
        states.words = self.tokens(states.words, states.lengths, **inputs)
        return states

    # --------------------------------------------------------------------------------------------- locate, then label

    def recognise(self, states: WordStates, gold: Gold | None) -> LocateAndLabelOutput:
        """Propose, filter, regress, label; `candidates` decodes. In training all examples pass the filter.

        Seeds hang on lengths and entities alone: they are chosen on the host, which asks the device for these at once.
        """
        reader, device = SpanReader(states.words, states.num_words), states.words.device
        entities = None
        if gold is not None:
            # The filter asks whether a span is an entity of any label: one that is not annotated would mislead it.
            gold.require_all_labels(self.config.model_type)
            entities = gold.entities
        is_example = gold is not None and self.training
        examples = gold.to("cpu") if gold is not None and is_example else None
        every_size = not self.training and states.inference["all_sizes"]
        seeds = self.propose(torch.tensor(states.lengths), None if examples is None else examples.entities, every_size)
        if examples is not None and examples.flat is not None:
            seeds = seeds.at(self.is_known(seeds, examples, self.config.alpha1, reader.length))
        longest, width = seeds.longest(), int(seeds.per_sentence(len(states.words)).max())
        seeds = seeds.to(device)
        filter_logits, proposals = self.filter_seeds(reader, seeds, longest, keep_all=is_example)
        offsets, spans = self.regress(reader, proposals, longest, keep_all=is_example)
        logits = self.classifier(reader, spans)  # (N, classes), Eq. 8-10
        output = self.collect(seeds, proposals, spans, logits, len(states.words), width if is_example else None)
        if offsets is not None:
            output.proposals, output.offsets = torch.stack(proposals[1:], dim=-1), offsets.detach().float()
        if (decay := states.inference["soft_nms_decay"]) != self.config.soft_nms_decay:
            output.soft_nms_decay = states.words.new_full((len(states.words),), decay)
        if gold is not None and entities is not None:  # Eq. 17
            output.losses = {}
            if filter_logits is not None:
                output.losses["filter"] = self.config.lambda1 * self.filter_loss(seeds, filter_logits, entities)
            if offsets is not None:
                output.losses["regressor"] = self.config.lambda2 * self.regressor_loss(proposals, offsets, entities)
            known = self.is_known(spans, gold, self.config.alpha2, reader.length)
            classifier_loss = self.classifier_loss(spans, logits, entities, known)
            output.losses["classifier"] = self.config.lambda3 * classifier_loss
        return output

    def propose(self, num_words: torch.Tensor, entities: torch.Tensor | None, every_size: bool = False) -> Spans:
        """Seeds of all windows; as examples, the gold spans too, and only a sample of the seeds without an entity."""
        sizes = range(1, self.config.max_span_length + 1) if every_size else self.config.seed_sizes
        seeds = seed_spans(num_words, sizes)
        if entities is None:
            return seeds
        seeds = join(seeds, gold_spans(entities))
        if self.config.negative_ratio is None:
            return seeds
        positive = pair(seeds, entities, len(self.config.labels)).iou >= self.config.alpha1
        ratio, extra = self.config.negative_ratio, self.config.extra_negatives
        return seeds.at(sample_examples(positive, seeds.row, len(num_words), ratio, extra))

    def is_known(self, spans: Spans, gold: Gold, alpha: float, length: int) -> torch.Tensor:
        """`(N,)`: all spans but those inside or across an entity of a flat annotation, unless they belong to it."""
        if gold.flat is None:
            return torch.ones_like(spans.start, dtype=torch.bool)
        inside = cuts(gold.entities, length)
        unknown = gold.flat[spans.row] & (inside[spans.row, spans.start] | inside[spans.row, spans.end])
        return ~unknown | (pair(spans, gold.entities, len(self.config.labels)).iou >= alpha)

    def filter_seeds(
        self, reader: SpanReader, seeds: Spans, longest: int, keep_all: bool
    ) -> tuple[torch.Tensor | None, Spans]:
        """The filter's logits `(N,)` and the seeds that pass (Eq. 1-3)."""
        if self.filter is None:
            return None, seeds
        logits = self.filter(reader, seeds, longest).squeeze(-1)
        passed = logits.float().sigmoid() >= self.config.filter_threshold
        return logits, seeds if keep_all else seeds.at(passed)

    def regress(
        self, reader: SpanReader, spans: Spans, longest: int, keep_all: bool
    ) -> tuple[torch.Tensor | None, Spans]:
        """The regressor's offsets `(N, 2)` and the spans as they are then (Eq. 4-7), each once: two seeds may meet."""
        if self.regressor is None:
            return None, spans
        offsets = self.regressor(reader, spans, longest)
        spans = shift(spans, offsets, reader.num_words)
        return offsets, spans if keep_all else distinct(spans)

    def collect(
        self, seeds: Spans, proposals: Spans, spans: Spans, logits: torch.Tensor, batch: int, width: int | None = None
    ) -> LocateAndLabelOutput:
        """Lists of spans and their logits as tensors `(B, P, ·)`, the form in which they leave the model; the device
        is asked for P, the `width`, where it is not known."""
        counts = spans.per_sentence(batch)
        width = int(counts.max()) if width is None else width
        place = torch.arange(len(spans.row), device=counts.device) - (counts.cumsum(0) - counts)[spans.row]
        cells = spans.row * width + place
        places = torch.stack([spans.start, spans.end], dim=-1)
        return LocateAndLabelOutput(
            logits=fill_cells(logits, cells, batch, width),
            spans=fill_cells(places + 1, cells, batch, width) - 1,
            num_seeds=seeds.per_sentence(batch),
            num_kept=proposals.per_sentence(batch),
        )

    # ------------------------------------------------------------------------------------------------------- training

    def filter_loss(self, seeds: Spans, logits: torch.Tensor, entities: torch.Tensor) -> torch.Tensor:
        """Eq. 12: focal loss, seeds weighted by their IoU."""
        overlap, alpha = pair(seeds, entities, len(self.config.labels)).iou, self.config.alpha1
        losses = focal_loss(logits.float(), overlap >= alpha, self.config.gamma)
        return self.reduce(soft_weights(overlap, alpha, self.config.eta) * losses, len(entities))

    def regressor_loss(self, proposals: Spans, offsets: torch.Tensor, entities: torch.Tensor) -> torch.Tensor:
        """Eq. 13 over the proposals that belong to an entity. Nothing is rounded or clamped: it can always repair."""
        gold = pair(proposals, entities, len(self.config.labels))
        gold_start, gold_end = gold.start.float(), gold.end.float()
        left, right = offsets.float().unbind(-1)
        targets = torch.stack([gold_start - proposals.start, gold_end - proposals.end], dim=-1)
        losses = boundary_loss(offsets.float(), targets)
        losses = losses + overlap_loss(proposals.start + left, proposals.end + right, gold_start, gold_end)
        return self.reduce(losses, len(entities), gold.iou >= self.config.alpha1)

    def classifier_loss(
        self, spans: Spans, logits: torch.Tensor, entities: torch.Tensor, known: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Eq. 16 for the (known) spans as they are after the shift, paired anew: a gold span is never taught to be
        none."""
        gold, alpha = pair(spans, entities, len(self.config.labels)), self.config.alpha2
        labels = gold.labels & (gold.iou >= alpha).unsqueeze(1)  # (N, m)
        if self.config.multi_label:
            losses = nn.functional.binary_cross_entropy_with_logits(logits.float(), labels.float(), reduction="none")
            losses = losses.sum(-1)
        else:
            losses = focal_loss(logits.float(), first_labels(labels), self.config.classifier_gamma)
        return self.reduce(soft_weights(gold.iou, alpha, self.config.eta) * losses, len(entities), known)

    def reduce(self, losses: torch.Tensor, sentences: int, mask: torch.Tensor | None = None) -> torch.Tensor:
        """The losses `(N,)` of the spans where `mask` is true as one number: their mean, or their sum by sentence."""
        if self.config.loss_reduction == "sentence":
            return (losses if mask is None else losses * mask).sum() / sentences
        return mean(losses, mask)

    # ------------------------------------------------------------------------------------------------------- decoding

    def candidates(self, output: LocateAndLabelOutput, thresholds: list[float | None]) -> list[list[Entity]]:
        """The best label of each span, Soft-NMS, and what still reaches its threshold then.

        A score can only fall: what does not reach the threshold before need not be looked at.
        """
        assert output.spans is not None and output.logits is not None  # `collect` gives both
        mask = output.spans[..., 0] >= 0
        logits, mask = output.logits.unsqueeze(2), mask.unsqueeze(2)  # a grid whose "words" are the spans
        config = self.config
        found = span_candidates(logits, mask, config.labels, thresholds, config.multi_label, config.label_types)
        limits = dict(zip(self.config.labels, thresholds, strict=True))
        decay = self.config.soft_nms_decay if output.soft_nms_decay is None else float(output.soft_nms_decay[0])
        result = []
        for places, entities in zip(output.spans.tolist(), found, strict=True):
            entities = [Entity(places[e.start][0], places[e.start][1], e.label, e.score) for e in entities]
            entities = soft_nms(entities, decay, self.config.soft_nms_iou)
            result.append([e for e in entities if e.score >= (limits[e.label] or 0)])
        return result


def mean(losses: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Of the losses `(N,)` where `mask` is true; 0, with a gradient, of nothing."""
    if mask is None:
        return losses.sum() / max(len(losses), 1)
    return (losses * mask).sum() / mask.sum().clamp(min=1)
