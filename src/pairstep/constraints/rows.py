"""General linear rows: ``rows_lower <= rows @ x <= rows_upper``."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .._validation import LARGE, LARGE_FACTOR, Array, frozen, full_array
from ..labels import Axis, aligned
from .groups import limits, per_group

if TYPE_CHECKING:
    from .sum_box import SumBox

# Relative distance by which implied bounds are moved outward; far above rounding errors.
OUTWARD = 1e-9


@dataclass(frozen=True)
class Rows:
    """Linear rows with limits."""

    matrix: Array  # one row per constraint, one column per variable
    low: Array
    high: Array
    labels: Axis  # of the rows

    @classmethod
    def of(cls, rows: Any, low: Any, high: Any, variables: Axis) -> Rows | None:
        """Check the arguments `rows`, `rows_lower` and `rows_upper` and align their labels."""
        if isinstance(rows, Rows):
            return rows
        if rows is None:
            for name, limit in (("rows_lower", low), ("rows_upper", high)):
                if limit is not None:
                    raise ValueError(f"{name} needs rows, the matrix whose rows it limits")
            return None
        labels = Axis()
        if scipy.sparse.issparse(rows):
            rows = rows.toarray()
        matrix = np.array(np.atleast_2d(aligned("rows", rows, labels, variables)), float)
        if matrix.ndim != 2:
            raise ValueError(f"rows must have two dimensions, got shape {matrix.shape}")
        if not (np.abs(matrix) < LARGE_FACTOR).all():
            r, i = np.argwhere(~(np.abs(matrix) < LARGE_FACTOR))[0]
            raise ValueError(
                f"rows must be finite and smaller than {LARGE_FACTOR:g} in size, but rows[{r}, "
                f"{i}] = {matrix[r, i]:g}"
            )
        if low is None and high is None:
            raise ValueError("rows need limits: give rows_lower, rows_upper or both")
        count = len(matrix)
        given = {"rows_lower": (low, -math.inf), "rows_upper": (high, math.inf)}
        for name, (value, _) in given.items():
            _require_known(name, value, labels)
        ends = [
            full_array(name, aligned(name, none if value is None else value, labels), count)
            for name, (value, none) in given.items()
        ]
        for name, end, none in zip(given, ends, (-math.inf, math.inf), strict=True):
            wrong = np.flatnonzero(np.isnan(end) | ((np.abs(end) >= LARGE) & (end != none)))
            if len(wrong):
                raise ValueError(f"{name}[{wrong[0]}] = {end[wrong[0]]:g} is not a limit")
        crossed = np.flatnonzero(ends[0] > ends[1])
        found = cls(frozen(matrix), frozen(ends[0]), frozen(ends[1]), labels)
        if len(crossed):
            r = int(crossed[0])
            raise ValueError(
                f"rows_lower exceeds rows_upper in {found.name(r)}: {ends[0][r]:g} > {ends[1][r]:g}"
            )
        return found

    @classmethod
    def none(cls, n: int) -> Rows:
        """Return an object without rows, for n variables."""
        return cls(np.empty((0, n)), np.empty(0), np.empty(0), Axis())

    def with_row(self, row: Array, low: float, high: float, label: str) -> Rows:
        """Return the rows with another one, which comes last and has a label if the others have."""
        names = self.labels.names
        labels = Axis() if names is None else Axis((*names, label), self.labels.source)
        return Rows(
            frozen(np.vstack([self.matrix, row])), frozen(np.append(self.low, low)),
            frozen(np.append(self.high, high)), labels,
        )  # fmt: skip

    def in_order(self, order: NDArray[np.int64]) -> Rows:
        """Return the rows with their columns in another order."""
        return replace(self, matrix=frozen(self.matrix[:, order]))

    def key(self) -> tuple[object, ...]:
        """Return a hashable value that is equal for equal rows."""
        arrays = (self.matrix, self.low, self.high)
        return (*(tuple(part.ravel().tolist()) for part in arrays), self.labels.names)

    def name(self, r: int) -> str:
        """Return what messages call row r."""
        names = self.labels.labels
        return f"row {r}" if names is None else f"row {list(names)[r]!r}"

    def label(self, r: int) -> Hashable:
        """Return the label of row r, or its number."""
        names = self.labels.labels
        return r if names is None else list(names)[r]


def _require_known(name: str, limit: Any, labels: Axis) -> None:
    """Raise if a dict has a label that no row has."""
    if not isinstance(limit, dict) or labels.labels is None:
        return
    known = list(labels.labels)
    unknown = [label for label in limit if label not in known]
    if unknown:
        raise ValueError(f"{name} has the label {unknown[0]!r}, but rows have {known}")


def sums_as_rows(constraint: SumBox, n: int) -> tuple[Array, Array, Array]:
    """Return the sums of a constraint as rows: a matrix and the two limits."""
    a = np.ones(n) if constraint.coefficients is None else np.asarray(constraint.coefficients)
    matrix, low, high = [], [], []
    total, groups = constraint.total, constraint._groups
    if total is not None and not per_group(total):
        ends = total if isinstance(total, tuple) else (total, total)
        matrix.append(a)
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    if groups is not None and (per_group(total) or constraint.group_total is not None):
        if per_group(total):
            ends = total if isinstance(total, tuple) else (total, total)
            lows, highs = (np.broadcast_to(end, len(groups.labels)) for end in ends)
        else:
            lows, highs = limits(groups, constraint.group_total)
        for k in range(len(groups.labels)):
            if math.isinf(lows[k]) and math.isinf(highs[k]):
                continue
            matrix.append(np.where(groups.codes == k, a, 0.0))
            low.append(float(lows[k]))
            high.append(float(highs[k]))
    return np.array(matrix).reshape(-1, n), np.array(low), np.array(high)


def implied_bounds(
    matrix: Array, low: Array, high: Array, lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Return finite bounds that rows and the other bounds imply, where there are any.

    They are rounded outward, so every x that satisfies the rows and the bounds satisfies them.
    """
    least, most = lower.copy(), upper.copy()
    upper_limits = [*zip(matrix, high, strict=True), *zip(-matrix, -low, strict=True)]
    for row, limit in upper_limits:
        if not math.isfinite(limit):
            continue
        # row @ x <= limit: each term is at most the limit minus the least values of the others.
        used = row != 0
        terms = np.zeros(len(row))
        terms[used] = row[used] * np.where(row > 0, lower, upper)[used]
        infinite = np.isinf(terms)
        for i in np.flatnonzero(row if not infinite.any() else infinite).tolist():
            if infinite.sum() - infinite[i] > 0:
                continue
            others = math.fsum(terms[k] for k in range(len(row)) if k != i and row[k])
            room = (limit - others) / row[i]
            room += OUTWARD * (abs(limit) + np.abs(np.delete(terms, i)).sum()) / row[i]
            if row[i] > 0 and math.isinf(most[i]):
                most[i] = room
            elif row[i] < 0 and math.isinf(least[i]):
                least[i] = room
    return least, most


def contradiction(
    weights: Array, matrix: Array, low: Array, high: Array, lower: Array, upper: Array
) -> tuple[Fraction, Fraction] | None:
    """Return what a weighted sum of rows must be at least, and what the bounds allow at most.

    Rows count with their lower limit if the weight is positive, with the upper one if it is
    negative. Returns None if the two do not contradict each other, in exact arithmetic.
    """
    used = np.flatnonzero(weights)
    sides = [low[r] if weights[r] > 0 else high[r] for r in used]
    if not all(math.isfinite(side) for side in sides):
        return None
    least = sum(
        (
            Fraction(float(weights[r])) * Fraction(float(s))
            for r, s in zip(used, sides, strict=True)
        ),
        Fraction(0),
    )
    most = Fraction(0)
    for i in range(matrix.shape[1]):
        column = sum(
            (Fraction(float(weights[r])) * Fraction(float(matrix[r, i])) for r in used),
            Fraction(0),
        )
        if column == 0:
            continue
        bound = float(upper[i] if column > 0 else lower[i])
        if math.isinf(bound):
            return None
        most += column * Fraction(bound)
    return (least, most) if least > most else None
