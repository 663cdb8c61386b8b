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

# Rounding error of an entry of ``Qd``, relative to the products in its sum. Entries of d below this
# fraction of the largest count as 0, too.
PRODUCT_ROUNDING = 16 * np.finfo(float).eps
# A sum of products is negative only if it is below minus this fraction of the products' sizes. It
# is larger than PRODUCT_ROUNDING, because a wrong sign would report a bounded problem as unbounded.
SIGN_ROUNDING = 1e-12
# Relative size of an entry of ``Qd`` that is certainly not 0. For a positive semidefinite Q with a
# curvature of at most PRODUCT_ROUNDING along d, the entries are at most about the square root of
# PRODUCT_ROUNDING.
NONZERO_PRODUCT = 1e-6


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
    if curvature < -SIGN_ROUNDING * scale:
        return d
    constant = linear
    if (np.abs(product) > PRODUCT_ROUNDING * sizes).any():
        nonzero = (np.abs(product) > NONZERO_PRODUCT * sizes.max()).any()
        is_flat = curvature <= PRODUCT_ROUNDING * scale and nonzero
        if not is_flat:
            return None
        constant = objective.gradient(z)
    l1_terms = 0.0 if objective.l1_terms is None else float(objective.l1_terms[0] @ np.abs(d))
    slope = float(constant @ d) + l1_terms
    return d if slope < -SIGN_ROUNDING * (float(np.abs(constant) @ np.abs(d)) + l1_terms) else None


def _unending(layout: Layout, ray: Array) -> Array | None:
    """Return the part of the ray that meets no bound, if the sums allow it."""
    ends = np.where(ray < 0, layout.lower, layout.upper)
    d = np.where(np.isinf(ends), ray, 0.0)
    largest = float(np.abs(d).max())
    if not 0 < largest < np.inf:
        return None
    d /= largest
    d[np.abs(d) <= PRODUCT_ROUNDING] = 0.0
    change = np.add.reduceat(d, layout.sharing[:-1])
    size = np.add.reduceat(np.abs(d), layout.sharing[:-1])
    if (np.abs(change) > SIGN_ROUNDING * size).any():
        return None
    if layout.low is not None and layout.high is not None:
        change = np.add.reduceat(d, layout.starts[:-1])
        size = np.add.reduceat(np.abs(d), layout.starts[:-1])
        limit = np.where(change < 0, layout.low, layout.high)
        if (np.isfinite(limit) & (np.abs(change) > SIGN_ROUNDING * size)).any():
            return None
    return d
