"""The kernel of training samples that change from update to update, and their certificates.

Gradients are sums of kernel values in float64. Kernel rows of samples whose variables change are
kept for the next update (`samples.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .engine import (
    Dual,
    Duals,
    Kernel,
    Solution,
    conclude,
    examined,
    judge,
    largest_value,
    native,
    needs_differences,
    prepared_sums,
    rounding_of_multipliers,
)
from .plan import MULTIPLICATIONS_PER_PAIR, FitPlan
from .samples import KernelRows, KernelValues, Samples
from .training_data import TrainingData

# Rounding error of the sum of a few kernel rows in float32, in machine epsilons times the largest
# kernel value and the root of the sum of squared changes: half of one for storing a value, as much
# for the change of z, and the rest for sums of `ROWS_PER_SUM` terms.
ROUNDING_OF_ROWS = 4.0
# Memory for kernel rows that a model keeps for updates: as a fraction of that of a fit, and in
# bytes. With 10,000 samples, this is room for the rows of 5000 of them. More would help models with
# more free variables, but would surprise users who keep many models.
CACHE_FRACTION = 0.5
MAX_CACHE_BYTES = 2**28


class SampleKernel:
    """The kernel of the samples of a plan: sums over them in float64, and kernel rows."""

    def __init__(self, plan: FitPlan, samples: Samples, center: Array | None, square: float):
        self.plan, self.samples, self.tol = plan, samples, plan.model.tol
        self.center, self.square = center, square
        # Rounding error of a kernel value in the solver, and in the rows that are kept. They are
        # computed in float64, so that gradients stay precise for many updates.
        single = _core.float32_rounding(plan.kernel.native, square)
        is_single = single is not None and np.dtype(plan.model.dtype) == np.float32
        self.dtype: Any = np.dtype(np.float32 if is_single else np.float64)
        largest = largest_value(plan.kernel, square)
        self.rounding = ROUNDING_OF_ROWS * float(np.finfo(self.dtype).eps) * largest
        self.rounding_of_solver = self.rounding if single is None else max(single, self.rounding)
        self.cache: KernelRows | None = None

    def take_rows(self, training: TrainingData) -> None:
        """Take the kernel rows of earlier updates, which another update may not use then."""
        try:
            rows = training.kernel_rows.pop()
        except IndexError:
            return
        if rows.fits(self.samples, self.dtype):
            self.cache = rows

    def precise(self, dual: Dual) -> Kernel:
        """Return the kernel, with distances by differences if norms would be too imprecise."""
        kernel = self.plan.kernel
        differences = kernel.name == "rbf" and needs_differences(
            kernel, self.square, Duals.of([dual]), self.tol
        )
        return replace(kernel, differences=differences)

    def rows(self) -> KernelRows:
        """Return the kernel rows that are kept from update to update."""
        if self.cache is None:
            limit = min(int(CACHE_FRACTION * self.plan.cache_bytes()), MAX_CACHE_BYTES)
            self.cache = KernelRows(self.samples, limit, self.dtype)
        return self.cache

    def values(self, dual: Dual) -> KernelValues:
        """Return a function that computes the kernel of some slots with others."""
        samples, kernel = self.samples, self.precise(dual)
        center = None if kernel.differences else self.center

        def compute(some: Indices, columns: Indices) -> Array:
            count = len(some)
            values = np.zeros((count, len(columns)))
            work = float(values.size) * (samples.shape[1] + MULTIPLICATIONS_PER_PAIR)
            _core.add_kernel(
                kernel.native, native(samples.data[some]), center, np.arange(count),
                np.ones((count, 1)), native(samples.in_use()), columns, values,
                self.plan.threads(work), 0.0, np.arange(count + 1),
            )  # fmt: skip
            return values

        return compute

    def gradient(self, dual: Dual) -> Array:
        """Return the gradient of a dual at its z."""
        used = np.flatnonzero(dual.z)
        sums = self.sums(self.samples[dual.rows[used]], dual.z[used], dual)
        return np.asarray(dual.linear + sums[self.samples.slots[dual.rows]])

    def sums(self, queries: Any, weights: Array, dual: Dual) -> Array:
        """Return the kernel of each slot with the queries, times their weights."""
        samples = self.samples
        sums: Array = np.zeros((1, samples.used))
        if sums.size == 0 or len(weights) == 0:
            return np.asarray(sums[0])
        data, columns, center, kernel = prepared_sums(
            self.plan.kernel, queries, samples.in_use(), Duals.of([dual]), self.tol
        )
        pairs = float(len(weights)) * samples.used
        work = pairs * (samples.shape[1] + MULTIPLICATIONS_PER_PAIR)
        _core.add_kernel(
            kernel.native, data, center, np.arange(len(weights)),
            np.ascontiguousarray(weights[:, None]), columns, np.arange(sums.shape[1]), sums,
            self.plan.threads(work), 0.0,
        )  # fmt: skip
        return np.asarray(sums[0])

    def judged(self, dual: Dual, extra: float, error: float, n_iter: int) -> Solution:
        """Return the solution at the z of a dual, whose gradient has been compared."""
        gradient = dual.gradient
        assert gradient is not None
        outcome = judge(
            dual, gradient, _core.StopReason.optimal, n_iter, extra=extra, error=error, tol=self.tol
        )
        whole = Duals.of([dual])

        def rounding(*_: Any) -> list[float]:
            some = self._compared(dual)
            rows = self.samples[dual.rows[some]]
            data, _, center, kernel = prepared_sums(self.plan.kernel, rows, rows, whole, self.tol)
            return rounding_of_multipliers(
                data, center, kernel, part_of(dual, some), gradient[some], outcome.multiplier
            )

        (solution,) = conclude(
            whole, gradient, outcome.numbers, tol=self.tol, timed_out=False, rounding=rounding
        )
        return solution

    def _compared(self, dual: Dual) -> Indices:
        """Return the support vectors and the rows whose gradients are compared."""
        assert dual.gradient is not None
        needed = dual.z != 0
        needed[extremes(dual, dual.gradient)] = True
        return np.flatnonzero(needed)

    def certified(self, dual: Dual, n_iter: int) -> tuple[Solution, float, Indices | None]:
        """Return the solution at the z of a dual with the certificate of a fit, as `SolvedDual`."""
        gradient = dual.gradient
        assert gradient is not None
        some = self._compared(dual)
        known = gradient[some]
        data = native(self.samples[dual.rows[some]])
        error, extra = examined(
            data, None, self.plan.kernel, part_of(dual, some), known, tol=self.tol, threads=1
        )
        gradient[some] = known  # with the corrections, if any
        verified = np.array(extremes(dual, gradient)) if extra == 0 else None
        return self.judged(dual, extra, error, n_iter), 0.0, verified


def part_of(dual: Dual, some: Indices) -> Dual:
    """Return a dual with some variables only, and their samples as its data."""
    return Dual(
        np.arange(len(some)), dual.linear[some], dual.lower[some], dual.upper[some],
        np.searchsorted(some, dual.starts), dual.totals, dual.z[some],
        None if dual.l1 is None else dual.l1[some],
    )  # fmt: skip


def one_sided_derivatives(dual: Dual, gradient: Array) -> tuple[Array, Array]:
    """Return the left and right derivatives, infinite where z cannot decrease or increase."""
    z = dual.z
    down, up = gradient, gradient
    if dual.l1 is not None:
        down, up = (
            gradient + np.where(z > 0, dual.l1, -dual.l1),
            gradient + np.where(z >= 0, dual.l1, -dual.l1),
        )
    return np.where(z > dual.lower, down, -np.inf), np.where(z < dual.upper, up, np.inf)


def extremes(dual: Dual, gradient: Array) -> list[int]:
    """Return the variables of each group with the extreme derivatives."""
    left, right = one_sided_derivatives(dual, gradient)
    found = []
    for group in dual.groups:
        if group.start < group.stop:
            ends = left[group].argmax(), right[group].argmin()
            found += [group.start + int(end) for end in ends]
    return found
