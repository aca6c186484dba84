"""How close DSpERT's span Transformer comes to its bare matrix products, and how far it leaves the plain loop behind.

```
python -m hf_spanner.benchmarks.dspert_speed --max-span 10
```
"""

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn
from transformers import BertConfig, BertModel

from ..modeling.dspert_aggregation import Aggregation
from ..modeling.dspert_transformer import SpanTransformer, encoder_layers, read_block
from ..modeling.spans import list_spans


def per_size_loop(
    transformer: SpanTransformer, hidden_states: Sequence[torch.Tensor], max_span: int, encoder: nn.Module
) -> dict[int, torch.Tensor]:
    """The span Transformer written down plainly: for each size k, windows of k words that every block projects anew.

    Returns the top states of all windows by their size, `(B, T - k + 1, d)`. It is the reference that the fast path is
    tested against.
    """
    layers = encoder_layers(encoder)[-transformer.depth :] if transformer.blocks is None else transformer.blocks
    batch, length, d = hidden_states[0].shape
    states = {}
    for k in range(2, min(max_span, length) + 1):
        windows = [h.unfold(1, k, 1).transpose(2, 3).flatten(0, 1) for h in hidden_states]  # (B·(T - k + 1), k, d)
        s = aggregate_windows(transformer.aggregate, windows[0])
        for layer, window in zip(layers, windows, strict=True):
            block = read_block(layer, encoder)
            q, key, value = (
                projection(x).unflatten(-1, (block.heads, -1)).transpose(1, 2)  # (B·(T - k + 1), h, 1 or k, d/h)
                for projection, x in ((block.query, s.unsqueeze(1)), (block.key, window), (block.value, window))
            )
            weights = (q @ key.transpose(2, 3) / q.size(-1) ** 0.5).softmax(-1)
            context = (weights @ value).transpose(1, 2).flatten(1)
            s = block.feed_forward(block.after_attention(context, s))
        states[k] = s.view(batch, length - k + 1, d)
    return states


def aggregate_windows(aggregation: Aggregation, windows: torch.Tensor) -> torch.Tensor:
    """`(N, k, d)` → `(N, d)`: each window by itself."""
    if aggregation.how == "max":
        return windows.amax(1)
    if aggregation.how == "mean":
        return windows.mean(1)
    return (aggregation.scores(windows).softmax(1) * windows).sum(1)


def bare_products(batch: int, length: int, max_span: int, d: int, layers: int) -> Callable[[], None]:
    """The products that no formulation avoids: query, output and the two of the FFN (d_ff = 4d) for every span of 2..K
    words inside a text, key and value for every word, in every layer with its own matrices; nothing else."""
    spans = batch * sum(length - k + 1 for k in range(2, min(max_span, length) + 1))
    span, inner, word = torch.randn(spans, d), torch.randn(spans, 4 * d), torch.randn(batch * length, d)
    factors = [
        (left, torch.randn(out, left.size(1)))
        for _ in range(layers)
        for left, out in ((word, d), (word, d), (span, d), (span, d), (span, 4 * d), (inner, d))
    ]

    def run() -> None:
        for left, right in factors:
            left @ right.T

    return run


@torch.inference_mode()
def compare_forward(
    T: int = 40, K: int = 10, d: int = 384, layers: int = 6, heads: int = 12, batch: int = 8, repeats: int = 10
) -> dict[str, float]:
    """Time the span Transformer, the bare products and the plain loop in turn, `repeats` times, and compare the best.

    All three get sentences of T words, so that nothing is saved on padding. Time is the processor's, not the clock's:
    waiting for a busy machine does not count (what its caches lose to others still does).

    Returns:
        `ours_over_products` (1 is the limit), `loop_over_ours` (how many times faster than the loop), and the best
        `seconds` of ours.
    """
    config = BertConfig(
        vocab_size=64, hidden_size=d, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * d
    )
    encoder = BertModel(config, add_pooling_layer=False)
    transformer = SpanTransformer(encoder, layers, "max", dropout=0.0, share_weights=False).eval()
    hidden_states = [torch.randn(batch, T, d) for _ in range(layers)]
    num_words = torch.full((batch,), T)

    def ours() -> None:
        transformer(hidden_states, list_spans(num_words, T, 2, K), K, encoder)

    runs = {
        "products": bare_products(batch, T, K, d, layers),
        "ours": ours,
        "loop": lambda: per_size_loop(transformer, hidden_states, K, encoder),
    }
    # glibc gives freed memory back to the system at once until it has seen a large block come and go, as any process
    # has that read a batch or two.
    torch.empty(7_500_000)
    best = dict.fromkeys(runs, float("inf"))
    for repeat in range(repeats + 1):  # the first warms up
        for name, run in runs.items():
            started = time.process_time()
            run()
            if repeat:
                best[name] = min(best[name], time.process_time() - started)
    return {
        "ours_over_products": best["ours"] / best["products"],
        "loop_over_ours": best["loop"] / best["ours"],
        "seconds": best["ours"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of DSpERT's span Transformer, as ratios.", allow_abbrev=False)
    parser.add_argument("--words", type=int, default=40, help="words a text, T")
    parser.add_argument("--max-span", type=int, nargs="+", default=[10, 25], help="K, one or several")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="texts at once, one or several")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for max_span in args.max_span:
        for batch in args.batch:
            ratios = compare_forward(T=args.words, K=max_span, batch=batch, repeats=args.repeats)
            print(
                f"T={args.words} K={max_span} d=384, 6 layers, batch {batch}, {args.threads} thread(s): "
                f"{ratios['ours_over_products']:.2f} times the bare products, "
                f"{ratios['loop_over_ours']:.2f} times faster than the loop"
            )


if __name__ == "__main__":
    main()
