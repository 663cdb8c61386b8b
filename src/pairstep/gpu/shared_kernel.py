"""Kernel matrices of all samples in GPU memory, shared by the fits of a search.

This is for the GPU what `svm/shared_kernel.py` is for the CPU. The entries of a matrix are computed
in float64 and stored in float32. Duals update their gradients with its rows, and decisions on test
rows are sums of its rows. What has to be more precise is computed from the samples. If a matrix
does not fit, each dual computes the kernel values that it needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._validation import Array
from ..constraints import Indices
from ..result import Status
from ..svm.engine import Dual, Duals, Kernel, Solutions, largest_value, precise, prepared, solve
from ..svm.shared_kernel import MAX_NORM_ERROR, start_scaled
from .device import Device
from .gram import Gram, Stored
from .memory import reporting
from .points import Data

# Fraction of the free GPU memory that matrices may take; the rest is for duals and working sets.
MATRIX_FRACTION = 0.75
# Matrices in use at a time: while the last fits of one kernel run on the CPU and the GPU, the first
# ones of the next kernel begin.
MAX_MATRICES = 2
# Fits at a time. A search on 20 000 rows took 20 s with four. Ten took 32 s, though before copies
# to the GPU were made faster. All of them share the interpreter's lock and the GPU.
MAX_CHAINS = 4


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
class DeviceChains:
    """Duals that were solved for several C, like `engine.SolvedChains`."""

    found: list[Solutions]  # of all duals, for each C that was tried
    reached: int  # the number of C for which all duals were solved
    sums: Array | None  # by dual, C and column

    @property
    def last(self) -> tuple[Array, Array]:
        """The z and the gradient of all duals for the last C that was tried."""
        return self.found[-1].z, self.found[-1].gradient

    def solutions(self, c: int) -> Solutions:
        """Return the solutions of all duals for the c-th C."""
        return self.found[c]


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

    def solve_chains(
        self,
        rows: Indices,
        duals: Sequence[Dual],
        Cs: Array,
        columns: Indices,
        *,
        C_before: float = 0.0,
        at_once: int = 1,
        cold: bool,
        time_limit: float,
        **options: Any,
    ) -> DeviceChains:
        """Solve duals of some rows of X for ascending C, as `engine.solve_chains` does.

        If the matrix is stored, the sums of each dual are in the order of `columns`.
        """
        ends = time.perf_counter() + time_limit
        place = self.place[rows]
        duals = Duals.of(duals)
        last: tuple[Array, Any] | None = (duals.z, duals.gradient) if C_before > 0 else None
        found: list[Solutions] = []
        sums = None if self.stored is None else np.empty((len(duals), len(Cs), len(columns)))
        for c, C in enumerate(Cs.tolist()):
            scaled = _scaled(duals, C, place)
            if last is not None:
                scaled = start_scaled(*last, scaled, C / C_before)
            found.append(
                solve(
                    self.X, self.kernel, scaled, cold=cold and last is None, dtype=self.dtype,
                    cache_bytes=self.cache_bytes // at_once, device=self.device,
                    stored=self.stored, time_limit=ends - time.perf_counter(), **options,
                )
            )  # fmt: skip
            if not {Status.TIME_LIMIT, Status.STOPPED}.isdisjoint(found[-1].status):
                return DeviceChains(found, c, sums)
            if self.stored is not None and sums is not None:
                self._add_sums(self.stored.matrix, scaled, found[-1], columns, sums[:, c])
            C_before, last = C, (found[-1].z, found[-1].gradient)
        return DeviceChains(found, len(Cs), sums)

    def _add_sums(
        self, matrix: Any, duals: Duals, solutions: Solutions, columns: Indices, sums: Array
    ) -> None:  # fmt: skip
        """Set sums[k, p] to the sum of z_i times the kernel of its row with column p, in dual k."""
        with self.device.at_work():
            there = self.device.sent(self.place[columns])
            for dual, solution, out in zip(duals, solutions, sums, strict=True):
                support = np.flatnonzero(solution.z)
                total = self.device.xp.zeros((1, len(columns)))
                self.device.add_rows(
                    matrix, dual.rows[support], solution.z[None, support], there, total
                )
                out[:] = self.device.fetch(total)[0]


def _scaled(duals: Duals, C: float, place: Indices) -> Duals:
    """Return duals whose bounds are C times as large, with rows of the matrix."""

    def times_C(bounds: Array) -> Array:
        return np.where(bounds == 0, 0.0, bounds * C) if math.isinf(C) else bounds * C

    return replace(
        duals, rows=place[duals.rows], lower=times_C(duals.lower), upper=times_C(duals.upper),
        gradient=None,
    )  # fmt: skip


class DeviceKernels:
    """Kernels on the rows of X, whose matrices have the rows in a given order.

    `count` is the number of kernels that will be requested. The attribute `at_once` is the number
    of them that may be in use at a time, and `max_chains` the number of chains.
    """

    max_chains = MAX_CHAINS

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
        data, center, kernel = prepared(kernel, self.X, None, math.inf)
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
