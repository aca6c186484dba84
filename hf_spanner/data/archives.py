"""Archives from elsewhere: unpacked inside one folder, regular files only, with bounds on what they may hold."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from .schema import first_line, short

MAX_BYTES = 8 << 30  # of all files together; OntoNotes has about 3 GB
MAX_FILES = 300_000
_CHUNK = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether this is a zip file or a tar file, packed or not, by what it holds."""
    return path.is_file() and (zipfile.is_zipfile(path) or tarfile.is_tarfile(path))


def unpack(archive: Path, folder: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> int:
    """Unpack an archive into a folder; returns the number of its files.

    A name that leads out of the folder is refused, links and devices are left out, and what the files really hold is
    counted, whatever the archive says of their sizes.
    """
    number = room = 0
    try:
        with _members(archive) as members:
            for name, file in members:
                number += 1
                if number > max_files:
                    raise ValueError(
                        f"{archive} holds more than {max_files:,} files; unpack it yourself if that is right."
                    )
                target = _inside(folder, name, archive)
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as out:
                    while chunk := file.read(_CHUNK):
                        room += len(chunk)
                        if room > max_bytes:
                            raise ValueError(
                                f"{archive} holds more than {max_bytes:,} bytes; unpack it yourself if that is right."
                            )
                        out.write(chunk)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{archive} is cut short or damaged ({first_line(error)}); get it again.") from error
    except RuntimeError as error:  # what zipfile says of passwords
        raise ValueError(f"{archive} cannot be unpacked ({first_line(error)}); unpack it yourself.") from error
    return number


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """(name, contents) of the regular files of an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            yield ((info.filename, packed.open(info)) for info in packed.infolist() if _is_regular(info))
    else:
        with tarfile.open(archive) as bundle:
            files = (member for member in bundle if member.isreg())
            yield ((member.name, file) for member in files if (file := bundle.extractfile(member)) is not None)


def _is_regular(info: zipfile.ZipInfo) -> bool:
    kind = info.external_attr >> 16 & 0o170000  # as Unix has it; 0 where the archive was made elsewhere
    return not info.is_dir() and kind in (0, 0o100000)


def _inside(folder: Path, name: str, archive: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0] or "\0" in name:
        raise ValueError(
            f"{archive} holds a file {short(name)} that leads out of its folder: do not trust this archive."
        )
    return folder.joinpath(*path.parts)
