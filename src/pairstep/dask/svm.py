"""SVM duals over the partitions of a cluster: the back end of the driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm import driver, engine
from ..svm.driver import Tuning
from ..svm.engine import Dual, Duals, Kernel, Outcome, Solution, Solutions
from .matrix import ClusterMatrix
from .oracle import ClusterOracle

TUNING = Tuning(
    # The coordinator fetches the rows of smaller duals and solves them alone. The smallest sample
    # of a large dual is among them.
    local_size=24_000,
    local_side_by_side=False,
    # A round waits for all workers, so checking the time after each one costs nothing.
    rounds_per_call=1,
    # The partitions hold the state of one dual.
    max_concurrent_duals=1,
    # A rougher solution of a sample would cost more rounds later.
    sample_growth=4,
    sample_tolerance_factor=100,
)
# Rows with large kernel values whose gradients are checked in each group, as in
# cpp/oracles/precise.cpp.
MAX_LARGE_ROWS = 8


class ClusterBackEnd:
    """The driver's view of a cluster."""

    def __init__(
        self, matrix: ClusterMatrix, kernel: Kernel, *, cache_bytes: int, threads: int, dtype: Any,
        **local_options: Any,
    ):  # fmt: skip
        self.tuning, self.threads = TUNING, threads
        self.matrix, self.kernel, self.cache_bytes = matrix, kernel, cache_bytes
        single = np.dtype(dtype) == np.float32
        self.dtypes: tuple[str, ...] = ("float32", "float64") if single else ("float64",)
        self.local_options = {"cache_bytes": cache_bytes, "dtype": dtype, **local_options}

    def at_work(self) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    def solve_locally(self, duals: Sequence[Dual], **options: Any) -> list[Solution]:
        """Fetch the rows of each dual in turn, and solve it on the coordinator."""
        solutions: list[Solution] = []
        for dual in duals:
            rows, places = np.unique(dual.rows, return_inverse=True)
            solutions += engine.solve(
                self.matrix[rows], self.kernel, [replace(dual, rows=places)], **options,
                **self.local_options,
            )  # fmt: skip
        return solutions

    def oracle(self, dual: Dual, dtype: str, tol: float) -> ClusterOracle | None:
        """Return the oracle of a dual, or None if kernel values of this type are too imprecise."""
        oracle = ClusterOracle(
            self.matrix, dual, tol=tol, cache_bytes=self.cache_bytes, threads=self.threads,
            single=dtype == "float32",
        )  # fmt: skip
        return None if math.isinf(oracle.rounding) else oracle

    def accelerator(self, oracle: ClusterOracle, tol: float) -> None:
        """Return None: the block solver does everything."""

    def gradient_at(self, sample: Dual, target: Dual) -> Array:
        """Return the gradient of `target` where only the variables of `sample` are nonzero."""
        z = np.zeros(len(target.z))
        place = np.zeros(self.matrix.shape[0], np.int64)
        for some, all_ in zip(sample.groups, target.groups, strict=True):
            place[target.rows[all_]] = np.arange(all_.start, all_.stop)
            z[place[sample.rows[some]]] = sample.z[some]
        oracle = ClusterOracle(
            self.matrix, replace(target, z=z), tol=math.inf, cache_bytes=self.cache_bytes,
            threads=self.threads, single=True,
        )  # fmt: skip
        return oracle.gradient()

    def verify(
        self, dual: Dual, gradient: Array, stop: _core.StopReason, n_iter: int, tol: float
    ) -> Outcome:
        """Check the gradient of the support vectors and of the rows that determine the violation.

        Rows with large kernel values are checked too, because their errors are the largest. The
        other rows are only on the workers. The oracle has recomputed the gradient of those that
        come close to determining it, so their error is about as large as that of the rows checked.
        """
        deciding = _deciding(dual, gradient)
        known = (dual.z != 0) | deciding | _with_large_terms(dual, gradient)
        part = _restricted(dual, np.flatnonzero(known))
        data, center = self.matrix.local(dual.rows[known]), self.matrix.center
        before = gradient[deciding]
        own = gradient[known]
        part_outcome, extra = engine.verify(
            data, center, self.kernel, part, own, stop, n_iter, tol=tol, threads=self.threads
        )
        gradient[known] = own
        corrected = 2 * float(np.abs(gradient[deciding] - before).max(initial=0.0))
        outcome = engine.judge(
            dual, gradient, stop, n_iter, extra=max(corrected, extra), error=part_outcome.error,
            tol=tol,
        )  # fmt: skip
        if center is None or self.kernel.name != "linear":
            return outcome
        offset = _core.center_offset(self.kernel.native, data, center, part.rows, part.z)
        gradient += offset
        return outcome._replace(multiplier=[value + offset for value in outcome.multiplier])

    def rounding(self, dual: Dual, gradient: Array, multiplier: Array) -> list[float]:
        """Return a bound on the rounding error of each group's multiplier.

        Only needs the support vectors and, of each group, the variable whose derivative is closest
        to the multiplier.
        """
        l1 = np.zeros(len(dual.z)) if dual.l1 is None else dual.l1
        needed = dual.z != 0
        for group, value in zip(dual.groups, multiplier, strict=True):
            distance = np.abs(np.abs(gradient[group] - value) - l1[group])
            needed[group.start + np.argmin(distance)] = True
        some = np.flatnonzero(needed)
        return engine.rounding_of_multipliers(
            self.matrix.local(dual.rows[some]), self.matrix.center, self.kernel,
            _restricted(dual, some), gradient[some], multiplier,
        )  # fmt: skip


def _restricted(dual: Dual, some: Indices) -> Dual:
    """Return the dual of some variables, over a matrix that has only their rows."""
    return replace(
        dual, rows=np.arange(len(some)), linear=dual.linear[some], z=dual.z[some],
        lower=dual.lower[some], upper=dual.upper[some],
        starts=np.searchsorted(some, dual.starts).astype(np.int64),
        l1=None if dual.l1 is None else dual.l1[some],
    )  # fmt: skip


def _with_large_terms(dual: Dual, gradient: Array) -> NDArray[np.bool_]:
    """Return which variables have the largest sums of kernel values in their gradients."""
    sizes = np.abs(gradient - dual.linear)
    large = np.zeros(len(sizes), bool)
    for group in dual.groups:
        order = np.argsort(-sizes[group], kind="stable")[:MAX_LARGE_ROWS]
        large[group.start + order] = True
    return large


def _deciding(dual: Dual, gradient: Array) -> NDArray[np.bool_]:
    """Return a mask of the two variables of each group whose derivatives give the violation."""
    l1 = np.zeros(len(dual.z)) if dual.l1 is None else dual.l1
    left = np.where(dual.z > dual.lower, gradient + np.where(dual.z > 0, l1, -l1), -np.inf)
    right = np.where(dual.z < dual.upper, gradient + np.where(dual.z < 0, -l1, l1), np.inf)
    chosen = np.zeros(len(dual.z), bool)
    for group in dual.groups:
        if group.stop > group.start:
            chosen[group.start + np.argmax(left[group])] = True
            chosen[group.start + np.argmin(right[group])] = True
    return chosen


def solve(
    matrix: ClusterMatrix,
    kernel: Kernel,
    duals: Duals,
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    **options: Any,
) -> Solutions:
    """Solve duals as `engine.solve` does, one after the other.

    The other options are those of `engine.solve`; `cache_bytes` is for each partition and `threads`
    for the coordinator.
    """
    back_end = ClusterBackEnd(matrix, matrix.open(kernel, duals, tol), **options)
    return driver.solve_duals(
        back_end, duals, tol=tol, max_iter=max_iter, time_limit=time_limit, cold=cold,
        keep_going=keep_going,
    )  # fmt: skip
