"""From a model in torch to one that ONNX Runtime runs: its graph, fewer bits, and the check that nothing was lost."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..default import folder_of
from ..evaluation.predicting import predict_sentences
from ..exported import head_of, onnx_class, save_config
from ..hub.publishing import find, write_companions
from ..hub.record import RECORD, public, read_record
from ..loading import load_config, load_model
from ..modeling.folders import whole_or_not_at_all
from ..modeling.modeling_nested_ner import NestedNerPreTrainedModel
from ..modeling.reading import Reader
from ..onnx import DATA, GRAPH, HEAD, INPUTS, part_of
from .checking import Answers, Check, check
from .graph import OPSET, part_to_export, write_graph
from .quantising import PLAN, Choice, choose, fuse, kinds_of, quantise
from .smoothing import column_ranges, smooth

MOST_LOST = 0.002  # of F1, by int8
CHOSEN_ON = 600  # sentences at most, on which it is chosen how layers are rounded
CALIBRATED_ON = 64  # and on which activations are looked at


def export(
    source: str,
    folder: str | Path,
    sentences: Sequence[Mapping[str, Any]],
    int8: bool = False,
    data: str = "sample",
    most_lost: float = MOST_LOST,
    say: Callable[[str], None] = print,
) -> Check:
    """Write a model as one for ONNX Runtime; it is there only if it answers as the model does.

    Args:
        source: a folder, a Hub id, or `"default"`.
        folder: where to; it may hold an earlier export.
        sentences: on which both are compared, with their gold entities; on some of them int8 chooses its layers.
        int8: weights in eight bits, where that costs no more than `most_lost` of F1.
        data: what the sentences are called on the card.
        say: is told what happens.
    """
    folder = Path(folder)
    if (folder / "config.json").is_file() and part_of(load_config(str(folder))) is None:
        raise ValueError(f"{folder} holds a trained model, which an export would replace: choose another folder.")
    if not sentences:
        raise ValueError(f"{data} has no sentences to check the export on: name other data.")
    model, tokenizer = load_model(source)
    if part_of(model.config) is not None:
        raise ValueError(f"{source} is exported already: export the model that it was made from.")
    part = part_to_export(model)
    with whole_or_not_at_all(folder) as aside:
        modules = write_graph(model, tokenizer, aside)
        large = (aside / DATA).exists()
        if not large:  # the optimiser would read and write all of it
            fuse(aside / GRAPH)
        config = copy.deepcopy(model.config)
        config.onnx = {"part": part, "int8": int8, "opset": OPSET}
        config.onnx |= {"heads": list(config.heads), "longest": config.reach().longest}  # for who reads without torch
        config.int8_embeddings = False
        head_of(model, part, aside / HEAD)
        save_config(config, aside)
        tokenizer.save_pretrained(aside)
        choice = _quantise(aside, modules, model, tokenizer, sentences, most_lost) if int8 else None
        for line in choice.told() if choice is not None else ():
            say(line)
        exported = _open(aside, model, config)
        result = check(model, exported, tokenizer, sentences)
        for line in result.told():
            say(line)
        if result.differing and not int8:
            raise ValueError(
                f"The graph of {source} gives other entities than torch in {result.differing:,} of "
                f"{result.sentences:,} sentences of {data}, so {folder} was not written: please report this."
            )
        record = {
            **read_record(find(folder_of(source), RECORD)),
            "export": _about(source, data, config, choice, result),
        }
        write_companions(aside, exported, tokenizer, public(record), name=str(folder))
    return result


def _open(folder: Path, model: NestedNerPreTrainedModel, config: Any) -> Any:
    files = {name: folder / name for name in (GRAPH, DATA, HEAD) if (folder / name).exists()}
    return onnx_class(type(model))(copy.deepcopy(config), files)


def _quantise(
    folder: Path,
    modules: Mapping[str, str],
    model: NestedNerPreTrainedModel,
    tokenizer: Any,
    sentences: Sequence[Mapping[str, Any]],
    most_lost: float,
) -> Choice:
    """Put as much of the folder's graph into eight bits as its answers allow."""
    if (folder / DATA).exists():
        raise ValueError("A graph of more than 2 GB cannot be put into eight bits here: export it without --int8.")
    some, original, config = sentences[:CHOSEN_ON], folder / "float32.onnx", copy.deepcopy(model.config)
    config.onnx = {"part": part_to_export(model)}
    config.int8_embeddings = False
    kinds = kinds_of(folder / GRAPH, modules)
    reader = Reader(model, tokenizer)
    items = [item for reading in reader.cut_sentences(some[:CALIBRATED_ON]) for item in reading.items]
    batches = ({k: x.numpy() for k, x in reader.collate(part).items() if k in INPUTS} for part in _batched(items, 8))
    smooth(folder / GRAPH, original, column_ranges(folder / GRAPH, batches))

    def score(plan: PLAN) -> float:
        quantise(original, folder / GRAPH, kinds, plan)
        found = predict_sentences(_open(folder, model, config), tokenizer, some)
        return gold.f1(found)

    found = predict_sentences(model, tokenizer, some)
    gold = Answers(model, some, found)
    full = gold.f1(found)
    choice = choose(list(kinds), score, full, most_lost)
    original.unlink()
    return choice


def _batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[first : first + size] for first in range(0, len(items), size))


def _about(source: str, data: str, config: Any, choice: Choice | None, result: Check) -> dict[str, Any]:
    """What the card says of an export."""
    return {
        "from": source,
        **config.onnx,
        "plan": {} if choice is None else choice.plan,
        "data": data,
        "check": result.record(),
        "versions": {name: version(name) for name in ("torch", "onnx", "onnxruntime")},
    }
