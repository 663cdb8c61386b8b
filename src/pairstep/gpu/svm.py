"""SVMs on the GPU: the back end of the driver for duals, and decision functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm import driver, engine
from ..svm.driver import KeepGoing, Tuning, local_limit
from ..svm.engine import DECISION_ROUNDING, Dual, Kernel, Outcome, Solutions, precise
from .device import Device
from .gram import Computed, Given, Gram
from .memory import least_for_decisions, least_for_duals, reporting, shape_of
from .newton import Newton
from .oracle import KernelOracle
from .points import Data, Points

if TYPE_CHECKING:
    from .shared_kernel import StoredMatrix

TUNING = Tuning(
    # The CPU is faster for smaller duals.
    local_size=5_000,
    local_side_by_side=True,
    # These rounds take a fraction of a second, so the time limit is checked often enough.
    rounds_per_call=5,
    # Each dual keeps a CPU thread busy and needs its own arrays on the GPU. With fewer duals at a
    # time, the GPU is idle more often.
    max_concurrent_duals=8,
    # A GPU computes a full gradient fast, but the rounds on many small samples are slow. So there
    # are fewer samples than on the CPU, they are solved less precisely, and the CPU solves the
    # smallest one. Even duals of `local_size` variables start from a sample.
    sample_growth=8,
    sample_min_largest=600,
    sample_tolerance_factor=300,
)

# Searches whose duals are smaller run on the CPU.
MIN_SEARCH_SIZE = 10_000

# Newton's method stops at this fraction of the tolerance: the rest is for the error of float32.
NEWTON_TOLERANCE = 0.8

# Rows of new samples that are sent to the GPU at a time. If larger, they take more GPU memory; if
# smaller, the GPU waits for transfers more often.
DECISION_ROWS = 2**17

# Float32 is compared with float64 on at least this many rows before it is used for all. The largest
# difference must be smaller than the allowed error by a factor of ERROR_MARGIN, because errors on
# the other rows may be larger. Fewer than twice this many rows are always computed in float64.
COMPARED_ROWS = 512
ERROR_MARGIN = 4


class CudaBackEnd:
    """The driver's view of a GPU."""

    def __init__(
        self, gram: Gram, data: Any, center: Array | None, kernel: Kernel,
        solve_on_cpu: Callable[..., Solutions], threads: int,
    ):  # fmt: skip
        self.tuning, self.threads = TUNING, threads
        self.gram, self.data, self.center, self.kernel = gram, data, center, kernel
        self.dtypes = gram.dtypes
        self.solve_locally = solve_on_cpu

    def at_work(self) -> AbstractContextManager[None]:
        """Return a context with a CUDA stream for the thread."""
        return self.gram.device.at_work()

    def oracle(self, dual: Dual, dtype: str, tol: float) -> KernelOracle | None:
        """Return the oracle of a dual, or None if kernel values of this type are too imprecise."""
        points = self.gram.points(dual.rows, dtype)
        if math.isinf(self.gram.rounding(points)):
            return None
        return KernelOracle(self.gram, dual, points, tol)

    def accelerator(self, oracle: KernelOracle, tol: float) -> Newton:
        """Return Newton's method for an oracle."""
        return Newton(oracle, NEWTON_TOLERANCE * tol)

    def gradient_at(self, sample: Dual, target: Dual) -> Array:
        """Return the gradient of `target` where only the variables of `sample` are nonzero."""
        device = self.gram.device
        gradient = device.xp.array(target.linear)
        support = np.flatnonzero(sample.z)
        points = self.gram.points(target.rows, self.gram.dtypes[0])
        self.gram.add(sample.rows[support], sample.z[None, support], points, gradient[None])
        return np.array(device.fetch(gradient))

    def verify(
        self, dual: Dual, gradient: Array, stop: _core.StopReason, n_iter: int, tol: float
    ) -> Outcome:
        """Check the gradient on the CPU, and convert it to that of the uncentered data."""
        outcome, _ = engine.verify(
            self.data, self.center, self.kernel, dual, gradient, stop, n_iter, tol=tol,
            threads=self.threads,
        )  # fmt: skip
        return engine.uncentered(self.data, self.center, self.kernel, dual, gradient, outcome)

    def rounding(self, dual: Dual, gradient: Array, multiplier: Array) -> list[float]:
        """Return a bound on the rounding error of each group's multiplier."""
        return engine.rounding_of_multipliers(
            self.data, self.center, self.kernel, dual, gradient, multiplier
        )


def solve_duals(
    device: Device,
    X: Any,
    center: Array | None,
    kernel: Kernel,
    duals: Sequence[Dual],
    solve_on_cpu: Callable[..., Solutions],
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    threads: int,
    single: bool,
    cold: bool,
    keep_going: KeepGoing | None,
    stored: StoredMatrix | None = None,
) -> Solutions:
    """Solve duals over the rows of one matrix as `engine.solve` does; the CPU solves small ones.

    X has the form that native code takes. ``solve_on_cpu(duals, threads=..., ...)`` solves duals
    over the same rows natively. `stored` is the kernel matrix of all rows, if it is known.
    """
    options: dict[str, Any] = {
        "tol": tol, "max_iter": max_iter, "time_limit": time_limit, "cold": cold,
        "keep_going": keep_going,
    }  # fmt: skip
    limit = local_limit(TUNING, len(duals), threads)
    sizes = sorted((len(dual.z) for dual in duals if len(dual.z) >= limit), reverse=True)
    if not sizes:
        return solve_on_cpu(duals, threads=threads, **options)
    work = f"a fit of {shape_of(X)[0]} samples"
    largest = sizes[: TUNING.max_concurrent_duals]
    with reporting(device, work, least_for_duals(largest, shape_of(X), TUNING.block_bytes)):
        # A matrix that does not fit would have to be sent to the GPU in every round, which takes
        # longer than to read it on the CPU.
        if kernel.name == "precomputed" and not Given.fits(device, X):
            return solve_on_cpu(duals, threads=threads, **options)
        with device.at_work():
            gram = _gram(device, X, center, kernel, single, stored)
            device.compile(kernel, gram.dtypes)
        back_end = CudaBackEnd(gram, X, center, kernel, solve_on_cpu, threads)
        return driver.solve_duals(back_end, duals, **options)


def _gram(
    device: Device, X: Any, center: Array | None, kernel: Kernel, single: bool,
    stored: StoredMatrix | None,
) -> Gram:  # fmt: skip
    if kernel.name == "precomputed":
        return Given(device, X)
    if stored is None:
        return Computed(device, Data(device, X, center), kernel, single)
    return stored.gram(center, kernel)


def add_decisions(
    device: Device, support: Any, center: Array | None, kernel: Kernel, coefficients: Array, X: Any,
    allowed: float, starts: Indices | None, sums: Array,
) -> None:  # fmt: skip
    """Add to `sums` the kernel of each row of X with the support rows, times `coefficients`.

    With `starts`, each group of support rows has its own rows of `sums`. Float32 is used if its
    error on some of the rows is so small that the error on all rows should be within `allowed`.
    """
    count, outputs = coefficients.shape
    groups = [0, count] if starts is None else starts.tolist()

    def decisions(rows: Indices, dtype: str) -> Array:
        some = device.xp.zeros((len(sums), len(rows)))
        points = Points(new, rows, dtype)
        for k, (begin, end) in enumerate(pairwise(groups)):
            gram.add(
                np.arange(begin, end), coefficients[begin:end].T, points,
                some[k * outputs : (k + 1) * outputs],
            )  # fmt: skip
        return np.array(device.fetch(some))

    weight = float(np.abs(coefficients).sum(axis=0).max(initial=0.0))
    kernel = precise(kernel, support, center, weight, DECISION_ROUNDING)
    if kernel.differences:
        center = None
    if kernel.name == "linear" and center is not None:
        for k, (begin, end) in enumerate(pairwise(groups)):
            for o in range(outputs):
                sums[k * outputs + o] += _core.center_offset(
                    kernel.native, support, center, np.arange(begin, end),
                    np.ascontiguousarray(coefficients[begin:end, o]),
                )  # fmt: skip
    rows_at_once = min(shape_of(X)[0], DECISION_ROWS)
    least = least_for_decisions(len(sums), shape_of(support), rows_at_once)
    with reporting(device, f"a decision on {shape_of(X)[0]} samples", least), device.at_work():
        new = Data(device, X, center)
        gram = Computed(device, Data(device, support, center), kernel, allowed > 0)
        device.compile(kernel, gram.dtypes)
        stride = max(new.shape[0] // COMPARED_ROWS, 1)
        dtype = "float64"
        if "float32" in gram.dtypes and stride > 1:
            compared = np.arange(0, new.shape[0], stride)
            error = np.abs(decisions(compared, "float32") - decisions(compared, "float64")).max()
            dtype = "float32" if ERROR_MARGIN * error <= allowed else "float64"
        for first in range(0, new.shape[0], DECISION_ROWS):
            rows = np.arange(first, min(first + DECISION_ROWS, new.shape[0]))
            sums[:, rows] += decisions(rows, dtype)
