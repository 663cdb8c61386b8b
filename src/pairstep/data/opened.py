"""Files as bytes that can be sought in: standard input, pipes and packed files too."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from .npz import RATIO, SENSELESS, SLACK

PACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
PIECE = 2**20


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading; "-" is standard input. How it is packed is told by its first bytes.

    Raises
    ------
    ValueError
        If it is damaged, or unpacks to more than 250 times its size.
    """
    if path == "-":
        yield unpacked(io.BytesIO(sys.stdin.buffer.read()))
        return
    with open(path, "rb") as file:
        yield unpacked(file if file.seekable() else io.BytesIO(file.read()))


def unpacked(file: BinaryIO) -> BinaryIO:
    """The file itself, or what is packed in it."""
    begin = file.read(max(map(len, PACKERS)))
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    for magic, library in PACKERS.items():
        if begin.startswith(magic):
            return _unpack(library, file, SLACK + RATIO * size)
    return file


def _unpack(library: Any, file: BinaryIO, limit: int) -> BinaryIO:
    content = io.BytesIO()
    try:
        with library.open(file) as stream:
            while piece := stream.read(PIECE):
                if content.tell() + len(piece) > limit:
                    raise ValueError(f"the file unpacks to more than {limit} bytes")
                content.write(piece)
    except (OSError, lzma.LZMAError, *SENSELESS) as error:
        raise ValueError(f"a damaged {library.__name__} file: {error}") from error
    content.seek(0)
    return content
