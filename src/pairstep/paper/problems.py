"""The problems of section 5 of the paper, and their optima from independent methods."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def least_squares(seed: int, n: int, scaled: bool = False) -> tuple[Array, Array]:
    """Draw A and ``b = A x + z`` from standard normals.

    Parameters
    ----------
    seed : int
        Seed of the random generator.
    n : int
        Rows and columns of A.
    scaled : bool
        Scale each column by a standard normal sample, so that the L_i differ a lot.

    Returns
    -------
    A, b : ndarray
        The matrix and the right-hand side.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    if scaled:
        A *= rng.standard_normal(n)
    return A, A @ rng.standard_normal(n) + rng.standard_normal(n)


def equality_optimum(A: Array, b: Array, weights: Array | None = None) -> float:
    """Return the minimum of ``|Ax - b|^2 / 2`` subject to ``weights'x = 0``, by a direct solve.

    The variable with the largest weight is eliminated. A QR factorization solves the remaining
    least-squares problem.
    """
    a = np.ones(A.shape[1]) if weights is None else weights
    pivot = int(np.argmax(np.abs(a)))
    others = np.arange(len(a)) != pivot
    reduced = A[:, others] - np.outer(A[:, pivot], a[others] / a[pivot])
    Q, _ = np.linalg.qr(reduced)
    residual = b - Q @ (Q.T @ b)
    return 0.5 * float(residual @ residual)


def box_optimum(
    H: Array, c: Array, total: float, lower: float, upper: float = math.inf
) -> tuple[Array, float]:
    """Minimize ``x'Hx/2 + c'x`` where x sums to a total within bounds: an independent reference.

    A primal-dual interior-point method (Mehrotra's predictor-corrector) identifies the active
    bounds. With these fixed, one linear system gives the optimum up to rounding, and the signs of
    the multipliers prove it. Variables with a wrong sign change sets, and the system is solved
    again.

    Returns
    -------
    x : ndarray
        The optimum.
    value : float
        ``x'Hx/2 + c'x`` there.
    """
    x, multiplier = interior_point(H, c, total, lower, upper)
    scale = 1.0 + float(np.abs(H @ x + c).max())
    low = (x - lower) * scale < H @ x + c - multiplier
    high = (upper - x) * scale < multiplier - H @ x - c
    for _ in range(100):
        x = np.where(low, lower, np.where(high, upper, 0.0))
        free = ~(low | high)
        gradient = H @ x + c
        if free.any():
            x[free], multiplier = equality_minimum(
                H[np.ix_(free, free)], gradient[free], total - x.sum()
            )
        else:  # any multiplier between the derivatives of the two sides
            multiplier = float(gradient[low].min() + gradient[high].max()) / 2
        excess = H @ x + c - multiplier  # the multipliers of the bounds
        excess[free] = 0.0
        slack = 1e-9 * scale
        now_low = (low & (excess >= -slack)) | (x < lower)
        now_high = (high & (excess <= slack)) | (x > upper)
        if (now_low == low).all() and (now_high == high).all():
            return x, float(x @ (0.5 * (H @ x) + c))
        low, high = now_low, now_high
    raise RuntimeError("the active set of the reference solution did not converge")


def interior_point(
    H: Array, c: Array, total: float, lower: float, upper: float
) -> tuple[Array, float]:
    """Run Mehrotra's method for a sum and bounds; return x and the multiplier of the sum."""
    n = len(c)
    bounded = math.isfinite(upper)
    x = np.full(n, total / n)
    scale = 1.0 + float(np.abs(H @ x + c).max())
    y, p, q = 0.0, np.full(n, scale), np.full(n, scale if bounded else 0.0)
    for _ in range(100):
        down = x - lower
        up = upper - x if bounded else np.ones(n)
        gap = float(down @ p + up @ q) / (n * (1 + bounded))
        dual = H @ x + c - y - p + q
        primal = total - float(x.sum())
        if gap < 1e-13 * scale and np.abs(dual).max() < 1e-10 * scale:
            break
        step = partial(_newton, H, dual, primal, p, q, down, up)
        dx, dy, dp, dq = step(-down * p, -up * q)
        length = min(1.0, _reach(down, dx), _reach(p, dp), _reach(q, dq), _reach(up, -dx * bounded))
        after = (down + length * dx) @ (p + length * dp)
        after += (up - length * dx * bounded) @ (q + length * dq)
        target = gap * (float(after) / (n * (1 + bounded)) / gap) ** 3
        dx, dy, dp, dq = step(
            target - down * p - dx * dp, (target - up * q + dx * dq) if bounded else 0.0 * up
        )
        reach = min(_reach(down, dx), _reach(p, dp), _reach(q, dq), _reach(up, -dx * bounded))
        length = min(1.0, 0.995 * reach)
        x, y, p, q = x + length * dx, y + length * dy, p + length * dp, q + length * dq
    return x, y


def _newton(
    H: Array, dual: Array, primal: float, p: Array, q: Array, down: Array, up: Array,
    change_p: Array, change_q: Array,
) -> tuple[Array, float, Array, Array]:  # fmt: skip
    """Solve for the step that removes the residuals and changes ``down * p`` and ``up * q``."""
    rhs = -dual + change_p / down - change_q / up
    base, ones = _solve(H + np.diag(p / down + q / up), rhs, np.ones(len(p)))
    dy = (primal - base.sum()) / ones.sum()
    dx = base + dy * ones
    return dx, float(dy), (change_p - p * dx) / down, (change_q + q * dx) / up


def _solve(H: Array, *sides: Array) -> Array:
    return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), np.array(sides).T)).T


def _reach(values: Array, change: Array) -> float:
    """Return how far along `change` the values stay positive."""
    falling = change < 0
    return float(np.min(-values[falling] / change[falling], initial=math.inf))


def equality_minimum(H: Array, gradient: Array, total: float) -> tuple[Array, float]:
    """Minimize ``x'Hx/2 + gradient'x`` where x sums to a total; return x and the multiplier."""
    base, ones = _solve(H, gradient, np.ones(len(H)))
    multiplier = (total + base.sum()) / ones.sum()
    return multiplier * ones - base, float(multiplier)
