"""The kernel matrix of the rows of the data, as far as it is asked for: computed, or given."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.machine import Kernel
from .device import Device, Packed
from .points import SHARE, Data, Points

QUERIES = 2**16  # that are sent to all points at once


class Gram(Protocol):
    """What the oracle asks of a kernel matrix."""

    device: Device
    dtypes: tuple[str, ...]  # of its entries on the way, one after the other

    def points(self, rows: Indices, dtype: str) -> Any:
        """Rows to which sums will be added, many times."""

    def rounding(self, points: Any) -> float:
        """How far off an entry may be, at most; infinite where its type is not worth a start."""

    def block(self, rows: Indices) -> Any:
        """Its part for some rows, in float64."""

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """sums[o, p] += sum_k weights[o, k] K(row k, point p), in the type of the points."""


class Computed:
    """By tiles, from the rows themselves."""

    def __init__(self, device: Device, data: Data, kernel: Kernel, single: bool):
        self.device, self.data, self.kernel = device, data, kernel
        self.dtypes: tuple[str, ...] = ("float32", "float64") if single else ("float64",)

    def points(self, rows: Indices, dtype: str) -> Points:
        """In stripes where they do not fit."""
        return Points(self.data, rows, dtype)

    def rounding(self, points: Points) -> float:
        """By the norms of the points."""
        if points.dtype == "float64":
            return 0.0
        largest = max(float(some.squares[: some.count].max()) for _, some in points)
        error = _core.float32_rounding(self.kernel.native, largest)
        return math.inf if error is None else error

    def block(self, rows: Indices) -> Any:
        """Of the rows with each other."""
        some = self.data.pack(rows, "float64")
        return self.device.kernel_matrix(self.kernel, some, some)

    def add(self, rows: Indices, weights: Array, points: Points, sums: Any) -> None:
        """Fused: none of the entries is ever written."""
        for first in range(0, len(rows), QUERIES):
            some = slice(first, first + QUERIES)
            queries = self.data.pack(rows[some], points.dtype)
            weight = self.device.xp.asarray(weights[:, some])
            if self.kernel.name == "linear" and len(weights) == 1:
                queries, weight = _combined(self.device, queries, weight)
            for part, stripe in points:
                self.device.add_sums(self.kernel, stripe, queries, weight, sums[:, part])


def _combined(device: Device, queries: Packed, weights: Any) -> tuple[Packed, Any]:
    """The one point that is the weighted sum of all: an inner product is linear."""
    xp = device.xp
    used = queries.values[:, : queries.count]
    values = xp.zeros((len(used), queries.values.shape[1]), queries.values.dtype)
    values[:, 0] = (used * weights).sum(axis=1)
    return Packed(values, xp.zeros_like(queries.squares), 1), xp.ones((1, 1))


class Given:
    """All of it, on the device."""

    def __init__(self, device: Device, matrix: Array):
        self.dtypes: tuple[str, ...] = ("float64",)
        self.device = device
        self.matrix = device.xp.asarray(matrix, np.float64)

    @staticmethod
    def fits(device: Device, matrix: Array) -> bool:
        """If it does not, the processor reads it faster than it could be sent time and again."""
        return 8.0 * matrix.size <= SHARE * device.free_bytes()

    def points(self, rows: Indices, dtype: str) -> Any:
        """Where they are."""
        return self.device.xp.asarray(rows)

    def rounding(self, points: Any) -> float:
        """It is as it was given."""
        return 0.0

    def block(self, rows: Indices) -> Any:
        """Of the rows with each other."""
        some = self.device.xp.asarray(rows)
        return self.matrix[some[:, None], some]

    def add(self, rows: Indices, weights: Array, points: Any, sums: Any) -> None:
        """A product with the whole matrix."""
        spread = np.zeros((len(self.matrix), len(weights)))
        np.add.at(spread, rows, weights.T)
        sums += (self.matrix @ self.device.xp.asarray(spread)).T[:, points]
