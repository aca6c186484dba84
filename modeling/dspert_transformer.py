"""The span Transformer of DSpERT (Zhu et al., 2023): spans are the queries, the words inside them the keys and values.

Its blocks are the encoder's own, copied or shared; only the attention's inputs differ. One set serves all sizes.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from .dspert_aggregation import Aggregation
from .graphs import is_exporting
from .graphs import windows as windows_in_graph
from .spans import SpanList, fill_cells

PIECE = 512  # spans that go through an FFN at once when no gradient is needed


class Block(NamedTuple):
    """The parts of a post-norm encoder block, whatever its family calls them."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    heads: int
    dropout: nn.Dropout  # of the attention weights
    after_attention: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # c, s → LayerNorm(s + W_o c)
    feed_forward: Callable[[torch.Tensor], torch.Tensor]  # s → LayerNorm(s + FFN(s))


def _bert_block(layer: Any) -> Block:
    attention = layer.attention.self
    return Block(
        query=attention.query,
        key=attention.key,
        value=attention.value,
        heads=attention.num_attention_heads,
        dropout=attention.dropout,
        after_attention=layer.attention.output,
        feed_forward=layer.feed_forward_chunk,
    )


def _distilbert_block(layer: Any) -> Block:
    attention = layer.attention
    return Block(
        query=attention.q_lin,
        key=attention.k_lin,
        value=attention.v_lin,
        heads=attention.n_heads,
        dropout=attention.dropout,
        after_attention=lambda context, spans: layer.sa_layer_norm(attention.out_lin(context) + spans),
        feed_forward=lambda spans: layer.output_layer_norm(layer.ffn.ff_chunk(spans) + spans),
    )


_BLOCKS = {
    "bert": _bert_block,
    "camembert": _bert_block,
    "distilbert": _distilbert_block,
    "electra": _bert_block,
    "roberta": _bert_block,
    "xlm-roberta": _bert_block,
}


def encoder_layers(encoder: Any) -> nn.ModuleList:
    """The blocks of an encoder whose blocks can be reused, or an error that names the families that can."""
    model_type = getattr(encoder.config, "model_type", None)
    if model_type not in _BLOCKS:
        raise ValueError(
            f"The blocks of a {model_type!r} encoder cannot be reused as a span Transformer: choose an encoder of one "
            f"of the types {sorted(_BLOCKS)}, or span_depth=0, which works with every encoder."
        )
    return encoder.transformer.layer if model_type == "distilbert" else encoder.encoder.layer


def read_block(layer: nn.Module, encoder: Any) -> Block:
    """The parts of a block (the encoder's own or a copy) of this encoder's family."""
    return _BLOCKS[encoder.config.model_type](layer)


def span_block(
    block: Block, queries: torch.Tensor, words: torch.Tensor, spans: SpanList, max_span: int
) -> torch.Tensor:
    """One block, s^l = SpanTrBlock(s^{l-1}, H^{l-1}_[i:i+k], H^{l-1}_[i:i+k]) (Eq. 3), for all spans of 2..K words.

    Keys and values are projected once a word, not once a span. The K words from a start on are a view on them, and in
    this window a span of k words sees the first k: all sizes attend in one call under a causal mask.

    Multiply-adds a span and layer: d² for the query, d² for the output, 2·d·d_ff for the FFN, 2·K·d for the attention,
    and 2·d² / (K - 1) for its share of keys and values (2·d² a word). With d_ff = 4d the first three, 10·d², are all
    but a few percent. A window projected anew for each span of k words would add 2·k·d². Memory is O(T·K·d).

    Args:
        queries: `(N, d)`, in the order of `spans`.
        words: `(B·T, d)`, all sentences in one row. A window may reach into the next sentence; no listed span does.
        spans: the spans of 2..K words.
        max_span: K.
    """
    heads, sizes = block.heads, max_span - 1

    def windows(projected: torch.Tensor) -> torch.Tensor:
        padded = F.pad(projected, (0, 0, 0, max_span - 1))
        if is_exporting():
            seen = windows_in_graph(padded.unsqueeze(0), max_span, 1, projected.size(0)).squeeze(0)  # (B·T, K, d)
            return seen.unflatten(2, (heads, -1)).transpose(1, 2)
        padded = padded.unflatten(1, (heads, -1))  # (B·T + K - 1, h, d/h)
        return padded.unfold(0, max_span, 1).transpose(2, 3)  # (B·T, h, K, d/h), a view

    q = fill_cells(block.query(queries), spans.cell, words.size(0), sizes)
    q = q.unflatten(2, (heads, -1)).transpose(1, 2)  # (B·T, h, K - 1, d/h)
    k, v = windows(block.key(words)), windows(block.value(words))
    sees = torch.ones(sizes, max_span, dtype=torch.bool, device=q.device).tril(1)  # size k, in row k - 2, sees k words
    dropout = block.dropout.p if block.dropout.training else 0.0
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=sees, dropout_p=dropout)
    context = context.transpose(1, 2).reshape(words.size(0) * sizes, -1).index_select(0, spans.cell)  # (N, d)
    return _in_pieces(lambda c, s: block.feed_forward(block.after_attention(c, s)), context, queries)


def _in_pieces(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """`function` of `(N, d)` inputs, on a CPU without gradients in pieces of N small enough for its cache.

    The FFN's inner states, (N, d_ff), are the largest tensor of a block; written to memory and read again they cost a
    tenth of its time.
    """
    x = inputs[0]
    if x.device.type != "cpu" or torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return function(*inputs)
    return torch.cat([function(*piece) for piece in zip(*(x.split(PIECE) for x in inputs), strict=True)])


class SpanTransformer(nn.Module):
    """s^0 = Aggregating(H^{L-L̃}) (Eq. 2), then L̃ span blocks over H^{L-L̃} .. H^{L-1} (Eq. 3), for spans of 2..K words.

    Args:
        encoder: whose last L̃ blocks are copied (into `self.blocks`, with their dropouts) or, with `share_weights`,
            used in place: `forward` is then given the encoder and nothing is registered twice.
        depth: L̃.
        aggregation: how s^0 is made.
        dropout: on the words before that. One draw a word and batch, not one a span: spans share it, as a window of
            words drawn anew for every span would need O(T·K²·d) memory.
    """

    _gradient_checkpointing_func: Callable[..., torch.Tensor]  # set by transformers

    def __init__(self, encoder: Any, depth: int, aggregation: str, dropout: float, share_weights: bool):
        super().__init__()
        self.depth = depth
        layers = encoder_layers(encoder)[-depth:]
        self.blocks = None if share_weights else nn.ModuleList(copy.deepcopy(layer) for layer in layers)
        self.aggregate = Aggregation(aggregation, encoder.config.hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.gradient_checkpointing = False

    def copy_weights(self, encoder: nn.Module) -> None:
        """Start the copied blocks with the encoder's weights."""
        for mine, layer in zip(self.blocks or (), encoder_layers(encoder)[-self.depth :]):
            mine.load_state_dict(layer.state_dict())

    def forward(
        self, hidden_states: Sequence[torch.Tensor], spans: SpanList, max_span: int, encoder: nn.Module
    ) -> torch.Tensor:
        """The top span states `(N, d)`, from the word states `(B, T, d)` of layers L-L̃ .. L-1."""
        pooled = list(self.aggregate(self.dropout(hidden_states[0]), max_span))[1:]
        states = torch.stack(pooled, dim=2).flatten(0, 2).index_select(0, spans.cell)  # (N, d)
        layers = encoder_layers(encoder)[-self.depth :] if self.blocks is None else self.blocks
        for layer, words in zip(layers, hidden_states, strict=True):
            arguments = (read_block(layer, encoder), states, words.flatten(0, 1), spans, max_span)
            if self.gradient_checkpointing and self.training:
                states = self._gradient_checkpointing_func(span_block, *arguments)
            else:
                states = span_block(*arguments)
        return states
