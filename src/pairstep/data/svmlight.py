"""The format of svmlight and LIBSVM: a line per sample, ``label index:value index:value ...``."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
from sklearn.datasets import load_svmlight_file

from .._validation import Array

WIDEST = 2**31 - 1  # columns that the engine can number


def read_svmlight(file: BinaryIO, zero_based: bool = False) -> tuple[Any, Array]:
    """Samples as a sparse matrix, and their labels.

    Raises
    ------
    ValueError
        With the number of the first line that does not fit.
    """
    try:
        X, y = _parsed(file, zero_based)
    except (ValueError, IndexError) as error:
        file.seek(0)
        raise ValueError(_blame(file, zero_based) or str(error)) from error
    if len(y) == 0:
        raise ValueError("there is no sample in it")
    return X, y


def _parsed(file: BinaryIO, zero_based: bool) -> tuple[Any, Array]:
    try:
        X, y = load_svmlight_file(file, zero_based=zero_based)
    except OverflowError:
        raise ValueError(f"an index is larger than {WIDEST}") from None
    if X.shape[1] > WIDEST:
        raise ValueError(f"an index is larger than {WIDEST}")
    if X.nnz and not X.indices.min() >= 0:
        raise ValueError("an index is below 0")
    return X, np.asarray(y)


def _blame(file: BinaryIO, zero_based: bool) -> str:
    """What is wrong with the first line that cannot be read alone; nothing if all can."""
    for number, line in enumerate(file, start=1):
        try:
            _parsed(io.BytesIO(line), zero_based)
        except (ValueError, IndexError) as error:
            hint = ""
            if not zero_based and "Invalid index 0" in str(error):
                hint = "; give --zero-based if your indices begin with 0"
            return f"line {number}: {error}{hint}"
    return ""
