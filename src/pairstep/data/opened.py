"""Open files, standard input and pipes as seekable binary files, decompressed if necessary."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from .npz import refused

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def opened(path: str | os.PathLike[str], what: str) -> Iterator[BinaryIO]:
    """Open a file for reading; "-" is standard input.

    A file whose name ends in .gz, .bz2 or .xz is decompressed, without a limit of its size. Errors
    in its content become a ValueError that names the file, and says what it should have been.
    """
    if path == "-":
        where, source = "standard input", io.BytesIO(sys.stdin.buffer.read())
    else:
        where, source = str(path), OPENERS.get(Path(path).suffix, open)(path, "rb")
    with source:
        try:
            with refused(what):
                yield source if source.seekable() else io.BytesIO(source.read())
        except (ValueError, OSError, lzma.LZMAError) as error:
            raise ValueError(f"{where}: {error}") from error
