"""Which parameters train how fast, whatever has been wrapped around the model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import nn

# What data parallelism, compilation, checkpointing and LoRA call the model that they wrap.
WRAPPERS = ("module", "_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "base_model", "model")


def model_of(model: Any) -> Any:
    """The model inside whatever data parallelism, compilation or LoRA has wrapped around it."""
    while not hasattr(
        type(model), "pretrained_prefixes"
    ):  # a wrapper has the attributes of what is inside, its class not
        model = next(model._modules[name] for name in WRAPPERS if name in model._modules)
    return model


def unwrapped_name(name: str) -> str:
    """The name that a parameter has in the model itself, of whose parts some may be wrapped, too."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def parameter_groups(
    model: nn.Module,
    learning_rate: float,
    head_learning_rate: float | None = None,
    weight_decay: float = 0.0,
    decayed: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Groups for an optimizer: encoder and head, each with and without weight decay.

    ```python
    >>> optimizer = torch.optim.AdamW(parameter_groups(model, 5e-5, head_learning_rate=1e-3, weight_decay=0.01))
    ```

    Args:
        model: a nested NER model, or what data parallelism, compilation or LoRA has wrapped around it.
        learning_rate: of what comes from the pretrained encoder.
        head_learning_rate: of everything else; by default the same.
        weight_decay: of the parameters that are `decayed`, by default all but vectors (biases and norms).
    """
    head_rate = head_learning_rate or learning_rate
    prefixes = tuple(model_of(model).pretrained_prefixes)
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if head_rate != learning_rate and name.rpartition(".")[2] == "_flat_param":
            raise ValueError(
                f"head_learning_rate={head_rate} needs parameters that FSDP keeps apart: set fsdp_use_orig_params."
            )
        if parameter.requires_grad:
            decay = parameter.ndim > 1 if decayed is None else name in decayed
            groups.setdefault((unwrapped_name(name).startswith(prefixes), decay), []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": learning_rate if in_encoder else head_rate,
            "weight_decay": weight_decay if decay else 0.0,
        }
        for (in_encoder, decay), parameters in groups.items()
    ]
