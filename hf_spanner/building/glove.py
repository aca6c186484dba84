"""GloVe (Pennington et al., 2014) trained on one's own text: minutes on one core for a corpus of the size of GENIA."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from scipy import sparse

from .vectors import WordVectors

logger = logging.getLogger(__name__)

BLOCK = 256  # rows of the co-occurrence matrix fitted at once,
CELLS = 2**24  # or fewer, so that no block has more cells than this


def train_glove(
    sentences: Iterable[Sequence[str]],
    dim: int = 300,
    epochs: int = 25,
    window: int = 10,
    min_count: int = 2,
    learning_rate: float = 0.05,
    x_max: float = 10.0,
    alpha: float = 0.75,
    seed: int = 42,
) -> WordVectors:
    """Word vectors of the words in `sentences`.

    Args:
        sentences: lists of words; co-occurrence ends at the end of a sentence.
        window: words to either side that count, the d-th of them 1/d.
        min_count: rarer words get no vector of their own. With 2, a network trained on the same text meets unknown
            words in training as it will in new text.
        x_max, alpha: the weight of a pair is min(1, (count / x_max)^alpha).
        learning_rate: of AdaGrad.

    ```python
    >>> train_glove([["the", "cat", "sat"], ["the", "dog", "sat"]], dim=8, min_count=1).words
    ['the', 'sat', 'cat', 'dog']
    ```
    """
    for name, value in {"dim": dim, "epochs": epochs, "window": window, "min_count": min_count}.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1.")
    words, counts = cooccurrences(sentences, window, min_count)
    logger.info("GloVe: %s words, %s pairs within %d words", f"{len(words):,}", f"{counts.nnz:,}", window)
    matrix = fit(counts, dim, epochs, learning_rate, x_max, alpha, seed)
    return WordVectors(words, matrix)


def cooccurrences(
    sentences: Iterable[Sequence[str]], window: int, min_count: int
) -> tuple[list[str], sparse.csr_array]:
    """The words that occur `min_count` times, the most frequent first, and a symmetric matrix of how near they are."""
    sentences = list(sentences)
    frequency = Counter(word for sentence in sentences for word in sentence)
    words = [word for word, count in sorted(frequency.items(), key=lambda item: -item[1]) if count >= min_count]
    if not words:
        raise ValueError(
            f"No word occurs min_count={min_count} times in {len(sentences):,} sentences: give more text, or a lower "
            "min_count."
        )
    index = {word: row for row, word in enumerate(words)}
    # Rare words are left out of the text before distances are counted, as in the original.
    place = np.array([(i, index[word]) for i, sentence in enumerate(sentences) for word in sentence if word in index])
    sentence, word = place.T
    rows, columns, near = [], [], []
    for distance in range(1, window + 1):
        same = sentence[distance:] == sentence[:-distance]
        rows.append(word[:-distance][same])
        columns.append(word[distance:][same])
        near.append(np.full(same.sum(), 1 / distance, dtype=np.float32))
    shape = (len(words), len(words))
    counts = sparse.coo_array((np.concatenate(near), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    return words, sparse.csr_array(counts.tocsr() + counts.T.tocsr())


def fit(
    counts: sparse.csr_array, dim: int, epochs: int, learning_rate: float, x_max: float, alpha: float, seed: int
) -> np.ndarray:
    """Minimise Σ f(X_ij) (w_i·v_j + b_i + c_j - log X_ij)² over the pairs that occur, and return w + v, `(V, dim)`.

    A step takes a block of rows with the columns in which they are not empty: dense products of small matrices, which
    are faster than gathering single pairs, and never a dense (V, V). The matrix being symmetric, each block serves
    twice, with w and v in either role.
    """
    generator = torch.Generator().manual_seed(seed)
    size = counts.shape[0]
    # The last two columns of w are its bias and a constant 1, those of v a constant 1 and its bias: w·v holds both.
    tables = [(torch.rand(size, dim + 2, generator=generator) - 0.5) / dim for _ in range(2)]
    squares = [torch.ones(size, dim + 2) for _ in range(2)]  # AdaGrad's sums
    for table, square, constant in zip(tables, squares, (dim + 1, dim), strict=True):
        table[:, constant], square[:, constant] = 1.0, torch.inf  # of which AdaGrad moves nothing
    height = max(1, min(BLOCK, CELLS // size))
    blocks = [(start, min(start + height, size)) for start in range(0, size, height)]
    for epoch in range(epochs):
        total = 0.0
        for number in torch.randperm(len(blocks), generator=generator).tolist():
            start, end = blocks[number]
            block = counts[start:end]
            occurring = np.unique(block.indices)
            if not len(occurring):
                continue
            pairs = torch.from_numpy(block[:, occurring].toarray())  # (R, C)
            weight = (pairs / x_max).clamp(max=1) ** alpha  # 0 for pairs that do not occur
            logarithm = pairs.clamp(min=1e-10).log()
            rows, columns = torch.arange(start, end), torch.from_numpy(occurring).long()
            for side in (0, 1):
                w, v = tables[side][rows], tables[1 - side][columns]
                error = w @ v.T - logarithm
                residual = weight * error
                total += (residual * error).sum().item()
                for of, which, gradient in ((side, rows, residual @ v), (1 - side, columns, residual.T @ w)):
                    square = squares[of][which] + gradient**2
                    squares[of][which] = square
                    tables[of][which] -= learning_rate * gradient / square.sqrt()
        logger.info("GloVe: epoch %d/%d, loss %.4f", epoch + 1, epochs, total / max(2 * counts.nnz, 1))
    return (tables[0] + tables[1])[:, :dim].numpy()
