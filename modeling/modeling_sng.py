"""SNG types a span from its own words alone: word vectors → BiLSTM → attention → Linear, no encoder."""

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .configuration_nested_ner import NestedNerConfig, Reach, check_labels
from .decoding import Entity
from .graphs import at_most
from .losses import Gold, grid_loss, reduce_loss
from .modeling_nested_ner import NestedNerOutput, NestedNerPreTrainedModel, WordStates
from .sng_networks import SPAN_NETWORKS, GivenSpans


class SngConfig(NestedNerConfig):
    """SNG. Build the model with `SngForNestedNer.from_vectors`.

    Args:
        vocab_size, vector_dim: of the table of word vectors; row 0 stands for padding, row 1 for unknown words.
        freeze_vectors: leave the word vectors as they are (the paper) or train them too.
        span_network: `"bilstm_attention"` (the paper) or `"bag"`, the baseline: Linear(mean of the span's vectors).
        lstm_size: of the hidden state, in each direction.
        spans: `"all"`: a recogniser, every span of at most `max_span_length` words gets a type or none. `"gold"`: as
            published, the spans are given (as `entities`) and only typed; nothing can be found in a text.
        max_negatives: spans without an entity drawn from a sentence in training (`spans="all"`); None for all of them.
        full_batch: sum the loss over spans in place of the mean, so that gradients accumulated over the whole training
            data are the paper's (one Adam step an epoch).
        dropout: on the word vectors; the paper has none.
        max_subwords: words read at once; there are no positions, so this only bounds memory.
    """

    model_type = "sng"
    keys_to_ignore_at_inference = [*NestedNerConfig.keys_to_ignore_at_inference, "spans"]
    sub_configs = {}

    max_span_length: int = 10
    vocab_size: int = 2
    vector_dim: int = 300
    freeze_vectors: bool = True
    span_network: str = "bilstm_attention"
    lstm_size: int = 200
    spans: str = "all"
    max_negatives: int | None = 100
    full_batch: bool = False
    dropout: float = 0.0
    max_subwords: int = 1024
    word_pooling: str = "first"
    pad_token_id: int | None = 0

    @property
    def hidden_size(self) -> int:
        return self.vector_dim

    @property
    def num_classes(self) -> int:
        return len(self.labels) if self.task == "typing" else super().num_classes

    @property
    def task(self) -> Literal["finding", "typing"]:
        return "typing" if self.spans == "gold" else "finding"

    def reach(self) -> Reach:
        return Reach() if self.task == "typing" else super().reach()

    def _check(self) -> None:
        if self.spans == "gold":
            self.overlap = "any"  # spans that are given all stand
        super()._check()
        self.check_choice("span_network", SPAN_NETWORKS)
        self.check_choice("spans", ("all", "gold"))
        if self.max_span_length is None:
            raise ValueError("max_span_length=None: sng needs a number, as it looks at all spans up to that length.")
        if self.max_negatives is not None and self.max_negatives < 1:
            raise ValueError(f"max_negatives={self.max_negatives} must be at least 1, or None for all spans.")
        if self.spans == "gold" and (self.multi_label or self.bundle_weight is not None):
            raise ValueError(
                "spans='gold' gives each given span one type: multi_label and bundle_weight do not go with it."
            )


@dataclass
class SngOutput(NestedNerOutput):
    """With `spans="gold"`, `logits` is `(B, E, m)` for the given `spans (B, E, 2)`, padded with -1; no none class."""

    spans: torch.Tensor | None = None


class WordVectorTable(nn.Module):
    """The place of an encoder: a table of word vectors. Frozen, it is a buffer, and stays one when it is loaded."""

    vectors: torch.Tensor

    def __init__(self, config: SngConfig):
        super().__init__()
        self.pad = config.pad_token_id
        self._shown: list[nn.Embedding] = []  # the table as others know one: in a list, so that it is no part of it
        vectors = torch.zeros(config.vocab_size, config.vector_dim)
        if config.freeze_vectors:
            self.register_buffer("vectors", vectors)
        else:
            self.vectors = nn.Parameter(vectors)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table as an `nn.Embedding` that shares its numbers (and, unless they are frozen, its gradients)."""
        if not self._shown or self._shown[0].weight.data_ptr() != self.vectors.data_ptr():
            self._shown = [nn.Embedding.from_pretrained(self.vectors, padding_idx=self.pad)]
        if isinstance(self.vectors, nn.Parameter):
            self._shown[0].weight = self.vectors
        return self._shown[0]

    def set_input_embeddings(self, embedding: nn.Embedding) -> None:
        """Take the numbers of another table, frozen if these are."""
        self.vectors = embedding.weight if isinstance(self.vectors, nn.Parameter) else embedding.weight.detach()
        self._shown = [embedding]

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool = False,
        **kwargs: Any,
    ) -> BaseModelOutput:
        states: Any = inputs_embeds
        if input_ids is not None:
            states = nn.functional.embedding(input_ids, self.vectors, self.pad)  # (B, S, d)
        return BaseModelOutput(last_hidden_state=states, hidden_states=(states,) if output_hidden_states else None)


class SngForNestedNer(NestedNerPreTrainedModel):
    """Word vectors → span network → a type (or none) for each span.

    ```python
    >>> vectors = read_vectors("glove.6B.300d.txt.gz")  # of hf_spanner
    >>> model = SngForNestedNer.from_vectors(vectors.table(), labels=["PER", "ORG"])
    >>> tokenizer = vectors.tokenizer()
    ```
    """

    config: SngConfig
    config_class = SngConfig

    def __init__(self, config: SngConfig):
        super().__init__(config)
        self.dropout = nn.Dropout(config.dropout)
        self.network = SPAN_NETWORKS[config.span_network](config, config.num_classes)
        self.post_init()

    def make_encoder(self, config: SngConfig) -> nn.Module:
        return WordVectorTable(config)

    @classmethod
    def from_encoder(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError("sng has no encoder: build it with `SngForNestedNer.from_vectors(table, labels=[...])`.")

    @classmethod
    def from_vectors(cls, table: torch.Tensor, labels: list[str], **config: Any) -> "SngForNestedNer":
        """Build the model on word vectors; everything else starts at random.

        Args:
            table: `(V, d)`; row 0 is for padding, row 1 for unknown words, as in `read_vectors(...).table()`.
            labels: the entity types.
            **config: fields of [`SngConfig`].
        """
        sizes = {"vocab_size": table.shape[0], "vector_dim": table.shape[1]}
        for field, size in sizes.items():
            if config.setdefault(field, size) != size:
                raise ValueError(f"{field}={config[field]}, but the word vectors have {size}: leave {field} out.")
        model = cls(cls.config_class(**{"labels": check_labels(labels), **config}))
        with torch.no_grad():
            model.encoder.vectors.copy_(torch.as_tensor(table))
        return model

    def recognise(self, states: WordStates, gold: Gold | None) -> SngOutput:
        words = self.dropout(states.words)
        if self.task == "typing":
            return self._type_given_spans(words, gold)
        logits = self.network(words, at_most(self.config.max_span_length, words.size(1)))
        losses = None
        if gold is not None:
            total, count = grid_loss(
                logits, states.num_words, gold, self.config, self.config.max_negatives if self.training else None
            )
            losses = {"spans": self._reduced(total, count, len(words))}
        return SngOutput(losses=losses, logits=logits)

    def _reduced(self, total: torch.Tensor, count: torch.Tensor, sentences: int) -> torch.Tensor:
        return total if self.config.full_batch else reduce_loss(total, count, sentences, self.config.loss_reduction)

    def _type_given_spans(self, words: torch.Tensor, gold: Gold | None) -> SngOutput:
        """As published. A given span without a label (-1) is typed and costs nothing."""
        if gold is None:
            raise ValueError(
                "This SNG model types spans that are given and cannot find entities in a text (spans='gold', as "
                "published): pass `entities`, or train with spans='all'."
            )
        start, end, label = gold.entities.unbind(-1)  # (B, E)
        given = (start >= 0) & (end <= words.size(1))
        logits = words.new_zeros(*start.shape, len(self.config.labels))
        if given.any():
            row = given.nonzero(as_tuple=True)[0]
            typed, _ = self.network.score(GivenSpans.of(words, row, start[given], end[given]))
            logits = logits.masked_scatter(given.unsqueeze(-1), typed.to(logits))
        else:  # a batch may hold no entity: its gradient is zero, but there is one
            logits = logits + 0 * sum(parameter.sum() for parameter in self.network.parameters())
        known = given & (label >= 0)
        total = nn.functional.cross_entropy(logits[known].float(), label[known], reduction="sum")
        losses = {"types": self._reduced(total, known.sum(), len(words))}
        spans = torch.where(given.unsqueeze(-1), gold.entities[..., :2], -1)
        return SngOutput(losses=losses, logits=logits, spans=spans)

    def candidates(self, output: SngOutput, thresholds: list[float | None]) -> list[list[Entity]]:
        """With given spans, the best type of each, if it reaches its threshold."""
        if self.task != "typing":
            return super().candidates(output, thresholds)
        assert output.logits is not None and output.spans is not None  # `_type_given_spans` gives both
        scores, labels = output.logits.float().softmax(-1).max(-1)  # (B, E)
        found: list[list[Entity]] = []
        for spans, row_scores, row_labels in zip(output.spans.tolist(), scores.tolist(), labels.tolist(), strict=True):
            entities = zip(spans, row_scores, row_labels, strict=True)
            found.append(
                [
                    Entity(start, end, self.config.labels[label], score)
                    for (start, end), score, label in entities
                    if start >= 0 and score >= (thresholds[label] or 0)
                ]
            )
        return found

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.LSTM, nn.Linear)):
            module.reset_parameters()  # torch's own, as in the paper's code
        elif isinstance(module, WordVectorTable):
            nn.init.normal_(module.vectors)
        else:
            super()._init_weights(module)
