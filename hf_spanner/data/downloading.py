"""Downloads that were asked for: they go on where they were cut off, and are checked when they are whole."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .schema import first_line

SUMS = "SHA256SUMS.json"  # beside the files: the sums that are known, or were found at the first download
_CHUNK = 1 << 18
_TRIES = 5
_TIMEOUT = 60  # seconds without a byte


def download(url: str, folder: Path, name: str, sha256: str | None, say: Callable[[str], Any]) -> Path:
    """The file at `url` as `folder/name`, unless it is there already.

    A download that was cut off leaves `name.part`, and goes on from there. The file's SHA-256 has to be `sha256`; if
    nobody knows that, what comes first is noted in `SHA256SUMS.json`, said, and has to be the same ever after.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address to download from; expected http:// or https://.")
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / name, folder / f"{name}.part"
    known = sha256 or _noted(folder).get(name)
    if target.exists():
        _check(target, known, url)
        say(f"{target} is there already.")
        return target
    say(f"{url} to {target}")
    for attempt in range(1, _TRIES + 1):
        try:
            _fetch(url, part)
            break
        except urllib.error.HTTPError as error:
            raise ConnectionError(
                f"{url} cannot be downloaded: the server says {error.code} {error.reason}."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            if attempt == _TRIES:
                raise ConnectionError(
                    f"{url} cannot be downloaded ({first_line(error)}); the same command goes on from where it ended."
                ) from error
    found = _check(part, known, url)
    part.replace(target)
    part.with_name(f"{part.name}.json").unlink(missing_ok=True)
    if known is None:
        (folder / SUMS).write_text(json.dumps({**_noted(folder), name: found}, indent=1), encoding="utf-8")
        say(f"  sha256 {found}, noted in {folder / SUMS}: no sum is known to compare with")
    return target


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _fetch(url: str, part: Path) -> None:
    """Download, on from where `part` ends if the server still has that version."""
    note = part.with_name(f"{part.name}.json")  # which version the beginning is of
    have = part.stat().st_size if part.exists() else 0
    version = json.loads(note.read_text(encoding="utf-8")).get("version") if have and note.exists() else None
    request = urllib.request.Request(url, headers={"User-Agent": "hf_spanner"})
    if have and version:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # the server has no byte beyond: it is another file, or this one is whole
            raise
        part.unlink()
        raise ConnectionError("what was there does not fit") from error
    with answer:
        goes_on = answer.status == 206 and str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
        length = answer.headers.get("Content-Length")
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if not goes_on:
            note.write_text(json.dumps({"version": version}), encoding="utf-8")
        received = 0
        with open(part, "ab" if goes_on else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                received += len(chunk)
    if length is not None and received < int(length):
        raise ConnectionError(f"{received:,} of {int(length):,} bytes came")


def _noted(folder: Path) -> dict[str, str]:
    file = folder / SUMS
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _check(path: Path, known: str | None, url: str) -> str:
    found = sha256_of(path)
    if known is not None and found != known:
        path.unlink()
        raise ValueError(
            f"{url}: the file's sha256 is {found}, expected {known}: it is damaged or another edition, and was "
            "removed. Try again, or get the file from elsewhere and name it with --source."
        )
    return found
