"""Solve problems that are known only through an oracle, however large or remote their data are.

`Oracle` lists what the block solver needs; `solve_oracle` runs the solver.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import Array
from ..constraints import SumBox
from ..coordinates import Coordinates, L1Terms, coordinates_at
from ..objectives import Objective
from ..result import Status

Indices = NDArray[np.int64]


class Oracle(Protocol):
    """What the block solver needs to know about a problem.

    Variables are numbered from 0, and the variables of a group are contiguous. The solver owns the
    point and reports every change through `update_gradient`.

    Optional methods: ``shrink(intervals)`` continues with only the variables that can still move,
    given the largest left and the smallest right derivative of each group, and returns their
    number (0 if shrinking would not save time); ``unshrink()`` undoes the last ``shrink``;
    ``fill_block(members, out)`` replaces `block` and writes into an array of the solver.
    """

    def select_candidates(
        self, count: int, with_free: bool
    ) -> tuple[Indices, Array, float] | tuple[Indices, Array, float, float]:
        """Return (indices, their gradients, scale), optionally followed by the noise.

        The indices include, for each group, at least the `count` variables with the largest left
        derivatives that can decrease, the `count` variables with the smallest right derivatives
        that can increase and, if `with_free`, every free variable. The solver compares the
        violation with ``tol * scale``. The noise is the rounding error of the gradients; a
        violation near it need not fall further.
        """

    def block(self, members: Indices) -> Array:
        """Return the rows and columns of the Hessian that belong to `members`."""

    def update_gradient(self, moved: Indices, delta: Array) -> None:
        """Update all gradients after the variables `moved` changed by `delta`."""

    def recompute_gradient(self) -> None:
        """Recompute the gradients from the problem."""


class ObjectiveOracle:
    """An oracle in NumPy for a quadratic objective."""

    def __init__(self, objective: Objective, z: Array, lower: Array, upper: Array, starts: Indices):
        self.objective = objective
        self.z = z  # the array that the solver changes
        self.lower, self.upper, self.starts = lower, upper, starts
        self.gradient: Array
        self.recompute_gradient()

    def select_candidates(self, count: int, with_free: bool) -> tuple[Indices, Array, float]:
        """Select candidates by sorting all derivatives."""
        at = self.coordinates()
        chosen = at.is_free if with_free else np.zeros(len(self.z), bool)
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            rest = max(end - begin - count, 0)  # variables that are not selected
            for score in (at.left_derivative[begin:end], -at.right_derivative[begin:end]):
                chosen[begin + np.argsort(score, kind="stable")[rest:]] = True
        found = np.flatnonzero(chosen)
        return found, self.gradient[found], self.scale()

    def coordinates(self) -> Coordinates:
        """Return the derivatives and distances to the bounds of all variables."""
        return coordinates_at(
            self.gradient, self.z, self.lower, self.upper, self.objective.l1_terms
        )

    def scale(self) -> float:
        """Return the size of the terms that cancel in the gradient."""
        linear = self.objective.linear
        terms: list[Any] = [self.gradient] if linear is None else [self.gradient - linear, linear]
        if self.objective.l1_terms is not None:
            terms.append(self.objective.l1_terms[0])
        return max(float(np.abs(term).max()) for term in terms)

    def block(self, members: Indices) -> Array:
        """Return a block of the objective's Hessian."""
        block = self.objective.block(members)
        assert block is not None
        return block

    def update_gradient(self, moved: Indices, delta: Array) -> None:
        """Recompute the gradient."""
        self.recompute_gradient()

    def recompute_gradient(self) -> None:
        """Recompute the gradient."""
        self.gradient = self.objective.gradient(self.z)


class OracleOutcome(NamedTuple):
    """The outcome of `solve_oracle`; the violation is that of the last recomputed gradients."""

    status: Status
    n_iter: int
    kkt_violation: float


STATUSES = {
    _core.StopReason.optimal: Status.OPTIMAL,
    _core.StopReason.max_iter: Status.MAX_ITER,
    _core.StopReason.stopped: Status.TIME_LIMIT,
    _core.StopReason.imprecise: Status.STALLED,
    _core.StopReason.unbounded: Status.UNBOUNDED,
}


def solve_oracle(
    oracle: Oracle,
    x: Array,
    constraint: SumBox,
    *,
    l1_terms: L1Terms | None = None,
    tol: float = 1e-8,
    max_iter: int = 1_000_000,
    time_limit: float = math.inf,
) -> OracleOutcome:
    """Minimize a quadratic that is known only through an oracle. x is changed in place.

    Parameters
    ----------
    oracle : Oracle
        The oracle. It may keep a reference to x, which is up to date at every call.
    x : ndarray of float64
        A feasible start; on return, the solution.
    constraint : SumBox
        The sum and the bounds. Coefficients, ranges of totals and groups that are not contiguous
        in sorted order are not supported, because the oracle numbers variables by their position
        in x.
    l1_terms : pair of ndarrays, optional
        Weights k and centers p of L1 terms ``k_i |x_i - p_i|``; the oracle's gradients exclude
        them.
    tol, max_iter, time_limit
        As in `minimize`; `tol` is relative to the scale that the oracle returns.

    Returns
    -------
    OracleOutcome
        Status, iterations and violation.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> from pairstep.solve.oracle import solve_oracle
    >>> class Risk:
    ...     def __init__(self, Q, x):
    ...         self.Q, self.x = Q, x
    ...     def select_candidates(self, count, with_free):
    ...         gradient = self.Q @ self.x  # n is small, so return all variables
    ...         return np.arange(len(self.x)), gradient, np.abs(gradient).max()
    ...     def block(self, members):
    ...         return self.Q[np.ix_(members, members)]
    ...     def update_gradient(self, moved, delta): ...
    ...     def recompute_gradient(self): ...
    >>> x = np.array([1.0, 0.0, 0.0])
    >>> outcome = solve_oracle(Risk(np.diag([1.0, 2.0, 4.0]), x), x, pairstep.Simplex())
    >>> str(outcome.status), x.round(6)
    ('optimal', array([0.571429, 0.285714, 0.142857]))
    """
    layout = constraint._layout(len(x))
    if layout.coefficients is not None or layout.source is not None:
        raise ValueError(
            "constraint must have no coefficients and no range of totals, and its groups must be "
            "contiguous and in sorted order: reorder the variables"
        )
    weight, place = l1_terms or (None, None)
    point = _core.Point(
        x, layout.lower, layout.upper, weight, place, layout.starts, layout.low, layout.high
    )
    solve = _core.BlockSolve(oracle, point, layout.totals, True)
    stop = solve.run(tol, max_iter, 2**62, time_limit)
    if stop != _core.StopReason.optimal:
        solve.conclude()
    return OracleOutcome(STATUSES[stop], solve.iterations, solve.violation)
