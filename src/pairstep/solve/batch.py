"""Least squares with many right-hand sides: one Gram matrix, native threads, warm starts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core, threads
from .._validation import Array
from ..constraints import Layout, SumBox
from ..objectives import LeastSquares, inner
from ..result import BatchResult, Status
from .minimize import iterations, minimize, not_negative

SLAB = 512  # right-hand sides certified at a time: few enough for the residuals to stay in cache
PAUSE = 0.2  # seconds between two looks at signals and the clock


def solve_batch(
    A: Any,
    B: Array,
    constraint: SumBox,
    ridge: float,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
) -> BatchResult:
    """Solve ``min |Ax - b|^2 / 2 + ridge |x|^2 / 2`` for each column b of B."""
    began = time.perf_counter()
    not_negative("tol", tol)
    most = iterations(max_iter, 100_000)
    deadline = None if time_limit is None else began + not_negative("time_limit", time_limit)
    valid = np.isfinite(B).all(axis=0)
    objective = LeastSquares(A, np.zeros(B.shape[0]), ridge)
    layout = constraint.layout(objective.n)
    problem = objective.in_accounts(layout)
    gram = problem.block(np.arange(problem.n))
    right = B if valid.all() else np.where(valid, B, 0.0)
    linear = -np.ascontiguousarray(inner(problem.A, right).T)
    start = _start(problem, layout, linear)
    setup_time = time.perf_counter() - began

    z, n_iter = np.empty_like(linear), np.zeros(len(linear), np.int64)
    done, size, workers = 0, 64, threads.available()
    while done < len(linear):
        slab_began = time.perf_counter()
        slab = slice(done, done + size)
        z[slab], n_iter[slab] = _core.batch(
            gram, linear[slab], start, layout.lower, layout.upper, layout.starts, layout.totals,
            tol, most, workers,
        )  # fmt: skip
        done = min(done + size, len(linear))
        if time.perf_counter() - slab_began < PAUSE / 4:
            size *= 4
        if deadline is not None and time.perf_counter() > deadline:
            break
    z[done:] = start
    result = _certified(objective, layout, z, right, tol, n_iter)
    result = replace(
        result, setup_time=setup_time, solve_time=time.perf_counter() - began - setup_time
    )
    if done < len(linear):
        result.status[done:] = Status.TIME_LIMIT
    _repair(A, right, constraint, ridge, tol, max_iter, time_limit, result)
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
    objective: LeastSquares, layout: Layout, z: Array, B: Array, tol: float, n_iter: Any
) -> BatchResult:
    """Derive everything that is reported from A, B and the points, in blocks of columns."""
    count = len(z)
    x = np.empty((objective.n, count))
    fun, violation, bound, scale = (np.empty(count) for _ in range(4))
    for first in range(0, count, SLAB):
        at = slice(first, min(first + SLAB, count))
        rows = z[at]
        plain = layout.source is None and layout.weights is None
        x[:, at] = rows.T if plain else np.stack([layout.to_coordinates(r) for r in rows], axis=1)
        residual = inner(objective.A.T, x[:, at])
        residual -= B[:, at]
        gradient = inner(objective.A, residual).T + objective.ridge * x[:, at].T
        prices = gradient if plain else np.stack([layout.prices(g) for g in gradient])
        fun[at] = 0.5 * np.einsum("ij,ij->j", residual, residual)
        fun[at] += 0.5 * objective.ridge @ x[:, at] ** 2
        certificates = _core.certify_rows(
            np.ascontiguousarray(prices), rows, layout.lower, layout.upper, layout.starts
        )
        violation[at], bound[at] = certificates.T
        scale[at] = 1.0 + np.abs(prices).max(axis=1)
    status = np.where(violation <= tol * scale, Status.OPTIMAL.value, Status.STALLED.value)
    return BatchResult(x, fun, status.astype("<U10"), n_iter, violation, bound, 0.0, 0.0)


def _repair(
    A: Any,
    B: Array,
    constraint: SumBox,
    ridge: float,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    result: BatchResult,
) -> None:
    """Solve one by one the few whose violation, seen from A itself, is above the tolerance."""
    for k in np.flatnonzero(result.status == Status.STALLED):
        one = minimize(
            LeastSquares(A, B[:, k], ridge), constraint, x0=result.x[:, k], tol=tol,
            max_iter=max_iter, time_limit=time_limit,
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
