"""The dual of each model, in the form that the solver takes.

A sample has one variable z, or two in nu-regression. `limit` has the largest |z| of each sample,
which is C times its weight; each dual uses the entries of its rows. Rows with a limit of 0 are left
out, as in LIBSVM. The duals are those of Chang and Lin, "LIBSVM: a library for support vector
machines" (2011), section 2, with the signs of the labels included in z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from .._validation import Array
from ..constraints import Indices
from .engine import Dual, Duals, Solution, Solutions

# Small duals are solved more precisely than `tol`, so that results are repeatable, if there are at
# most this many pairs of classes. With more pairs it would slow the fit noticeably.
MAX_PAIRS_POLISHED = 3
# Differences below this, relative to the terms, may be rounding errors of sums over all variables.
RELATIVE_ROUNDING = 1e-12
# `restore_sum` leaves an error of the sum that is at most this fraction of the sum of |z|. The
# coefficients are not more precise than that, so correcting such an error gains nothing.
MAX_RELATIVE_RESIDUAL = 1e-12


def limits(C: float, weights: Array) -> Array:
    """Return C times the weights, and 0 where the weight is 0 even if C is infinite."""
    with np.errstate(over="ignore"):
        limit = np.multiply(C, weights, where=weights > 0, out=np.zeros(len(weights)))
        if math.isfinite(C) and not np.isfinite(limit.sum()):
            raise ValueError(
                f"C times the weights must have a finite sum, got C={C:g} and weights up to "
                f"{weights.max():g}"
            )
    return limit


def c_classification(positive: Indices, negative: Indices, limit: Array) -> Dual:
    """Return the dual of C-classification of one pair of classes.

    It minimizes ``z'Kz/2 - y'z`` with z in [0, limit] where y = 1, z in [-limit, 0] where y = -1,
    and a sum of 0.
    """
    (dual,) = c_classifications([(positive, negative)], limit)
    return dual


def c_classifications(pairs: Sequence[tuple[Indices, Indices]], limit: Array) -> Duals:
    """Return the duals of many pairs of classes."""
    rows = np.concatenate([side for pair in pairs for side in pair])
    if not limit[rows].all():
        pairs = [_pair_with_limit(*pair, limit) for pair in pairs]
        rows = np.concatenate([side for pair in pairs for side in pair])
    sides = np.array([len(side) for pair in pairs for side in pair])
    is_positive = np.repeat(np.arange(2 * len(pairs)) % 2 == 0, sides)
    bound = limit[rows]
    linear = np.where(is_positive, -1.0, 1.0)
    lower, upper = np.where(is_positive, 0.0, -bound), np.where(is_positive, bound, 0.0)
    starts = np.zeros((len(pairs), 2), np.int64)
    starts[:, 1] = sides[::2] + sides[1::2]
    return Duals(
        rows=rows, linear=linear, lower=lower, upper=upper,
        starts=starts, totals=np.zeros((len(pairs), 1)), z=np.zeros(len(rows)),
        closely=len(pairs) <= MAX_PAIRS_POLISHED,
    )  # fmt: skip


def nu_classification(positive: Indices, negative: Indices, limit: Array, nu: float) -> Dual:
    """Return the dual of nu-classification of one pair of classes.

    It minimizes ``z'Kz/2`` within the bounds of C-classification. The z of the positive class sum
    to nu/2 times the sum of all limits, and those of the negative class to minus that.
    """
    positive, negative = _with_limit(positive, limit), _with_limit(negative, limit)
    total = nu * math.fsum(limit[np.concatenate([positive, negative])]) / 2
    return _two_groups(
        positive, negative, limit, np.zeros(len(positive) + len(negative)), float(total)
    )


def epsilon_regression(y: Array, limit: Array, epsilon: float) -> Dual:
    """Return the dual of epsilon-regression.

    It minimizes ``z'Kz/2 - y'z + epsilon |z|_1`` with z in [-limit, limit] and a sum of 0.
    """
    rows = _with_limit(np.arange(len(y)), limit)
    n = len(rows)
    return Dual(
        rows=rows, linear=-y[rows], lower=-limit[rows], upper=limit[rows],
        starts=_starts(n), totals=np.zeros(1), z=np.zeros(n), l1=np.full(n, epsilon),
    )  # fmt: skip


def quantile_regression(y: Array, limit: Array, quantile: float) -> Dual:
    """Return the dual of quantile regression (Takeuchi et al. 2006).

    It minimizes ``z'Kz/2 - y'z`` with z in [-(1 - quantile) limit, quantile limit] and a sum of 0.
    """
    rows = _with_limit(np.arange(len(y)), limit)
    n = len(rows)
    return Dual(
        rows=rows, linear=-y[rows], lower=-(1 - quantile) * limit[rows],
        upper=quantile * limit[rows], starts=_starts(n), totals=np.zeros(1), z=np.zeros(n),
    )  # fmt: skip


def nu_regression(y: Array, limit: Array, nu: float) -> Dual:
    """Return the dual of nu-regression.

    It minimizes ``z'Kz/2 - y'z``, where each sample has a z in [0, limit] and one in
    [-limit, 0]. The former sum to nu/2 times the sum of all limits, the latter to minus that.
    """
    rows = _with_limit(np.arange(len(y)), limit)
    total = nu * math.fsum(limit[rows]) / 2
    return _two_groups(rows, rows, limit, -np.tile(y[rows], 2), total)


def one_class(limit: Array, nu: float) -> Dual:
    """Return the dual of the one-class SVM.

    It minimizes ``z'Kz/2`` with z in [0, limit] and a sum of nu times the sum of all limits.
    """
    rows = _with_limit(np.arange(len(limit)), limit)
    n, total = len(rows), nu * math.fsum(limit[rows])
    return Dual(
        rows=rows, linear=np.zeros(n), lower=np.zeros(n), upper=limit[rows],
        starts=_starts(n), totals=np.array([total]), z=_filled(limit[rows], total),
    )  # fmt: skip


def bias(solution: Solution | Solutions) -> Array:
    """Return the intercept, or those of many solutions.

    It is minus the multiplier of the sum, or minus the mean of two.

    It is 0 if rounding errors could explain its value, so that the intercept of a symmetric problem
    is exactly 0.
    """
    multiplier, rounding = np.asarray(solution.multiplier), np.asarray(solution.rounding)
    value = -multiplier.sum(axis=-1) / multiplier.shape[-1]
    return np.where(np.abs(value) > rounding.max(axis=-1), value, 0.0)


def margin(solution: Solution | Solutions) -> Array:
    """Return the margin of nu-classification, or those of many solutions.

    It is half the difference of the two multipliers, or 1 if the difference is 0 up to rounding, so
    that a degenerate solution is not scaled.
    """
    up, down = np.asarray(solution.multiplier).T
    half = (up - down) / 2
    return np.where(half > RELATIVE_ROUNDING * (np.abs(up) + np.abs(down)), half, 1.0)


def hold_out(dual: Dual, held: Indices) -> Dual:
    """Return the dual without the samples at `held`, whose variables are fixed at 0.

    They stay in the dual because their gradients give the decisions on them. Totals are scaled by
    the fraction of the limits that is left, but to at most the sum of the limits of their group.
    """
    lower, upper = dual.lower.copy(), dual.upper.copy()
    lower[held] = upper[held] = 0.0
    if not dual.totals.any():
        return replace(dual, lower=lower, upper=upper, z=dual.z.copy())
    fraction = (upper - lower).sum() / (dual.upper - dual.lower).sum()
    totals, z = dual.totals.copy(), dual.z.copy()
    for k, group in enumerate(dual.groups):
        limit, sign = upper[group] - lower[group], np.sign(totals[k])
        total = min(fraction * abs(totals[k]), float(limit.sum()))
        totals[k], z[group] = sign * total, sign * _filled(limit, total)
    return replace(dual, lower=lower, upper=upper, totals=totals, z=z)


def restore_sum(z: Array, total: float) -> None:
    """Make z sum to the total by moving a few entries toward 0, in place.

    A coefficient of nu-regression is the sum of two variables of opposite sign. The sum of each of
    the two groups is exact. But where two variables nearly cancel, their rounding errors are large
    compared with the coefficient.
    """
    residual = math.fsum(z) - total
    if abs(residual) <= MAX_RELATIVE_RESIDUAL * float(np.abs(z).sum()):
        return  # a correction would only disturb the gradients of rows with large kernel values
    for i in np.argsort(-z * np.sign(residual), kind="stable").tolist():
        if residual == 0 or z[i] * residual <= 0:
            return
        z[i] -= math.copysign(min(abs(residual), abs(z[i])), residual)
        residual = math.fsum(z) - total


def continue_from(earlier: Dual, dual: Dual) -> None:
    """Start `dual` from the z of `earlier`, changed to satisfy the bounds and sums of `dual`.

    New rows start at 0. To restore a sum, as few variables as possible are changed, those between
    their bounds first. The nearest feasible point would change all of them a little, and
    most variables would leave their bounds.
    """
    size = 1 + max(dual.rows.max(initial=0), earlier.rows.max(initial=0))
    for old, new, total in zip(earlier.groups, dual.groups, dual.totals, strict=True):
        value = np.zeros(size)
        value[earlier.rows[old]] = earlier.z[old]
        lower, upper = dual.lower[new], dual.upper[new]
        z = np.clip(value[dual.rows[new]], lower, upper)
        missing = total - z.sum()
        order = np.argsort((z == lower) | (z == upper), kind="stable")
        slack = (upper - z if missing > 0 else z - lower)[order]
        z[order] += np.sign(missing) * _filled(slack, abs(missing))
        dual.z[new] = np.clip(z, lower, upper)


def _two_groups(
    positive: Indices, negative: Indices, limit: Array, linear: Array, total: float
) -> Dual:
    limits = limit[positive], limit[negative]
    lower, upper = _two_sides(*limits)
    # With the largest nu, rounding must not make the totals larger than the sums of the limits.
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
    """Return both without rows that have a limit of 0, unless all have."""
    kept = _with_limit(positive, limit), _with_limit(negative, limit)
    return kept if len(kept[0]) + len(kept[1]) > 0 else (positive, negative)


def _filled(limit: Array, total: float) -> Array:
    """Return z with the first variables at their limits until they sum to the total.

    LIBSVM starts at the same point.
    """
    before = np.concatenate([[0.0], np.cumsum(limit)[:-1]])
    z = np.clip(total - before, 0.0, limit)
    return np.where(
        limit - z <= RELATIVE_ROUNDING * total, limit, z
    )  # at the limit, not below it by rounding


def _starts(*sizes: int) -> Indices:
    return np.array([0, *accumulate(sizes)], np.int64)
