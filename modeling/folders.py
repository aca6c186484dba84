"""Folders that are written whole or not at all."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

# The system's words, Rust's (safetensors), and torch's, which does not say why it wrote less than it meant to.
DISK_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|os error (28|122)\b"
    r"|unexpected pos \d+ vs \d+|file write failed|iostream error"
    r"|^The disk is full"  # said of a folder inside
)
# `.saving-PID` in earlier releases; now with the moment at which the process began and the machine it runs on.
SAVING = re.compile(r"\.saving-(?P<pid>\d+)(?:\.(?P<began>\d+)\.(?P<host>.*)\.\w+)?")


@contextmanager
def whole_or_not_at_all(folder: str | os.PathLike) -> Iterator[Path]:
    """A place to write to; what is there at the end moves to `folder`, `config.json` last; on an error nothing does.

    A folder without `config.json` is no model. While files are moved it has none, so whatever the moment at which the
    process is killed, the folder holds the model of before, or the new one, or none.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _remove_stale(folder)
    me = f".saving-{os.getpid()}.{process_began(os.getpid())}.{platform.node()}."
    with full_disk_said(folder):
        aside = Path(tempfile.mkdtemp(prefix=me, dir=folder))  # inside, so that moving is renaming
    try:
        with full_disk_said(folder):
            yield aside
            write_through(aside)
        files = sorted(file.relative_to(aside) for file in aside.rglob("*") if file.is_file())
        if Path(CONFIG_NAME) in files:
            (folder / CONFIG_NAME).unlink(missing_ok=True)
            _remove_other_weights(folder, {file.name for file in files})
        for file in sorted(files, key=lambda file: file == Path(CONFIG_NAME)):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside / file, folder / file)
        sync(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def full_disk_said(folder: str | os.PathLike, remedy: str = "save again") -> Iterator[None]:
    """Whatever a full disk makes a writer raise becomes one sentence."""
    try:
        yield
    except Exception as error:
        if DISK_FULL.search(str(error)):
            raise OSError(f"The disk is full: {folder} was not saved; free some space and {remedy}.") from error
        raise


def write_whole(file: str | os.PathLike, content: str | bytes) -> None:
    """Write a file so that under its name there is all of it or what was there before."""
    file = Path(file)
    aside = file.with_name(f".{file.name}.saving")
    try:
        aside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        sync(aside)
        os.replace(aside, file)
        sync(file.parent)
    finally:
        aside.unlink(missing_ok=True)


def write_through(folder: Path) -> None:
    """Have all of a folder on the disk itself before somebody relies on it."""
    for path in (*folder.rglob("*"), folder):
        sync(path)


def sync(path: Path) -> None:
    """Have a file's content, or a folder's list of names, on the disk itself."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def process_began(pid: int) -> int | None:
    """When the process `pid` of this machine began; None if there is none. Numbers are used again, moments are not.

    In ticks since the machine started; 0 for any that lives where the system does not say (only Linux does).
    """
    if os.path.exists("/proc/self/stat"):
        try:
            state, *rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
        except OSError:
            return None
        return None if state in "ZX" else int(rest[18])  # a zombie has ended, its parent has not looked yet
    if os.name == "posix":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return 0  # somebody else's
    return 0


def is_running(pid: int, began: int | None, host: str | None) -> bool:
    """Whether that process lives, as far as can be known here: one of another machine may."""
    if host is not None and host != platform.node():
        return True
    return process_began(pid) is not None and began in (None, process_began(pid))


def _remove_stale(folder: Path) -> None:
    """Remove what processes that were killed in the middle of a save have left behind."""
    for aside in folder.glob(".saving-*"):
        if owner := SAVING.fullmatch(aside.name):
            pid, began, host = int(owner["pid"]), owner["began"], owner["host"]
            old_name_of_ours = began is None and pid == os.getpid()  # the number was somebody else's then
            if old_name_of_ours or not is_running(pid, int(began) if began else None, host):
                shutil.rmtree(aside, ignore_errors=True)


def _remove_other_weights(folder: Path, new: set[str]) -> None:
    """One file and several shards of an earlier save must not stand beside each other: loading takes the wrong one."""
    stem, suffix = os.path.splitext(SAFE_WEIGHTS_NAME)
    if SAFE_WEIGHTS_NAME in new or SAFE_WEIGHTS_INDEX_NAME in new:
        shards = list(folder.glob(f"{stem}-[0-9]*-of-[0-9]*{suffix}"))
        for file in (folder / SAFE_WEIGHTS_NAME, folder / SAFE_WEIGHTS_INDEX_NAME, *shards):
            if file.name not in new:
                file.unlink(missing_ok=True)


# Files that earlier releases wrote beside a model, under names that are no more.
RETIRED = tuple(
    f"{name}.py"
    for name in "aggregation diffusion dspert_subwords encoding set_prediction span_denoiser span_networks "
    "span_regression span_transformer subword_spans token_representation".split()
)


def modeling_files() -> set[str]:
    """The files of this folder and those that have been: of them a repository holds what its model needs."""
    here = Path(__file__).parent
    return {file.name for file in here.glob("*.py") if file.name != "__init__.py"} | set(RETIRED)


def remove_other_code(folder: str | os.PathLike[str], source: str, needed: Path) -> None:
    """Remove what a model of another approach left in `folder`: the files beside `source` that are not needed."""
    if Path(folder).resolve() == Path(source).resolve().parent:
        return
    for name in modeling_files():
        if not (needed / name).exists():
            (Path(folder) / name).unlink(missing_ok=True)
