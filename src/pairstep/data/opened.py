"""Open files, standard input and pipes as seekable binary files, decompressed if necessary."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from .npz import DAMAGED_FILE_ERRORS, EXPANSION_ALLOWANCE, MAX_EXPANSION

# Compression libraries by the first bytes of their files.
LIBRARIES: dict[bytes, Any] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
# Bytes decompressed between two checks of the size: the limit is exceeded by at most this much.
CHUNK_BYTES = 2**20


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading; "-" is standard input. Compression is detected by the first bytes.

    Raises
    ------
    ValueError
        If it is damaged, or decompresses to more than 64 MB plus 250 times its size.
    OSError
        If it cannot be read, for example because standard input is closed.
    """
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "standard input")
        yield decompressed(io.BytesIO(sys.stdin.buffer.read()))
        return
    with open(path, "rb") as file:
        yield decompressed(file if file.seekable() else io.BytesIO(file.read()))


def decompressed(file: BinaryIO) -> BinaryIO:
    """Return the file itself, or its decompressed content."""
    magic = file.read(max(map(len, LIBRARIES)))
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    for prefix, library in LIBRARIES.items():
        if magic.startswith(prefix):
            return _decompress(library, file, EXPANSION_ALLOWANCE + MAX_EXPANSION * size)
    return file


def _decompress(library: Any, file: BinaryIO, limit: int) -> BinaryIO:
    content = io.BytesIO()
    try:
        with library.open(file) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                if content.tell() + len(chunk) > limit:
                    raise ValueError(
                        f"the file decompresses to more than {limit} bytes; if you trust it, "
                        "decompress it first"
                    )
                content.write(chunk)
    except (OSError, lzma.LZMAError, *DAMAGED_FILE_ERRORS) as error:
        raise ValueError(f"a damaged {library.__name__} file: {error}") from error
    content.seek(0)
    return content
