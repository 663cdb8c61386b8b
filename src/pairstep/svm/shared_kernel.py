"""The kernel of all rows of a sample, shared by the machines that are trained on parts of it.

Where the kernel matrix fits into the memory that the user allows, it is computed once, in float64,
and kept in the type that the user chose for kernel rows. Duals are solved on it, and decisions on
rows that a machine has not seen are sums of its rows. Where it does not fit, each dual computes the
rows that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .machine import Dual, Kernel, Solution, prepared, solve

FEW = 0.2  # of the support vectors: if fewer are at their limits, a larger C changes little
SHARE = 0.75  # of the memory that the matrix may take; the rest is for blocks of working sets


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
    threads: int

    @classmethod
    def of(
        cls,
        X: Any,
        kernel: Kernel,
        order: Indices,
        cache_bytes: int,
        dtype: DTypeLike,
        threads: int,
    ) -> SharedKernel:
        """With the matrix, its rows in this order, if it fits into so many bytes."""
        n = len(order)
        if kernel.name == "precomputed":
            return cls(X, kernel, X, order, cache_bytes, dtype, threads)
        bytes_needed = n * (n + 48) * np.dtype(dtype).itemsize
        if bytes_needed > SHARE * cache_bytes:
            return cls(X, kernel, None, np.arange(n), cache_bytes, dtype, threads)
        data, center = prepared(kernel, X)
        matrix = _core.kernel_matrix(
            kernel.native, data, center, order, np.dtype(dtype) == np.float32, threads
        )
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        left = cache_bytes - bytes_needed
        return cls(matrix, Kernel("precomputed"), matrix, place, left, dtype, threads)

    def solve(
        self,
        duals: Sequence[tuple[Indices, Dual]],
        *,
        tol: float,
        max_iter: int,
        time_limit: float,
        rule: str,
        cold: bool,
    ) -> list[Solution]:
        """Solve duals that are each over a part of the sample: these rows of it."""
        placed = [replace(dual, rows=self.place[part[dual.rows]]) for part, dual in duals]
        return solve(
            self.X, self.kernel, placed, tol=tol, max_iter=max_iter, time_limit=time_limit,
            cache_bytes=self.cache_bytes, threads=self.threads, dtype=self.dtype, rule=rule,
            cold=cold,
        )  # fmt: skip

    def sums(self, machines: Sequence[Trained]) -> list[Array]:
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
        _core.add_matrix_rows(self.matrix, jobs, self.threads)
        return [sums[np.argsort(order)] for order, sums in found]


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
