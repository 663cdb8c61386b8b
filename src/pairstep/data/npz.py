"""Read npz files from untrusted sources: no pickles, and memory bounded by the file's size.

numpy.load allocates the size that an array's header claims before it reads the data, and
decompresses without limit. This reader compares the claimed sizes with the size of the file first.
"""

from __future__ import annotations

import ast
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

KINDS = "biufU"  # dtype kinds of numbers and text; object arrays would need pickle

# Limit of the decompressed size: MAX_EXPANSION times the size of the file, plus EXPANSION_ALLOWANCE
# bytes so that small files of repeated values can be read. A hostile file can expand by a factor of
# 1000 (deflate), so a larger limit lets it take more memory; a smaller one rejects sparse data.
MAX_EXPANSION = 250
EXPANSION_ALLOWANCE = 2**26

MAX_HEADER_LENGTH = 10_000  # bytes of an array's header; NumPy has the same limit

# Exceptions that the readers of Python and NumPy raise for damaged files.
DAMAGED_FILE_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    RecursionError, MemoryError, SyntaxError, TypeError, KeyError, IndexError, OverflowError,
    AttributeError,
)  # fmt: skip


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn errors from damaged files into a ValueError that says what the file should have been."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"not {what}: its text is not UTF-8") from error
    except DAMAGED_FILE_ERRORS as error:
        raise ValueError(f"not {what}, or a damaged one: {_line(error)}") from error


def read_npz(file: BinaryIO, *, packed: bool = True) -> dict[str, NDArray[Any] | bytes]:
    """Return the arrays of an npz file by name, and members that are not arrays as bytes.

    Parameters
    ----------
    file : binary file
        It must be able to seek.
    packed : bool
        Whether compressed members are allowed. Without them, memory is bounded by the file's size.
    """
    with refused("an npz file"), zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) < len(names):
            raise ValueError("the npz file has two members with the same name")
        size = file.seek(0, os.SEEK_END)
        limit = EXPANSION_ALLOWANCE + MAX_EXPANSION * size if packed else size
        claimed = sum(member.file_size for member in members)
        if claimed > limit:
            raise ValueError(
                f"the npz file of {size} bytes claims to hold {claimed} bytes, more than the limit "
                f"of {limit}"
            )
        if not packed and any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("the npz file is compressed, but models are never compressed")
        found: dict[str, NDArray[Any] | bytes] = {}
        for member in members:
            content = archive.read(member)
            stem, dot, suffix = member.filename.rpartition(".")
            is_array = dot and suffix == "npy"
            found[stem if is_array else member.filename] = (
                _array(stem, content) if is_array else content
            )
    return found


def _array(name: str, content: bytes) -> NDArray[Any]:
    """Return an array from bytes in npy format, version 1 or 2."""
    major = content[6]
    begin = 10 if major == 1 else 12
    length = int.from_bytes(content[8:begin], "little")
    if content[:6] != b"\x93NUMPY" or major not in (1, 2) or length > MAX_HEADER_LENGTH:
        raise ValueError(f"array {name!r} has no valid npy header")
    header = ast.literal_eval(content[begin : begin + length].decode("latin-1").strip())
    kind, fortran_order, shape = (header[key] for key in ("descr", "fortran_order", "shape"))
    dtype = np.dtype(str(kind))
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ValueError(f"array {name!r} has the type {dtype}, neither numbers nor text")
    available = len(content) - begin - length
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != available:
        claim = f"the shape {shape} of {dtype}"
        raise ValueError(f"array {name!r} claims {claim}, but has {available} bytes")
    array: NDArray[Any] = np.ndarray(
        shape, dtype, content, offset=begin + length, order="F" if fortran_order else "C"
    )
    return array.astype(dtype.newbyteorder("="), order="C")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
