"""Tiny encoders and tokenizers made on the fly: no downloads, seconds on one core."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
from hypothesis import settings
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, PreTrainedTokenizerFast

import hf_spanner  # noqa: F401

torch.set_num_threads(1)
# A slow moment of the machine is not a failure. (With CI set, hypothesis also draws the same examples every time.)
settings.register_profile("house", parent=settings(), deadline=None)
settings.load_profile("house")

TEXTS = [
    "the mayor of New York met the head of the Bank of England in London .",
    "The IL-2 receptor alpha gene is expressed in human T cells ; NF-kappa B binds it .",
    'Größe, naïve café, 東京 тест — don\'t 3.5 % U.S. (a.k.a.) "quoted"',
]
ALPHABET = sorted(set("".join(TEXTS)) | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))


def _wordpiece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=250, special_tokens=special, initial_alphabet=ALPHABET, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _wrap(tokenizer, special)


def _byte_bpe() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.BpeTrainer(
        vocab_size=350,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _wrap(tokenizer, special)


def _unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(
        vocab_size=150, special_tokens=special, unk_token="[UNK]", initial_alphabet=ALPHABET, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _wrap(tokenizer, special)


def _wordlevel() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(TEXTS, trainers.WordLevelTrainer(special_tokens=special, show_progress=False))
    return _wrap(tokenizer, special)


def _wrap(tokenizer: Tokenizer, special: list[str]) -> PreTrainedTokenizerFast:
    ids = {token: tokenizer.token_to_id(token) for token in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """All tests of a matrix row run in one process, so that its model is trained once."""
    for item in items:
        if row := getattr(item, "callspec", None) and item.callspec.params.get("row"):
            item.add_marker(pytest.mark.xdist_group(row.name))


TOKENIZERS = {"wordpiece": _wordpiece, "byte_bpe": _byte_bpe, "unigram": _unigram, "wordlevel": _wordlevel}


@pytest.fixture(scope="session", params=list(TOKENIZERS))
def any_tokenizer(request) -> PreTrainedTokenizerFast:
    """Each of four tokenizer families in turn."""
    return TOKENIZERS[request.param]()


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return _wordpiece()


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory, tokenizer) -> str:
    """A pretrained encoder as a user has it: a folder with weights and tokenizer."""
    from tests_support import encoder_config

    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    AutoModel.from_config(encoder_config("bert", len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
