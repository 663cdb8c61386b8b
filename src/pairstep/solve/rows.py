"""Quadratic objectives under sums, bounds and general linear rows.

The solution without rows is followed to the solution with rows by a parametric active-set method
(cpp/engine/rows.hpp). With the multipliers v of the rows, the solution also minimizes the
Lagrangian ``f(x) - v'Gx`` under the sum and the bounds alone. That is how it is verified,
independently of the method that found it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _core
from .._validation import Array
from ..constraints import SumBox
from ..constraints.rows import Rows, contradiction, implied_bounds, sums_as_rows
from ..labels import Axis
from ..objectives import L1Penalized, LeastSquares, Quadratic
from ..result import Result, Status
from .minimize import minimize

OPTIMAL, INFEASIBLE = 0, 1  # RowsAnswer::Status
# Contradictions below this fraction of the limits are rounding errors of the limits.
MIN_CONTRADICTION = 1e-12
# Digits to which rows that are multiples of each other agree.
PROPORTIONAL_DIGITS = 13
# Attempts with different random perturbations, if a path ends without a solution.
MAX_ATTEMPTS = 4
# Relaxation of limits that can be satisfied only up to rounding errors, relative to the terms of
# the row. Rows hold to 1e-12 of their terms.
ROUNDING = 1e-13
# Error of a sum, relative to its terms, that is only rounding.
SUM_SLACK = 1e-11
# Largest effect, relative to the objective, of rows with multipliers that miss their limits.
MAX_GAP = 1e-10


def rows_of(objective: Any, rows: Any, low: Any, high: Any) -> Rows:
    """Return the rows, with their columns in the order of the objective's variables."""
    return Rows.of(rows, low, high, Axis.of(objective), objective.n)


def require_rows(low: Any, high: Any) -> None:
    """Raise if there are limits without rows."""
    for name, limit in (("rows_lower", low), ("rows_upper", high)):
        if limit is not None:
            raise ValueError(f"{name} needs rows, the matrix whose rows it limits")


def solve_with_rows(
    objective: Any, constraint: SumBox, rows: Rows, time_limit: float | None, **options: Any
) -> Result:
    """Minimize a quadratic objective under a constraint and rows."""
    began = time.perf_counter()
    relaxed = minimize(objective, constraint, time_limit=time_limit, **options)
    if relaxed.status in (Status.TIME_LIMIT, Status.STOPPED, Status.MAX_ITER):
        return replace(relaxed, remark="x is not yet required to satisfy the rows")
    n = len(relaxed.x)
    smooth, linear, l1_terms = _parts(objective, n)
    problem = _Problem(smooth, linear, l1_terms, relaxed, constraint, rows)
    seconds = math.inf if time_limit is None else max(time_limit - relaxed.solve_time, 0.0)
    found = problem.solve(seconds)
    if found is None:
        elapsed = time.perf_counter() - began
        over = time_limit is not None and elapsed >= time_limit
        status = Status.TIME_LIMIT if over else Status.STALLED
        return _without_solution(relaxed, rows, status, elapsed)
    x, multipliers, changes = found
    of_rows = multipliers[problem.n_sums :]
    # Rounding errors may give a multiplier to a limit that is infinite.
    of_rows = np.where(np.isinf(np.where(of_rows > 0, rows.low, rows.high)), 0.0, of_rows)
    pull = rows.matrix.T @ of_rows
    lagrangian = _with_linear(objective, smooth, -pull)
    checked = minimize(lagrangian, constraint, x0=x, tol=options["tol"], max_iter=0)
    return _report(objective, constraint, rows, checked, of_rows, pull, changes, began, relaxed)


def _without_solution(relaxed: Result, rows: Rows, status: Status, elapsed: float) -> Result:
    """Return the solution without rows, with a status that says so."""
    return replace(
        relaxed, status=status, kkt_violation=math.inf, suboptimality_bound=math.inf,
        remark="no point that satisfies the rows was found; x is the solution without rows",
        row_multipliers={rows.label(r): math.nan for r in range(len(rows.matrix))},
        solve_time=elapsed,
    )  # fmt: skip


def _report(
    objective: Any,
    constraint: SumBox,
    rows: Rows,
    checked: Result,
    multipliers: Array,
    pull: Array,
    changes: int,
    began: float,
    relaxed: Result,
) -> Result:
    x = checked.x
    value, gradient = objective.value_and_gradient(x)
    # What the multipliers promise if a limit is not reached exactly.
    limit = np.where(multipliers > 0, rows.low, rows.high)
    active = multipliers != 0
    gaps = np.zeros(len(multipliers))
    gaps[active] = np.abs(multipliers[active] * (rows.matrix[active] @ x - limit[active]))
    status, remark = checked.status, checked.remark
    if status == Status.MAX_ITER:
        status, remark = Status.STALLED, "the multipliers of the rows do not satisfy the tolerance"
    beyond = _beyond(rows, x)
    if status == Status.OPTIMAL and beyond is not None:
        status, remark = Status.STALLED, beyond
    size = max(abs(float(value)), abs(float(gradient @ x)), abs(float(pull @ x)))
    if status == Status.OPTIMAL and gaps.sum() > MAX_GAP * size:
        status, remark = Status.STALLED, "rows with multipliers are not at their limits"
    result = replace(
        checked, fun=float(value), gradient=gradient, pull=checked.pull + pull, status=status,
        remark=remark, suboptimality_bound=checked.suboptimality_bound + float(gaps.sum()),
        n_iter=relaxed.n_iter + changes, solve_time=time.perf_counter() - began,
        row_multipliers={rows.label(r): float(v) for r, v in enumerate(multipliers)},
        variables=relaxed.variables,
    )  # fmt: skip
    held = [
        (("rows_upper" if multipliers[r] < 0 else "rows_lower", r), rows.matrix[r])
        for r in np.flatnonzero(active | (rows.low == rows.high)).tolist()
    ]
    object.__setattr__(result, "_problem", (objective, constraint, held, len(rows.matrix)))
    return result


def _beyond(rows: Rows, x: Array) -> str | None:
    """Return which row does not hold to 1e-12 of its terms, or None."""
    activity = np.array([math.fsum(row * x) for row in rows.matrix])
    terms = np.abs(rows.matrix) @ np.abs(x)
    for end, sign in ((rows.low, 1.0), (rows.high, -1.0)):
        missing = np.where(np.isfinite(end), sign * (end - activity), -np.inf)
        size = np.maximum(terms, np.where(np.isfinite(end), np.abs(end), 0.0))
        wrong = np.flatnonzero(missing > 1e-12 * size)
        if len(wrong):
            r = int(wrong[0])
            return f"{rows.name(r)} is {activity[r]:.17g}, but its limit is {end[r]:.17g}"
    return None


def _parts(objective: Any, n: int) -> tuple[Any, Array, tuple[Array, Array] | None]:
    """Return the smooth part, its linear term, and the L1 terms."""
    smooth = objective
    while isinstance(smooth, L1Penalized):
        smooth = smooth.objective
    if not isinstance(smooth, (Quadratic, LeastSquares)):
        raise TypeError(
            f"rows need a quadratic objective or least squares, got {type(smooth).__name__}"
        )
    terms = objective.l1_terms
    if terms is not None:
        terms = tuple(np.ascontiguousarray(np.broadcast_to(part, n), float) for part in terms)
    return smooth, np.ascontiguousarray(objective.linear, float), terms


def _with_linear(objective: Any, smooth: Any, added: Array) -> Any:
    """Return the objective plus a linear term."""
    if objective is smooth:
        return smooth.with_linear(np.asarray(smooth.c) + added)
    inner = _with_linear(objective.objective, smooth, added)
    return L1Penalized(inner, (objective._down, objective._up), objective._pivot)


class Merged:
    """Rows scaled to a largest entry of 1, where rows that are multiples of each other are one."""

    def __init__(self, matrix: Array, low: Array, high: Array):
        largest = np.abs(matrix).argmax(axis=1)
        factor = matrix[np.arange(len(matrix)), largest]
        self.factor = np.where(factor != 0, factor, 1.0)
        directions = matrix / self.factor[:, None]
        keys = [row.tobytes() for row in np.round(directions, PROPORTIONAL_DIGITS) + 0.0]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        self.row_of = np.array([numbers[key] for key in keys])  # the merged row of each row
        first = np.unique(self.row_of, return_index=True)[1]
        self.matrix = np.ascontiguousarray(directions[first])
        ends = low / self.factor, high / self.factor
        least, most = np.minimum(*ends), np.maximum(*ends)
        members = [np.flatnonzero(self.row_of == number) for number in range(len(first))]
        # The members with the tightest limits.
        self.at_low = np.array([own[np.argmax(least[own])] for own in members])
        self.at_high = np.array([own[np.argmin(most[own])] for own in members])
        self.low, self.high = least[self.at_low], most[self.at_high]

    def has_member_below(self, count: int) -> NDArray[np.bool_]:
        """Return which merged rows contain one of the first `count` rows."""
        found = np.zeros(len(self.matrix), bool)
        found[self.row_of[:count]] = True
        return found

    def of_members(self, multipliers: Array) -> Array:
        """Return the multipliers of all rows: that of a merged row belongs to its tightest one."""
        found = np.zeros(len(self.row_of))
        at = np.where(multipliers > 0, self.at_low, self.at_high)
        found[at] = multipliers / self.factor[at]
        return found

    def contradiction(self, number: int) -> Array:
        """Return the weights of two multiples of one row whose limits contradict each other."""
        weights = np.zeros(len(self.row_of))
        for r, sign in ((self.at_low[number], 1.0), (self.at_high[number], -1.0)):
            weights[r] += sign / self.factor[r]
        return weights


class _Problem:
    """The arguments of the native solver; the rows of the sums come first."""

    def __init__(
        self,
        smooth: Any,
        linear: Array,
        l1_terms: tuple[Array, Array] | None,
        relaxed: Result,
        constraint: SumBox,
        rows: Rows,
    ):
        n = len(relaxed.x)
        sums, low, high = sums_as_rows(constraint, n)
        self.rows, self.n_sums = rows, len(sums)
        self.matrix = np.vstack([sums, rows.matrix])
        self.low, self.high = np.r_[low, rows.low], np.r_[high, rows.high]
        self.lower, self.upper = (
            np.ascontiguousarray(np.broadcast_to(np.asarray(b, float), n)) for b in relaxed.bounds
        )
        self.start = relaxed.x
        self.linear, self.l1_terms = linear, l1_terms
        self.hessian: Array | None = None
        self.factors: Array | None = None
        self.diagonal: Array | None = None
        if isinstance(smooth, Quadratic):
            Q = smooth.Q.toarray() if scipy.sparse.issparse(smooth.Q) else smooth.Q
            self.hessian = np.ascontiguousarray(Q, float)
        else:
            A = smooth.A.toarray() if scipy.sparse.issparse(smooth.A) else smooth.A
            self.factors = np.ascontiguousarray(A, float)
            self.diagonal = np.ascontiguousarray(np.broadcast_to(smooth.ridge, n), float)

    def solve(self, seconds: float) -> tuple[Array, Array, int] | None:
        """Return x, the multipliers of all rows and the number of changes of the active set.

        Returns None if no attempt succeeds.
        """
        merged = Merged(self.matrix, self.low, self.high)
        crossed = np.flatnonzero(merged.low > merged.high)
        if len(crossed):
            self._raise_if_proven(merged.contradiction(int(crossed[0])))
        matrix = merged.matrix
        is_sum = merged.has_member_below(self.n_sums)
        terms = np.abs(matrix) @ np.abs(self.start) + np.abs(matrix).max(axis=1, initial=0.0)
        relaxed_by = np.zeros(len(matrix))
        l1, center = self.l1_terms or (None, None)
        for attempt in range(MAX_ATTEMPTS):
            low, high = merged.low - relaxed_by, merged.high + relaxed_by
            status, x, multipliers, changes = _core.rows(
                self.hessian, self.factors, self.diagonal, self.linear, self.lower, self.upper,
                l1, center, matrix, low, high, self.start, is_sum.astype(float),
                seed=attempt, seconds=seconds,
            )  # fmt: skip
            of_members = merged.of_members(multipliers)
            if status == OPTIMAL and self._is_feasible(x):
                return x, of_members, changes
            if status == INFEASIBLE:
                self._raise_if_proven(of_members)
                relaxed_by[~is_sum] = ROUNDING * terms[~is_sum]
        return None

    def _is_feasible(self, x: Array) -> bool:
        """Return whether the sums hold up to what `minimize` restores."""
        sums, low, high = (part[: self.n_sums] for part in (self.matrix, self.low, self.high))
        activity, terms = sums @ x, np.abs(sums) @ np.abs(x)
        allowed = SUM_SLACK * np.maximum(terms, np.abs(activity))
        return bool(((low - activity <= allowed) & (activity - high <= allowed)).all())

    def _raise_if_proven(self, weights: Array) -> None:
        """Raise if the weights prove that the rows and the bounds contradict each other."""
        largest = np.abs(weights).max(initial=0.0)
        if largest == 0.0:
            return
        # Weights that are rounding errors would only obscure the reason.
        clean = np.where(np.abs(weights) > 1e-12 * largest, weights / largest, 0.0)
        bounds = implied_bounds(self.matrix, self.low, self.high, self.lower, self.upper)
        for candidate in (_simplified(clean), clean):
            found = contradiction(candidate, self.matrix, self.low, self.high, *bounds)
            if found is None:
                continue
            limits = np.where(candidate > 0, self.low, self.high)
            size = float(np.abs(candidate * np.where(candidate == 0, 0.0, limits)).sum())
            if found[0] - found[1] > MIN_CONTRADICTION * size:
                raise ValueError(self._conflict(candidate, *found))

    def _conflict(self, weights: Array, least: Fraction, most: Fraction) -> str:
        parts = []
        for r in np.flatnonzero(weights).tolist():
            name = "the sum" if r < self.n_sums else self.rows.name(r - self.n_sums)
            limit = self.low[r] if weights[r] > 0 else self.high[r]
            side = "at least" if weights[r] > 0 else "at most"
            if self.low[r] == self.high[r]:
                side = "equal to"
            parts.append(f"{name} ({side} {limit:.9g}) times {weights[r]:.9g}")
        return (
            f"no x satisfies all rows, the sum and the bounds: {' plus '.join(parts)} must be at "
            f"least {float(least):.9g}, but it is at most {float(most):.9g} within the bounds"
        )


def _simplified(weights: Array) -> Array:
    """Return weights rounded to six digits, which may prove the same and are easier to read."""
    return np.array([float(f"{w:.6g}") for w in weights])
