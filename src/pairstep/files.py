"""Atomic file writes: a file is complete or absent."""

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
    """Open a file for writing that replaces `path` once all of it is on disk.

    Until then, and after an error, the old file is untouched. A path that is not a regular file,
    such as a pipe or a device, cannot be replaced and is written to directly.
    """
    final = Path(os.path.realpath(path))  # a link is kept, and its target is replaced
    if final.exists() and not final.is_file():
        with final.open("wb") as file:
            yield file
        return
    # In the same directory, because a rename is atomic only there; created with the user's umask.
    beside = final.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise type(error)(
            error.errno, error.strerror, str(path)
        ) from None  # not the temporary name
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
    _sync(final.parent)


@contextmanager
def writing(place: Place) -> Iterator[BinaryIO]:
    """Open a path for an atomic write, or return the open file given."""
    if isinstance(place, (str, os.PathLike)):
        with replacing(place) as file:
            yield file
    else:
        yield place


@contextmanager
def reading(place: Place) -> Iterator[BinaryIO]:
    """Open a path for reading, or return the open file given."""
    if isinstance(place, (str, os.PathLike)):
        with open(place, "rb") as file:
            yield file
    else:
        yield place


def write_at_once(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file atomically."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _sync(directory: Path) -> None:
    """Flush a directory entry to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
