"""Kernels as the user names them: gamma from data, matrices from functions, and their size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core, threads
from .._validation import Array
from .machine import Kernel, native

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values "
    "and need to be preprocessed."
)


def gamma_of(gamma: float | str, X: Any) -> float:
    """The number that gamma stands for on the data X."""
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        variance = variance_of(X)
        return 1.0 / (int(X.shape[1]) * variance) if variance > 0 else 1.0
    return float(gamma)


def variance_of(X: Any) -> float:
    """The variance of all entries, zeros included, by their distances from the mean."""
    variance, _ = measure(X)
    return variance


def measure(X: Any) -> tuple[float, float]:
    """That, and the largest squared norm of a row; data that lie elsewhere tell it themselves."""
    found: tuple[float, float] = X.measure() if hasattr(X, "measure") else _core.measure(native(X))
    return found


def center_of(X: Any) -> Array:
    """A point that all rows are near to, if there is one: the mean.

    Of a sparse X it is 0 in columns that fewer than half of the rows fill: moving them by the mean
    would fill the others and gain less than a bit.
    """
    mean: Array = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if scipy.sparse.issparse(X):
        mean[2 * np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]] = 0.0
    return mean


def matrix_of(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Any:
    """What a function gives as the kernel of all rows of X with all rows of Y."""
    K = kernel(X, Y)
    K = K.toarray() if scipy.sparse.issparse(K) else np.asarray(K)
    return np.asarray(K, np.float32 if K.dtype == np.float32 else np.float64, order="C")


def symmetric(K: Any, name: str) -> Any:
    """The kernel matrix, rid of asymmetry that is small; an error if it is visible.

    What the last bits of its numbers differ by is left as it is: the mean of the matrix and its
    transpose would take longer than many a fit.
    """
    # A number that is read across the rows takes as long as some multiplications.
    amount, largest, i, j, _ = _core.asymmetry(K, threads.worth(4.0 * K.size))
    rounding = np.finfo(K.dtype).eps * largest
    if amount > (1e-4 if K.dtype == np.float32 else 1e-8) * largest:
        raise ValueError(
            f"{name} must be symmetric, but entry [{i}, {j}] is {K[i, j]:.6g} and entry "
            f"[{j}, {i}] is {K[j, i]:.6g}"
        )
    return K if amount <= 16 * rounding else (K + K.T) / 2


def require_finite(kernel: Kernel, X: Any) -> None:
    """Raise if the data are so large that the kernel overflows."""
    _, largest = measure(X)
    if kernel.name == "poly":
        with np.errstate(over="ignore", invalid="ignore"):
            largest = (np.float64(kernel.gamma) * largest + abs(kernel.coef0)) ** kernel.degree
    if not math.isfinite(largest):
        raise ValueError(NOT_FINITE)
    if not math.isfinite(kernel.gamma):
        raise ValueError(
            f"gamma must be finite, got {kernel.gamma:g}: the variance of X is too small for "
            'gamma="scale"'
        )
