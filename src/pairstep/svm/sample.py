"""Start a large dual from the solutions of samples of it.

An SVM with bounds C on n rows resembles one with bounds ``g C`` on every g-th row. A rough solution
of the small one predicts which variables of the large one end at a bound. Samples grow by a
constant factor, and each one starts from the prediction of the one before, up to the dual itself.

`cpp/engine/sample.cpp` does the same natively for the CPU; this version is for oracles on a GPU or
a cluster. Both choose the same rows. docs/theory/sample.md explains why it works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .engine import Dual


def start_from_samples(
    dual: Dual,
    solve: Callable[[Dual], bool],
    gradient_at: Callable[[Dual, Dual], Array],
    *,
    growth: int = _core.SAMPLE_GROWTH,
    min_size: int = _core.SAMPLE_MIN_SIZE,
    min_largest: int | None = None,
    min_at_bound: float = _core.SAMPLE_MIN_AT_BOUND,
) -> None:
    """Set the variables of a large dual to the values that its samples predict.

    The dual keeps its start if it is too small to sample, if a bound is infinite, if a sample
    cannot meet the totals, if too few variables of a sample are at a bound, or if `solve` returns
    False.

    Parameters
    ----------
    dual : Dual
        Changed in place.
    solve : callable
        ``solve(sample)`` solves a sample roughly, in place, and returns whether to continue.
    gradient_at : callable
        ``gradient_at(sample, target)`` returns the gradient of `target` at the point that has the
        values of `sample` in its rows and 0 elsewhere.
    growth : int
        Each sample has this many times the rows of the one before it.
    min_size : int
        Number of variables that the smallest of several samples must have.
    min_largest : int
        Number of variables that the only sample must have; `min_size` if None.
    min_at_bound : float
        Fraction of a sample's variables that must be at a nonzero bound.
    """
    least = min_size if min_largest is None else min_largest
    ratio = growth if len(dual.z) >= growth * least else 1
    while ratio > 1 and len(dual.z) >= ratio * growth * min_size:
        ratio *= growth
    if not (np.isfinite(dual.lower).all() and np.isfinite(dual.upper).all()):
        return
    previous: Dual | None = None
    while ratio > 1:
        sample = sample_of(dual, ratio)
        if sample is None:
            return
        if previous is not None:
            move_to_bounds(gradient_at(previous, sample), sample)
        if not solve(sample) or _fraction_at_bound(sample) < min_at_bound:
            return
        previous = sample
        ratio //= growth
    if previous is not None:
        move_to_bounds(gradient_at(previous, dual), dual)


def sample_of(dual: Dual, ratio: int) -> Dual | None:
    """Return the dual over about one row in `ratio`, or None if these rows cannot meet the totals.

    The rows of a smaller sample are among those of a larger one.
    """
    chosen = np.flatnonzero(_hash(dual.rows) < np.float64(2.0**64 / ratio))
    lower, upper = ratio * dual.lower[chosen], ratio * dual.upper[chosen]
    starts = np.searchsorted(chosen, dual.starts).astype(np.int64)
    if any(
        miss > 0 for *_, miss in _core.sum_ranges(lower, upper, starts, dual.totals, dual.totals)
    ):
        return None
    return replace(
        dual, rows=dual.rows[chosen], linear=dual.linear[chosen], lower=lower, upper=upper,
        starts=starts, l1=None if dual.l1 is None else dual.l1[chosen],
        z=_core.project(ratio * dual.z[chosen], lower, upper, starts, dual.totals), gradient=None,
    )  # fmt: skip


def _hash(rows: Indices) -> Array:
    """Map row numbers to pseudorandom numbers below 2**64 (Steele, Lea and Flood 2014)."""
    z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64)


def move_to_bounds(gradient: Array, dual: Dual) -> None:
    """Minimize the linear function with this gradient (plus the L1 term) over the feasible set.

    All variables but one or two per group end at a bound or at 0. A variable with an L1 term is
    split into its negative and its positive part, whose derivatives differ.
    """
    if dual.l1 is None:
        derivative, range_ = gradient, dual.upper - dual.lower
        parts = 1
    else:
        derivative = np.stack([gradient - dual.l1, gradient + dual.l1], axis=1).ravel()
        sides = [-np.minimum(dual.lower, 0.0), np.maximum(dual.upper, 0.0)]
        range_ = np.stack(sides, axis=1).ravel()
        parts = 2
    zero = np.zeros(len(derivative))
    totals = dual.totals - np.add.reduceat(dual.lower, dual.starts[:-1])
    filled = _core.fill(derivative, zero, zero, range_, parts * dual.starts, totals)
    z = dual.lower + filled.reshape(-1, parts).sum(axis=1)
    dual.z[:] = np.clip(z, dual.lower, dual.upper)
    _core.restore_sums(dual.z, dual.lower, dual.upper, dual.starts, dual.totals)


def _fraction_at_bound(dual: Dual) -> float:
    z = dual.z
    return float(np.mean((z != 0) & ((z == dual.lower) | (z == dual.upper))))
