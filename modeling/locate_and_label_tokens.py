"""Word vectors, characters, part-of-speech tags and a BiLSTM beside and above the encoder (Shen et al., 2021, 2.1)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .bilstm import BiLstm
from .spans import fill_cells, list_spans
from .word_inputs import NUM_CHARACTERS, word_key


class WordVectors(nn.Module):
    """A frozen table of word vectors that is read by `word_key`: words and vectors both lie in the model's weights."""

    keys: torch.Tensor
    vectors: torch.Tensor

    def __init__(self, num_words: int, dim: int):
        super().__init__()
        self.register_buffer("keys", torch.zeros(num_words, dtype=torch.long))  # (V,) ascending
        self.register_buffer("vectors", torch.zeros(num_words + 1, dim))  # the last is for unknown words

    def fill(self, words: Sequence[str], vectors: torch.Tensor, unknown: torch.Tensor) -> None:
        """Take over vectors `(V, d)` of `words`, and that of all others, `(d,)`."""
        keys, order = torch.tensor([word_key(word) for word in words]).sort()
        self.keys.copy_(keys)
        self.vectors.copy_(torch.cat([vectors[order], unknown.unsqueeze(0)]))

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """`(B, T)` keys → `(B, T, d)`."""
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return nn.functional.embedding(torch.where(self.keys[place] == keys, place, len(self.keys)), self.vectors)


class CharacterLstm(nn.Module):
    """A BiLSTM over each word's characters; a word is the mean of its characters' states, `2 * size` numbers."""

    def __init__(self, size: int):
        super().__init__()
        self.embedding = nn.Embedding(NUM_CHARACTERS, size, padding_idx=0)
        self.lstm = nn.LSTM(size, size, bidirectional=True, batch_first=True)

    def forward(self, char_ids: torch.Tensor) -> torch.Tensor:
        """`(B, T, C)`, padded with 0 → `(B, T, 2 * size)`, zero for words without characters."""
        batch, length, _ = char_ids.shape
        ids = char_ids.flatten(0, 1)  # (B * T, C)
        counts = (ids > 0).sum(1)
        # An LSTM cannot read nothing: of a word without characters it reads one blank, which is then left out.
        packed = pack_padded_sequence(
            self.embedding(ids), counts.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)  # (B * T, C, 2 * size)
        inside = torch.arange(states.size(1), device=ids.device) < counts.unsqueeze(1)
        total = (states * inside.unsqueeze(-1)).sum(1)
        return (total / counts.clamp(min=1).unsqueeze(1)).unflatten(0, (batch, length))


class TokenRepresentation(nn.Module):
    """h_i = BiLSTM([x^lm; x^pos; x^w; x^char]), each part but the encoder's x^lm only if the configuration has it."""

    def __init__(self, config: Any):
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.pos = nn.Embedding(len(config.pos_tags) + 2, config.pos_dim, padding_idx=0) if config.pos_dim else None
        self.vectors = WordVectors(config.vector_words, config.vector_dim) if config.vector_dim else None
        self.characters = CharacterLstm(config.char_size) if config.char_size else None
        self.lstm = BiLstm(config.concatenated_size, config.lstm_size, dropout=0.0) if config.lstm_size else None

    def forward(self, words: torch.Tensor, num_words: Sequence[int], **inputs: torch.Tensor) -> torch.Tensor:
        """Words `(B, T, d)` of the encoder → `(B, T, h)`; `inputs` are those of `word_inputs.py`."""
        parts, length = [words], words.size(1)
        for name, module in (("pos_ids", self.pos), ("word_keys", self.vectors), ("char_ids", self.characters)):
            if module is not None:
                if name not in inputs:
                    raise ValueError(
                        f"This model reads {name!r} beside the sub-words: let `NestedNerDataset` or the 'nested-ner' "
                        "pipeline make the batch."
                    )
                parts.append(self.dropout(module(inputs[name][:, :length])).to(words))
        words = torch.cat(parts, dim=-1) if len(parts) > 1 else words
        if self.lstm is None:
            return words
        ones = list_spans(
            num_words, length, 1, 1, words.device
        )  # the words that there are, in the order of packed sequences
        states = self.lstm(words.flatten(0, 1).index_select(0, ones.cell), ones)
        return fill_cells(states, ones.cell, *words.shape[:2])
