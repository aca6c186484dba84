"""Layers that tell sentences apart and not words: found by the share of variance within sentences."""

import torch
from transformers import AutoModel

from hf_spanner.building.probing import collapsed_layers, variance_within

WORDS = [
    ["the", "mayor", "of", "New", "York"],
    ["a", "gene", "and", "a", "receptor"],
    ["he", "met", "her", "in", "May"],
]
SENTENCES = [{"tokens": words} for words in WORDS]


def test_an_ordinary_encoder_has_no_such_layer(encoder_folder, tokenizer):
    shares = variance_within(encoder_folder, tokenizer, WORDS)
    assert len(shares) == 1 + AutoModel.from_pretrained(encoder_folder).config.num_hidden_layers
    assert all(0.3 < share <= 1 for share in shares)
    assert collapsed_layers(encoder_folder, tokenizer, SENTENCES, 0.3) == 0


def test_a_layer_in_which_all_words_are_the_sentence(monkeypatch, encoder_folder, tokenizer):
    """Words of a sentence are its first word there: no variance is within."""

    class Encoder(torch.nn.Module):
        def forward(self, input_ids, attention_mask, output_hidden_states):
            torch.manual_seed(0)
            words = torch.randn(*input_ids.shape, 8)
            return type("Output", (), {"hidden_states": (words, words[:, :1].expand_as(words))})

    monkeypatch.setattr("hf_spanner.building.probing.load_encoder", lambda *args: Encoder())
    first, last = variance_within(encoder_folder, tokenizer, WORDS)
    assert first > 0.5 and last < 1e-6


def test_the_last_layers_are_counted(monkeypatch, encoder_folder, tokenizer):
    monkeypatch.setattr("hf_spanner.building.probing.variance_within", lambda *args: [0.9, 0.8, 0.2, 0.1])
    assert collapsed_layers(encoder_folder, tokenizer, SENTENCES, 0.3) == 2
    monkeypatch.setattr("hf_spanner.building.probing.variance_within", lambda *args: [0.1, 0.1])
    assert collapsed_layers(encoder_folder, tokenizer, SENTENCES, 0.3) == 1  # never the embeddings


def test_one_sentence_says_nothing(encoder_folder, tokenizer):
    assert collapsed_layers(encoder_folder, tokenizer, SENTENCES[:1], 0.3) == 0
