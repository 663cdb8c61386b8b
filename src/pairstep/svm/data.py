"""Checks of training samples and of samples to predict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

# The formats that the solver reads, as arguments of scikit-learn's `check_array`.
DATA_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}


def is_plain(y: Any) -> bool:
    """Return whether y is a vector of numbers or strings; the values are checked elsewhere."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"


def needs_no_conversion(X: Any) -> bool:
    """Return whether X is in a format that the solver reads, and all its entries are finite.

    scikit-learn's own checks, which take longer, would return such an X unchanged.
    """
    if scipy.sparse.issparse(X):
        if X.format != "csr" or X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
            return False
        entries = X.data
    elif type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous:
        entries = X
    else:
        return False
    if entries.dtype not in DATA_CHECKS["dtype"] or 0 in X.shape:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(entries.sum())


def entries_of(X: Any) -> int:
    """Return the number of entries that X stores."""
    return int(X.nnz if scipy.sparse.issparse(X) else X.size)


def canonical(X: Any) -> Any:
    """Return a sparse X with every entry stored once and in order."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def dense(coefficients: Any) -> Any:
    """Return coefficients, which are sparse if the samples were, as a dense array."""
    return np.asarray(
        coefficients.toarray() if scipy.sparse.issparse(coefficients) else coefficients
    )
