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

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading; "-" is standard input.

    A file whose name ends in .gz, .bz2 or .xz is decompressed, without a limit of its size.
    """
    if path == "-":
        yield io.BytesIO(sys.stdin.buffer.read())
        return
    with OPENERS.get(Path(path).suffix, open)(path, "rb") as file:
        yield file if file.seekable() else io.BytesIO(file.read())
