"""Products and blocks of the kernel matrix of the data: computed on demand, or precomputed."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Kernel, largest_value
from .device import Device, Packed
from .points import MEMORY_FRACTION, Data, Points

# Rows that are packed on the GPU at a time and whose kernel values are added to the sums of all
# points. Larger passes take more GPU memory; smaller ones take more kernel launches.
QUERIES_PER_PASS = 2**16


class Gram(Protocol):
    """What the oracle needs from a kernel matrix."""

    device: Device
    dtypes: tuple[str, ...]  # types in which entries are computed, in the order to try them

    def points(self, rows: Indices, dtype: str) -> Any:
        """Return rows in the form in which sums are added to them."""

    def rounding(self, points: Any) -> float:
        """Return a bound on the error of an entry, infinite if its type is too imprecise to use."""

    def largest(self, points: Any) -> float:
        """Return a bound on the size of an entry."""

    def block(self, rows: Indices) -> Any:
        """Return the submatrix of some rows, in float64."""

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Compute sums[o, p] += sum_k weights[o, k] K(row k, point p) in the type of the points."""


class Computed:
    """A kernel matrix whose tiles are computed from the data when they are needed."""

    def __init__(self, device: Device, data: Data, kernel: Kernel, single: bool):
        self.device, self.data, self.kernel = device, data, kernel
        single = single and not kernel.differences
        self.dtypes: tuple[str, ...] = ("float32", "float64") if single else ("float64",)

    def points(self, rows: Indices, dtype: str) -> Points:
        """Return rows as points, in stripes if they do not fit into memory."""
        return Points(self.data, rows, dtype)

    def rounding(self, points: Points) -> float:
        """Return a bound on the error of an entry, from the norms of the points."""
        if points.dtype == "float64":
            return 0.0
        error = _core.float32_rounding(self.kernel.native, _largest_square(points))
        return math.inf if error is None else error

    def largest(self, points: Points) -> float:
        """Return a bound on the size of an entry, from the norms of the points."""
        return largest_value(self.kernel, _largest_square(points))

    def block(self, rows: Indices) -> Any:
        """Compute the submatrix of some rows."""
        some = self.data.pack(rows, "float64")
        return self.device.kernel_matrix(self.kernel, some, some)

    def add(self, rows: Indices, weights: Array, points: Points, sums: Any) -> None:
        """Add sums in a fused kernel, which does not write the entries to memory."""
        for first in range(0, len(rows), QUERIES_PER_PASS):
            some = slice(first, first + QUERIES_PER_PASS)
            queries = self.data.pack(rows[some], points.dtype)
            weight = self.device.xp.asarray(weights[:, some])
            if self.kernel.name == "linear" and len(weights) == 1:
                queries, weight = _combined(self.device, queries, weight)
            for part, stripe in points:
                self.device.add_sums(self.kernel, stripe, queries, weight, sums[:, part])


def _largest_square(points: Points) -> float:
    return max(float(some.squares[: some.count].max()) for _, some in points)


def _combined(device: Device, queries: Packed, weights: Any) -> tuple[Packed, Any]:
    """Return the weighted sum of all points as one point, since an inner product is linear."""
    xp = device.xp
    used = queries.values[:, : queries.count]
    values = xp.zeros((len(used), queries.values.shape[1]), queries.values.dtype)
    values[:, 0] = (used * weights).sum(axis=1)
    return Packed(values, xp.zeros_like(queries.squares), 1), xp.ones((1, 1))


class Given:
    """A precomputed kernel matrix in GPU memory."""

    def __init__(self, device: Device, matrix: Array):
        self.dtypes: tuple[str, ...] = ("float64",)
        self.device = device
        self.matrix = device.xp.asarray(matrix, np.float64)

    @staticmethod
    def fits(device: Device, matrix: Array) -> bool:
        """Return whether the matrix fits into GPU memory."""
        return 8.0 * matrix.size <= MEMORY_FRACTION * device.free_bytes()

    def points(self, rows: Indices, dtype: str) -> Any:
        """Return the row numbers on the GPU."""
        return self.device.xp.asarray(rows)

    def rounding(self, points: Any) -> float:
        """Return 0: the entries are exact."""
        return 0.0

    def largest(self, points: Any) -> float:
        """Return the largest diagonal entry, which bounds all entries of a kernel matrix."""
        return float(self.device.xp.abs(self.matrix[points, points]).max())

    def block(self, rows: Indices) -> Any:
        """Return the submatrix of some rows."""
        some = self.device.xp.asarray(rows)
        return self.matrix[some[:, None], some]

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Add a product with the whole matrix."""
        spread = np.zeros((len(self.matrix), len(weights)))
        np.add.at(spread, rows, weights.T)
        sums += (self.matrix @ self.device.xp.asarray(spread)).T[:, points]
