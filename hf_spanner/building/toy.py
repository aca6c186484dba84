"""A toy encoder made on the spot: seconds instead of a download, where nothing has to be found."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make_toy_encoder(
    folder: str | Path,
    texts: Iterable[str],
    *,
    vocab_size: int = 1000,
    hidden_size: int = 64,
    num_layers: int = 2,
    max_length: int = 256,
    seed: int = 0,
) -> str:
    """Save a small BERT with random weights and a cased WordPiece tokenizer learnt from `texts`; returns the folder.

    It is used like any pretrained encoder but knows nothing: all that a model finds on it, it has learnt in training.

    ```python
    >>> encoder = make_toy_encoder("toy", ["the mayor of New York"])
    >>> SpanNerForNestedNer.from_encoder(encoder, labels=["PER", "LOC"])
    ```
    """
    tokenizer = train_wordpiece(texts, vocab_size)
    tokenizer.model_max_length = max_length
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=max(1, hidden_size // 16),
        intermediate_size=2 * hidden_size,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return str(folder)


def train_wordpiece(texts: Iterable[str], vocab_size: int = 1000) -> PreTrainedTokenizerFast:
    """A cased WordPiece tokenizer with BERT's special tokens, learnt from `texts`: of the same texts the same one.

    (The trainer of `tokenizers` is not used: which of two equally frequent pairs it joins is another in every run.)
    """
    normalizer, cutter = normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()
    words = Counter(
        word for text in texts for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text)) if word
    )
    vocab = {piece: number for number, piece in enumerate([*SPECIAL, *_pieces(words, vocab_size - len(SPECIAL))])}
    backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizer, cutter
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def _pieces(words: Counter[str], number: int) -> list[str]:
    """The letters of some words, and what the most frequent pairs of pieces make when they are joined one after the
    other; of equally frequent pairs the first in the alphabet."""
    spelled = {word: [word[0], *(f"##{letter}" for letter in word[1:])] for word in sorted(words)}
    pieces = dict.fromkeys(sorted({piece for spelling in spelled.values() for piece in spelling}))
    counts: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def count(word: str, times: int) -> None:
        for pair in pairwise(spelled[word]):
            counts[pair] += times * words[word]
            places[pair].add(word)

    for word in spelled:
        count(word, 1)
    while len(pieces) < number and counts:
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if not counts[best]:
            break
        joined = best[0] + best[1].removeprefix("##")
        pieces[joined] = None
        for word in places.pop(best):
            count(word, -1)
            spelled[word] = _join(spelled[word], best, joined)
            count(word, 1)
        del counts[best]
    return list(pieces)


def _join(spelling: list[str], pair: tuple[str, str], joined: str) -> list[str]:
    result: list[str] = []
    for piece in spelling:
        if result and (result[-1], piece) == pair:
            result[-1] = joined
        else:
            result.append(piece)
    return result
