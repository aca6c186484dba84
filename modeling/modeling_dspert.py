"""DSpERT (Zhu et al., 2023): deep span representations from a span Transformer, and shallow counterparts (L̃ = 0)."""

import math
from typing import Any

import torch
from torch import nn
from transformers import initialization as init
from transformers.utils import ModelOutput

from .bilstm import BiLstm
from .configuration_nested_ner import NestedNerConfig, Reach
from .dspert_aggregation import AGGREGATIONS, Aggregation
from .dspert_transformer import SpanTransformer
from .graphs import at_most, in_graph, is_exporting
from .losses import Gold, grid_loss, reduce_loss
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .pooling import pool_words
from .span_units import SPAN_UNITS, gold_in_subwords, in_subwords, on_words
from .spans import SpanList, fill_cells, list_spans, span_mask


class DspertConfig(NestedNerConfig):
    """DSpERT. The paper's K is `max_span_length`: 25 for ACE, 18 for GENIA, 16 for KBP17 and OntoNotes 5, 10 for
    CoNLL03, counted in sub-words.

    Args:
        span_depth: L̃, the number of span Transformer blocks, which start as the encoder's last L̃. None for all L; 0
            for the shallow model, whose spans are aggregated from the top word states.
        share_weights: use the encoder's own blocks for spans instead of copies of them.
        aggregation: `"max"`, `"mean"`, `"multiplicative"` or `"additive"`: of the words at layer L - L̃ into the first
            span states; with L̃ = 0, of the top words (after their BiLSTM) into the span vectors.
        span_unit: `"word"`, or `"subword"` as in the authors' code: spans (and `max_span_length`) then count in
            sub-words, and predictions that begin or end inside a word are dropped.
        bilstm: `"separate"` for a BiLSTM over words and another over all longer spans, along spans of equal size;
            `"shared"` for one, `"none"` for none.
        lstm_size: of both directions together.
        size_embedding_dim: of w_k.
        size_embedding_rows: rows of its table; larger sizes share the last. None for K. (The authors take the 97.5%
            quantile of gold lengths.)
        ffn_size: of the pre-logit vector z.
        shallow_ffn: whether the shallow model has this FFN too, so that z compares like with like. Without (as in the
            authors' code, with `dropout=0.5`), words and sizes are dropped out and classified by one affine map.
        dropout: before the FFN (and before the tagging head of a bundled model).
        init_dropout: on the words that are aggregated into the first span states.
        lstm_dropout: before the BiLSTMs.
        pre_logit_dropout: on z.
    """

    model_type = "dspert"

    max_span_length: int = 10
    span_depth: int | None = None
    share_weights: bool = False
    aggregation: str = "max"
    span_unit: str = "word"
    bilstm: str = "separate"
    lstm_size: int = 400
    size_embedding_dim: int = 25
    size_embedding_rows: int | None = None
    ffn_size: int = 300
    shallow_ffn: bool = True
    boundary_smoothing: float = 0.1
    loss_reduction: str = "sentence"
    encoder_dropout: float | None = 0.2
    dropout: float = 0.4
    init_dropout: float = 0.2
    lstm_dropout: float = 0.5
    pre_logit_dropout: float = 0.2

    def _check(self) -> None:
        super()._check()
        self.check_choice("aggregation", AGGREGATIONS)
        self.check_choice("span_unit", SPAN_UNITS)
        self.check_choice("bilstm", ("separate", "shared", "none"))
        if self.lstm_size % 2:
            raise ValueError(f"lstm_size={self.lstm_size} must be even: one half for each direction.")
        layers = None if self.encoder_config is None else self.encoder_config.num_hidden_layers
        if self.span_depth is not None and (self.span_depth < 0 or (layers is not None and self.span_depth > layers)):
            raise ValueError(
                f"span_depth={self.span_depth} must lie between 0 (shallow) and the {layers} layers of the encoder; "
                "None takes all of them."
            )

    def reach(self) -> Reach:
        return Reach(longest=self.max_span_length, unit=self.span_unit)

    @property
    def depth(self) -> int:
        """L̃"""
        return self.encoder_config.num_hidden_layers if self.span_depth is None else self.span_depth


class SpanClassifier(nn.Module):
    """z = FFN(s ⊕ w_k) (Eq. 5), logits = W z + b (Eq. 6). Without an FFN z is s ⊕ w_k itself."""

    def __init__(self, config: DspertConfig, in_features: int, classes: int):
        super().__init__()
        self.sizes = nn.Embedding(config.size_embedding_rows or config.max_span_length, config.size_embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        z_size = in_features + config.size_embedding_dim
        self.ffn = None
        if config.depth > 0 or config.shallow_ffn:
            self.ffn = nn.Sequential(nn.Linear(z_size, config.ffn_size), nn.ReLU())
            self.pre_logit_dropout = nn.Dropout(config.pre_logit_dropout)
            z_size = config.ffn_size
        self.output = nn.Linear(z_size, classes)

    def forward(self, vectors: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """z `(N, d_z)` and logits `(N, classes)` of spans `(N, d)` of `sizes (N,)` words."""
        w = self.sizes((sizes - 1).clamp(max=self.sizes.num_embeddings - 1))
        if self.ffn is None:  # the vectors have been dropped out word by word
            z = torch.cat([vectors, self.dropout(w)], dim=-1)
            return z, self.output(z)
        z = self.ffn(self.dropout(torch.cat([vectors, w], dim=-1)))
        return z, self.output(self.pre_logit_dropout(z))

    def initialise(self) -> None:
        bound = math.sqrt(3 / self.sizes.embedding_dim)
        init.uniform_(self.sizes.weight, -bound, bound)
        if self.ffn is not None:
            hidden: Any = self.ffn[0]
            init.kaiming_uniform_(hidden.weight, nonlinearity="relu")
            init.zeros_(hidden.bias)
        init.xavier_uniform_(self.output.weight)
        init.zeros_(self.output.bias)


class DspertForNestedNer(NestedNerPreTrainedModel):
    """Words → span Transformer → BiLSTM along equal sizes → size embedding, FFN → none or one of the types.

    The loss is summed over all spans of a sentence and averaged over sentences. The encoder's pooler is not built:
    with RoBERTa-base it is 0.59M of the 212.93M parameters that the paper counts.

    ```python
    >>> model = DspertForNestedNer.from_encoder("roberta-base", labels=["PER", "ORG"], max_span_length=25)
    >>> output = model(**batch, output_span_representations=True)
    >>> output.span_representations  # z, (B, T, K, 300)
    ```
    """

    config: DspertConfig
    config_class = DspertConfig
    pretrained_prefixes = ("encoder.", "span_transformer.blocks.")

    def __init__(self, config: DspertConfig):
        super().__init__(config)
        self.span_transformer: SpanTransformer | None = None
        self.aggregate: Aggregation | None = None
        self.word_lstm: BiLstm | None = None
        self.span_lstm: BiLstm | None = None
        size = config.hidden_size
        if config.depth > 0:
            self.span_transformer = SpanTransformer(
                self.encoder, config.depth, config.aggregation, config.init_dropout, config.share_weights
            )
        if config.bilstm != "none":
            self.word_lstm = BiLstm(size, config.lstm_size, config.lstm_dropout)
            if config.bilstm == "separate" and config.depth > 0:
                self.span_lstm = BiLstm(size, config.lstm_size, config.lstm_dropout)
            size = config.lstm_size
        if config.depth == 0:
            self.aggregate = Aggregation(config.aggregation, size)
        self.classifier = SpanClassifier(config, size, config.num_classes)
        self.post_init()
        if config.depth:  # spans go through the parts of a block: FSDP must not gather weights block by block
            self._no_split_modules = set()

    @property
    def output_layer(self) -> nn.Linear:
        return self.classifier.output

    @property
    def may_be_put_aside(self) -> tuple[str, ...]:
        """The span Transformer goes through the blocks of the encoder, or of copies, part by part."""
        return () if self.config.depth else super().may_be_put_aside

    def after_encoder_loaded(self) -> None:
        if self.span_transformer is not None:
            self.span_transformer.copy_weights(self.encoder)

    def run_encoder(self, input_ids: torch.Tensor | None, attention_mask: torch.Tensor, **kwargs: Any) -> ModelOutput:
        if self.config.depth > 0:  # the span Transformer reads all layers
            kwargs["output_hidden_states"] = True
        return super().run_encoder(input_ids, attention_mask, **kwargs)

    def recognise(self, states: WordStates, gold: Gold | None) -> NestedNerOutput:
        units, layers = self.units(states)
        batch, length, _ = units.words.shape
        max_span = at_most(self.config.max_span_length, length)
        device = units.words.device
        ones = list_spans(units.lengths, length, 1, 1, device)
        top = units.words.flatten(0, 1).index_select(0, ones.cell)  # (n, d), S^{L,1} = H^L (Eq. 4)
        words = self.along_lines(self.word_lstm, top, ones)
        if self.span_transformer is None:
            spans = list_spans(units.lengths, length, 1, max_span, device)
            vectors = self.shallow(words, ones, spans, max_span, (batch, length))
            row, start, size = spans.row, spans.start, spans.size
        else:
            longest = max(max_span, 2)  # in a batch of one-word texts the list of longer spans is empty
            spans = list_spans(units.lengths, length, 2, longest, device)
            deep = self.span_transformer(layers, spans, longest, self.encoder)
            vectors = torch.cat([words, self.along_lines(self.span_lstm or self.word_lstm, deep, spans)])
            row, start, size = (torch.cat(pair) for pair in zip(ones[:3], spans[:3], strict=True))
        z, scores = self.classifier(vectors, size)  # (N, d_z), (N, classes)

        cells = (row * length + start) * max_span + size - 1
        logits = fill_cells(scores, cells, batch, length, max_span)
        if in_graph() and not is_exporting():  # every cell is computed; ONNX Runtime's reader does not look at all
            logits = logits * span_mask(units.num_words, length, max_span).unsqueeze(-1)
        output = NestedNerOutput(logits=logits)
        if states.output_span_representations:
            output.span_representations = fill_cells(z, cells, batch, length, max_span)
        if gold is not None:
            if self.config.span_unit == "subword":
                gold = gold_in_subwords(gold, states)
            total, count = grid_loss(logits, units.num_words, gold, self.config)
            output.losses = {"spans": reduce_loss(total, count, batch, self.config.loss_reduction)}
        if self.config.span_unit == "subword":
            on_words(output, states, self.config.max_span_length, has_none=not self.config.multi_label)
        return output

    @staticmethod
    def along_lines(lstm: BiLstm | None, vectors: torch.Tensor, spans: SpanList) -> torch.Tensor:
        return vectors if lstm is None else lstm(vectors, spans)

    def shallow(
        self, words: torch.Tensor, ones: SpanList, spans: SpanList, max_span: int, shape: tuple[int, int]
    ) -> torch.Tensor:
        """L̃ = 0: spans of 1..K words aggregated from the top words, `(N, d)`."""
        assert self.aggregate is not None  # made where L̃ = 0
        if self.classifier.ffn is None:
            words = self.classifier.dropout(words)
        pooled = list(self.aggregate(fill_cells(words, ones.cell, *shape), max_span))
        return torch.stack(pooled, dim=2).flatten(0, 2).index_select(0, spans.cell)

    def units(self, states: WordStates) -> tuple[WordStates, list[torch.Tensor]]:
        """What spans are made of: the states with `words` in the unit of spans, and these at layers L-L̃ .. L-1."""
        pooling = self.config.word_pooling
        if self.config.span_unit == "subword":
            states, pooling = in_subwords(states), "first"
        below = states.encoder.hidden_states[-self.config.depth - 1 : -1] if self.config.depth else ()
        return states, [pool_words(layer, states.word_ids, states.words.size(1), pooling) for layer in below]
