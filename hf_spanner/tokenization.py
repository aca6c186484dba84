"""Tokenizers that treat a word alone as they treat it inside a text."""

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase


def load_tokenizer(name_or_path: str | Path, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Load the tokenizer of an encoder or a saved model for word-by-word use.

    Byte-level tokenizers (RoBERTa, ModernBERT) tell a word in a text by the space before it, so they are loaded with
    `add_prefix_space=True`; the setting is saved with the model.
    """
    tokenizer = AutoTokenizer.from_pretrained(name_or_path, **kwargs)
    if _needs_space(tokenizer):
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, **{**kwargs, "add_prefix_space": True})
        if _needs_space(tokenizer):
            backend = tokenizer.backend_tokenizer
            backend.pre_tokenizer = _with_prefix_space(backend.pre_tokenizer)
            if _needs_space(tokenizer):
                raise ValueError(
                    f"The tokenizer of {name_or_path!r} treats a word after a space unlike a word alone, and "
                    "add_prefix_space=True does not change it. Use a fast tokenizer of the same model."
                )
    return tokenizer


def _needs_space(tokenizer) -> bool:
    """Whether " word" and "word" get different ids, as the two would inside a text and at its start."""
    alone, inside = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("word", " word"))
    return alone != inside


def _with_prefix_space(pre_tokenizer):
    """The same pre-tokenizer with its byte-level step adding a prefix space."""
    from tokenizers import pre_tokenizers

    if isinstance(pre_tokenizer, pre_tokenizers.ByteLevel):
        pre_tokenizer.add_prefix_space = True
    elif isinstance(pre_tokenizer, pre_tokenizers.Sequence):
        steps = [pre_tokenizer[i] for i in range(len(pre_tokenizer))]
        return pre_tokenizers.Sequence([_with_prefix_space(step) for step in steps])
    return pre_tokenizer
