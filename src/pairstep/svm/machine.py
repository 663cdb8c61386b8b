"""What every support vector machine is to the engine: duals over the rows of one data matrix.

With z_i = y_i alpha_i (classes) or alpha_i - alpha*_i (regression) each of them is

    minimise z'Kz/2 + linear'z + sum_i kink_i |z_i|
    subject to sum of each group of z = its total, lower <= z <= upper

where K is the kernel matrix of the rows that the variables stand for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from ..rules import RULES

KernelName = Literal["linear", "poly", "rbf", "sigmoid", "precomputed"]
KERNELS: tuple[str, ...] = get_args(KernelName)  # in the order of the native code
# By the engine's code. It may call optimal what the certificate then finds short of it.
STATUSES = (Status.STALLED, Status.MAX_ITER, Status.STOPPED, Status.STALLED)


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters; a precomputed one is read from the data matrix itself."""

    name: KernelName
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def native(self) -> tuple[int, float, float, int]:
        """As the native code takes it."""
        return KERNELS.index(self.name), self.gamma, self.coef0, self.degree


@dataclass
class Dual:
    """One dual: its variables stand for `rows` of the data, groups side by side."""

    rows: Indices
    linear: Array
    lower: Array
    upper: Array
    starts: Indices  # where each group begins, and n
    totals: Array
    z: Array  # a feasible start
    kink: Array | None = None


@dataclass(frozen=True)
class Solution:
    """A solved dual, with what the engine found out about it in float64."""

    z: Array
    gradient: Array  # K z + linear
    kkt_violation: float
    duality_gap: float
    multiplier: Array  # the price at which each group trades: minus the bias
    n_iter: int
    status: Status


def solve(
    X: Any,
    kernel: Kernel,
    duals: Sequence[Dual],
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    cache_bytes: int,
    threads: int,
    dtype: type[np.floating[Any]] = np.float32,
    rule: str = "auto",
    keep_going: Callable[[float, int, int], bool] | None = None,
) -> list[Solution]:
    """Solve duals over the rows of X (dense or CSR) until each violation is at most `tol`.

    `max_iter` bounds the iterations of each dual, `time_limit` (seconds) all of them together.
    `keep_going(violation, iterations, solved)` is asked about twenty times a second.
    """
    data, center = _laid_out(X, kernel)
    arrays = []
    for dual in duals:
        z = np.array(dual.z, np.float64)
        arrays.append((
            dual.rows, dual.linear, dual.lower, dual.upper, dual.kink, dual.starts, dual.totals,
            z, np.empty_like(z),
        ))  # fmt: skip
    began = time.perf_counter()
    outcomes = _core.solve_duals(
        data, center, kernel.native, arrays, tol, max_iter, time_limit, cache_bytes, threads,
        np.dtype(dtype) == np.float32, RULES["libsvm" if rule == "auto" else rule].code,
        keep_going,
    )  # fmt: skip
    solutions = []
    late = time.perf_counter() - began >= time_limit
    for dual, (*_, z, gradient), (code, n_iter, _) in zip(duals, arrays, outcomes, strict=True):
        pivot = None if dual.kink is None else np.zeros(len(z))
        violation, gap, multiplier = _core.certify(
            gradient, z, dual.lower, dual.upper, dual.kink, pivot, dual.starts
        )
        status = Status.OPTIMAL if violation <= tol else STATUSES[code]
        if status == Status.STOPPED and late:
            status = Status.TIME_LIMIT
        solutions.append(Solution(z, gradient, violation, gap, multiplier, n_iter, status))
    return solutions


def decide(support: Any, kernel: Kernel, coefficients: Array, X: Any, *, threads: int) -> Array:
    """The kernel of each row of X with the support rows, times `coefficients`.

    `support` has a row per support vector and `coefficients` a column per output; with a
    precomputed kernel `support` is None and X holds the support columns only.
    """
    count, outputs = coefficients.shape
    data = _laid_out(X, kernel)[0]
    known, center = (data, None) if support is None else _laid_out(support, kernel)
    sums = np.zeros((outputs, X.shape[0]))
    _core.add_kernel(
        kernel.native, known, center,
        np.arange(count), np.ascontiguousarray(coefficients, np.float64), data,
        np.arange(X.shape[0]), sums, threads, X.dtype == np.float32,
    )  # fmt: skip
    return sums.T


def _laid_out(X: Any, kernel: Kernel) -> tuple[Any, Array | None]:
    """X as the native code takes it, and the point to move the origin to.

    Distances do not depend on the origin; near the mean of the data they lose fewer digits. The
    mean is rounded, so that it is the same however X is stored.
    """
    center: Array | None = None
    if kernel.name == "rbf":
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        center = mean.astype(np.float32).astype(np.float64)
    if scipy.sparse.issparse(X):
        return (
            X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float64),
            X.shape[1],
        ), center  # fmt: skip
    return np.ascontiguousarray(X, np.float32 if X.dtype == np.float32 else np.float64), center
