"""Arrays from npz files that anybody may have made: no pickles, and no more memory than they claim.

numpy.load reserves what an array's header asks for before it looks at what is there, and unpacks
whatever was packed. Here sizes are compared with that of the file first.
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

KINDS = "biufU"  # numbers and text: nothing that is a program
# What a packed file may unpack to: deflate packs zeros a thousand times.
SLACK, RATIO = 2**26, 250
LONGEST_HEADER = 10_000  # of an array, as NumPy has it

# By these Python's and NumPy's readers may answer to bytes that make no sense.
SENSELESS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    RecursionError, MemoryError, SyntaxError, TypeError, KeyError, IndexError, OverflowError,
    AttributeError,
)  # fmt: skip


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Say of bytes that make no sense what they should have been."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"not {what}: its text is not UTF-8") from error
    except SENSELESS as error:
        raise ValueError(f"not {what}, or a damaged one: {_line(error)}") from error


def read_npz(file: BinaryIO, *, packed: bool = True) -> dict[str, NDArray[Any] | bytes]:
    """The arrays of an npz file by name; members that are no arrays as bytes.

    Parameters
    ----------
    file : binary file
        It must be able to seek.
    packed : bool
        Whether compressed members are allowed. Without, memory is bounded by the file's size.
    """
    with refused("an npz file"), zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) < len(names):
            raise ValueError("the npz file has two members of one name")
        size = file.seek(0, os.SEEK_END)
        limit = SLACK + RATIO * size if packed else size
        claimed = sum(member.file_size for member in members)
        if claimed > limit:
            raise ValueError(f"the npz file of {size} bytes claims to hold {claimed}")
        if not packed and any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("the npz file is compressed, which no file of ours is")
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
    """An array of the npy format, versions 1 and 2."""
    major = content[6]
    begin = 10 if major == 1 else 12
    length = int.from_bytes(content[8:begin], "little")
    if content[:6] != b"\x93NUMPY" or major not in (1, 2) or length > LONGEST_HEADER:
        raise ValueError(f"array {name!r} has no header that we know")
    header = ast.literal_eval(content[begin : begin + length].decode("latin-1").strip())
    kind, by_columns, shape = (header[key] for key in ("descr", "fortran_order", "shape"))
    dtype = np.dtype(str(kind))
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ValueError(f"array {name!r} is of the type {dtype}, neither numbers nor text")
    there = len(content) - begin - length
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != there:
        claim = f"the shape {shape} of {dtype}"
        raise ValueError(f"array {name!r} claims {claim}, but has {there} bytes")
    array: NDArray[Any] = np.ndarray(
        shape, dtype, content, offset=begin + length, order="F" if by_columns else "C"
    )
    return array.astype(dtype.newbyteorder("="), order="C")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
