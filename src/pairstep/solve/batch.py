"""Least squares with many right-hand sides: one Gram matrix, native threads, warm starts."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core, threads
from .._validation import LARGE_FACTOR, Array
from ..constraints import Layout, SumBox
from ..objectives import LeastSquares, inner
from ..result import BatchResult, Status
from .minimize import iterations, minimize, not_negative
from .task import GAIN, ROUNDING

SLAB = 512  # right-hand sides certified at a time: few enough for the residuals to stay in cache


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
    most = iterations(max_iter, 100_000)
    deadline = None if time_limit is None else began + not_negative("time_limit", time_limit)
    valid = np.einsum("ij,ij->j", B, B) <= LARGE_FACTOR**2
    objective = LeastSquares(A, np.zeros(B.shape[0]), ridge)
    layout = constraint.layout(objective.n)
    problem = objective.in_accounts(layout)
    gram = problem.block(np.arange(problem.n))
    right = B if valid.all() else np.where(valid, B, 0.0)
    linear = -np.ascontiguousarray(inner(problem.A, right).T)
    start = _start(problem, layout, linear)
    setup_time = time.perf_counter() - began

    limit = math.inf if deadline is None else max(deadline - time.perf_counter(), 0.0)
    z, n_iter, solved = _core.batch(
        gram, linear, start, layout.lower, layout.upper, layout.starts, layout.totals,
        tol=tol, max_iter=most, seconds=limit,
        threads=threads.count(n_jobs),
    )  # fmt: skip
    result = _certified(objective, layout, z, right, linear, tol, n_iter)
    result = replace(
        result, setup_time=setup_time, solve_time=time.perf_counter() - began - setup_time
    )
    late = (solved == 0) & (result.status != Status.OPTIMAL)
    result.status[late] = Status.TIME_LIMIT
    _repair(A, right, constraint, ridge, tol, max_iter, deadline, result)
    result.x[:, ~valid] = np.nan
    for values in (result.fun, result.kkt_violation, result.suboptimality_bound):
        values[~valid] = np.nan
    result.status[~valid] = Status.INVALID
    return result


def _start(problem: LeastSquares, layout: Layout, linear: Array) -> Array:
    """A point to fall back on: sparse where the bounds allow it."""
    if np.isfinite(layout.lower).all():
        typical = linear.sum(axis=0) / max(len(linear), 1)
        return layout.fill(problem.gradient(layout.lower) + typical, problem.lipschitz)
    return layout.project(np.zeros(layout.n))


def _certified(
    objective: LeastSquares,
    layout: Layout,
    z: Array,
    B: Array,
    linear: Array,
    tol: float,
    n_iter: Any,
) -> BatchResult:
    """Derive everything that is reported from A, B and the points, in blocks of columns."""
    count = len(z)
    x = np.empty((objective.n, count))
    fun, violation, bound = (np.empty(count) for _ in range(3))
    optimal = np.empty(count, bool)
    plain = layout.source is None and layout.weights is None
    for first in range(0, count, SLAB):
        at = slice(first, min(first + SLAB, count))
        rows = z[at]
        x[:, at] = rows.T if plain else np.stack([layout.to_coordinates(r) for r in rows], axis=1)
        residual = inner(objective.A.T, x[:, at])
        residual -= B[:, at]
        gradient = inner(objective.A, residual).T + objective.ridge * x[:, at].T
        prices = gradient if plain else np.stack([layout.prices(g) for g in gradient])
        fun[at] = 0.5 * np.einsum("ij,ij->j", residual, residual)
        fun[at] += 0.5 * np.einsum("i,ij->j", objective.ridge, x[:, at] ** 2)
        certificates = _core.certify_rows(
            np.ascontiguousarray(prices), rows, layout.lower, layout.upper, layout.starts
        )
        violation[at], bound[at], nearby = certificates.T
        # The terms that cancel in the gradient and in the objective, as in `Task.is_optimal`.
        product, constant = prices - linear[at], linear[at]
        scale = np.maximum(np.abs(product).max(axis=1), np.abs(constant).max(axis=1))
        size = np.maximum(
            np.abs(np.einsum("ij,ij->i", rows, product)) / 2,
            np.abs(np.einsum("ij,ij->i", rows, constant)),
        )
        small = nearby <= GAIN * tol * np.maximum(size, fun[at])
        optimal[at] = (violation[at] <= tol * scale) & (small | (violation[at] <= ROUNDING * scale))
    status = np.where(optimal, Status.OPTIMAL.value, Status.STALLED.value)
    return BatchResult(x, fun, status.astype("<U10"), n_iter, violation, bound, 0.0, 0.0)


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
    """Solve one by one the few whose violation, seen from A itself, is above the tolerance."""
    for k in np.flatnonzero(result.status == Status.STALLED):
        left = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
        one = minimize(
            LeastSquares(A, B[:, k], ridge), constraint, x0=result.x[:, k], tol=tol,
            max_iter=max_iter, time_limit=left,
        )  # fmt: skip
        result.x[:, k], result.fun[k] = one.x, one.fun
        result.kkt_violation[k] = one.kkt_violation
        result.suboptimality_bound[k] = one.suboptimality_bound
        result.status[k], result.n_iter[k] = one.status, result.n_iter[k] + one.n_iter


def is_batch(b: Any) -> bool:
    """Whether b holds many right-hand sides."""
    if scipy.sparse.issparse(b):
        raise ValueError("b must be dense")
    return np.ndim(b) == 2
