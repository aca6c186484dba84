"""How often a training step makes the host wait for the device, counted without a GPU.

A GPU works through a queue that the host fills. Whatever needs a value on the host (`.item()`, `if tensor:`), or a
size that hangs on values (`nonzero`, a mask as an index), waits until the queue is empty, and the GPU then waits for
the host. `count_host_syncs` runs on the CPU and counts what would wait:

```
python -m hf_spanner.benchmarks.host_syncs                    # a table in Markdown
python -m hf_spanner.benchmarks.host_syncs --where dspert     # and the lines of code that wait
```
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig

from ..auto import APPROACHES
from ..modeling.reading import NestedNerCollator

aten = torch.ops.aten
HOST, GPU = torch.device("cpu"), torch.device("cpu", 0)
# What a size or a number of Python hangs on.
VALUES = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
}
VALUES |= {"equal"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
TO_HOST = {"tolist", "cpu", "numpy", "__array__"}
# What takes a host's tensor beside the device's: indices are copied over, a packed sequence's steps are the host's.
MIXES = {"__getitem__", "__setitem__", "to", "copy_", "_pack_padded_sequence", "_pad_packed_sequence", "lstm"}
MIXES |= {"pack_padded_sequence", "pad_packed_sequence", "type_as"}


def _is_on_host(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "_is_on_host", False)


def _tensors(arguments: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]


def _line() -> str:
    """The line of this project's modelling (or, failing that, of the encoder) that is being run."""
    frame, other = sys._getframe(2), "backward"
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.parent.name == "modeling" and "transformers" not in file.parts:
            return f"{file.name}:{frame.f_lineno} {frame.f_code.co_name}"
        if other == "backward" and "transformers" in file.parts:
            other = f"transformers/{file.name} {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return other


class _Ops(TorchDispatchMode):
    """Counts, forward and backward, the operators whose result has a size or is a number that hangs on values."""

    def __init__(self, syncs: Counter[str]):
        super().__init__()
        self.syncs = syncs

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, tensors = func.overloadpacket.__name__, _tensors((args, kwargs))
        if any(not _is_on_host(x) for x in tensors):
            masks = name in INDEXING and any(x.dtype in (torch.bool, torch.uint8) for x in _tensors(args[1]))
            sizes = name == "repeat_interleave" and (kwargs or {}).get("output_size") is None
            if name in VALUES or masks or sizes:
                self.syncs[f"{_line()}: {name}"] += 1
        return func(*args, **(kwargs or {}))


class _Calls(TorchFunctionMode):
    """Tells the host's tensors from the device's, which here all lie in one memory, and counts the ways to the host.

    The host's are those made without a `device`, or of nothing but these; `.cpu()` and `.to("cpu")` lead there. All
    others say that their device is `cpu:0`, which stands for the GPU. What mixes the two would fail on one.
    """

    def __init__(self, syncs: Counter[str]):
        super().__init__()
        self.syncs = syncs

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func == torch.Tensor.device.__get__:
            return HOST if _is_on_host(args[0]) else GPU
        name, tensors = getattr(func, "__name__", str(func)), _tensors((args, kwargs))
        of_host = [_is_on_host(x) for x in tensors]
        large = [mine for mine, x in zip(of_host, tensors, strict=True) if x.ndim]  # a single number may join any
        if any(large) and not all(of_host) and name not in MIXES:
            raise RuntimeError(f"{_line()}: {name} mixes the host's tensors with the device's: a GPU refuses that.")
        device = kwargs.get("device")
        if name == "to":
            device = next((x for x in args[1:] if isinstance(x, (str, torch.device))), device)
            if len(args) > 1 and isinstance(args[1], torch.Tensor):  # to where that one is
                device = HOST if _is_on_host(args[1]) else GPU
        to_host = name in TO_HOST or (device is not None and torch.device(device) == HOST)
        into_host = name in ("copy_", "__setitem__") and _is_on_host(args[0])
        if (to_host or into_host) and not all(of_host):
            self.syncs[f"{_line()}: {name}"] += 1
        counted = dict(self.syncs)
        result = func(*args, **kwargs)
        if name == "one_hot" and (len(args) > 1 or "num_classes" in kwargs):  # a CPU checks the values, a GPU does not
            self.syncs.clear()
            self.syncs.update(counted)
        if name == "_pack_padded_sequence":
            result[1]._is_on_host = True  # the steps
        on_host = to_host or (all(of_host) and device is None)
        if isinstance(result, torch.Tensor) and any(result is x for x in tensors) and on_host != _is_on_host(result):
            result = aten.alias(result)  # on a GPU it would be another tensor
        if on_host:
            for x in _tensors(result):
                x._is_on_host = True  # type: ignore[attr-defined]
        return result


@contextmanager
def count_host_syncs() -> Iterator[Counter[str]]:
    """Counts what would wait for a GPU in its block, by line of code.

    ```python
    >>> with count_host_syncs() as syncs:
    ...     model(**batch).loss.backward()
    >>> syncs.total()
    2
    ```
    """
    syncs: Counter[str] = Counter()
    with _Ops(syncs), _Calls(syncs):
        yield syncs


# ----------------------------------------------------------------------------------------------------------- the table

LABELS = ["PER", "ORG", "LOC"]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def small_model(approach: str) -> Any:
    """A model of an approach as it is by default, on an encoder of two small layers with random weights."""
    model_class: Any = APPROACHES[approach]
    if approach == "sng":
        return model_class.from_vectors(torch.randn(100, 32), LABELS)
    settings = {"attention_heads": 4} if approach == "diffusion_ner" else {}
    encoder = AutoConfig.for_model("bert", vocab_size=100, **SMALL).to_dict()
    return model_class(model_class.config_class(encoder_config=encoder, labels=LABELS, **settings))


def some_batch(size: int, words: int = 30) -> dict[str, Any]:
    """Texts of different lengths, each word two sub-words, with an entity or two in most; some are long."""
    items = []
    for i in range(size):
        n = words - i % 7
        ids, of_word = [[2, *[5 + j % 90 for j in range(2 * n)], 3], [-1, *[j // 2 for j in range(2 * n)], -1]]
        entities = [[(0, 3, 0), (1, 2, 1)], [], [(2, 2 + words // 2, 2)]][i % 3]
        items.append({"input_ids": ids, "attention_mask": [1] * len(ids), "word_ids": of_word, "num_words": n})
        items[-1]["entities"] = entities
    return NestedNerCollator(0)(items)


def syncs_of_a_step(model: Any, batch: dict[str, Any]) -> Counter[str]:
    """What waits in one step of training, forward and backward."""
    model.train()
    with count_host_syncs() as syncs:
        model(**batch).loss.backward()
    return syncs


def main() -> None:
    parser = argparse.ArgumentParser(description="Host synchronisations of a training step.", allow_abbrev=False)
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 32], help="sentences a step")
    parser.add_argument("--where", nargs="*", default=[], metavar="APPROACH", help="say which lines of these wait")
    args = parser.parse_args()
    print("| approach |", *(f"batch {size} |" for size in args.batch))
    print("|---|", "---|" * len(args.batch), sep="")
    for approach in sorted(APPROACHES):
        model = small_model(approach)
        counts = [syncs_of_a_step(model, some_batch(size)) for size in args.batch]
        print(f"| `{approach}` |", *(f"{count.total()} |" for count in counts))
        if approach in args.where:
            print(*(f"    {number} {line}" for line, number in counts[-1].most_common()), sep="\n")


if __name__ == "__main__":
    main()
