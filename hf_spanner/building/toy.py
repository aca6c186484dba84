"""A toy encoder made on the spot: seconds instead of a download, where nothing has to be found."""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
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
    """A cased WordPiece tokenizer with BERT's special tokens, learnt from `texts`."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=list(SPECIAL), show_progress=False)
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
