"""Kernel matrices of all samples, shared by fits to parts of them.

If the kernel matrix fits into the memory that the user allows, it is computed once, in float64, and
stored in the type that the user chose for kernel rows. Duals are solved with it, and decisions on
test rows are sums of its rows. If it does not fit, each dual computes the rows that it needs. If
there is memory for the squared distances of the rows as well, these are computed once for all
gamma, and each kernel matrix is computed from them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .engine import Dual, Kernel, KernelName, Solution, precise, prepared, solve

# A variable counts as being at its bound if its relative distance to it is at most this: bounds are
# multiplied and divided by ratios of C, which rounds them.
AT_BOUND = 1e-9
# If at most this fraction of the support vectors is at its bounds, a larger C changes little, and
# the start is the last solution itself. If larger, bounded variables start too far from their new
# bounds; if smaller, free variables start too large.
MAX_FRACTION_BOUNDED = 0.2
# Fraction of `cache_size` that matrices may take; the rest is for the blocks of working sets.
MATRIX_MEMORY_FRACTION = 0.75
# If at least this many matrices fit, two may be in use at a time: with the distances that makes
# three, and the other two leave enough memory for the blocks of working sets.
MIN_MATRICES_FOR_TWO_KERNELS = 5
# Entries by which a row of a matrix may be padded (`Points::PANEL` in cpp/oracles/points.hpp).
MAX_PADDING = 48
# Largest error of a kernel value from the rounding of norms. If it could be larger, distances are
# computed as sums of squared differences, which is slower.
MAX_NORM_ERROR = 1e-12
# Squared norms and gamma above this could make distances in float32, whose largest number is 3e38,
# overflow or underflow.
MAX_FLOAT32_SQUARE = 1e30


class Trained(NamedTuple):
    """What the decisions of a fitted model on other rows depend on."""

    rows: Indices  # the support vectors
    weights: Array  # the coefficient of each support vector in each output
    starts: Indices  # where the groups of support vectors begin, and their number
    columns: Indices  # the rows to decide on


@dataclass(frozen=True)
class SharedKernel:
    """A kernel on the rows of X, which solves duals of some rows and decides on others."""

    X: Any
    kernel: Kernel
    matrix: Any  # the kernel matrix; None if it is not stored
    place: Indices  # index of each row of X in the matrix
    cache_bytes: int  # memory for the solves, without the matrix
    dtype: DTypeLike
    arenas: _core.Arenas

    def solve(
        self,
        duals: Sequence[tuple[Indices, Dual]],
        *,
        tol: float,
        max_iter: int,
        time_limit: float,
        rule: str,
        cold: bool,
        threads: int,
        at_once: int = 1,
        keep_going: Callable[[float, int, int], bool] | None = None,
    ) -> list[Solution]:
        """Solve duals, each of which refers to some rows of X.

        The memory is divided among `at_once` calls that may run in parallel.
        """
        placed = [replace(dual, rows=self.place[part[dual.rows]]) for part, dual in duals]
        return solve(
            self.X, self.kernel, placed, tol=tol, max_iter=max_iter, time_limit=time_limit,
            cache_bytes=self.cache_bytes // at_once, threads=threads, dtype=self.dtype, rule=rule,
            cold=cold, keep_going=keep_going, arenas=self.arenas,
        )  # fmt: skip

    def sums(self, models: Sequence[Trained], threads: int) -> list[Array]:
        """Return the sums of each model at its columns; an empty list if no matrix is stored.

        As in `decide`, there is one set of outputs per group of support vectors.
        """
        if self.matrix is None:
            return []
        jobs, found = [], []
        for model in models:
            rows, columns = self.place[model.rows], self.place[model.columns]
            order = np.argsort(columns)  # memory order
            groups, outputs = len(model.starts) - 1, model.weights.shape[1]
            sums = np.zeros((groups, outputs, len(columns)))
            for group, (begin, end) in enumerate(pairwise(model.starts)):
                weights = model.weights[begin:end]
                jobs.append(_core.RowSum(rows[begin:end], weights, columns[order], sums[group]))
            found.append((order, sums.reshape(groups * outputs, -1).T))
        _core.add_matrix_rows(self.matrix, jobs, threads)
        return [sums[np.argsort(order)] for order, sums in found]


class SharedKernels:
    """Kernels of one name on the rows of X, whose matrices have the rows in a given order.

    `count` is the number of kernels that will be requested. The attribute `at_once` is the number
    of them that may be in use at a time.
    """

    def __init__(
        self,
        X: Any,
        name: KernelName,
        count: int,
        order: Indices,
        cache_bytes: int,
        dtype: DTypeLike,
    ):
        self.X, self.order, self.dtype = X, order, dtype
        self.arenas = _core.Arenas()
        n = len(order)
        self.place = np.empty(n, np.int64)
        self.place[order] = np.arange(n)
        self.single = np.dtype(dtype) == np.float32
        bytes_each = n * (n + MAX_PADDING) * np.dtype(dtype).itemsize
        fit = (
            0 if name == "precomputed" else int(MATRIX_MEMORY_FRACTION * cache_bytes // bytes_each)
        )
        self.fits = fit > 0
        self.keeps_distances = name == "rbf" and count > 1 and fit > 1
        self.at_once = min(count, 2) if fit >= MIN_MATRICES_FOR_TWO_KERNELS else 1
        used = self.fits * (self.keeps_distances + self.at_once)
        self.cache_bytes = cache_bytes - used * bytes_each
        self._distances: Any = None
        self._matrices: list[Any] = []  # reused for later kernels

    def of(
        self,
        kernel: Kernel,
        threads: int,
        in_use: Iterable[SharedKernel] = (),
        seconds: float = math.inf,
    ) -> SharedKernel:
        """Return a kernel, while others are in use.

        If its matrix takes longer than `seconds`, the matrix is not stored, as if it did not fit.
        """
        matrix = self._matrix(kernel, threads, in_use, seconds) if self.fits else None
        if matrix is None:
            explicit_hessian = self.X if kernel.name == "precomputed" else None
            return self._shared(self.X, kernel, explicit_hessian, np.arange(len(self.order)))
        return self._shared(matrix, Kernel("precomputed"), matrix, self.place)

    def _matrix(
        self, kernel: Kernel, threads: int, in_use: Iterable[SharedKernel], seconds: float
    ) -> Any:
        """Return the matrix of a kernel, or None if there is no time for it."""
        ends = time.perf_counter() + seconds
        if seconds <= 0:
            return None
        data, center, kernel = prepared(kernel, self.X, [], math.inf)
        kernel = precise(kernel, data, center, 1.0, MAX_NORM_ERROR)
        # A shift of the origin would change the intercepts of models that are fitted to the matrix.
        if kernel.differences or kernel.name == "linear":
            center = None
        keeps = self.keeps_distances and not kernel.differences
        if not (keeps and self._distances_suffice(data, kernel.gamma)):
            return _core.kernel_matrix(
                kernel.native, data, center, self.order, self.single, threads,
                ends - time.perf_counter(),
            )  # fmt: skip
        if self._distances is None:
            self._distances = _core.squared_distances(
                data, center, self.order, self.single, threads, ends - time.perf_counter()
            )
            if self._distances is None:
                return None
        used = [shared.matrix for shared in in_use]
        free = [some for some in self._matrices if not any(some is one for one in used)]
        if not free:
            free = [np.empty_like(self._distances)]
            self._matrices += free
        left = ends - time.perf_counter()
        in_time = _core.rbf_of_distances(self._distances, kernel.gamma, free[0], threads, left)
        return free[0] if in_time else None

    def _distances_suffice(self, data: Any, gamma: float) -> bool:
        """Return whether distances in the type of the matrix neither overflow nor underflow."""
        return not self.single or max(gamma, 4 * _core.measure(data)[1]) < MAX_FLOAT32_SQUARE

    def _shared(self, X: Any, kernel: Kernel, matrix: Any, place: Indices) -> SharedKernel:
        return SharedKernel(X, kernel, matrix, place, self.cache_bytes, self.dtype, self.arenas)


def start_scaled(earlier: Solution, dual: Dual, ratio: float) -> None:
    """Start `dual` from the solution of a dual whose bounds are `ratio` times smaller.

    If many variables are at their bounds, they will follow these bounds. The start is then the
    multiple of the solution with the best objective that is within the bounds. If few are, the
    solution will change little. If the bounds are infinite in either dual, the start is the
    solution itself.
    """
    ratio = ratio if math.isfinite(ratio) else 1.0
    z, quadratic = earlier.z, earlier.gradient - dual.linear
    bound = np.where(z > 0, dual.upper, dual.lower) / ratio
    bounded = np.count_nonzero((z != 0) & (np.abs(z) >= (1 - AT_BOUND) * np.abs(bound)))
    multiple = min(ratio, 1.0)
    if bounded > MAX_FRACTION_BOUNDED * np.count_nonzero(z):
        curvature = z @ quadratic
        slope = dual.linear @ z + (0.0 if dual.l1 is None else dual.l1 @ np.abs(z))
        best = float(-slope / curvature) if curvature > 0 else 1.0
        multiple = min(max(best, multiple), ratio)
    dual.z = np.clip(z * multiple, dual.lower, dual.upper)
    dual.gradient = quadratic * multiple + dual.linear
