"""Fuzzed texts through the pipeline of every approach: `python tests/fuzz_texts.py --count 100000`.

Tiny models with random weights read texts of odd Unicode, lone surrogates, control characters, nothing and very much,
in batches. A fault is an error, or an entity that is not where it says it is. The rows of an approach share its texts.
"""

import argparse
import logging
import random
import sys
import time
import traceback
import unicodedata
from collections import Counter

import torch
from approaches import ROWS
from conftest import TEXTS, TOKENIZERS

import hf_spanner

SPECIAL = [
    *"\x00\x01\x1b\x7f\x85\x9b\xa0\xad\u0300\u034f\u061c\u115f\u1680\u180e\u200b\u200d\u200e\u2028\u2029\u202e\u2060",
    *"\u2066\u2069\u3000\ud800\udbff\udc00\udfff\ue000\ufe0f\ufeff\ufff9\ufffd\uffff\U0001f1eb\U0001f3fd\U0001f469",
    *(
        "\U000e0001",
        "\U0010ffff",
        "\r\n",
        "\t",
        " ",
        "  ",
        "\n",
        "[CLS]",
        "[SEP]",
        "[PAD]",
        "[UNK]",
        "##ing",
        "e\u0301",
    ),
    *("\u1100\u1161\u11a8", "ﷺ", "ẞ", "İ", "ǆ", "ﬁ", "क्षि", "東京", "ไทย", "עברית", "العربية", "\U0001d573", "١٢٣"),
    *("don't", "U.S.", "3.5%", "a-b-c", "''", "...", "http://x.y/z?q=1#f", "me@x.org", "</s>", "<mask>", "\\", '"'),
]
WORDS = " ".join(TEXTS).split()


def fuzzed_text(rng: random.Random) -> str:
    """A text: mostly short, sometimes empty, sometimes longer than a window, of words and of what breaks words."""
    kind = rng.random()
    if kind < 0.03:
        return rng.choice(["", " ", "\n", "\u200b", "\ud800", "\x00", "\ufeff", "\u00ad", "\u0300"])
    size = rng.randrange(60, 300) if kind > 0.985 else rng.randrange(1, 16)
    pieces = []
    for _ in range(size):
        choice = rng.random()
        if choice < 0.45:
            pieces.append(rng.choice(WORDS))
        elif choice < 0.7:
            pieces.append(rng.choice(SPECIAL))
        elif choice < 0.85:
            pieces.append("".join(chr(rng.randrange(sys.maxunicode + 1)) for _ in range(rng.randrange(1, 4))))
        else:
            pieces.append(rng.choice("abcXYZ019.,-_'") * rng.randrange(1, 200 if choice > 0.99 else 8))
    text = rng.choice([" ", " ", ""]).join(pieces)
    return unicodedata.normalize("NFD", text) if kind > 0.9 else text


def faults(ner, texts: list[str], **options) -> list[str]:
    """What goes wrong when the pipeline reads these texts in batches of 32."""
    try:
        answers = ner(texts, batch_size=32, nesting=True, **options)
    except Exception:
        return [traceback.format_exc()]
    wrong = [] if len(answers) == len(texts) else [f"{len(texts)} texts, {len(answers)} answers"]
    for text, entities in zip(texts, answers, strict=False):
        for entity in entities:
            inside = 0 <= entity["start"] < entity["end"] <= len(text)
            if not inside or text[entity["start"] : entity["end"]] != entity["word"] or not 0 <= entity["score"] <= 1:
                wrong.append(f"{text!r}: {entity}")
    return wrong


def fuzz(row, count: int, seed: int = 0, tokenizer: str = "wordpiece") -> list[str]:
    """What goes wrong in `count` texts read by a model of one row of the matrix."""
    rng = random.Random(f"{seed} {row.name}")
    torch.manual_seed(seed)
    tokenizer = TOKENIZERS[tokenizer]()
    ner = hf_spanner.pipeline(row.make(tokenizer), tokenizer)
    wrong = []
    for start in range(0, count, 1024):
        texts = [fuzzed_text(rng) for _ in range(min(1024, count - start))]
        # Random weights are sure of nothing: at 0.0 every span is an answer, which takes most of the time.
        options = {"overlap": rng.choice(["flat", "nested", "any"]), "threshold": rng.choice([0.0, 0.25, 0.4, 0.5])}
        if row.approach == "diffusion_ner":
            options |= {"early_stop": rng.random() < 0.5, "num_steps": rng.randrange(1, 6), "seed": start}
        wrong += faults(ner, texts, **options)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--count", type=int, default=1000, help="texts for each approach")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", nargs="+", default=[row.name for row in ROWS])
    parser.add_argument("--tokenizer", choices=list(TOKENIZERS), default="wordpiece")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # words longer than a window are said, one by one
    rows = [row for row in ROWS if row.name in args.rows]
    of_approach = Counter(row.approach for row in rows)
    bad = 0
    for row in rows:
        begin, count = time.process_time(), -(-args.count // of_approach[row.approach])
        wrong = fuzz(row, count, args.seed, args.tokenizer)
        bad += len(wrong)
        seconds = time.process_time() - begin
        print(f"{row.name}: {count:,} texts, {len(wrong)} faults, {seconds:.0f} s of the processor", flush=True)
        for fault in wrong[:3]:
            print(fault, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
