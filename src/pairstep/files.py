"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

Place = str | os.PathLike[str] | BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` once all of it is on the disk.

    Until then, and after an error, what was at `path` is untouched. What is no regular file, such
    as a pipe or a device, cannot be replaced and is written to as it is.
    """
    final = Path(os.path.realpath(path))  # a link stays, and what it leads to is replaced
    if final.exists() and not final.is_file():
        with final.open("wb") as file:
            yield file
        return
    # In the same folder, for only there is a file put in place in one step; made with the user's
    # own mask of permissions.
    beside = final.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None  # not of a name of ours
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            os.chmod(beside, final.stat().st_mode & 0o777)
        os.replace(beside, final)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _remember(final.parent)


@contextmanager
def writing(place: Place) -> Iterator[BinaryIO]:
    """A file to write to: a new one that takes the place of a path, or the open one given."""
    if isinstance(place, (str, os.PathLike)):
        with replacing(place) as file:
            yield file
    else:
        yield place


@contextmanager
def reading(place: Place) -> Iterator[BinaryIO]:
    """A file to read from: that at a path, or the open one given."""
    if isinstance(place, (str, os.PathLike)):
        with open(place, "rb") as file:
            yield file
    else:
        yield place


def write_at_once(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that it is there whole or not at all."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _remember(folder: Path) -> None:
    """Write down that a folder has a file of this name; not every system knows of such a thing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
