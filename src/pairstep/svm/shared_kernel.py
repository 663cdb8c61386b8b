"""Kernel matrices of all samples, shared by fits to parts of them.

If the kernel matrix fits into the memory that the user allows, it is computed once, in float64, and
stored in the type that the user chose for kernel rows. Duals are solved with it, and decisions on
test rows are sums of its rows. If it does not fit, each dual computes the rows that it needs. If
there is memory for the squared distances of the rows as well, these are computed once for all
gamma, and each kernel matrix is computed from them.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .engine import (
    Dual,
    Duals,
    Kernel,
    KernelName,
    Solutions,
    SolvedChains,
    precise,
    prepared,
    solve,
    solve_chains,
)

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
        self, rows: Indices, duals: Sequence[Dual], *, at_once: int = 1, **options: Any
    ) -> Solutions:
        """Solve duals of some rows of X, with the options of `engine.solve`.

        The memory is divided among `at_once` calls that may run in parallel.
        """
        return solve(
            self.X, self.kernel, self._placed(rows, duals), dtype=self.dtype, arenas=self.arenas,
            cache_bytes=self.cache_bytes // at_once, **options,
        )  # fmt: skip

    def solve_chains(
        self,
        rows: Indices,
        duals: Sequence[Dual],
        Cs: Array,
        columns: Indices,
        *,
        at_once: int = 1,
        **options: Any,
    ) -> SolvedChains:
        """Solve duals of some rows of X for ascending C, with the options of `solve_chains`.

        If the matrix is stored, the sums of each dual are in the order of `columns`.
        """
        columns = self.place[columns]
        order = np.argsort(columns)  # memory order
        found = solve_chains(
            self.X, self.kernel, self._placed(rows, duals), Cs, columns[order], dtype=self.dtype,
            arenas=self.arenas, cache_bytes=self.cache_bytes // at_once, **options,
        )  # fmt: skip
        if found.sums is not None:
            found.sums = found.sums[:, :, np.argsort(order)]
        return found

    def _placed(self, rows: Indices, duals: Sequence[Dual]) -> Duals:
        """Return the duals with rows of the matrix in place of rows of a part of X."""
        duals = Duals.of(duals)
        return replace(duals, rows=self.place[rows][duals.rows])


class SharedKernels:
    """Kernels of one name on the rows of X, whose matrices have the rows in a given order.

    `count` is the number of kernels that will be requested. The attribute `at_once` is the number
    of them that may be in use at a time.
    """

    max_chains = sys.maxsize  # no other limit than the number of threads

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
        data, center, kernel = prepared(kernel, self.X, None, math.inf)
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


def start_scaled(z: Array, gradient: Array, duals: Duals, ratio: float) -> Duals:
    """Return the duals, started from solutions with bounds that are `ratio` times smaller.

    `z` and `gradient` are those of the solutions of all duals.
    """
    started = replace(duals, z=z.copy(), gradient=gradient.copy())
    for dual in started:
        assert dual.gradient is not None
        _core.start_scaled(dual.point(), dual.gradient, dual.linear, ratio)  # in place
    return started
