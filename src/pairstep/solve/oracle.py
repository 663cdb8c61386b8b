"""The door for problems that live elsewhere: the four questions that the block gear asks.

Any object that answers them can be solved, see `solve_oracle`: the block gear needs nothing else of
a problem, however large or far away it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import Array, choice
from ..constraints import SumBox
from ..objectives import Objective
from ..result import Status
from ..rules import RULES
from ..rules.accounts import Accounts, Kinks, accounts_at

Indices = NDArray[np.int64]


class Oracle(Protocol):
    """What the block gear asks. Accounts are numbered from 0; groups are side by side.

    The gear owns the point; an oracle is told of every change by `advance`. One that can leave out
    accounts for a while has two more methods: ``shrink(markets)`` goes on with those that can trade
    at these prices, the dearest and the cheapest of each group, and says how many these are (0
    where it does not pay), and ``unshrink()`` takes the last shrinking back. One whose blocks are
    dear to copy has ``fill_block(members, out)`` in place of `block`; `out` is the gear's own.
    """

    def survey(
        self, count: int, with_free: bool
    ) -> tuple[Indices, Array, float] | tuple[Indices, Array, float, float]:
        """The accounts worth a look: (accounts, their gradients, scale), or with noise.

        At least the `count` dearest sellers and cheapest buyers of each group (accounts with the
        largest left derivative that can fall, the smallest right derivative that can rise) and, if
        asked, every free account. The violation is judged against ``tol * scale``; a violation near
        the noise, by which rounding may have put gradients off since they were verified, need not
        fall any further.
        """

    def block(self, members: Indices) -> Array:
        """Their rows and columns of the Hessian."""

    def advance(self, moved: Indices, delta: Array) -> None:
        """These accounts have changed by `delta`: bring the gradients up to date."""

    def verify(self) -> None:
        """Compute the gradients anew from the problem."""


class ObjectiveOracle:
    """Answers for a quadratic objective in Python, in NumPy."""

    def __init__(self, objective: Objective, z: Array, lower: Array, upper: Array, starts: Indices):
        self.objective = objective
        self.z = z  # the gear's own point
        self.lower, self.upper, self.starts = lower, upper, starts
        self.gradient: Array
        self.verify()

    def survey(self, count: int, with_free: bool) -> tuple[Indices, Array, float]:
        """Look at all prices."""
        at = self.accounts()
        chosen = at.is_free if with_free else np.zeros(len(self.z), bool)
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            rest = max(end - begin - count, 0)  # who are not among the best
            for score in (at.sellers[begin:end], -at.buyers[begin:end]):
                chosen[begin + np.argsort(score, kind="stable")[rest:]] = True
        found = np.flatnonzero(chosen)
        return found, self.gradient[found], self.scale()

    def accounts(self) -> Accounts:
        """Prices and rooms of all accounts."""
        return accounts_at(self.gradient, self.z, self.lower, self.upper, self.objective.kinks)

    def scale(self) -> float:
        """The size of the terms that cancel in the gradient."""
        linear = self.objective.linear
        terms: list[Any] = [self.gradient] if linear is None else [self.gradient - linear, linear]
        if self.objective.kinks is not None:
            terms.append(self.objective.kinks[0])
        return max(float(np.abs(term).max()) for term in terms)

    def block(self, members: Indices) -> Array:
        """Ask the objective."""
        block = self.objective.block(members)
        assert block is not None
        return block

    def advance(self, moved: Indices, delta: Array) -> None:
        """Compute the gradient afresh."""
        self.verify()

    def verify(self) -> None:
        """Compute the gradient afresh."""
        self.gradient = self.objective.gradient(self.z)


class OracleOutcome(NamedTuple):
    """How a solve by an oracle ended; the violation is by the gradients that it verified last."""

    status: Status
    n_iter: int
    kkt_violation: float


STATUSES = {
    _core.BlockStop.optimal: Status.OPTIMAL,
    _core.BlockStop.max_iter: Status.MAX_ITER,
    _core.BlockStop.stopped: Status.TIME_LIMIT,
    _core.BlockStop.imprecise: Status.STALLED,
    _core.BlockStop.unbounded: Status.UNBOUNDED,
}


def solve_oracle(
    oracle: Oracle,
    x: Array,
    constraint: SumBox,
    *,
    kinks: Kinks | None = None,
    rule: str = "libsvm",
    tol: float = 1e-8,
    max_iter: int = 1_000_000,
    time_limit: float = math.inf,
) -> OracleOutcome:
    """Minimise a quadratic of which only an oracle is known, from x, which is changed in place.

    Parameters
    ----------
    oracle : Oracle
        Answers the four questions; it may keep x, which is up to date whenever it is asked.
    x : ndarray of float64
        A feasible start, and in the end the solution.
    constraint : SumBox
        The sum and the bounds, without weights, groups out of order or ranges: the oracle numbers
        variables as they are in x.
    kinks : pair of ndarrays, optional
        Weights k and places p of kinks ``k_i |x_i - p_i|``; the oracle's gradients are without.
    rule, tol, max_iter, time_limit
        As in `minimize`; `tol` is relative to the scale that the oracle tells.

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
    ...     def survey(self, count, with_free):
    ...         gradient = self.Q @ self.x  # few enough to look at all of them
    ...         return np.arange(len(self.x)), gradient, np.abs(gradient).max()
    ...     def block(self, members):
    ...         return self.Q[np.ix_(members, members)]
    ...     def advance(self, moved, delta): ...
    ...     def verify(self): ...
    >>> x = np.array([1.0, 0.0, 0.0])
    >>> outcome = solve_oracle(Risk(np.diag([1.0, 2.0, 4.0]), x), x, pairstep.Simplex())
    >>> str(outcome.status), x.round(6)
    ('optimal', array([0.571429, 0.285714, 0.142857]))
    """
    layout = constraint.layout(len(x))
    if layout.weights is not None or layout.source is not None:
        raise ValueError("constraint must have neither weights, groups nor a range of totals")
    weight, place = kinks or (None, None)
    point = _core.Point(
        x, layout.lower, layout.upper, weight, place, layout.starts, layout.low, layout.high
    )
    code = RULES[choice("rule", rule, RULES)].code
    solve = _core.BlockSolve(oracle, point, layout.totals, code, True)
    stop = solve.run(tol, max_iter, 2**62, time_limit)
    if stop != _core.BlockStop.optimal:
        solve.conclude()
    return OracleOutcome(STATUSES[stop], solve.iterations, solve.violation)
