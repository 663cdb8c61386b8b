"""Convert a quadratic program in general form to sums, bounds and further rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .._validation import LARGE_FACTOR, Array, array, full_vector, require_finite
from ..constraints import Indices, SumBox
from ..constraints.rows import Rows as LinearRows
from ..labels import Axis, aligned
from ..objectives import Quadratic
from ..objectives.matrices import sparse_matrix

# Largest relative difference between the ratios of the coefficients of two rows that count as
# multiples of each other. It covers rows that were rescaled in float64; a larger value would merge
# rows that differ.
PROPORTIONALITY_TOL = 1e-12
# Largest number of rows that are not sums. The time of a solve grows with their square.
MAX_ROWS = 500


def from_qp(
    P: Any,
    q: ArrayLike | None = None,
    G: Any = None,
    h: ArrayLike | None = None,
    A: Any = None,
    b: ArrayLike | None = None,
    lb: ArrayLike | None = None,
    ub: ArrayLike | None = None,
) -> tuple[Quadratic, SumBox]:
    """Convert a quadratic program in general form to an objective and a sum constraint.

    The form is that of qpsolvers: minimize ``x'Px / 2 + q'x`` subject to ``Gx <= h``, ``Ax = b``
    and ``lb <= x <= ub``. A row of G or A with one entry is a bound. The other rows are sums with
    any coefficients. Rows that are multiples of each other are one sum with a range. Sums of
    disjoint sets of variables are groups; a row with all variables is their total. Variables that
    are in no sum form a group without limits. What does not fit becomes `rows`, such as
    "row 3 of G".

    Parameters
    ----------
    P : array_like, DataFrame or scipy.sparse array of shape (n, n)
        The symmetric matrix.
    q : array_like or Series of shape (n,), optional
        The linear term.
    G, A : array_like, DataFrame or scipy.sparse array of shape (m, n), optional
        Rows of the inequalities and of the equations; a single row may be a vector.
    h, b : float, array_like or Series of shape (m,), optional
        Right-hand sides. A row with an infinite entry of h is ignored.
    lb, ub : float, array_like or Series of shape (n,), optional
        Bounds; none by default.

    Returns
    -------
    objective : Quadratic
        The objective for `minimize`.
    constraint : SumBox
        The sums, bounds and rows.

    Raises
    ------
    ValueError
        If more than 500 rows are neither bounds nor sums of disjoint sets of variables.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> objective, constraint = pairstep.from_qp(
    ...     P=np.eye(3), G=-np.eye(3), h=np.zeros(3), A=np.ones((1, 3)), b=[1.0], ub=0.5
    ... )
    >>> constraint.total, constraint.lower, constraint.upper
    (1.0, array([0., 0., 0.]), array([0.5, 0.5, 0.5]))
    >>> pairstep.minimize(objective, constraint).x.round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    variables = Axis()
    P, q = aligned("P", P, variables, variables), aligned("q", q, variables)
    try:
        objective = Quadratic(P, q)
    except ValueError as error:
        raise ValueError(f"P and q, as Q and c of x'Qx / 2 + c'x, are invalid: {error}") from None
    n = objective.n
    bounds = (
        full_vector("lb", -np.inf if lb is None else aligned("lb", lb, variables), n, True),
        full_vector("ub", np.inf if ub is None else aligned("ub", ub, variables), n, True),
    )
    totals, parts, others = Placed.none(n), Placed.none(n), []
    for rows in (_rows("A", A, "b", b, n, variables), _rows("G", G, "h", h, n, variables)):
        _bound(rows, *bounds)
        for row in _sums(rows):
            if not _place(row, totals if len(row.members) == n else parts):
                others.append(row)
    objective.variables.adopt(variables)
    if totals.sums and parts.sums:
        constraint, apart = _nested(totals.sums[0], parts, *bounds)
        others += apart
    else:
        constraint = _constraint(totals if totals.sums else parts, *bounds)
    if len(others) > MAX_ROWS:
        raise ValueError(
            f"{len(others)} rows are neither bounds nor sums of disjoint sets of variables (first "
            f"{others[0].name}), but at most {MAX_ROWS} are supported: use a general solver"
        )
    return objective, _with_rows(constraint, others, n)


def _with_rows(constraint: SumBox, others: list[Sum], n: int) -> SumBox:
    if not others:
        return constraint
    matrix = np.zeros((len(others), n))
    for row, own in zip(others, matrix, strict=True):
        own[row.members] = row.coefficients
    low, high = np.array([(row.low, row.high) for row in others]).T
    labels = Axis(tuple(row.name for row in others), "rows")
    return constraint.with_rows(LinearRows(matrix, low, high, labels))


@dataclass
class Rows:
    """Rows ``low <= matrix x <= high`` of one argument."""

    name: str
    matrix: Any  # CSR
    low: Array
    high: Array
    labels: Axis

    def called(self, k: int) -> str:
        """Return the name of a row for messages."""
        names = self.labels.names
        return f"row {k if names is None else repr(names[k])} of {self.name}"


@dataclass
class Sum:
    """A row with several entries: ``low <= coefficients' x[members] <= high``."""

    name: str
    members: Indices
    coefficients: Array
    low: float
    high: float


@dataclass
class Placed:
    """Sums of disjoint sets of variables, and the index of each variable's sum, or -1 for none."""

    sums: list[Sum]
    group: Indices

    @classmethod
    def none(cls, n: int) -> Placed:
        """Return an object without sums."""
        return cls([], np.full(n, -1))


def _rows(name: str, matrix: Any, right_name: str, right: Any, n: int, variables: Axis) -> Rows:
    labels = Axis()
    if (matrix is None) != (right is None):
        given, missing = (name, right_name) if right is None else (right_name, name)
        raise ValueError(f"{given} is given without {missing}")
    if matrix is None:
        matrix, right = np.empty((0, n)), np.empty(0)
    if np.ndim(matrix) == 1:
        matrix = np.atleast_2d(array(name, aligned(name, matrix, variables), 1))
    matrix = aligned(name, matrix, labels, variables)
    if not scipy.sparse.issparse(matrix):
        matrix = array(name, matrix, 2)
        require_finite(name, matrix, LARGE_FACTOR)
    entries = sparse_matrix(name, matrix, LARGE_FACTOR)
    if entries.shape[1] != n:
        raise ValueError(f"{name} must have {n} columns, as P has, got shape {entries.shape}")
    entries.sum_duplicates()
    entries.eliminate_zeros()
    equations = name == "A"
    high = full_vector(
        right_name, aligned(right_name, right, labels), entries.shape[0], not equations
    )
    return Rows(name, entries, high if equations else np.full(len(high), -np.inf), high, labels)


def _bound(rows: Rows, lower: Array, upper: Array) -> None:
    """Apply the rows with one entry to the bounds, in place, and check the empty rows."""
    starts = rows.matrix.indptr
    count = np.diff(starts)
    empty = (count == 0) & ~((rows.low <= 0) & (rows.high >= 0))
    if empty.any():
        k = int(np.argmax(empty))
        raise ValueError(
            f"{rows.called(k)} has no nonzero entries, so its limit {rows.high[k]:g} cannot hold"
        )
    single = count == 1
    at, entry = rows.matrix.indices[starts[:-1][single]], rows.matrix.data[starts[:-1][single]]
    ends = rows.low[single] / entry + 0.0, rows.high[single] / entry + 0.0  # turns -0.0 into 0.0
    np.maximum.at(lower, at, np.minimum(*ends))
    np.minimum.at(upper, at, np.maximum(*ends))


def _sums(rows: Rows) -> Iterator[Sum]:
    """Yield the rows with several entries and a finite limit; equal entries are scaled to 1."""
    starts, high = rows.matrix.indptr, rows.high
    for k in np.flatnonzero((np.diff(starts) > 1) & (high < np.inf)):
        entries = slice(starts[k], starts[k + 1])
        members, coefficients = rows.matrix.indices[entries], rows.matrix.data[entries]
        unit = coefficients[0] if (coefficients == coefficients[0]).all() else 1.0
        low, high_end = sorted((rows.low[k] / unit + 0.0, high[k] / unit + 0.0))
        yield Sum(rows.called(int(k)), members, coefficients / unit, float(low), float(high_end))


def _place(row: Sum, placed: Placed) -> bool:
    """Add a row as a new sum, or tighten the sum that it is a multiple of, if it is either."""
    sums, group = placed.sums, placed.group
    shared = row.members[group[row.members] >= 0]
    if not len(shared):
        group[row.members] = len(sums)
        sums.append(row)
        return True
    other = sums[group[int(shared[0])]]
    factor = _factor(row, other)
    if factor is None:
        return False
    low, high = sorted((row.low / factor, row.high / factor))
    other.low, other.high = max(other.low, low), min(other.high, high)
    return True


def _factor(row: Sum, other: Sum) -> float | None:
    """Return the factor between two rows; None if one is not a multiple of the other."""
    if not np.array_equal(row.members, other.members):
        return None
    return _ratio(row.coefficients, other.coefficients)


def _ratio(coefficients: Array, others: Array) -> float | None:
    factors = coefficients / others
    near = np.abs(factors - factors[0]) <= PROPORTIONALITY_TOL * abs(factors[0])
    return float(factors[0]) if near.all() else None


def _nested(total: Sum, parts: Placed, lower: Array, upper: Array) -> tuple[SumBox, list[Sum]]:
    """Return the constraint of groups under a common total, and the sums that are no groups."""
    limits: dict[int, tuple[float, float]] = {}
    others = []
    for k, row in enumerate(parts.sums):
        factor = _ratio(row.coefficients, total.coefficients[row.members])
        if factor is None:
            others.append(row)
            continue
        low, high = sorted((row.low / factor + 0.0, row.high / factor + 0.0))
        limits[k] = low, high
    has_groups = bool(limits)
    constraint = SumBox(
        total.low if total.low == total.high else (total.low, total.high), lower, upper,
        coefficients=None if (total.coefficients == 1).all() else total.coefficients,
        groups=parts.group if has_groups else None,
        group_total=limits if has_groups else None,
    )  # fmt: skip
    return constraint, others


def _constraint(placed: Placed, lower: Array, upper: Array) -> SumBox:
    sums, group = placed.sums, placed.group
    coefficients = np.ones(len(group))
    for row in sums:
        coefficients[row.members] = row.coefficients
    ends = [(row.low, row.high) for row in sums]
    if group.min() < 0:  # variables that are in no sum
        ends.insert(0, (-np.inf, np.inf))
    low, high = np.array(ends).T
    total: Any = (low, high) if (low != high).any() else low
    if len(ends) == 1:
        total = ends[0] if low[0] != high[0] else float(low[0])
    return SumBox(
        total, lower, upper,
        coefficients=None if (coefficients == 1).all() else coefficients,
        groups=None if len(ends) == 1 else group,
    )  # fmt: skip
