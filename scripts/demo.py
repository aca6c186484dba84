"""Train a toy model on the sample sentences and show what it finds, without network or download (`make demo`)."""

import argparse
import os
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import transformers

import hf_spanner
from hf_spanner.display import render, use_color
from hf_spanner.samples import load_sample
from hf_spanner.toy import train_toy_model

LIKE_TRAINING = (
    "The mayor of Lisbon met the chief economist of the Bank of Norden on Monday.",
    "STAT5 binds the promoter of the IL-2 receptor alpha gene.",
)
HELD_OUT = "Petra Vang, the director of the Lisbon office of Baltic Freight, said nothing."  # of the validation split


class Progress(transformers.TrainerCallback):
    """A line for every quarter of the training."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        epoch, quarter = round(state.epoch), max(1, round(args.num_train_epochs / 4))
        if "loss" in (logs or {}) and epoch % quarter == 0:
            print(f"  epoch {epoch:>3} of {args.num_train_epochs:.0f}, loss {float(logs['loss']):.3f}", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--approach", default="span_ner", choices=sorted(hf_spanner.APPROACHES), help="default: span_ner"
    )
    parser.add_argument("--epochs", type=int, default=40, help="default: 40")
    args = parser.parse_args(argv)
    transformers.utils.logging.disable_progress_bar()

    data = load_sample()
    count = len(data["train"])
    print(
        f"Training a toy {args.approach} model (random weights, no download) on {count} sample sentences:", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        scores = train_toy_model(folder, data, approach=args.approach, epochs=args.epochs, callbacks=[Progress()])
        seconds, held_out = time.perf_counter() - start, len(data["validation"])
        print(f"  {seconds:.0f} seconds; strict F1 {scores['eval_f1']:.2f} on the {held_out} held-out sentences\n")
        ner = transformers.pipeline("nested-ner", model=folder)
        for title, texts in (
            ("Sentences like those it saw:", LIKE_TRAINING),
            ("A sentence it never saw:", (HELD_OUT,)),
        ):
            print(f"{title}\n")
            for text in texts:
                print(render(text, ner(text), color=use_color(sys.stdout), labels=ner.model.config.labels), end="\n\n")
    print(
        f"This is a toy model trained on {count} sentences: it shows the machinery, not the quality.\n"
        "With your data and a real encoder:\n\n"
        "  hf-spanner train --data FOLDER --encoder bert-base-cased --approach span_ner --output_dir runs/mine\n"
        '  hf-spanner predict --model runs/mine "the mayor of New York"'
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
