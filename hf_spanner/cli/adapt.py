"""`hf-spanner adapt`: let an encoder read text of your domain, before it learns entities; the result is an encoder."""

import logging
from pathlib import Path

from transformers.utils import CONFIG_NAME

from ..data.plain import check_text, read_texts
from ..default import folder_of
from ..loading import check_encoder
from ..training.adapting import RECORD, adapt
from ..training.checkpoints import checkpoints_in, remove_all
from .options import make_parser, say

EPILOG = """\
examples:
  hf-spanner adapt --encoder bert-base-cased --text abstracts/ --minutes 60 --output_dir encoders/mine
  hf-spanner train --data genia/ --encoder encoders/mine --output_dir runs/mine

Words are hidden from the encoder and it learns to fill them in (masked language modelling). Of .txt files every line
is a text, of .jsonl(.gz) every "tokens" or "text".
"""


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("adapt", __doc__, EPILOG)
    parser.add_argument("--encoder", required=True, help="a Hub id or folder, of an encoder or a nested NER model")
    parser.add_argument("--text", required=True, nargs="+", help="files or folders of .txt or .jsonl, packed or not")
    parser.add_argument("--output_dir", required=True, help="where the encoder goes")
    parser.add_argument("--steps", type=int, help="batches to read (default: one pass, unless --minutes is given)")
    parser.add_argument("--minutes", type=float, help="the time that reading may take")
    parser.add_argument("--window", type=int, default=128, help="sub-words read at once (default: 128)")
    parser.add_argument("--batch_size", type=int, default=32, help="windows in a batch (default: 32)")
    parser.add_argument("--learning_rate", type=float, default=1e-4, help="default: 1e-4")
    parser.add_argument("--mask", type=float, default=0.15, help="the share of words that are hidden (default: 0.15)")
    parser.add_argument("--save_steps", type=int, default=500, help="batches between two checkpoints (default: 500)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--bf16", action="store_true", help="in bfloat16, on hardware that has it")
    parser.add_argument("--use_cpu", action="store_true", help="leave a GPU alone")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in output_dir")
    parser.add_argument("--overwrite", action="store_true", help="begin anew in an output_dir that holds an encoder")
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s", level=logging.INFO)

    folder = Path(args.output_dir)
    if args.overwrite and args.resume:
        raise ValueError("--overwrite begins anew and --resume goes on: leave one of them out.")
    if args.resume and (folder / RECORD).is_file():
        say(f"The encoder in {folder} is finished ({RECORD}): there is nothing to resume.")
        return 0
    if not args.overwrite and not args.resume and ((folder / CONFIG_NAME).is_file() or checkpoints_in(folder)):
        raise FileExistsError(
            f"{folder} holds an encoder or an unfinished one: --resume goes on, --overwrite begins anew, or name "
            "another output_dir."
        )
    if Path(args.encoder).resolve() == folder.resolve():
        raise ValueError(f"--output_dir {folder} is the encoder itself: name another folder.")
    check_encoder(folder_of(args.encoder))
    texts = [text for source in args.text for text in read_texts(check_text(source))]
    if args.overwrite:
        (folder / RECORD).unlink(missing_ok=True)
        remove_all(folder)
    settings = ("steps", "minutes", "window", "batch_size", "learning_rate", "mask", "seed", "resume", "save_steps",
                "bf16", "use_cpu")  # fmt: skip
    record = adapt(folder_of(args.encoder), texts, folder, **{name: getattr(args, name) for name in settings})
    windows, loss, perplexity = record["windows"], record["loss"], record["perplexity"]
    say(
        f"{args.encoder} has read {record['steps']:,} batches in {record['minutes']:g} minutes: {record['passes']:g} "
        f"passes over {windows['read']:,} windows of {windows['length']} sub-words."
    )
    if record["head"] == "new":
        say("Its head for hidden words is new: what it gains at first is the head's.")
    say(f"On {windows['held out']:,} other windows   loss    perplexity")
    for when in ("before", "after"):
        say(f"  {when:<24} {loss[when]:7.3f} {perplexity[when]:12.2f}")
    say(f"Saved to {folder}: hf-spanner train --data ... --encoder {folder}")
    return 0
