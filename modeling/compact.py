"""A table of embeddings in a quarter of its size: eight bits a number and one scale a row."""

import torch
from torch import nn


class Int8Embedding(nn.Module):
    """An embedding whose row v is `weight[v] · scale[v]`, for inference: half of a small encoder is its vocabulary."""

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
