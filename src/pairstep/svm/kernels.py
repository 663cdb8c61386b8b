"""Kernels from the parameters of an estimator, and checks of kernel matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from .. import _core, threads
from .engine import Kernel, native

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values "
    "and need to be preprocessed."
)


# Largest asymmetry of a kernel matrix, relative to its largest entry, that is accepted. It is far
# above the rounding errors of the type (about 1e-7 and 1e-16). A smaller limit would reject
# matrices whose two halves were computed differently; a larger one would accept more wrong ones.
MAX_ASYMMETRY = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}
# An asymmetry of at most this many rounding errors of the largest entry is left in the matrix. A
# larger asymmetry is averaged out, which takes a copy of the matrix.
ROUNDINGS_IGNORED = 16


def named_kernel(kernel: Any, gamma: float, degree: int, coef0: float) -> Kernel:
    """Return the kernel that an estimator's parameters describe.

    If the kernel is a function, its matrix is computed first and then used as a precomputed kernel.
    """
    return Kernel("precomputed" if callable(kernel) else kernel, gamma, degree, coef0)


def gamma_of(gamma: float | str, X: Any) -> float:
    """Return the number that the parameter gamma stands for on the data X."""
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        variance = variance_of(X)
        return 1.0 / (int(X.shape[1]) * variance) if variance > 0 else 1.0
    return float(gamma)


def variance_of(X: Any) -> float:
    """Return the variance of all entries, zeros included."""
    variance, _ = measure(X)
    return variance


def measure(X: Any) -> tuple[float, float]:
    """Return the variance of all entries and the largest squared norm of a row.

    A matrix on a cluster has its own method for it.
    """
    found: tuple[float, float] = X.measure() if hasattr(X, "measure") else _core.measure(native(X))
    return found


def matrix_of(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Any:
    """Return the kernel matrix of X and Y that a function computes, as a dense array."""
    K = kernel(X, Y)
    K = K.toarray() if scipy.sparse.issparse(K) else np.asarray(K)
    return np.asarray(K, np.float32 if K.dtype == np.float32 else np.float64, order="C")


def symmetric(K: Any, name: str) -> Any:
    """Return a kernel matrix without small asymmetry; raise if the asymmetry is large.

    Differences in the last bits are left as they are, because averaging the matrix with its
    transpose would take longer than many fits.
    """
    # Reading the matrix by columns takes about as long as 4 multiplications per entry.
    amount, largest, i, j, _ = _core.asymmetry(K, threads.for_work(4.0 * K.size))
    rounding = np.finfo(K.dtype).eps * largest
    if amount > MAX_ASYMMETRY[K.dtype] * largest:
        raise ValueError(
            f"{name} must be symmetric, but entry [{i}, {j}] is {K[i, j]:.6g} and entry "
            f"[{j}, {i}] is {K[j, i]:.6g}; if the difference is rounding, use (K + K.T) / 2"
        )
    return K if amount <= ROUNDINGS_IGNORED * rounding else (K + K.T) / 2


def require_finite(kernel: Kernel, X: Any) -> None:
    """Raise if the kernel overflows on the data."""
    _, largest = measure(X)
    if kernel.name == "poly":
        with np.errstate(over="ignore", invalid="ignore"):
            largest = (np.float64(kernel.gamma) * largest + abs(kernel.coef0)) ** kernel.degree
    if not math.isfinite(largest):
        raise ValueError(NOT_FINITE)
    if not math.isfinite(kernel.gamma):
        raise ValueError(
            f"gamma must be finite, got {kernel.gamma:g}: the variance of X is too small for "
            'gamma="scale"; scale the features, or set gamma to a number'
        )
