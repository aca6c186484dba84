"""LoRA through peft: train a few low-rank matrices inside the encoder in place of the encoder itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel

if TYPE_CHECKING:
    from peft import LoraModel


def add_lora(
    model: NestedNerPreTrainedModel, rank: int, alpha: float | None = None, dropout: float = 0.1
) -> LoraModel:
    """Put LoRA matrices beside every linear layer of the encoder and freeze the encoder; all else trains as it did.

    Args:
        rank: of the matrices.
        alpha: their weight, `alpha / rank`; twice the rank by default.

    Returns:
        peft's tuner; after training, `merge_lora(tuner)` gives the model back, as if it had been trained whole.
    """
    try:
        from peft import LoraConfig, LoraModel
    except ImportError as error:
        raise ImportError("LoRA needs peft: `pip install hf_spanner[peft]`.") from error
    if rank < 1:
        raise ValueError(f"lora_rank={rank} must be at least 1.")
    names = [name for name, module in model.encoder.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ValueError(f"{model.config.model_type} has no encoder with linear layers that LoRA could train.")
    weight: Any = alpha or 2 * rank  # peft counts in whole numbers, and takes others
    config = LoraConfig(
        r=rank,
        lora_alpha=weight,
        lora_dropout=dropout,
        target_modules=[f"encoder.{name}" for name in names],
    )
    trained = [p for name, p in model.named_parameters() if not name.startswith("encoder.") and p.requires_grad]
    tuner = LoraModel(model, config, "default")
    for parameter in trained:  # peft freezes everything
        parameter.requires_grad = True
    return tuner


def merge_lora(tuner: LoraModel) -> NestedNerPreTrainedModel:
    """The model with the matrices added to the weights they stood beside."""
    model: Any = tuner.merge_and_unload()
    return model
