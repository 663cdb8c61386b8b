"""Check a fitted SVM: recompute its KKT violation and its dual objective from the data.

The dual variables are read from the public attributes of the model; everything else is computed in
float64, block by block. With z_i = y_i alpha_i (classification) or alpha_i - alpha*_i (regression),
every SVM minimizes ``z'Kz/2 + linear'z + epsilon |z|`` with fixed sums and bounds. The violation is
the largest left derivative of the variables that can decrease, minus the smallest right derivative
of those that can increase. This is the quantity by which LIBSVM stops, in LIBSVM's units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

BLOCK = 256  # rows and columns of a block of K, which then fits into the L2 cache


@dataclass
class Truth:
    violation: float = 0.0  # the largest of all binary problems
    objective: float = 0.0  # their sum
    infeasibility: float = 0.0  # of sums and bounds, relative to the sum of |z|


@dataclass
class Binary:
    """One dual: z for `rows` of the data, `y` its labels (+1, -1) or targets, |z| <= cap."""

    rows: np.ndarray
    z: np.ndarray
    y: np.ndarray
    cap: np.ndarray


def binaries(estimator: str, params: dict, model: Any, y: np.ndarray | None,
             weight: np.ndarray | None) -> Iterator[Binary]:  # fmt: skip
    """Yield the duals of a model: one, or one for each pair of classes."""
    coef = model.dual_coef_
    coef = coef.toarray() if scipy.sparse.issparse(coef) else np.asarray(coef)
    rounding = 1e-6 if coef.dtype == np.float32 else 1e-10
    coef = coef.astype(float)
    support = np.asarray(model.support_).astype(np.int64)
    n = model.shape_fit_[0]
    weight = np.ones(n) if weight is None else weight
    cap = weight * (params.get("C", 1.0) if estimator in ("SVC", "SVR", "NuSVR") else 1.0)

    def full(values: np.ndarray, at: np.ndarray = support) -> np.ndarray:
        z = np.zeros(n)
        z[at] = values
        return z

    if estimator in ("SVR", "NuSVR", "OneClassSVM"):
        target = np.zeros(n) if y is None else y
        yield snapped(Binary(np.arange(n), full(coef[0]), target, cap), rounding)
        return
    classes, label = np.unique(y, return_inverse=True)
    owner = label[support]
    for i, j in combinations(range(len(classes)), 2):
        rows = np.flatnonzero((label == i) | (label == j))
        if len(classes) == 2:
            z, sign = full(coef[0]), np.where(label == 1, 1.0, -1.0)
        else:  # a row of coefficients per other class, in their order
            mine, theirs = owner == i, owner == j
            z = full(coef[j - 1, mine], support[mine]) + full(coef[i, theirs], support[theirs])
            sign = np.where(label == i, 1.0, -1.0)
        dual = Binary(rows, z[rows], sign[rows], cap[rows])
        if estimator == "NuSVC":  # the model is divided by the margin: bring its sum back
            dual.z *= params["nu"] * weight[rows].sum() / np.abs(dual.z).sum()
        yield snapped(dual, rounding)


def snapped(dual: Binary, rounding: float) -> Binary:
    """Set variables that are at a bound up to rounding exactly to the bound."""
    at = np.abs(np.abs(dual.z) - dual.cap) <= rounding * dual.cap
    dual.z[at] = np.sign(dual.z[at]) * dual.cap[at]
    return dual


# -------------------------------------------------------------------------------------- each model


def spread(left_derivative: np.ndarray, down: np.ndarray, up: np.ndarray,
           right_derivative: np.ndarray | None = None) -> float:  # fmt: skip
    """Return the largest derivative of `down` variables minus the smallest of `up` ones."""
    right_derivative = left_derivative if right_derivative is None else right_derivative
    if not (down.any() and up.any()):
        return 0.0
    return max(0.0, float(left_derivative[down].max() - right_derivative[up].min()))


def judge(estimator: str, params: dict, dual: Binary, Kz: np.ndarray) -> Truth:
    z, y, cap = dual.z, dual.y, dual.cap
    epsilon = params.get("epsilon", 0.1) if estimator == "SVR" else 0.0
    linear = np.zeros(len(z)) if estimator in ("NuSVC", "OneClassSVM") else -y
    g = Kz + linear
    lower, upper = -cap, cap
    if estimator == "OneClassSVM":
        lower = np.zeros(len(z))
    elif estimator in ("SVC", "NuSVC"):
        lower, upper = np.where(y > 0, 0, -cap), np.where(y > 0, cap, 0)
    down, up = z > lower, z < upper
    total = np.abs(z).sum()
    if estimator in ("SVC", "SVR"):
        left, right = np.where(z > 0, epsilon, -epsilon), np.where(z < 0, -epsilon, epsilon)
        violation = spread(g + left, down, up, g + right)
        off = abs(z.sum())
    elif estimator == "OneClassSVM":
        violation = spread(g, down, up)
        off = abs(z.sum() - params["nu"] * cap.sum())
    elif estimator == "NuSVC":  # the sum of either class is fixed
        violation = max(spread(g, down & side, up & side) for side in (y > 0, y < 0))
        off = abs(z.sum())
    else:  # NuSVR: alpha and alpha* have fixed sums, and are not both positive
        violation = max(spread(g, z > 0, z < cap), spread(-g, z < 0, -z < cap))
        off = max(abs(z.sum()), abs(total - params["nu"] * cap.sum()))
    outside = float(np.maximum(np.maximum(lower - z, z - upper), 0).sum())
    objective = float(0.5 * z @ Kz + linear @ z + epsilon * total)
    return Truth(violation, objective, max(off, outside) / max(total, 1e-300))


def examine(estimator: str, params: dict, X: Any, y: np.ndarray | None, weight: np.ndarray | None,
            model: Any, threads: int) -> Truth:  # fmt: skip
    truth = Truth()
    for dual in binaries(estimator, params, model, y, weight):
        Kz = product(X, dual, kernel_of(params), threads)
        one = judge(estimator, params, dual, Kz)
        truth.violation = max(truth.violation, one.violation)
        truth.objective += one.objective
        truth.infeasibility = max(truth.infeasibility, one.infeasibility)
    return truth


# -------------------------------------------------------------------------------------- the kernel


def kernel_of(params: dict) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None:
    """Return the kernel as a function of inner products and squared norms; None if precomputed."""
    name, gamma = params.get("kernel", "rbf"), params.get("gamma")
    if name == "precomputed":
        return None
    if name == "linear":
        return lambda dots, _a, _b: dots
    if name == "poly":
        return lambda dots, _a, _b: (gamma * dots + params["coef0"]) ** params["degree"]

    def rbf(dots: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        dots *= 2
        dots -= a[:, None]
        dots -= b
        np.minimum(dots, 0, out=dots)
        dots *= gamma
        return np.exp(dots, out=dots)

    return rbf


def product(X: Any, dual: Binary, kernel: Callable | None, threads: int) -> np.ndarray:
    """Return K z in float64, computed in blocks of rows and support vectors on all threads."""
    support = np.flatnonzero(dual.z)
    z = dual.z[support]
    sparse = scipy.sparse.issparse(X)
    if kernel is None:
        return X[np.ix_(dual.rows, dual.rows[support])] @ z
    own = X[dual.rows]
    squares = own.multiply(own).sum(1) if sparse else np.einsum("ij,ij->i", own, own)
    squares = np.asarray(squares).ravel()
    result = np.zeros(len(dual.z))
    parts = [support[k : k + BLOCK] for k in range(0, len(support), BLOCK)]

    def add(start: int) -> None:
        here = slice(start, start + BLOCK)
        block = own[here]
        for k, part in enumerate(parts):
            columns = own[part].toarray() if sparse else own[part]
            values = kernel(block @ columns.T, squares[here], squares[part])
            result[here] += values @ z[k * BLOCK : (k + 1) * BLOCK]

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(0, len(result), BLOCK)))
    return result
