"""Products and blocks of the kernel matrix: computed on demand, stored, or precomputed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Kernel, largest_value
from .device import Device
from .points import MEMORY_FRACTION, Data, Points

# Rows that are packed on the GPU at a time and whose kernel values are added to the sums of all
# points. Larger passes take more GPU memory; smaller ones take more kernel launches.
QUERIES_PER_PASS = 2**16

FLOAT32_ROUNDING = 2.0**-24  # relative error of a number that is rounded to float32


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

    def points(self, rows: Indices, dtype: str) -> Any:
        """Return rows as points, in stripes if they do not fit into memory."""
        return Points(self.data, rows, dtype)

    def rounding(self, points: Any) -> float:
        """Return a bound on the error of an entry, from the norms of the points."""
        if points.dtype == "float64":
            return 0.0
        error = _core.float32_rounding(self.kernel.native, _largest_square(self.device, points))
        return math.inf if error is None else error

    def largest(self, points: Any) -> float:
        """Return a bound on the size of an entry, from the norms of the points."""
        return largest_value(self.kernel, _largest_square(self.device, points))

    def block(self, rows: Indices) -> Any:
        """Compute the submatrix of some rows."""
        some = self.data.pack(rows, "float64")
        return self.device.kernel_matrix(self.kernel, some, some)

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Add sums in a fused kernel, which does not write the entries to memory."""
        for first in range(0, len(rows), QUERIES_PER_PASS):
            some = slice(first, first + QUERIES_PER_PASS)
            if self.kernel.name == "linear" and len(weights) == 1:
                # An inner product is linear: the weighted sum of the rows is the only query.
                queries = self.data.pack_sum(rows[some], weights[0, some], points.dtype)
                weight = np.ones((1, 1))
            else:
                queries, weight = self.data.pack(rows[some], points.dtype), weights[:, some]
            for part, stripe in points:
                self.device.add_sums(self.kernel, stripe, queries, weight, sums[:, part])


def _largest_square(device: Device, points: Points) -> float:
    return max(float(device.fetch(some.squares[: some.count]).max()) for _, some in points)


class StoredPoints(NamedTuple):
    """Points whose kernel values are read from the stored matrix."""

    columns: Any  # on the GPU
    dtype: str


class Stored(Computed):
    """A kernel matrix of all rows that is stored in float32, and read by many duals.

    As in `Computed`, float64 values, and the blocks of working sets, are computed from the data.
    """

    def __init__(self, device: Device, data: Data, kernel: Kernel, matrix: Any, bound: float):
        super().__init__(device, data, kernel, single=True)
        self.dtypes = ("float32", "float64")
        self.matrix, self.bound = matrix, bound

    def points(self, rows: Indices, dtype: str) -> Any:
        """Return the row numbers on the GPU, or points whose entries are computed in float64."""
        if dtype == "float64":
            return super().points(rows, dtype)
        return StoredPoints(self.device.xp.asarray(rows), dtype)

    def rounding(self, points: Any) -> float:
        """Return the error of an entry: that of its conversion to float32."""
        return self.bound * FLOAT32_ROUNDING if isinstance(points, StoredPoints) else 0.0

    def largest(self, points: Any) -> float:
        """Return a bound on the size of an entry."""
        return self.bound

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Add rows of the matrix."""
        if isinstance(points, StoredPoints):
            self.device.add_rows(self.matrix, rows, weights, points.columns, sums)
        else:
            super().add(rows, weights, points, sums)


class Given:
    """A precomputed kernel matrix in GPU memory."""

    def __init__(self, device: Device, matrix: Array):
        self.dtypes: tuple[str, ...] = ("float64",)
        self.device = device
        self.matrix = device.xp.asarray(np.ascontiguousarray(matrix, np.float64))
        self.diagonal = matrix.diagonal()

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
        return float(np.abs(self.diagonal).max(initial=0.0))

    def block(self, rows: Indices) -> Any:
        """Return the submatrix of some rows."""
        return self.device.submatrix(self.matrix, rows)

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """Add rows of the matrix."""
        self.device.add_rows(self.matrix, rows, weights, points, sums)
