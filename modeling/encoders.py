"""Pretrained encoders: how they are built, how far they read, their layers, and their vocabulary in fewer bits."""

import inspect
from typing import Any

import torch
from torch import nn
from transformers import AutoModel
from transformers.models.auto.modeling_auto import MODEL_MAPPING


def encoder_config_of(saved: Any) -> Any:
    """The encoder's part of a saved configuration: the whole, unless it is that of a nested NER model.

    So an approach can start from the encoder that another was trained with.
    """
    config = getattr(saved, "encoder_config", saved)
    if config is None:
        raise ValueError(f"{saved._name_or_path!r} is a {saved.model_type} model: it has no encoder to start from.")
    return config


def load_encoder(name_or_path: str, saved: Any, **hub: Any) -> Any:
    """The encoder itself, in single precision, from a checkpoint with the configuration `saved`."""
    kwargs = {"config": saved, "dtype": torch.float32, **hub}
    if encoder_config_of(saved) is saved:
        return AutoModel.from_pretrained(name_or_path, **kwargs, **encoder_kwargs(saved))
    model = AutoModel.from_pretrained(name_or_path, **kwargs)
    model.restore_embeddings()
    return model.encoder


def last_layers(encoder: Any, number: int) -> nn.ModuleList:
    """The last so many of the encoder's layers."""
    depth = encoder.config.num_hidden_layers
    if number > depth:
        raise ValueError(f"fresh_layers={number} is more than the encoder's {depth} layers.")
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module[depth - number :]
    raise ValueError(f"The layers of a {encoder.config.model_type} encoder were not found: leave fresh_layers out.")


def max_positions(encoder: Any) -> int:
    """The most sub-words that the encoder's position table holds, special tokens included (512 if it has no table)."""
    for name, module in encoder.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa and its kin number positions from behind the padding index, so the first rows are never reached.
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return getattr(encoder.config, "max_position_embeddings", None) or 512


def encoder_kwargs(encoder_config: Any) -> dict[str, Any]:
    """No pooler: nothing uses it, and unused parameters break data-parallel training. Refuses what reads no text."""
    encoder_class: Any = MODEL_MAPPING.get(type(encoder_config), None)
    encoder_class = encoder_class[0] if isinstance(encoder_class, (list, tuple)) else encoder_class
    if getattr(encoder_class, "main_input_name", "") != "input_ids" or not hasattr(encoder_config, "hidden_size"):
        raise ValueError(f"{encoder_config.model_type!r} is no encoder of text: name one that is, such as a BERT.")
    has_pooler = "add_pooling_layer" in inspect.signature(encoder_class.__init__).parameters
    return {"add_pooling_layer": False} if has_pooler else {}


class Int8Embedding(nn.Module):
    """An embedding whose row v is `weight[v] · scale[v]`, for inference: half of a small encoder is its vocabulary."""

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.register_buffer("weight", torch.zeros(num_embeddings, embedding_dim, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(num_embeddings, 1))

    @classmethod
    def of(cls, embedding: nn.Embedding) -> "Int8Embedding":
        """The table rounded, each row to 255 steps of its largest number."""
        table = embedding.weight.detach().float()
        new = cls(*table.shape)
        new.scale.copy_(table.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127)
        new.weight.copy_((table / new.scale).round())
        return new.to(table.device)

    def table(self) -> nn.Embedding:
        """An ordinary embedding with the same rows, which can be trained."""
        return nn.Embedding.from_pretrained(self.weight * self.scale.float(), freeze=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids] * self.scale[ids]


class CompactVocabulary:
    """For a model with `encoder` and `config`: its encoder's vocabulary in eight bits, and back."""

    encoder: Any
    config: Any

    def compact_embeddings(self) -> None:
        """Keep the encoder's vocabulary in eight bits from now on: half the size on disk, rounded once."""
        if not self.config.int8_embeddings:
            if self.config.encoder_config is None:
                raise ValueError(f"A {self.config.model_type} model has no encoder whose vocabulary could be compact.")
            self.encoder.set_input_embeddings(Int8Embedding.of(self.encoder.get_input_embeddings()))
            self.config.int8_embeddings = True

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *args: Any, **kwargs: Any) -> nn.Embedding:
        """As always; a vocabulary in eight bits must be made trainable first."""
        if self.config.int8_embeddings and new_num_tokens is not None:
            raise ValueError("A vocabulary in eight bits cannot be resized: call `model.restore_embeddings()` before.")
        resized: Any = super()
        return resized.resize_token_embeddings(new_num_tokens, *args, **kwargs)

    def restore_embeddings(self) -> None:
        """Make the encoder's vocabulary trainable again."""
        if self.config.int8_embeddings:
            self.encoder.set_input_embeddings(self.encoder.get_input_embeddings().table())
            self.config.int8_embeddings = False
