"""One run at a time in a folder."""

import errno
import json
import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .modeling.folders import is_running, process_began

logger = logging.getLogger(__name__)

LOCK = "_running.lock"  # what begins with _ is not pushed to the Hub
_held: set[Path] = set()


@contextmanager
def locked(
    folder: str | os.PathLike, doing: str = "trained in", remedy: str = "name another output_dir"
) -> Iterator[None]:
    """Keep runs of other processes out of `folder`; a lock that a killed one left is taken over, and said.

    Args:
        doing, remedy: the words of the error: the folder is being `doing` by another process; wait, or `remedy`.
    """
    file = Path(folder).resolve() / LOCK
    if file in _held:  # by a caller of this one
        yield
        return
    is_new = not file.parent.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    _take(file, doing, remedy)
    _held.add(file)
    try:
        yield
    finally:
        _held.discard(file)
        file.unlink(missing_ok=True)
        if is_new and file.parent.is_dir() and not any(file.parent.iterdir()):  # nothing came of it
            file.parent.rmdir()


def _take(file: Path, doing: str, remedy: str) -> None:
    me = {"pid": os.getpid(), "began": process_began(os.getpid()), "host": platform.node()}
    while not _create(file, json.dumps(me)):
        _remove_stale(file, doing, remedy)
    for litter in file.parent.glob(f"{LOCK}-*"):  # of one that was killed while it took or wanted the lock
        litter.unlink(missing_ok=True)


def _create(file: Path, text: str) -> bool:
    """Make a file that has its text from the first moment on; False if there is one."""
    mine = file.with_name(f"{LOCK}-{platform.node()}-{os.getpid()}")
    try:
        mine.write_text(text, encoding="utf-8")
        os.link(mine, file)
    except FileExistsError:
        return False
    except FileNotFoundError:  # the one that was faster takes it for litter
        return False
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        try:  # a file system without links
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except FileExistsError:
            return False
    finally:
        mine.unlink(missing_ok=True)
    return True


def _remove_stale(file: Path, doing: str, remedy: str) -> None:
    """Remove the lock of a process that is no more; one of a living process is an error."""
    owner = _owner(file)
    if owner is None:
        return
    who = f"process {owner['pid']} on {owner['host']}"
    if is_running(**owner):
        raise BlockingIOError(
            f"{file.parent} is being {doing} by {who}: wait for it or {remedy} (if it has ended, remove {file})."
        )
    stale = file.with_name(f"{file.name}-stale-{os.getpid()}")
    try:
        os.rename(file, stale)  # of several that want it, one has it
    except FileNotFoundError:
        return
    if _owner(stale) == owner:
        logger.warning("%s is taken over from %s, which has ended without a word.", file.parent, who)
        stale.unlink(missing_ok=True)
    else:  # another was faster, and this lock is its
        os.rename(stale, file)


def _owner(file: Path) -> dict | None:
    """Whose lock it is; None if it has just gone. One that cannot be read is nobody's."""
    try:
        owner = json.loads(file.read_text(encoding="utf-8"))
        return {"pid": int(owner["pid"]), "began": int(owner["began"]), "host": str(owner["host"])}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return {"pid": 0, "began": -1, "host": platform.node()}
