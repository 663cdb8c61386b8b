"""Solves that JAX can differentiate, compile and vectorize: `solve_qp`, `simplex_lstsq`, `project`.

Arrays may have any number of leading batch axes, which broadcast against each other; all problems
of a batch are solved in one native call on the CPU. Numbers are computed in float64, whatever the
type of the arrays, and results have the type of the first argument.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import layers
from .extras import needed
from .solve.derivatives import Kind

jax = needed("jax", by="pairstep.jax")
jnp = needed("jax.numpy", by="pairstep.jax")

NAMES = tuple(layers.AXES)


def solve_qp(
    Q: Any,
    c: Any,
    *,
    total: Any = 1.0,
    lower: Any = 0.0,
    upper: Any = None,
    tol: float = 1e-8,
    derivative: Kind = "one-sided",
) -> Any:
    """Minimize ``x'Qx / 2 + c'x`` with ``sum(x) = total`` and ``lower <= x <= upper``.

    Parameters
    ----------
    Q : array of shape (..., n, n)
        Symmetric positive semidefinite matrices. Derivatives are symmetric too.
    c : array of shape (..., n)
        Linear terms.
    total : float or array of shape (...)
        The sums.
    lower, upper : float or array of shape (..., n)
        The bounds; ``upper=None`` means none.
    tol : float
        As in `pairstep.solve_qp`.
    derivative : {"one-sided", "smoothed"}
        What to do at bounds, as in `Result.vjp`.

    Returns
    -------
    array of shape (..., n)
        The solutions. It raises if a problem is infeasible or could not be solved.

    Examples
    --------
    >>> import pytest; jax = pytest.importorskip("jax")
    >>> import pairstep.jax
    >>> first = lambda c: pairstep.jax.solve_qp(jax.numpy.eye(3), c)[0]
    >>> jax.grad(first)(jax.numpy.array([0.0, 0.1, 0.2])).round(4)
    Array([-0.6667,  0.3333,  0.3333], dtype=float32)
    """
    Q = jnp.asarray(Q)
    n = Q.shape[-1]
    given = [
        Q,
        *(jnp.asarray(value, Q.dtype) for value in (c, total, lower, layers.upper_bound(upper))),
    ]
    for k in (3, 4):
        given[k] = jnp.broadcast_to(given[k], (n,)) if given[k].ndim == 0 else given[k]
    return _solve(float(tol), derivative, *given)


def simplex_lstsq(
    A: Any,
    b: Any,
    *,
    total: Any = 1.0,
    lower: Any = 0.0,
    upper: Any = None,
    ridge: Any = 0.0,
    tol: float = 1e-8,
    derivative: Kind = "one-sided",
) -> Any:
    """Minimize ``|Ax - b|^2 / 2 + ridge |x|^2 / 2`` with a sum and bounds, as `solve_qp` does.

    Parameters
    ----------
    A : array of shape (..., m, n)
        One column per variable.
    b : array of shape (..., m)
        Right-hand sides.
    total, lower, upper, tol, derivative
        As in `solve_qp`.
    ridge : float or array
        Weight of the squared norm of x.

    Returns
    -------
    array of shape (..., n)
        The solutions.
    """
    Q = A.mT @ A + ridge * jnp.eye(A.shape[-1], dtype=A.dtype)
    c = -(A.mT @ b[..., None])[..., 0]
    options = {"total": total, "lower": lower, "upper": upper, "tol": tol}
    return solve_qp(Q, c, **options, derivative=derivative)


def project(y: Any, *, total: float = 1.0, lower: float = 0.0, upper: float | None = None) -> Any:
    """Return the nearest points that sum to `total` within the bounds; sparsemax by default.

    Parameters
    ----------
    y : array of shape (..., n)
        The points to project.
    total, lower, upper : float
        The sum and the bounds, the same for all points.

    Returns
    -------
    array of shape (..., n)
        The projections.

    Examples
    --------
    >>> import pytest; jax = pytest.importorskip("jax")
    >>> import pairstep.jax
    >>> pairstep.jax.project(jax.numpy.array([1.0, 0.5, -1.0]))
    Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    return _project(float(total), float(lower), float(layers.upper_bound(upper)), jnp.asarray(y))


def _arrays(arrays: Any) -> dict[str, Any]:
    return {name: np.asarray(value, float) for name, value in zip(NAMES, arrays, strict=True)}


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _solve(tol: float, kind: Kind, *arrays: Any) -> Any:
    Q = arrays[0]
    batch = jnp.broadcast_shapes(
        *(a.shape[: a.ndim - layers.AXES[name]] for name, a in zip(NAMES, arrays, strict=True))
    )
    shape = jax.ShapeDtypeStruct((*batch, Q.shape[-1]), Q.dtype)

    def host(*given: Any) -> Any:
        return layers.solve(_arrays(given), tol).astype(Q.dtype)

    return jax.pure_callback(host, shape, *arrays, vmap_method="broadcast_all")


def _solve_forward(tol: float, kind: Kind, *arrays: Any) -> Any:
    x = _solve(tol, kind, *arrays)
    return x, (arrays, x)


def _solve_backward(tol: float, kind: Kind, kept: Any, v: Any) -> Any:
    arrays, x = kept
    shapes = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays)

    def host(x: Any, v: Any, *given: Any) -> Any:
        found = layers.derivatives(_arrays(given), np.asarray(x, float), np.asarray(v, float), kind)
        return tuple(found[name].astype(v.dtype) for name in NAMES)

    return jax.pure_callback(host, shapes, x, v, *arrays, vmap_method="broadcast_all")


_solve.defvjp(_solve_forward, _solve_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _project(total: float, lower: float, upper: float, y: Any) -> Any:
    def host(y: Any) -> Any:
        return layers.project(np.asarray(y, float), total, lower, upper).astype(y.dtype)

    shape = jax.ShapeDtypeStruct(y.shape, y.dtype)
    return jax.pure_callback(host, shape, y, vmap_method="broadcast_all")


def _project_forward(total: float, lower: float, upper: float, y: Any) -> Any:
    x = _project(total, lower, upper, y)
    return x, x


def _project_backward(total: float, lower: float, upper: float, x: Any, v: Any) -> Any:
    free = (x > lower) & (x < upper)
    inside = jnp.where(free, v, 0.0)
    count = jnp.maximum(free.sum(axis=-1, keepdims=True), 1)
    return (jnp.where(free, v - inside.sum(axis=-1, keepdims=True) / count, 0.0),)


_project.defvjp(_project_forward, _project_backward)
