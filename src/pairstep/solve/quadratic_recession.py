"""Tests whether a quadratic falls without bound along a ray, with a certificate.

A convex quadratic ``x'Qx / 2 + c'x + sum_i k_i |x_i - p_i|`` is unbounded below on a set of sums
and bounds exactly if the set contains a ray with direction d, where ``Qd = 0`` and
``c'd + sum_i k_i |d_i| < 0``. A quadratic that is not convex is unbounded along a ray with
``d'Qd < 0``, or with ``d'Qd = 0`` and a negative slope at some feasible point. The size of x proves
nothing: a minimum may be far away.
"""

from __future__ import annotations

import numpy as np

from .._validation import Array
from ..constraints import Layout
from ..objectives import Objective
from ..objectives.objective import products

# Rounding error of ``Qd``, relative to the products that it is the sum of.
NULL = 16 * np.finfo(float).eps
# Rounding error of a sum of products whose sign decides, relative to the sizes of the products.
SIGN = 1e-12
# Relative size of an entry of ``Qd`` that is certainly not 0. For a positive semidefinite Q with a
# curvature of at most NULL along d, the entries are at most about the square root of NULL.
NOT_NULL = 1e-6


def direction_of_fall(objective: Objective, layout: Layout, z: Array, ray: Array) -> Array | None:
    """Return the unbounded part of the ray, if the quadratic falls without bound along it."""
    d = _unending(layout, ray)
    linear = objective.linear
    term_sizes = None if d is None else products(objective, d)
    if d is None or linear is None or term_sizes is None:
        return None
    product = objective.gradient(d) - linear
    sizes = term_sizes + np.finfo(float).eps * np.abs(linear)  # subtracting `linear` rounds too
    curvature, scale = float(d @ product), float(np.abs(d) @ sizes)
    if curvature < -SIGN * scale:
        return d
    constant = linear
    if (np.abs(product) > NULL * sizes).any():
        is_flat = curvature <= NULL * scale and (np.abs(product) > NOT_NULL * sizes.max()).any()
        if not is_flat:
            return None
        constant = objective.gradient(z)
    l1_terms = 0.0 if objective.l1_terms is None else float(objective.l1_terms[0] @ np.abs(d))
    slope = float(constant @ d) + l1_terms
    return d if slope < -SIGN * (float(np.abs(constant) @ np.abs(d)) + l1_terms) else None


def _unending(layout: Layout, ray: Array) -> Array | None:
    """Return the part of the ray that meets no bound, if the sums allow it."""
    ends = np.where(ray < 0, layout.lower, layout.upper)
    d = np.where(np.isinf(ends), ray, 0.0)
    largest = float(np.abs(d).max())
    if not 0 < largest < np.inf:
        return None
    d /= largest
    d[np.abs(d) <= NULL] = 0.0
    change = np.add.reduceat(d, layout.sharing[:-1])
    size = np.add.reduceat(np.abs(d), layout.sharing[:-1])
    if (np.abs(change) > SIGN * size).any():
        return None
    if layout.low is not None and layout.high is not None:
        change = np.add.reduceat(d, layout.starts[:-1])
        size = np.add.reduceat(np.abs(d), layout.starts[:-1])
        limit = np.where(change < 0, layout.low, layout.high)
        if (np.isfinite(limit) & (np.abs(change) > SIGN * size)).any():
            return None
    return d
