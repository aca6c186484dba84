"""What a new process needs from its first import to its first answer: beside a pipeline of transformers itself, and an
exported model without torch beside all others."""

import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter
from typing import Any

from transformers import AutoModelForTokenClassification

from ..loading import load_model
from .timing import interleave

OURS = "import hf_spanner\nfrom transformers import pipeline\npipeline('nested-ner', model={model!r})({text!r})"
THEIRS = "from transformers import pipeline\npipeline('token-classification', model={model!r})({text!r})"
LIGHT = "import hf_spanner.onnx\nhf_spanner.onnx.load({model!r})({text!r})"
TEXT = "The mayor of New York met the chief economist of the Bank of England in London."
# The most that a process had in memory, in KiB: its own word for it counts those that it was made from, too.
PEAK = "\nprint(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"


def compare_cold_start(model: str = "default", repeats: int = 5) -> dict[str, float]:
    """Seconds of both, in turns, and their ratio: what counts.

    The other model is a token classifier on the same encoder with as many labels; its weights do not matter.
    """
    ours, tokenizer = load_model(model)
    config = ours.config.encoder_config
    config.num_labels = 2 * len(ours.config.labels) + 1
    with tempfile.TemporaryDirectory() as folder:
        AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        codes = {
            "hf_spanner": OURS.format(model=ours.name_or_path, text=TEXT),
            "transformers": THEIRS.format(model=folder, text=TEXT),
        }

        def run(code: str):
            return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

        seconds = interleave({name: run(code) for name, code in codes.items()}, repeats)
    return {**seconds, "ratio": seconds["hf_spanner"] / seconds["transformers"]}


def compare_light_start(model: str, exported: str, repeats: int = 5) -> list[dict[str, Any]]:
    """Cold start and peak memory of a model in torch, of its export in the pipeline, and of that without torch.

    In turns; seconds and MiB are medians, and shares of the first row's are what counts.
    """
    codes = {
        "pipeline, torch": OURS.format(model=load_model(model)[0].name_or_path, text=TEXT),
        "pipeline, exported": OURS.format(model=exported, text=TEXT),
        "hf_spanner.onnx": LIGHT.format(model=exported, text=TEXT),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in codes}
    for turn in range(repeats + 1):
        for name, code in codes.items():
            begun = perf_counter()
            done = subprocess.run([sys.executable, "-c", code + PEAK], check=True, capture_output=True, text=True)
            if turn:  # the first one brings files into the system's cache
                found[name].append((perf_counter() - begun, int(done.stdout.split()[-1]) / 1024))
    middle = {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    first = middle["pipeline, torch"]
    return [
        {"reader": name, "seconds": s, "MiB": mib, "share of seconds": s / first[0], "share of MiB": mib / first[1]}
        for name, (s, mib) in middle.items()
    ]
