"""Budget problems in the general form of quadratic programmes, recognised row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .._validation import LARGE_FACTOR, Array, array, full_vector, require_finite
from ..constraints import Indices, SumBox
from ..labels import Axis, aligned
from ..objectives import Quadratic
from ..objectives.matrices import sparse_matrix

PROPORTIONAL = 1e-12  # relative differences of coefficients that are rounding


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
    """Recognise a budget problem in a quadratic programme of general form.

    The form is that of qpsolvers: minimise ``x'Px / 2 + q'x`` subject to ``Gx <= h``, ``Ax = b``
    and ``lb <= x <= ub``. A row of G or A with one entry is a bound. The others are sums, of any
    weights: rows that are multiples of each other make one sum, with a range; sums of different
    variables are groups, under a total where a row has all variables. Variables that are in no
    group are one whose sum is free.

    Parameters
    ----------
    P : array_like, DataFrame or scipy.sparse array of shape (n, n)
        Symmetric.
    q : array_like or Series of shape (n,), optional
        The linear term.
    G, A : array_like, DataFrame or scipy.sparse array of shape (m, n), optional
        Rows of inequalities and of equations; one row may be given as a vector.
    h, b : float, array_like or Series of shape (m,), optional
        Their right-hand sides. Infinite entries of h bound nothing.
    lb, ub : float, array_like or Series of shape (n,), optional
        Bounds; none by default.

    Returns
    -------
    objective : Quadratic
        For `minimize`.
    constraint : SumBox
        The sums and bounds.

    Raises
    ------
    ValueError
        If a row does not fit: it says which, and what is in its way.

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
        raise ValueError(f"P and q, as Q and c of x'Qx / 2 + c'x: {error}") from None
    n = objective.n
    bounds = (
        full_vector("lb", -np.inf if lb is None else aligned("lb", lb, variables), n, True),
        full_vector("ub", np.inf if ub is None else aligned("ub", ub, variables), n, True),
    )
    totals, parts = Placed.none(n), Placed.none(n)
    for rows in (_rows("A", A, "b", b, n, variables), _rows("G", G, "h", h, n, variables)):
        _bound(rows, *bounds)
        for row in _sums(rows):
            _place(row, totals if len(row.members) == n else parts, variables)
    objective.variables.adopt(variables)
    if totals.sums and parts.sums:
        return objective, _nested(totals.sums[0], parts, *bounds)
    return objective, _constraint(totals if totals.sums else parts, *bounds)


@dataclass
class Rows:
    """Rows ``low <= matrix x <= high`` of one argument."""

    name: str
    matrix: Any  # CSR
    low: Array
    high: Array
    labels: Axis

    def called(self, k: int) -> str:
        """What to call a row."""
        names = self.labels.names
        return f"row {k if names is None else repr(names[k])} of {self.name}"


@dataclass
class Sum:
    """A row with several entries: ``low <= weights' x[members] <= high``."""

    name: str
    members: Indices
    weights: Array
    low: float
    high: float


@dataclass
class Placed:
    """Sums of different variables, and for each variable which it is in, or -1."""

    sums: list[Sum]
    group: Indices

    @classmethod
    def none(cls, n: int) -> Placed:
        """Without any sums."""
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
    """Take the rows with one entry, or none, into the bounds, in place."""
    starts = rows.matrix.indptr
    count = np.diff(starts)
    empty = (count == 0) & ~((rows.low <= 0) & (rows.high >= 0))
    if empty.any():
        k = int(np.argmax(empty))
        raise ValueError(f"{rows.called(k)} has no entries, but asks for {rows.high[k]:g}")
    single = count == 1
    at, entry = rows.matrix.indices[starts[:-1][single]], rows.matrix.data[starts[:-1][single]]
    ends = rows.low[single] / entry + 0.0, rows.high[single] / entry + 0.0  # no minus before a 0
    np.maximum.at(lower, at, np.minimum(*ends))
    np.minimum.at(upper, at, np.maximum(*ends))


def _sums(rows: Rows) -> Iterator[Sum]:
    """The rows with several entries that ask for something; equal entries become 1."""
    starts, high = rows.matrix.indptr, rows.high
    for k in np.flatnonzero((np.diff(starts) > 1) & (high < np.inf)):
        entries = slice(starts[k], starts[k + 1])
        members, weights = rows.matrix.indices[entries], rows.matrix.data[entries]
        unit = weights[0] if (weights == weights[0]).all() else 1.0
        low, high_end = sorted((rows.low[k] / unit + 0.0, high[k] / unit + 0.0))
        yield Sum(rows.called(int(k)), members, weights / unit, float(low), float(high_end))


def _place(row: Sum, placed: Placed, variables: Axis) -> None:
    """Make a row a sum of its own, or part of the one that it is a multiple of."""
    sums, group = placed.sums, placed.group
    shared = row.members[group[row.members] >= 0]
    if not len(shared):
        group[row.members] = len(sums)
        sums.append(row)
        return
    i = int(shared[0])
    other = sums[group[i]]
    factor = _factor(row, other)
    if factor is None:
        which = i if variables.names is None else repr(variables.names[i])
        raise ValueError(
            f"{row.name} does not fit a budget problem: it shares variable {which} with "
            f"{other.name}, and is no multiple of it. Sums must be of different variables, or of "
            "all; other linear terms belong in the objective, where `path` finds their multiplier"
        )
    low, high = sorted((row.low / factor, row.high / factor))
    other.low, other.high = max(other.low, low), min(other.high, high)


def _factor(row: Sum, other: Sum) -> float | None:
    """How many times the other a row is; None if it is no multiple."""
    if not np.array_equal(row.members, other.members):
        return None
    return _ratio(row.weights, other.weights)


def _ratio(weights: Array, others: Array) -> float | None:
    factors = weights / others
    near = np.abs(factors - factors[0]) <= PROPORTIONAL * abs(factors[0])
    return float(factors[0]) if near.all() else None


def _nested(total: Sum, parts: Placed, lower: Array, upper: Array) -> SumBox:
    """Groups under a total of all."""
    limits: dict[int, tuple[float, float]] = {}
    for k, row in enumerate(parts.sums):
        factor = _ratio(row.weights, total.weights[row.members])
        if factor is None:
            raise ValueError(
                f"{row.name} does not fit a budget problem: on its variables it is no multiple of "
                f"{total.name}, the total of all"
            )
        low, high = sorted((row.low / factor + 0.0, row.high / factor + 0.0))
        limits[k] = low, high
    return SumBox(
        total.low if total.low == total.high else (total.low, total.high), lower, upper,
        weights=None if (total.weights == 1).all() else total.weights,
        groups=parts.group,
        group_total=limits,
    )  # fmt: skip


def _constraint(placed: Placed, lower: Array, upper: Array) -> SumBox:
    sums, group = placed.sums, placed.group
    weights = np.ones(len(group))
    for row in sums:
        weights[row.members] = row.weights
    ends = [(row.low, row.high) for row in sums]
    if group.min() < 0:  # variables that are in no sum
        ends.insert(0, (-np.inf, np.inf))
    low, high = np.array(ends).T
    total: Any = (low, high) if (low != high).any() else low
    if len(ends) == 1:
        total = ends[0] if low[0] != high[0] else float(low[0])
    return SumBox(
        total, lower, upper,
        weights=None if (weights == 1).all() else weights,
        groups=None if len(ends) == 1 else group,
    )  # fmt: skip
