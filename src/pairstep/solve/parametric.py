"""The native parametric solver for quadratic objectives, given an objective and a constraint.

`ParametricProblem` translates the two: sums become rows, rows that are multiples of each other are
merged, and an infeasible problem raises an error with a reason that is proven in fractions.
cpp/engine/parametric.hpp describes the solver.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _core
from .._validation import Array
from ..constraints import SumBox
from ..constraints.rows import Rows, contradiction, implied_bounds, sums_as_rows
from ..objectives import FactorModel, LeastSquares, Quadratic

# Largest number of variables for which A'A is formed, if A has many rows: 32 MB.
MAX_FORMED = 2000
ARRIVED, CAPPED, INFEASIBLE = 0, 1, 2  # Parametric::Status
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


class Curvature(NamedTuple):
    """The Hessian of a quadratic objective: a matrix, or ``F'F + diag(D)``."""

    hessian: Array | None
    factors: Array | None = None
    diagonal: Array | None = None

    @classmethod
    def of(cls, objective: Any) -> Curvature:
        """Return the Hessian of a `Quadratic`, `LeastSquares` or `FactorModel`."""
        if isinstance(objective, LeastSquares):
            A = objective.A.toarray() if scipy.sparse.issparse(objective.A) else objective.A
            diagonal = np.ascontiguousarray(np.broadcast_to(objective.ridge, objective.n), float)
            found = cls(None, np.ascontiguousarray(A, float), diagonal)
            many = 2 * len(A) > len(diagonal) and len(diagonal) <= MAX_FORMED
            return found.formed() if many and not isinstance(objective, FactorModel) else found
        if isinstance(objective, Quadratic):
            Q = objective.Q.toarray() if scipy.sparse.issparse(objective.Q) else objective.Q
            return cls(np.ascontiguousarray(Q, float))
        return cls(np.ascontiguousarray(objective.block(np.arange(objective.n)), float))

    def formed(self) -> Curvature:
        """Return ``F'F + diag(D)`` as a matrix."""
        assert self.factors is not None
        assert self.diagonal is not None
        Q = self.factors.T @ self.factors
        Q[np.diag_indices(len(Q))] += self.diagonal
        return Curvature(np.ascontiguousarray(0.5 * (Q + Q.T)))

    def times(self, x: Array) -> Array:
        """Return the product with each row of x."""
        if self.hessian is not None:
            return np.asarray(x @ self.hessian)
        assert self.factors is not None
        assert self.diagonal is not None
        return np.asarray((x @ self.factors.T) @ self.factors + self.diagonal * x)

    def square(self, x: Array) -> Array:
        """Return ``x'Qx`` for each row of x, as a sum of squares if there are factors."""
        if self.hessian is not None:
            return np.asarray(np.einsum("ki,ki->k", x @ self.hessian, x))
        assert self.factors is not None
        assert self.diagonal is not None
        exposures = x @ self.factors.T
        return np.asarray((exposures**2).sum(axis=1) + (self.diagonal * x**2).sum(axis=1))


class Merged:
    """Rows scaled to a largest entry of 1, where rows that are multiples of each other are one."""

    def __init__(self, matrix: Array, low: Array, high: Array):
        largest = np.abs(matrix).argmax(axis=1)
        factor = matrix[np.arange(len(matrix)), largest]
        self.factor = np.where(factor != 0, factor, 1.0)
        directions = matrix / self.factor[:, None]
        keys = [row.tobytes() for row in np.round(directions, PROPORTIONAL_DIGITS) + 0.0]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        ends = low / self.factor, high / self.factor
        least, most = np.minimum(*ends), np.maximum(*ends)
        self.repeats = len(numbers) < len(keys)
        self.row_of = first = np.arange(len(keys))  # the merged row of each row
        if self.repeats:
            self.row_of = np.array([numbers[key] for key in keys])
            first = np.unique(self.row_of, return_index=True)[1]
        self.matrix = np.ascontiguousarray(directions[first])
        # The members with the tightest limits.
        self.at_low = self.at_high = first
        if self.repeats:
            members = [np.flatnonzero(self.row_of == number) for number in range(len(first))]
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
        if not self.repeats:
            return np.asarray(multipliers / self.factor)
        found = np.zeros((*multipliers.shape[:-1], len(self.row_of)))
        for own in np.flatnonzero(multipliers.reshape(-1, len(self.matrix)).any(axis=0)):
            value = multipliers[..., own]
            for at, part in ((self.at_low[own], value > 0), (self.at_high[own], value < 0)):
                found[..., at] += np.where(part, value, 0.0) / self.factor[at]
        return found

    def contradiction(self, number: int) -> Array:
        """Return the weights of two multiples of one row whose limits contradict each other."""
        weights = np.zeros(len(self.row_of))
        for r, sign in ((self.at_low[number], 1.0), (self.at_high[number], -1.0)):
            weights[r] += sign / self.factor[r]
        return weights


class Solved(NamedTuple):
    """A solution: x, the multipliers of the rows (without sums), and the native solver there."""

    x: Array
    multipliers: Array
    solver: Any


class ParametricProblem:
    """A quadratic objective under sums, bounds and rows, for the native solver.

    Parameters
    ----------
    curvature : Curvature
        The Hessian.
    linear : ndarray of shape (n,)
        The linear term.
    l1_terms : pair of ndarrays, or None
        Weights and centers of the L1 terms.
    constraint : SumBox
        The sums, bounds and rows.
    """

    def __init__(
        self,
        curvature: Curvature,
        linear: Array,
        l1_terms: tuple[Array, Array] | None,
        constraint: SumBox,
    ):
        n = len(linear)
        self.curvature, self.linear = curvature, np.ascontiguousarray(linear, float)
        self.l1_terms = None
        if l1_terms is not None:
            self.l1_terms = tuple(
                np.ascontiguousarray(np.broadcast_to(part, n), float) for part in l1_terms
            )
        self.rows = rows_of(constraint, n)
        bounds = constraint.without_rows()._layout(n).bounds
        self.lower, self.upper = (
            np.ascontiguousarray(np.broadcast_to(np.asarray(b, float), n)) for b in bounds
        )
        sums, low, high = sums_as_rows(constraint, n)
        self.n_sums = len(sums)
        self.matrix = np.vstack([sums, self.rows.matrix])
        self.low, self.high = np.r_[low, self.rows.low], np.r_[high, self.rows.high]
        self.merged = Merged(self.matrix, self.low, self.high)

    def solve(self, start: Array, seconds: float = math.inf) -> Solved | None:
        """Solve from a point that satisfies the sums and bounds; None if no attempt succeeds."""
        merged = self.merged
        crossed = np.flatnonzero(merged.low > merged.high)
        if len(crossed):
            self._raise_if_proven(merged.contradiction(int(crossed[0])))
        is_sum = merged.has_member_below(self.n_sums)
        relaxed_by = np.zeros(len(merged.matrix))
        l1, center = self.l1_terms or (None, None)
        for attempt in range(MAX_ATTEMPTS):
            solver = _core.Parametric(
                *self.curvature, self.linear, self.lower, self.upper, l1, center, merged.matrix,
                merged.low - relaxed_by, merged.high + relaxed_by,
            )  # fmt: skip
            status = solver.solve(start, is_sum.astype(float), seed=attempt, seconds=seconds)
            x = solver.x
            if status == ARRIVED and self._is_feasible(x):
                return Solved(x, self.of_rows(solver.multipliers), solver)
            if status == INFEASIBLE:
                self._raise_if_proven(merged.of_members(solver.multipliers))
                terms = np.abs(merged.matrix) @ np.abs(start)
                terms += np.abs(merged.matrix).max(axis=1, initial=0.0)
                relaxed_by[~is_sum] = ROUNDING * terms[~is_sum]
        return None

    def of_rows(self, multipliers: Array) -> Array:
        """Return the multipliers of the rows, given those of the native solver."""
        found = self.merged.of_members(multipliers)[..., self.n_sums :]
        # Rounding errors may give a multiplier to a limit that is infinite.
        limit = np.where(found > 0, self.rows.low, self.rows.high)
        return np.where(np.isinf(limit), 0.0, found)

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


def rows_of(constraint: SumBox, n: int) -> Rows:
    """Return the rows of a constraint on n variables, of which there may be none."""
    if constraint.rows is None:
        return Rows.none(n)
    columns = constraint.rows.matrix.shape[1]
    if columns != n:
        raise ValueError(
            f"rows must have one column for each of the {n} variables, got shape "
            f"{constraint.rows.matrix.shape}"
        )
    return constraint.rows


def _simplified(weights: Array) -> Array:
    """Return weights rounded to six digits, which may prove the same and are easier to read."""
    return np.array([float(f"{w:.6g}") for w in weights])
