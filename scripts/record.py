"""The strongest small model of a corpus: teachers, their ensemble, text, and what each of these gives a student.

    python scripts/record.py --data genia/ --encoder GRANITE --text abstracts/ --output_dir runs/record/genia
    python scripts/record.py --data genia/ --table runs/record/genia
    python scripts/record.py --data litbank/ --compare "runs/a-1 runs/a-2" "runs/b-1 runs/b-2"

Every row is trained with several seeds by `hf-spanner train`. What is finished is not made again and what was stopped
goes on from its last checkpoint, so that this may run for hours in the background and be killed at any time. Each row
is compared with the plain student: paired bootstrap over the sentences of the test split, seeds pooled.
"""

import argparse
import json
import shlex
import time
from pathlib import Path

from hf_spanner import load_model, load_nested_ner, predict_sentences
from hf_spanner.cli.adapt import main as adapt
from hf_spanner.cli.train import main as train
from hf_spanner.evaluation.comparison import SentenceCounts, compare_systems, pooled
from hf_spanner.evaluation.mentions import list_mentions
from hf_spanner.hub.several import SUMMARY, spread
from hf_spanner.modeling.folders import write_whole

TEACHERS = ["small/dspert_shallow.yaml", "small/biaffine_ner.yaml", "small/cnn_ner.yaml"]
COST, PLAIN = "cost.json", "plain"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", required=True, help="a folder with train, validation and test files")
    parser.add_argument("--encoder", help="of teachers and students; that of the recipes if unset")
    parser.add_argument("--text", nargs="+", default=[], help="text of the domain, without annotation")
    parser.add_argument("--teachers", nargs="+", default=TEACHERS, help="recipes")
    parser.add_argument("--student", default="small/cnn_ner.yaml", help="its recipe")
    parser.add_argument("--seeds", nargs="+", default=["1", "2", "3"])
    parser.add_argument("--settings", default="", help='flags for all trainings: "--max_span_length 40"')
    parser.add_argument("--distil", default="--distil_weight 0.7 --distil_temperature 2", help="flags for students")
    parser.add_argument("--adapt", default="", help='flags of hf-spanner adapt: "--minutes 120"; needs --text')
    parser.add_argument("--output_dir", default="runs/record")
    parser.add_argument("--table", metavar="FOLDER", help="train nothing: the table of what is there")
    parser.add_argument("--compare", nargs=2, metavar="FOLDERS", help="train nothing: the second against the first")
    args = parser.parse_args()
    if args.compare is not None:
        test = list(load_nested_ner(args.data)["test"])
        first, second = (pooled([counts_of(name, test) for name in names.split()]) for names in args.compare)
        print(json.dumps(compare_systems(first, second)))
        return
    folder = Path(args.table or args.output_dir)
    if args.table is None:
        for name, flags in rows(args, folder):
            costed(folder / name, lambda name=name, flags=flags: train_row(args, folder / name, flags))
    print(table(args.data, folder))


def rows(args: argparse.Namespace, folder: Path) -> list[tuple[str, list[str]]]:
    """The trainings: a name and the flags beyond those that all have."""
    teachers = [(f"teacher-{Path(recipe).stem}", [recipe]) for recipe in args.teachers]
    ensemble = [str(folder / name / f"seed-{seed}") for name, _ in teachers for seed in args.seeds]
    distil = shlex.split(args.distil)
    student = [args.student]
    plan = [
        *teachers,
        (PLAIN, student),
        ("one teacher", [*student, *distil, "--teacher", ensemble[0]]),
        ("ensemble", [*student, *distil, "--teacher", *ensemble]),
    ]
    if args.text:
        plan.append(("ensemble, text", [*student, *distil, "--teacher", *ensemble, "--unlabelled", *args.text]))
    if args.text and args.adapt:
        encoder = str(folder / "encoder")
        plan.append((f"{PLAIN}, adapted", [*student, "--encoder", encoder]))
        plan.append(("ensemble, text, adapted", [*plan[-2][1], "--encoder", encoder]))
    return plan


def train_row(args: argparse.Namespace, folder: Path, flags: list[str]) -> None:
    """One training with all seeds; the adapted encoder is made when the first row asks for it."""
    adapted = folder.parent / "encoder"
    if str(adapted) in flags:
        source = ["--encoder", args.encoder or "ibm-granite/granite-embedding-30m-english", "--text", *args.text]
        costed(adapted, lambda: adapt([*source, "--output_dir", str(adapted), "--resume", *shlex.split(args.adapt)]))
    recipe, *own = flags
    encoder = ["--encoder", args.encoder] if args.encoder and "--encoder" not in own else []
    common = ["--data", args.data, "--output_dir", str(folder), "--resume", "true", "--seeds", *args.seeds]
    train(
        [recipe, *common, *encoder, *shlex.split(args.settings), *own, "--teacher_cache", str(folder.parent / "said")]
    )


def costed(folder: Path, run) -> None:
    """Run, and add the CPU time to what this row has cost so far."""
    began = time.process_time()
    try:
        run()
    finally:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / COST, json.dumps(cost_of(folder) + time.process_time() - began))


def cost_of(folder: Path) -> float:
    """CPU seconds."""
    return json.loads((folder / COST).read_text()) if (folder / COST).is_file() else 0.0


def counts_of(model: str | Path, sentences: list) -> SentenceCounts:
    found = predict_sentences(*load_model(str(model)), sentences)
    return SentenceCounts.of(list_mentions(found, [s["entities"] for s in sentences]), len(sentences))


def table(data: str, folder: Path) -> str:
    """A row a training: validation and test F1, what it gains over the plain student, and CPU hours."""
    done = {file.parent.name: json.loads(file.read_text()) for file in folder.glob(f"*/{SUMMARY}")}
    test = list(load_nested_ner(data)["test"])

    def counts(name: str) -> SentenceCounts:
        return pooled([counts_of(folder / name / run, test) for run in done[name]["runs"]])

    plain = counts(PLAIN) if PLAIN in done else None
    lines = ["| | validation F1 | test F1 | gain, 95 % interval | CPU hours |", "|---|---|---|---|---|"]
    for name in sorted(done, key=lambda name: (folder / name / SUMMARY).stat().st_mtime):
        gain = ""
        if plain is not None and name != PLAIN and not name.startswith("teacher-"):
            result = compare_systems(plain, counts(name))
            low, high = (100 * bound for bound in result["interval"])
            gain = f"{100 * result['difference']:+.1f} [{low:+.1f}, {high:+.1f}]"
        scores = " | ".join(spread(done[name], split, "f1") for split in ("validation", "test"))
        lines.append(f"| {name} | {scores} | {gain} | {cost_of(folder / name) / 3600:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
