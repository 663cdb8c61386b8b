"""The problems of section 5 of the paper, and their optima from linear systems."""

from __future__ import annotations

import math

import numpy as np
import scipy

from .. import Quadratic, SumBox, minimize
from .claims import Array


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
    """Minimize ``x'Hx/2 + c'x`` where x sums to a total within bounds.

    The solution of `minimize` only gives the first guess of the active bounds. With these fixed,
    one linear system gives the optimum up to rounding, and the signs of the multipliers prove it.
    Variables with a wrong sign change sets, and the system is solved again.

    Returns
    -------
    x : ndarray
        The optimum.
    value : float
        ``x'Hx/2 + c'x`` there.
    """
    x = minimize(Quadratic(H, c), SumBox(total, lower, upper), tol=1e-10).x
    low, high = x == lower, x == upper
    slack = 1e-9 * (1.0 + float(np.abs(H @ x + c).max()))
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
        now_low = (low & (excess >= -slack)) | (x < lower)
        now_high = (high & (excess <= slack)) | (x > upper)
        if (now_low == low).all() and (now_high == high).all():
            return x, float(x @ (0.5 * (H @ x) + c))
        low, high = now_low, now_high
    raise RuntimeError("the active set of the reference solution did not converge")


def equality_minimum(H: Array, gradient: Array, total: float) -> tuple[Array, float]:
    """Minimize ``x'Hx/2 + gradient'x`` where x sums to a total; return x and the multiplier."""
    sides = np.column_stack([gradient, np.ones(len(H))])
    base, ones = scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), sides).T
    multiplier = (total + base.sum()) / ones.sum()
    return np.asarray(multiplier * ones - base), float(multiplier)
