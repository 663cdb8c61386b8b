"""Quadratic programs as layers of a network, in NumPy, for `pairstep.torch` and `pairstep.jax`.

Arguments are arrays of float64 with any number of leading batch axes, which broadcast against each
other. An argument without batch axes is shared by all problems.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from . import _core
from ._validation import Array
from .result import BatchResult
from .solve import solve_qps
from .solve.derivatives import DenseHessians, Kind, KktPoint

# Number of axes of one problem's argument.
AXES = {"Q": 2, "c": 1, "total": 0, "lower": 1, "upper": 1}
# Multipliers of bounds up to this fraction of the size of the gradient's terms count as 0, as with
# the default tolerance of a solve.
NEGLIGIBLE_MULTIPLIER = 1e-8


def broadcast(arguments: dict[str, Array]) -> tuple[tuple[int, ...], dict[str, Array]]:
    """Return the batch shape, and the arguments with one batch axis or, if shared, none.

    Bounds may be numbers, which stand for all variables.
    """
    n = arguments["Q"].shape[-1]
    full = {
        name: np.broadcast_to(value, (n,)) if AXES[name] == 1 and value.ndim == 0 else value
        for name, value in arguments.items()
    }
    shapes = {name: value.shape[: value.ndim - AXES[name]] for name, value in full.items()}
    batch = np.broadcast_shapes(*shapes.values())
    count = math.prod(batch)

    def flat(name: str, value: Array) -> Array:
        own = value.shape[value.ndim - AXES[name] :]
        if math.prod(shapes[name]) == 1:
            return np.reshape(value, own)
        return np.reshape(np.broadcast_to(value, (*batch, *own)), (count, *own))

    return batch, {name: flat(name, value) for name, value in full.items()}


def solve(arguments: dict[str, Array], tol: float) -> Array:
    """Return the solutions of all problems, with the shape of the batch and n."""
    batch, flat = broadcast(arguments)
    if all(value.ndim == AXES[name] for name, value in flat.items()):
        flat["c"] = flat["c"][None]
    Q = flat["Q"]
    transposed = np.swapaxes(Q, -1, -2)
    if not np.array_equal(Q, transposed):  # only the symmetric part matters; float32 products
        flat["Q"] = (Q + transposed) / 2  # are symmetric only up to rounding
    result = solve_qps(**cast(dict[str, Any], flat), tol=tol)
    require_optimal(result)
    return np.reshape(result.x, (*batch, -1))


def require_optimal(result: BatchResult) -> None:
    """Raise if a problem has no solution to return."""
    failed = np.flatnonzero(~result.success)
    if len(failed):
        k = int(failed[0])
        reason = result.errors.get(k, f"its status is {result.status[k]}")
        raise ValueError(f"{len(failed)} of {len(result.x)} problems failed; problem {k}: {reason}")


def derivatives(arguments: dict[str, Array], x: Array, v: Array, kind: Kind) -> dict[str, Array]:
    """Return the derivatives of a loss with respect to each argument, in the argument's shape.

    Parameters
    ----------
    arguments : dict
        The arguments of `solve`.
    x : ndarray
        The solutions.
    v : ndarray of the shape of x
        The derivative of the loss with respect to x.
    kind : {"one-sided", "smoothed"}
        As in `Result.vjp`.
    """
    batch, flat = broadcast(arguments)
    n = x.shape[-1]
    points, given = x.reshape(-1, n), np.ascontiguousarray(v.reshape(-1, n), float)
    matrices = flat["Q"] if flat["Q"].ndim == 3 else flat["Q"][None]
    lower, upper = np.atleast_2d(flat["lower"]), np.atleast_2d(flat["upper"])
    hessians = DenseHessians(matrices)
    products = hessians.times(points)
    gradient = products + flat["c"]
    slope = gradient - _multipliers(points, gradient, lower, upper)
    size = np.maximum(np.abs(products), np.abs(flat["c"])).max(axis=1)
    point = KktPoint(
        points,
        slope,
        lower,
        upper,
        hessians,
        np.ones((1, 1, n)),
        NEGLIGIBLE_MULTIPLIER * size,
        kind,
    )
    adjoint = point.adjoint(given)
    found = {
        "Q": adjoint.Q(), "c": -adjoint.w, "total": adjoint.m[:, 0],
        "lower": adjoint.lower(), "upper": adjoint.upper(),
    }  # fmt: skip

    def shaped(name: str, values: Array) -> Array:
        """Sum over the axes along which the argument was broadcast."""
        shape = arguments[name].shape
        wide = values.reshape((*batch, *values.shape[1:]))
        extra = wide.ndim - len(shape)
        wide = wide.sum(axis=tuple(range(extra))) if extra else wide
        repeated = tuple(i for i, size in enumerate(shape) if size == 1 and wide.shape[i] != 1)
        return np.asarray(wide.sum(axis=repeated, keepdims=True) if repeated else wide)

    return {name: shaped(name, values) for name, values in found.items()}


def _multipliers(x: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    """Return the multiplier of each sum: the middle of its interval, or the end that is finite.

    It is at least every derivative of a variable that can decrease, and at most every derivative of
    one that can increase.
    """
    left = np.where(x > lower, gradient, -np.inf).max(axis=1, keepdims=True)
    right = np.where(x < upper, gradient, np.inf).min(axis=1, keepdims=True)
    left, right = np.where(np.isinf(left), right, left), np.where(np.isinf(right), left, right)
    return np.asarray(left / 2 + right / 2)


def project(y: Array, total: float, lower: float, upper: float) -> Array:
    """Return the nearest points to the rows of y that sum to `total` within the bounds."""
    n = y.shape[-1]
    low, high = np.full(n, float(lower)), np.full(n, float(upper))
    starts, totals = np.array([0, n], np.int64), np.array([float(total)])
    rows = np.ascontiguousarray(y, float).reshape(-1, n)
    found = [_core.project(row, low, high, starts, totals, None, None) for row in rows]
    return np.reshape(np.array(found), y.shape)


def project_derivative(x: Array, v: Array, lower: float, upper: float) -> Array:
    """Return the derivative of a loss with respect to y, given the one with respect to x."""
    free = (x > lower) & (x < upper)
    inside = np.where(free, v, 0.0)
    mean = inside.sum(axis=-1, keepdims=True) / np.maximum(free.sum(axis=-1, keepdims=True), 1)
    return np.where(free, v - mean, 0.0)


def upper_bound(upper: Any) -> Any:
    """Return the upper bound, infinite if None."""
    return math.inf if upper is None else upper
