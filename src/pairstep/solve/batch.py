"""Least squares with many right-hand sides: one Gram matrix and native threads."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _core, threads
from .._validation import LARGE_FACTOR, Array
from ..constraints import Layout, SumBox
from ..objectives import LeastSquares, inner
from ..result import BatchResult, Status
from .minimize import iterations, minimize, not_negative

# Right-hand sides whose residuals are computed at a time. With more of them the residuals would not
# stay in the CPU cache; with fewer the matrix products would be less efficient.
RIGHT_HAND_SIDES_PER_CHUNK = 512
# Smallest number of right-hand sides that are certified in several threads. For fewer, starting the
# threads costs more than it saves.
MIN_CERTIFIED_IN_THREADS = 1000
# Default of max_iter, per right-hand side. A larger limit lets one hard right-hand side delay the
# batch; a smaller one leaves more of them to `_repair`.
DEFAULT_ITERATIONS = 100_000
UNSOLVED, INVALID = _core.UNSOLVED, _core.INVALID  # states of a right-hand side


class _Points(NamedTuple):
    """The solutions. Each right-hand side has a column of z and one entry of the other arrays."""

    z: Array
    value: Array
    n_iter: NDArray[np.int64]
    state: NDArray[np.uint8]
    violation: Array
    bound: Array
    optimal: NDArray[np.uint8]  # result of the same test as `Task.is_optimal`


def solve_batch(
    A: Any,
    B: Array,
    constraint: SumBox,
    ridge: float,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    n_jobs: int | None,
) -> BatchResult:
    """Solve ``min |Ax - b|^2 / 2 + ridge |x|^2 / 2`` for each column b of B."""
    began = time.perf_counter()
    not_negative("tol", tol)
    deadline = None if time_limit is None else began + not_negative("time_limit", time_limit)
    objective = LeastSquares(A, np.zeros(B.shape[0]), ridge)
    layout = constraint._layout(objective.n)
    problem = objective.in_layout(layout)
    gram = problem.block(np.arange(problem.n))
    setup_time = time.perf_counter() - began

    most = iterations(max_iter, DEFAULT_ITERATIONS)
    points = _points(problem, layout, gram, B, tol, most, deadline, n_jobs)
    result = _reported(layout, points)
    _repair(A, B, constraint, ridge, tol, max_iter, deadline, result)
    solve_time = time.perf_counter() - began - setup_time
    return replace(result, setup_time=setup_time, solve_time=solve_time)


def _points(
    problem: LeastSquares,
    layout: Layout,
    gram: Array,
    B: Array,
    tol: float,
    max_iter: int,
    deadline: float | None,
    n_jobs: int | None,
) -> _Points:
    """Solve for all right-hand sides: in SIMD lanes if n is small, the rest one by one."""
    options: dict[str, Any] = {
        "tol": tol,
        "max_iter": max_iter,
        "seconds": math.inf if deadline is None else max(deadline - time.perf_counter(), 0.0),
        "threads": threads.count(n_jobs),
    }
    one_sum = len(layout.totals) == 1 and not layout.nested
    if problem.n > _core.MAX_FEW_COLUMNS or not one_sum or scipy.sparse.issparse(problem.A):
        return _by_solvers(problem, layout, gram, B, options)
    points = _Points(
        *_core.few_columns(
            problem.A, B, gram, problem.ridge, layout.project(np.zeros(layout.n)),
            layout.lower, layout.upper, total=layout.totals[0],
            most_squares=LARGE_FACTOR**2, **options,
        )
    )  # fmt: skip
    rest = np.flatnonzero(points.state == UNSOLVED)
    if len(rest):
        solved = _by_solvers(problem, layout, gram, B[:, rest], options)
        for name in _Points._fields:
            getattr(points, name)[..., rest] = getattr(solved, name)
    return points


def _by_solvers(
    problem: LeastSquares, layout: Layout, gram: Array, B: Array, options: dict[str, Any]
) -> _Points:
    """Solve each right-hand side separately, in native threads."""
    valid = np.einsum("ij,ij->j", B, B) <= LARGE_FACTOR**2
    right = B if valid.all() else np.where(valid, B, 0.0)
    linear = -np.ascontiguousarray(inner(problem.A, right).T)
    z, n_iter, solved = _core.batch(
        gram, linear, _start(problem, layout, linear),
        layout.lower, layout.upper, layout.starts, layout.totals, layout.low, layout.high,
        **options,
    )  # fmt: skip
    gradient, value = np.empty_like(z), np.empty(len(z))
    for first in range(0, len(z), RIGHT_HAND_SIDES_PER_CHUNK):
        at = slice(first, first + RIGHT_HAND_SIDES_PER_CHUNK)
        residual = inner(problem.A.T, z[at].T)
        residual -= right[:, at]
        shrinkage = problem.ridge * z[at]
        gradient[at] = inner(problem.A, residual).T + shrinkage
        value[at] = np.einsum("ij,ij->j", residual, residual) + np.einsum(
            "ij,ij->i", z[at], shrinkage
        )
    value /= 2
    certificates = _core.certify_rows(
        gradient, linear, problem.lipschitz, z, value,
        layout.lower, layout.upper, layout.starts, layout.low, layout.high,
        tol=options["tol"], threads=options["threads"] if len(z) >= MIN_CERTIFIED_IN_THREADS else 1,
    )  # fmt: skip
    state = np.where(valid, solved, INVALID)
    return _Points(z.T, value, n_iter, state, *certificates)


def _start(problem: LeastSquares, layout: Layout, linear: Array) -> Array:
    """Return a common starting point: sparse if all lower bounds are finite."""
    if np.isfinite(layout.lower).all():
        typical = linear.sum(axis=0) / max(len(linear), 1)
        return layout.fill(problem.gradient(layout.lower) + typical, problem.lipschitz)
    return layout.project(np.zeros(layout.n))


def _reported(layout: Layout, points: _Points) -> BatchResult:
    """Return the result with the status of each point."""
    optimal = points.optimal != 0
    status = np.full(len(optimal), Status.OPTIMAL.value, "<U10")
    status[~optimal] = Status.STALLED.value
    status[~optimal & (points.state == UNSOLVED)] = Status.TIME_LIMIT.value
    if layout.source is None and layout.coefficients is None:
        x = points.z.T  # a view: copying a large batch would cost a few percent of its solve
    else:
        x = np.stack([layout.from_layout(z) for z in points.z.T])
    invalid = points.state == INVALID
    status[invalid] = Status.INVALID.value
    for values in (x, points.value, points.violation, points.bound):
        values[invalid] = np.nan
    return BatchResult(
        x, points.value, status, points.n_iter, points.violation, points.bound, 0.0, 0.0
    )


def _repair(
    A: Any,
    B: Array,
    constraint: SumBox,
    ridge: float,
    tol: float,
    max_iter: int | None,
    deadline: float | None,
    result: BatchResult,
) -> None:
    """Solve again every right-hand side whose point fails the recomputed optimality test."""
    for k in np.flatnonzero(result.status == Status.STALLED):
        seconds = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
        steps = None if max_iter is None else max(max_iter - int(result.n_iter[k]), 0)
        one = minimize(
            LeastSquares(A, B[:, k], ridge), constraint, x0=result.x[k], tol=tol,
            max_iter=steps, time_limit=seconds,
        )  # fmt: skip
        result.x[k], result.fun[k] = one.x, one.fun
        result.kkt_violation[k] = one.kkt_violation
        result.suboptimality_bound[k] = one.suboptimality_bound
        result.status[k], result.n_iter[k] = one.status, result.n_iter[k] + one.n_iter


def is_batch(b: Any) -> bool:
    """Return whether b is a matrix of right-hand sides."""
    if scipy.sparse.issparse(b):
        raise ValueError("b must be dense, got a sparse array: use b.toarray()")
    return np.ndim(b) == 2
