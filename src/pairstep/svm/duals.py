"""How each machine's dual is written for the engine.

A sample has one variable z, or two in nu-regression. What its weight and C allow it is `limit`: an
array over all samples, of which a dual takes those of its rows. Rows without any limit are left
out, as LIBSVM does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from .._validation import Array
from ..constraints import Indices
from .machine import Dual, Solution

FEW = 3  # pairs of classes whose duals are solved closely: with more of them it would be felt


def limits(C: float, weights: Array) -> Array:
    """C times the weights; 0 where there is no weight, also if C is infinite."""
    with np.errstate(over="ignore"):
        limit = np.multiply(C, weights, where=weights > 0, out=np.zeros(len(weights)))
        if math.isfinite(C) and not np.isfinite(limit.sum()):
            raise ValueError(
                f"C times the weights must have a finite sum, got C={C:g} and weights up to "
                f"{weights.max():g}"
            )
    return limit


def c_classification(positive: Indices, negative: Indices, limit: Array) -> Dual:
    """``z'Kz/2 - y'z`` with z in [0, limit] where y = 1, in [-limit, 0] where y = -1, sum 0."""
    return c_classifications([(positive, negative)], limit)[0]


def c_classifications(pairs: Sequence[tuple[Indices, Indices]], limit: Array) -> list[Dual]:
    """The duals of many pairs of classes; they are parts of a few long arrays."""
    rows = np.concatenate([side for pair in pairs for side in pair])
    if not limit[rows].all():
        pairs = [_pair_with_limit(*pair, limit) for pair in pairs]
        rows = np.concatenate([side for pair in pairs for side in pair])
    sides = np.array([len(side) for pair in pairs for side in pair])
    is_positive = np.repeat(np.arange(2 * len(pairs)) % 2 == 0, sides)
    own = limit[rows]
    linear = np.where(is_positive, -1.0, 1.0)
    lower, upper = np.where(is_positive, 0.0, -own), np.where(is_positive, own, 0.0)
    z, totals = np.zeros(len(rows)), np.zeros((len(pairs), 1))
    sizes = sides.reshape(-1, 2).sum(axis=1)
    starts = np.stack([np.zeros_like(sizes), sizes], axis=1)
    parts = [slice(*ends) for ends in pairwise([0, *np.cumsum(sizes).tolist()])]
    return [
        Dual(
            rows[part],
            linear[part],
            lower[part],
            upper[part],
            start,
            total,
            z[part],
            closely=len(pairs) <= FEW,
        )
        for part, start, total in zip(parts, starts, totals, strict=True)
    ]


def nu_classification(positive: Indices, negative: Indices, limit: Array, nu: float) -> Dual:
    """``z'Kz/2`` in the same bounds; each class sums to nu/2 of all limits, up to its sign."""
    positive, negative = _with_limit(positive, limit), _with_limit(negative, limit)
    total = nu * math.fsum(limit[np.concatenate([positive, negative])]) / 2
    return _two_groups(
        positive, negative, limit, np.zeros(len(positive) + len(negative)), float(total)
    )


def epsilon_regression(y: Array, limit: Array, epsilon: float) -> Dual:
    """``z'Kz/2 - y'z + epsilon |z|_1`` with z in [-limit, limit], sum 0."""
    rows = _with_limit(np.arange(len(y)), limit)
    n = len(rows)
    return Dual(
        rows=rows, linear=-y[rows], lower=-limit[rows], upper=limit[rows],
        starts=_starts(n), totals=np.zeros(1), z=np.zeros(n), kink=np.full(n, epsilon),
    )  # fmt: skip


def nu_regression(y: Array, limit: Array, nu: float) -> Dual:
    """``z'Kz/2 - y'z`` where z has a part in [0, limit] and one in [-limit, 0] per sample.

    The parts sum to plus and minus nu/2 of all limits.
    """
    rows = _with_limit(np.arange(len(y)), limit)
    total = nu * math.fsum(limit[rows]) / 2
    return _two_groups(rows, rows, limit, -np.tile(y[rows], 2), total)


def one_class(limit: Array, nu: float) -> Dual:
    """``z'Kz/2`` with z in [0, limit], sum nu of all limits."""
    rows = _with_limit(np.arange(len(limit)), limit)
    n, total = len(rows), nu * math.fsum(limit[rows])
    return Dual(
        rows=rows, linear=np.zeros(n), lower=np.zeros(n), upper=limit[rows],
        starts=_starts(n), totals=np.array([total]), z=_filled(limit[rows], total),
    )  # fmt: skip


def bias(solution: Solution) -> float:
    """What the decision function adds: minus the price, or minus the mean of both groups'.

    0 where rounding may have made it anything else, so that a symmetric problem has none.
    """
    value = -math.fsum(solution.multiplier) / len(solution.multiplier)
    return value if abs(value) > max(solution.rounding) else 0.0


def margin(solution: Solution) -> float:
    """Half the difference of the groups' prices: the margin that nu-classification divides by.

    1 where there is none, so that a degenerate solution is kept as it is.
    """
    up, down = solution.multiplier
    half = float(up - down) / 2
    return half if half > 1e-12 * (abs(up) + abs(down)) else 1.0


def hold_out(dual: Dual, held: Indices) -> Dual:
    """The dual of a machine that does not see the samples at `held`: they may not leave 0.

    They stay in it for their gradients, from which the machine's decisions on them are read. Totals
    are shares of all limits, as far as those of their own group go.
    """
    lower, upper = dual.lower.copy(), dual.upper.copy()
    lower[held] = upper[held] = 0.0
    if not dual.totals.any():
        return replace(dual, lower=lower, upper=upper, z=dual.z.copy())
    share = (upper - lower).sum() / (dual.upper - dual.lower).sum()
    totals, z = dual.totals.copy(), dual.z.copy()
    for k, group in enumerate(dual.groups):
        limit, sign = upper[group] - lower[group], np.sign(totals[k])
        total = min(share * abs(totals[k]), float(limit.sum()))
        totals[k], z[group] = sign * total, sign * _filled(limit, total)
    return replace(dual, lower=lower, upper=upper, totals=totals, z=z)


def continue_from(earlier: Dual, dual: Dual) -> None:
    """Start `dual` where `earlier` is, as far as the bounds and sums of `dual` allow it.

    New rows start at 0. A sum is put right on as few variables as possible, those between their
    bounds first: the nearest point would move all of them a little, and none would be at a bound.
    """
    size = 1 + max(dual.rows.max(initial=0), earlier.rows.max(initial=0))
    for old, new, total in zip(earlier.groups, dual.groups, dual.totals, strict=True):
        held = np.zeros(size)
        held[earlier.rows[old]] = earlier.z[old]
        lower, upper = dual.lower[new], dual.upper[new]
        z = np.clip(held[dual.rows[new]], lower, upper)
        missing = total - z.sum()
        order = np.argsort((z == lower) | (z == upper), kind="stable")
        room = (upper - z if missing > 0 else z - lower)[order]
        z[order] += np.sign(missing) * _filled(room, abs(missing))
        dual.z[new] = np.clip(z, lower, upper)


def _two_groups(
    positive: Indices, negative: Indices, limit: Array, linear: Array, total: float
) -> Dual:
    limits = limit[positive], limit[negative]
    lower, upper = _two_sides(*limits)
    # nu may be at the end of its range, where rounding must not ask for more than there is.
    totals = [min(total, float(side.sum())) for side in limits]
    start = [_filled(side, total) for side, total in zip(limits, totals, strict=True)]
    return Dual(
        rows=np.concatenate([positive, negative]), linear=linear, lower=lower, upper=upper,
        starts=_starts(len(positive), len(negative)), totals=np.array([totals[0], -totals[1]]),
        z=np.concatenate([start[0], -start[1]]),
    )  # fmt: skip


def _two_sides(positive: Array, negative: Array) -> tuple[Array, Array]:
    lower = np.concatenate([np.zeros(len(positive)), -negative])
    return lower, np.concatenate([positive, np.zeros(len(negative))])


def _with_limit(rows: Indices, limit: Array) -> Indices:
    return rows[limit[rows] > 0]


def _pair_with_limit(positive: Indices, negative: Indices, limit: Array) -> tuple[Indices, Indices]:
    """Both without the rows that have none; if no row has any, as they are."""
    some = _with_limit(positive, limit), _with_limit(negative, limit)
    return some if len(some[0]) + len(some[1]) > 0 else (positive, negative)


def _filled(limit: Array, total: float) -> Array:
    """The first variables at their limit until the total is reached, as LIBSVM starts."""
    before = np.concatenate([[0.0], np.cumsum(limit)[:-1]])
    z = np.clip(total - before, 0.0, limit)
    return np.where(limit - z <= 1e-12 * total, limit, z)  # not short of it by rounding


def _starts(*sizes: int) -> Indices:
    return np.array([0, *accumulate(sizes)], np.int64)
