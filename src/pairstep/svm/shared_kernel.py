"""The kernels of all rows of a sample, shared by the machines that are trained on parts of it.

Where the kernel matrix fits into the memory that the user allows, it is computed once, in float64,
and kept in the type that the user chose for kernel rows. Duals are solved on it, and decisions on
rows that a machine has not seen are sums of its rows. Where it does not fit, each dual computes the
rows that it needs. Where there is room for the squared distances of the rows, too, these are
computed once for all gamma, and each kernel matrix is an exponential of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .machine import Dual, Kernel, KernelName, Solution, prepared, solve

FEW = 0.2  # of the support vectors: if fewer are at their limits, a larger C changes little
SHARE = 0.75  # of the memory that matrices may take; the rest is for blocks of working sets
MANY = 5  # matrices that fit: then two may be in use, and blocks still have room
LARGEST = 1e30  # squares and gamma beyond which distances in float32 could overflow or vanish


class Trained(NamedTuple):
    """A trained machine, as far as its decisions on other rows of the sample need it."""

    rows: Indices  # its support vectors
    weights: Array  # of each in each output
    starts: Indices  # where the groups of support vectors begin, and the number of all
    columns: Indices  # the rows to decide on


@dataclass(frozen=True)
class SharedKernel:
    """A kernel over the rows of X: solves duals over some of them, and sums rows for others."""

    X: Any
    kernel: Kernel
    matrix: Any  # of the kernel, if it is at hand
    place: Indices  # of each row of X in the matrix
    cache_bytes: int  # for what the solves need beside it
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
        """Solve duals that are each over a part of the sample: these rows of it.

        So many calls may be under way `at_once`, which share the memory.
        """
        placed = [replace(dual, rows=self.place[part[dual.rows]]) for part, dual in duals]
        return solve(
            self.X, self.kernel, placed, tol=tol, max_iter=max_iter, time_limit=time_limit,
            cache_bytes=self.cache_bytes // at_once, threads=threads, dtype=self.dtype, rule=rule,
            cold=cold, keep_going=keep_going, arenas=self.arenas,
        )  # fmt: skip

    def sums(self, machines: Sequence[Trained], threads: int) -> list[Array]:
        """What each machine's support vectors sum up to at its columns; nothing without a matrix.

        As in `decide`, each group of support vectors has outputs of its own.
        """
        if self.matrix is None:
            return []
        jobs, found = [], []
        for machine in machines:
            rows, columns = self.place[machine.rows], self.place[machine.columns]
            order = np.argsort(columns)  # as they are in memory
            groups, outputs = len(machine.starts) - 1, machine.weights.shape[1]
            sums = np.zeros((groups, outputs, len(columns)))
            for group, (begin, end) in enumerate(pairwise(machine.starts)):
                weights = machine.weights[begin:end]
                jobs.append(_core.RowSum(rows[begin:end], weights, columns[order], sums[group]))
            found.append((order, sums.reshape(groups * outputs, -1).T))
        _core.add_matrix_rows(self.matrix, jobs, threads)
        return [sums[np.argsort(order)] for order, sums in found]


class SharedKernels:
    """Kernels of one name over the rows of X, their matrices' rows in a given order.

    `count` of them will be asked for; `at_once` there may be so many that are in use.
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
        bytes_each = n * (n + 48) * np.dtype(dtype).itemsize
        fit = 0 if name == "precomputed" else int(SHARE * cache_bytes // bytes_each)
        self.fits = fit > 0
        self.keeps_distances = name == "rbf" and count > 1 and fit > 1
        self.at_once = min(count, 2) if fit >= MANY else 1
        used = self.fits * (self.keeps_distances + self.at_once)
        self.cache_bytes = cache_bytes - used * bytes_each
        self._distances: Any = None
        self._matrices: list[Any] = []  # to be written over

    def of(self, kernel: Kernel, threads: int, in_use: Iterable[SharedKernel] = ()) -> SharedKernel:
        """One of them, while others are in use."""
        if not self.fits:
            at_hand = self.X if kernel.name == "precomputed" else None
            return self._shared(self.X, kernel, at_hand, np.arange(len(self.order)))
        data, center = prepared(kernel, self.X)
        if self.keeps_distances and self._will_do(data, kernel.gamma):
            if self._distances is None:
                self._distances = _core.squared_distances(
                    data, center, self.order, self.single, threads
                )
            used = [shared.matrix for shared in in_use]
            free = [some for some in self._matrices if not any(some is one for one in used)]
            if not free:
                free = [np.empty_like(self._distances)]
                self._matrices += free
            matrix = free[0]
            _core.rbf_of_distances(self._distances, kernel.gamma, matrix, threads)
        else:
            matrix = _core.kernel_matrix(
                kernel.native, data, center, self.order, self.single, threads
            )
        return self._shared(matrix, Kernel("precomputed"), matrix, self.place)

    def _will_do(self, data: Any, gamma: float) -> bool:
        """Whether distances in this type are as good as the exponentials of them."""
        return not self.single or max(gamma, 4 * _core.measure(data)[1]) < LARGEST

    def _shared(self, X: Any, kernel: Kernel, matrix: Any, place: Indices) -> SharedKernel:
        return SharedKernel(X, kernel, matrix, place, self.cache_bytes, self.dtype, self.arenas)


def continued(earlier: Solution, dual: Dual, ratio: float) -> None:
    """Start `dual` from the solution of the one whose limits were its own, divided by `ratio`.

    Where many variables are at their limits they will follow them: from the best multiple of the
    solution that is sure to be within the limits. Where few are, the others will hardly move.
    """
    z, quadratic = earlier.z, earlier.gradient - dual.linear
    most = np.where(z > 0, dual.upper, dual.lower) / ratio
    full = np.count_nonzero((z != 0) & (np.abs(z) >= (1 - 1e-9) * np.abs(most)))
    multiple = min(ratio, 1.0)
    if full > FEW * np.count_nonzero(z):
        curvature = z @ quadratic
        slope = dual.linear @ z + (0.0 if dual.kink is None else dual.kink @ np.abs(z))
        best = float(-slope / curvature) if curvature > 0 else 1.0
        multiple = min(max(best, multiple), ratio)
    dual.z = np.clip(z * multiple, dual.lower, dual.upper)
    dual.gradient = quadratic * multiple + dual.linear
