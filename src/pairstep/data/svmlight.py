"""The format of svmlight and LIBSVM: one ``label index:value index:value ...`` line per sample."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np

from .._validation import Array
from ..extras import needed

MAX_INDEX = 2**31 - 1  # largest column that a 32-bit index can hold


def read_svmlight(file: BinaryIO, zero_based: bool = False) -> tuple[Any, Array]:
    """Return samples as a sparse matrix, and their labels, from the current position of the file.

    Raises
    ------
    ValueError
        With the number of the first line that cannot be read.
    """
    start = file.tell()
    try:
        X, y = _parsed(file, zero_based)
    except (ValueError, IndexError) as error:
        file.seek(start)
        raise ValueError(_first_error(file, zero_based) or str(error)) from error
    if len(y) == 0:
        raise ValueError("the file has no samples")
    return X, y


def _parsed(file: BinaryIO, zero_based: bool) -> tuple[Any, Array]:
    datasets = needed("sklearn.datasets", by="data in LIBSVM's format")
    try:
        X, y = datasets.load_svmlight_file(file, zero_based=zero_based)
    except OverflowError:
        raise ValueError(f"an index is larger than {MAX_INDEX}") from None
    if X.shape[1] > MAX_INDEX:
        raise ValueError(f"an index is larger than {MAX_INDEX}")
    if X.nnz and not X.indices.min() >= 0:
        raise ValueError("an index is below 0")
    return X, np.asarray(y)


def _first_error(file: BinaryIO, zero_based: bool) -> str:
    """Return the error of the first line that cannot be read by itself; empty if all can."""
    for number, line in enumerate(file, start=1):
        try:
            _parsed(io.BytesIO(line), zero_based)
        except (ValueError, IndexError) as error:
            hint = ""
            if not zero_based and "Invalid index 0" in str(error):
                hint = (
                    "; use --zero-based if indices begin with 0, or --kernel precomputed if "
                    "each line begins with the number of its sample"
                )
            return f"line {number}: {error}{hint}"
    return ""
