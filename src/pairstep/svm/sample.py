"""A start from samples, for oracles that live elsewhere; `cpp/engine/sample.cpp` is the native one.

A machine with limits C on n rows resembles one with limits 8 C on every eighth of them. Fitted
loosely, that one tells which variables of the whole will be empty and which will be full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from .machine import Dual

ONE_IN = 8  # of so many rows one is in the sample
SMALLEST = 2000  # a sample has at least so many variables
LOOSELY = 300  # samples are solved to so many times the tolerance
WORTH = 0.02  # the share of variables that must be full for a start to pay


def start_from_samples(
    dual: Dual,
    solve: Callable[[Dual], bool],
    price: Callable[[Dual, Dual], Array],
    times: int = ONE_IN,
) -> None:
    """Move a large dual to where machines fitted to samples of it say, each so many times larger.

    `solve` solves a dual loosely, in place, and says whether to go on; ``price(sample, dual)``
    gives the gradients of `dual` where the variables of `sample` are the only ones. Nothing is
    moved if few variables of a sample are full: then there is nothing to foretell.
    """
    one_in = 1
    while len(dual.z) >= one_in * times * SMALLEST:
        one_in *= times
    if not (np.isfinite(dual.lower).all() and np.isfinite(dual.upper).all()):
        return
    known: Dual | None = None
    while one_in > 1:
        sample = sample_of(dual, one_in)
        if sample is None:
            return
        if known is not None:
            foretell(price(known, sample), sample)
        if not solve(sample) or _share_full(sample) < WORTH:
            return
        known = sample
        one_in //= times
    if known is not None:
        foretell(price(known, dual), dual)


def sample_of(dual: Dual, one_in: int) -> Dual | None:
    """The dual over one row in so many, or None where the totals cannot be had with these."""
    chosen = np.flatnonzero(_mixed(dual.rows) < np.float64(2.0**64 / one_in))
    lower, upper = one_in * dual.lower[chosen], one_in * dual.upper[chosen]
    starts = np.searchsorted(chosen, dual.starts).astype(np.int64)
    if any(miss > 0 for *_, miss in _core.spans(lower, upper, starts, dual.totals, dual.totals)):
        return None
    return replace(
        dual, rows=dual.rows[chosen], linear=dual.linear[chosen], lower=lower, upper=upper,
        starts=starts, kink=None if dual.kink is None else dual.kink[chosen],
        z=_core.project(one_in * dual.z[chosen], lower, upper, starts, dual.totals), gradient=None,
    )  # fmt: skip


def _mixed(rows: Indices) -> Array:
    """A number for each row that looks drawn at random, evenly (Steele, Lea and Flood 2014)."""
    z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype(np.float64)


def foretell(gradient: Array, dual: Dual) -> None:
    """Fill what is cheap at these prices and empty what is dear, so that the sums hold.

    A variable with a kink at 0 has two parts, below it and above.
    """
    if dual.kink is None:
        price, most = gradient, dual.upper - dual.lower
        parts = 1
    else:
        price = np.stack([gradient - dual.kink, gradient + dual.kink], axis=1).ravel()
        sides = [-np.minimum(dual.lower, 0.0), np.maximum(dual.upper, 0.0)]
        most = np.stack(sides, axis=1).ravel()
        parts = 2
    none = np.zeros(len(price))
    totals = dual.totals - np.add.reduceat(dual.lower, dual.starts[:-1])
    filled = _core.fill(price, none, none, most, parts * dual.starts, totals)
    z = dual.lower + filled.reshape(-1, parts).sum(axis=1)
    dual.z[:] = np.clip(z, dual.lower, dual.upper)
    _core.settle(dual.z, dual.lower, dual.upper, dual.starts, dual.totals)


def _share_full(dual: Dual) -> float:
    z = dual.z
    return float(np.mean((z != 0) & ((z == dual.lower) | (z == dual.upper))))
