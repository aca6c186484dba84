"""How long a new process needs from its first import to its first answer, beside a pipeline of transformers itself."""

import subprocess
import sys
import tempfile

from transformers import AutoModelForTokenClassification

from ..loading import load_model
from .timing import interleave

OURS = "import hf_spanner\nfrom transformers import pipeline\npipeline('nested-ner', model={model!r})({text!r})"
THEIRS = "from transformers import pipeline\npipeline('token-classification', model={model!r})({text!r})"
TEXT = "The mayor of New York met the chief economist of the Bank of England in London."


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
