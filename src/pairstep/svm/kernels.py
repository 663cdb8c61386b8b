"""Kernels as the user names them: gamma from data, matrices from functions, and their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .._validation import Array
from .machine import Kernel

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values "
    "and need to be preprocessed."
)


def gamma_of(gamma: float | str, X: Any) -> float:
    """The number that gamma stands for on the data X."""
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        variance = _variance(X)
        return 1.0 / (int(X.shape[1]) * variance) if variance > 0 else 1.0
    return float(gamma)


def _variance(X: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        if not scipy.sparse.issparse(X):
            return float(X.var(dtype=np.float64))
        size, stored = X.shape[0] * X.shape[1], X.data.astype(np.float64)
        mean = stored.sum() / size
        zeros = (size - len(stored)) / size
        return float(((stored - mean) ** 2).sum() / size + zeros * mean**2)


def matrix_of(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Array:
    """What a function gives as the kernel of all rows of X with all rows of Y."""
    K = kernel(X, Y)
    if scipy.sparse.issparse(K):
        K = K.toarray()
    return np.asarray(K, dtype=np.float64, order="C")


def require_finite(kernel: Kernel, X: Any) -> None:
    """Raise if the data are so large that the kernel overflows."""
    if kernel.name == "precomputed":
        return  # an entry of X, which is finite
    rows = X.multiply(X).sum(axis=1) if scipy.sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.max(rows))
        if kernel.name == "poly":
            largest = (np.float64(kernel.gamma) * largest + abs(kernel.coef0)) ** kernel.degree
    if not np.isfinite(largest) or not np.isfinite(kernel.gamma):
        raise ValueError(NOT_FINITE)
