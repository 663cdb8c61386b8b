"""Kernel matrices of all samples in GPU memory, shared by the fits of a search.

This is for the GPU what `svm/shared_kernel.py` is for the CPU. The entries of a matrix are computed
in float64 and stored in float32. Duals update their gradients with its rows, and decisions on test
rows are sums of its rows. What has to be more precise is computed from the samples. If a matrix
does not fit, each dual computes the kernel values that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Dual, Kernel, Solution, largest_value, precise, prepared, solve
from ..svm.shared_kernel import MAX_NORM_ERROR, Trained
from .device import Device
from .gram import Gram, Stored
from .memory import reporting
from .points import Data

# Fraction of the free GPU memory that matrices may take; the rest is for duals and working sets.
MATRIX_FRACTION = 0.75
# Matrices in use at a time: while the last fits of one kernel run on the CPU and the GPU, the first
# ones of the next kernel begin.
MAX_MATRICES = 2


class Rows:
    """The rows of X on the GPU, minus a center. They are sent once for each center."""

    def __init__(self, device: Device, X: Any):
        self.device, self.X = device, X
        self._sent: dict[bytes, Data] = {}

    def centered(self, center: Array | None) -> Data:
        """Return the rows minus the center."""
        key = b"" if center is None else center.tobytes()
        if key not in self._sent:
            with self.device.at_work():  # waits, because other threads will use them too
                data = Data(self.device, self.X, center)
            self._sent[key] = data
        return self._sent[key]


@dataclass(frozen=True)
class StoredMatrix:
    """A kernel matrix in float32 on the GPU, and a bound on the size of its entries."""

    rows: Rows
    matrix: Any
    bound: float

    def gram(self, center: Array | None, kernel: Kernel) -> Gram:
        """Return the matrix as the oracle of a dual uses it."""
        data = self.rows.centered(center)
        return Stored(data.device, data, kernel, self.matrix, self.bound)


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel on the rows of X, which solves duals of some rows and decides on others."""

    device: Device
    X: Any
    kernel: Kernel
    stored: StoredMatrix | None
    place: Indices  # index of each sample in X
    cache_bytes: int  # CPU memory for the duals that the CPU solves
    dtype: DTypeLike

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
        """Solve duals, each of which refers to some of the samples.

        The memory is divided among `at_once` calls that may run in parallel.
        """
        placed = [replace(dual, rows=self.place[part[dual.rows]]) for part, dual in duals]
        return solve(
            self.X, self.kernel, placed, tol=tol, max_iter=max_iter, time_limit=time_limit,
            cache_bytes=self.cache_bytes // at_once, threads=threads, dtype=self.dtype, rule=rule,
            cold=cold, keep_going=keep_going, device=self.device, stored=self.stored,
        )  # fmt: skip

    def sums(self, models: Sequence[Trained], threads: int) -> list[Array]:
        """Return the sums of each model at its columns; an empty list if no matrix is stored.

        As in `decide`, there is one set of outputs per group of support vectors.
        """
        if self.stored is None:
            return []
        with self.device.at_work():
            return [self._sums(self.stored.matrix, model) for model in models]

    def _sums(self, matrix: Any, model: Trained) -> Array:
        columns = self.device.xp.asarray(self.place[model.columns])
        rows, found = self.place[model.rows], []
        for begin, end in pairwise(model.starts):
            weights = np.ascontiguousarray(model.weights[begin:end].T)
            sums = self.device.xp.zeros((len(weights), len(columns)))
            self.device.add_rows(matrix, rows[begin:end], weights, columns, sums)
            found.append(np.array(self.device.fetch(sums)))
        return np.concatenate(found).T


class DeviceKernels:
    """Kernels on the rows of X, whose matrices have the rows in a given order.

    `count` is the number of kernels that will be requested. The attribute `at_once` is the number
    of them that may be in use at a time.
    """

    def __init__(
        self, device: Device, X: Any, count: int, order: Indices, cache_bytes: int, dtype: DTypeLike
    ):
        self.device, self.X = device, X[order]
        n = len(order)
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        self.make = partial(
            DeviceKernel, device, self.X, place=place, cache_bytes=cache_bytes, dtype=dtype
        )
        self.rows: Rows | None = None  # sent for the first matrix
        self._matrices: list[Any] = []  # reused for later kernels
        self.bytes_each = 4.0 * n * n
        self.work = f"a search over {n} samples"
        with reporting(device, self.work, self.bytes_each), device.at_work():
            fit = int(MATRIX_FRACTION * device.free_bytes() // self.bytes_each)
        # With float64, no kernel values in float32 are wanted.
        self.fits = fit > 0 and np.dtype(dtype) == np.float32
        self.at_once = min(count, MAX_MATRICES, fit) if self.fits else 1

    def of(
        self,
        kernel: Kernel,
        threads: int,
        in_use: Iterable[DeviceKernel] = (),
        seconds: float = math.inf,
    ) -> DeviceKernel:
        """Return a kernel, while others are in use."""
        stored = self._stored(kernel, in_use) if self.fits and seconds > 0 else None
        return self.make(kernel=kernel, stored=stored)

    def _stored(self, kernel: Kernel, in_use: Iterable[DeviceKernel]) -> StoredMatrix | None:
        data, center, kernel = prepared(kernel, self.X, [], math.inf)
        kernel = precise(kernel, data, center, 1.0, MAX_NORM_ERROR)
        # A shift of the origin would change the intercepts of models that are fitted to the matrix.
        if kernel.differences or kernel.name == "linear":
            center = None
        with reporting(self.device, self.work, self.bytes_each), self.device.at_work():
            self.device.compile(kernel, ("float64",))
            if self.rows is None:
                self.rows = Rows(self.device, data)
            points = self.rows.centered(center).pack(slice(None), "float64")
            square = float(self.device.fetch(points.squares).max())
            bound = largest_value(kernel, square)
            if not bound <= float(np.finfo(np.float32).max):
                return None
            used = [other.stored.matrix for other in in_use if other.stored is not None]
            free = [some for some in self._matrices if not any(some is one for one in used)]
            if not free:
                free = [self.device.xp.empty((points.count, points.count), np.float32)]
                self._matrices += free
            self.device.kernel_matrix(kernel, points, points, free[0])
            return StoredMatrix(self.rows, free[0], bound)
