"""What the Hub, a disk or a repository can do to us, each in one sentence."""

import dis
import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import huggingface_hub
from huggingface_hub import errors as hub
from safetensors import SafetensorError

from .modeling.folders import DISK_FULL

LOGIN = "log in with `hf auth login` or set HF_TOKEN"
NO_SAFETENSORS = re.compile(r"(does not appear to have a|no) file named model\.safetensors")
OUTSIDE = re.compile(r"Invalid filename ('[^']*')|must reference a file inside the model directory, got (\S+)")
NO_MEMORY = re.compile(r"not enough memory|can't allocate memory|Storage size calculation")
PACKAGE = Path(__file__).resolve().parent
OURS = (PACKAGE, PACKAGE.parent / "modeling")  # `modeling` lies beside the package in the source tree
PANIC = "PanicException"  # of Rust, as tokenizers and safetensors raise it: no Exception to Python
BROKEN = ("ConnectError", "ReadError", "WriteError", "RemoteProtocolError", "ReadTimeout", "ConnectTimeout")  # httpx


@contextmanager
def in_one_sentence(name: str, revision: str | None = None, doing: str = "loading") -> Iterator[None]:
    """Turn what goes wrong with the repository (or folder) `name` into an error with a cause and a remedy."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        chain = list(_chain(error))
        for explain in (_explain_disk, _explain_access, _explain_connection, _explain_content):
            for cause in chain:
                if (told := explain(cause, str(name), revision, doing)) is not None:
                    raise told from error
        if doing != "loading" or getattr(error, "errno", None) is not None or all(origin(error)):
            raise
        why = " ".join(str(error).split())
        raise ValueError(
            f"{name} cannot be loaded, its files are damaged or not those of such a model "
            f"({type(error).__name__}: {why if len(why) < 300 else why[:300] + '…'})."
        ) from error


def _explain_disk(cause: BaseException, name: str, revision: str | None, doing: str) -> Exception | None:
    if getattr(cause, "errno", None) == errno.ENOSPC or DISK_FULL.search(str(cause)):
        return OSError(f"The disk is full: {doing} {name} was given up; free some space and try again.")
    return None


def _explain_access(cause: BaseException, name: str, revision: str | None, doing: str) -> Exception | None:
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if isinstance(cause, hub.RevisionNotFoundError):
        return FileNotFoundError(f"{name} has no revision {revision!r}: name a branch, a tag or a commit of it.")
    if isinstance(cause, hub.GatedRepoError):
        return PermissionError(f"{name} is gated: ask for access on its page, then {LOGIN}.")
    if status == 401 and "Invalid credentials" in str(cause):
        return PermissionError(f"The Hub refused the token for {doing} {name}, it is wrong or expired: {LOGIN}.")
    if isinstance(cause, hub.RepositoryNotFoundError):
        remedy = (
            "check the name and what your token may see"
            if huggingface_hub.get_token()
            else f"check the name, or {LOGIN}"
        )
        return FileNotFoundError(
            f"There is no folder {name}, and no such model on the Hub, or it is private: {remedy}."
        )
    if status == 401:
        return PermissionError(f"The Hub asks who you are before {doing} {name}: {LOGIN}.")
    if status == 403:
        return PermissionError(
            f"The Hub forbids {doing} {name}: the name must be yours and your token allowed to write."
        )
    return None


def _explain_connection(cause: BaseException, name: str, revision: str | None, doing: str) -> Exception | None:
    if isinstance(cause, hub.OfflineModeIsEnabled | hub.LocalEntryNotFoundError):
        if doing == "pushing":
            return ConnectionError(f"The Hub cannot be reached, so {name} was not pushed: check HF_HUB_OFFLINE.")
        return FileNotFoundError(
            f"There is no folder {name}, it is not wholly in the cache and the Hub cannot be reached: go online once."
        )
    if type(cause).__name__ in BROKEN or isinstance(cause, ConnectionError) or "Consistency check" in str(cause):
        return ConnectionError(f"The connection broke while {doing} {name}: try again, what was transferred is kept.")
    return None


def _explain_content(cause: BaseException, name: str, revision: str | None, doing: str) -> Exception | None:
    if isinstance(cause, SafetensorError):
        return ValueError(
            f"The model.safetensors of {name} is refused, it is none ({cause}): weights in other forms may run code."
        )
    if "custom code" in str(cause):
        return ValueError(
            f"{name} asks to run code of its own (auto_map), which is refused: hf_spanner runs its own classes only."
        )
    if outside := OUTSIDE.search(str(cause)):
        return ValueError(f"{name} names a file outside its folder, {outside[1] or outside[2]}: refused.")
    if "size mismatch" in str(cause) or "ignore_mismatched_sizes" in str(cause):
        return ValueError(
            f"The weights of {name} have other sizes than its config.json says: one of the two is wrong."
        )
    if isinstance(cause, MemoryError) or NO_MEMORY.search(str(cause)):
        return ValueError(f"{name} asks for more memory than there is: its config.json is wrong, or it is too large.")
    if NO_SAFETENSORS.search(str(cause)):
        return FileNotFoundError(
            f"{name} has no model.safetensors; weights in any other form are refused, as pickles may run code."
        )
    return None


def origin(error: BaseException) -> tuple[bool, bool]:
    """Where an error comes from: whether from this project's code, and whether a `raise` statement made it.

    If both, it is a sentence that was written for users.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False, False
    code = trace.tb_frame.f_code
    ours = any(folder in Path(code.co_filename).resolve().parents for folder in OURS)
    return ours, code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what caused it, the outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
