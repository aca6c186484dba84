"""Checkpoints that are whole, and the one to go on from.

A checkpoint is written beside the others, with a list of its files and their sizes, and is called checkpoint-N when
all of it is on the disk. The list tells later whether it is still whole.
"""

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..modeling.folders import sync, write_through, write_whole

logger = logging.getLogger(__name__)

ASIDE = ".saving-checkpoint"  # in the folder of the training: where checkpoints are written
LIST = "checkpoint.json"
STATE = "trainer_state.json"
NAME = re.compile(r"checkpoint-(\d+)")


def publish_checkpoint(aside: Path, target: Path) -> None:
    """Give a checkpoint that is written its name: from now on it exists."""
    (aside / "checkpoint-is-incomplete.txt").unlink(missing_ok=True)  # what transformers leaves on a SIGTERM
    files = {str(file.relative_to(aside)): file.stat().st_size for file in sorted(aside.rglob("*")) if file.is_file()}
    write_whole(aside / LIST, json.dumps({"saved": time.time_ns(), "files": files}, indent=1))
    write_through(aside)
    if target.exists():  # a training that went on from an earlier one comes by again
        remove_checkpoint(target)
    if target.exists():  # with files that are not ours
        os.rename(target, target.with_name(f"{target.name}-before-{time.time_ns()}"))
    os.rename(aside, target)
    sync(target.parent)
    shutil.rmtree(aside.parent, ignore_errors=True)


def fault_of(checkpoint: Path, with_best: bool = False) -> str | None:
    """Why nothing can go on from a checkpoint; None if it can. `with_best`: its best one must be there, too."""
    about = _list_of(checkpoint)
    if about is None:
        return f"it has no readable {LIST}, as those of other programs and earlier releases"
    for name, size in about["files"].items():
        file = checkpoint / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size:,} of {size:,} bytes"
    step = (_read(checkpoint / STATE) or {}).get("best_global_step") if with_best else None
    best = checkpoint.with_name(f"checkpoint-{step}")
    if step and best != checkpoint and (fault := fault_of(best)):
        return f"the best until then, {best.name}, is not whole: {fault}"
    return None


def is_listed(checkpoint: Path) -> bool:
    """Whether a checkpoint has the list of its files: it was saved here, and may be removed again."""
    return _list_of(checkpoint) is not None


def checkpoints_in(folder: str | os.PathLike) -> list[Path]:
    """The checkpoints in a folder, whole or not, the last that was saved first."""
    found = [path for path in Path(folder).glob("checkpoint-*") if NAME.fullmatch(path.name) and path.is_dir()]

    def moment(path: Path) -> tuple[int, int]:
        about = _list_of(path)
        return about["saved"] if about else path.stat().st_mtime_ns, int(path.name.rpartition("-")[2])

    return sorted(found, key=moment, reverse=True)


def newest_intact(folder: str | os.PathLike, with_best: bool = True) -> tuple[Path | None, dict[str, str]]:
    """The last checkpoint from which a training can go on, and why not from each that was saved after it."""
    skipped: dict[str, str] = {}
    for checkpoint in checkpoints_in(folder):
        fault = fault_of(checkpoint, with_best)
        if fault is None:
            return checkpoint, skipped
        skipped[checkpoint.name] = fault
    return None, skipped


def remove_old(folder: str | os.PathLike, limit: int | None, best: str | None) -> None:
    """Remove checkpoints until there are `limit`, the oldest first, but never the last one or the best."""
    ours = [checkpoint for checkpoint in checkpoints_in(folder) if is_listed(checkpoint)]
    kept = {checkpoint.name for checkpoint in ours[:1]} | ({Path(best).name} if best else set())
    if limit is None or limit <= 0:
        return
    for checkpoint in ours:
        if len(kept) < limit:
            kept.add(checkpoint.name)
        elif checkpoint.name not in kept:
            try:
                remove_checkpoint(checkpoint)
            except OSError as error:  # no reason to end a training
                logger.warning("The old checkpoint %s cannot be removed: %s", checkpoint, error)


def remove_all(folder: str | os.PathLike, but: str | None = None) -> None:
    """Remove the checkpoints of a training, all but one."""
    for checkpoint in checkpoints_in(folder):
        if is_listed(checkpoint) and (but is None or checkpoint.name != Path(but).name):
            remove_checkpoint(checkpoint)


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove the files of a checkpoint, its list last, and then the folder, unless it has files of others."""
    for name in (_list_of(checkpoint) or {"files": {}})["files"]:
        (checkpoint / name).unlink(missing_ok=True)
    (checkpoint / LIST).unlink(missing_ok=True)
    for path in sorted([*checkpoint.rglob("*"), checkpoint], key=lambda path: len(path.parts), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@contextmanager
def removed_if_it_fails(folder: Path) -> Iterator[None]:
    """Give the disk back what a checkpoint took that could not be saved."""
    try:
        yield
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_unfinished(folder: str | os.PathLike) -> None:
    """Remove what a training that was killed was writing."""
    shutil.rmtree(Path(folder) / ASIDE, ignore_errors=True)


def _list_of(checkpoint: Path) -> dict[str, Any] | None:
    """The list of a checkpoint's files; None if there is none, or it is none of ours."""
    about = _read(checkpoint / LIST) or {}
    saved, files = about.get("saved"), about.get("files")
    if not isinstance(saved, int) or not isinstance(files, dict):
        return None
    inside = all(not Path(name).is_absolute() and ".." not in Path(name).parts for name in files)
    return about if inside and all(isinstance(size, int) for size in files.values()) else None


def _read(file: Path) -> dict[str, Any] | None:
    """What stands in a JSON file; None if there is none that can be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
