"""Walk as data: which files of the project a command runs through, and how often it crosses from package to package.

    python scripts/walk.py train            # a brat folder → a trained model → a repository that could be pushed
    python scripts/walk.py predict          # a text → its entities on the screen
    python scripts/walk.py train --root ../another-checkout

Files are those with a function that was called; legs are changes of package (or top-level module), immediate
repetitions of the same few legs counted once. Importing does not count.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from pathlib import Path

TEXT = "The mayor of New York met the head of the Bank of England.\n"
ENTITIES = (("PER", 0, 21), ("LOC", 13, 21), ("PER", 26, 57), ("ORG", 38, 57))


class Walk:
    """A profiler: the files of `root` whose functions were called, and the packages in the order they were entered."""

    def __init__(self, root: Path):
        self.root, self.files, self.packages, self.importing = f"{root}{os.sep}", set(), [], 0

    def __call__(self, frame, event: str, arg) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>":
            self.importing += 1 if event == "call" else -1
            return
        while event == "return" and frame is not None and not self.is_ours(frame):
            frame = frame.f_back
        if self.importing or frame is None or not self.is_ours(frame):
            return
        if event == "call":
            self.files.add(frame.f_code.co_filename)
        top, *rest = frame.f_code.co_filename.removeprefix(self.root).split(os.sep)
        package = top if top != "hf_spanner" else rest[0].removesuffix(".py")
        if not self.packages or self.packages[-1] != package:
            self.packages.append(package)

    def is_ours(self, frame) -> bool:
        file = frame.f_code.co_filename
        return file.startswith((f"{self.root}hf_spanner{os.sep}", f"{self.root}modeling{os.sep}"))


def without_repetitions(steps: list[str], longest: int = 8) -> list[str]:
    """The steps with `a b a b` written as `a b`, for patterns of up to `longest` steps."""
    for size in range(1, longest + 1):
        kept: list[str] = []
        for step in steps:
            kept.append(step)
            if kept[-size:] == kept[-2 * size : -size]:
                del kept[-size:]
        if kept != steps:
            return without_repetitions(kept, longest)
    return steps


def brat_folder(folder: Path) -> Path:
    for split in ("train", "validation"):
        (folder / split).mkdir(parents=True)
        (folder / split / "a.txt").write_text(TEXT * 4)
        lines = [
            f"T{4 * i + j}\t{label} {len(TEXT) * i + start} {len(TEXT) * i + end}\t{TEXT[start:end]}\n"
            for i in range(4)
            for j, (label, start, end) in enumerate(ENTITIES, 1)
        ]
        (folder / split / "a.ann").write_text("".join(lines))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", choices=["train", "predict"])
    parser.add_argument("--root", default=Path(__file__).resolve().parents[1], help="the checkout to walk through")
    args = parser.parse_args()
    root = Path(args.root).resolve()
    sys.path.insert(0, str(root))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from hf_spanner.cli import main as hf_spanner

    with tempfile.TemporaryDirectory() as folder:
        commands = [["predict", "the mayor of New York", "--format", "view"]]
        if args.walk == "train":
            options = "--num_train_epochs 1 --use_cpu True --disable_tqdm True --report_to none".split()
            data, run = str(brat_folder(Path(folder) / "brat")), f"{folder}/run"
            start = ["--approach", "span_ner", "--encoder", "default"]
            commands = [["train", *start, "--data", data, "--output_dir", run, *options]]
            commands.append(["push", run, "me/model", "--dry-run", f"{folder}/repository"])
        walk, said = Walk(root), io.StringIO()
        sys.setprofile(walk)
        threading.setprofile(walk)
        try:
            with contextlib.redirect_stdout(said):
                codes = [hf_spanner(command) for command in commands]
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    if any(codes):
        raise SystemExit(said.getvalue())
    steps = without_repetitions(walk.packages)
    print(f"{len(walk.files)} files, {len(steps) - 1} legs\n{' → '.join(steps)}")


if __name__ == "__main__":
    main()
