"""What a solve returns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import show
from ._validation import Array
from .kept import kept
from .labels import Axis, labelled


class Status(StrEnum):
    """Why a solve ended. Members compare equal to their values, which are strings.

    Attributes
    ----------
    OPTIMAL : "optimal"
        The tolerance holds.
    MAX_ITER, TIME_LIMIT : "max_iter", "time_limit"
        Stopped by a limit that was given.
    STOPPED : "stopped"
        Stopped by the callback.
    STALLED : "stalled"
        No further progress is possible in floating point, or the function is seen not to be convex.
    UNBOUNDED : "unbounded"
        The objective falls without end.
    INVALID : "invalid"
        In a batch: the input of this problem is not finite, or too large.
    """

    OPTIMAL = "optimal"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    STALLED = "stalled"
    UNBOUNDED = "unbounded"
    INVALID = "invalid"


MESSAGES = {
    Status.OPTIMAL: "the KKT violation {violation:.2e} is within the tolerance {tolerance:.2e}",
    Status.MAX_ITER: "stopped after max_iter={n_iter} iterations with KKT violation "
    "{violation:.2e} (tolerance {tolerance:.2e}); raise max_iter or tol",
    Status.TIME_LIMIT: "stopped by time_limit after {n_iter} iterations with KKT violation "
    "{violation:.2e} (tolerance {tolerance:.2e})",
    Status.STOPPED: "stopped by the callback after {n_iter} iterations with KKT violation "
    "{violation:.2e} (tolerance {tolerance:.2e})",
    Status.STALLED: "no further progress after {n_iter} iterations at KKT violation "
    "{violation:.2e} (tolerance {tolerance:.2e})",
    Status.UNBOUNDED: "the objective falls without bound on the feasible set",
}


@dataclass(frozen=True, eq=False)
class History:
    """One entry per point visited, the start included.

    Attributes
    ----------
    value : ndarray
        Objective.
    violation : ndarray
        KKT violation.
    moved : ndarray of int
        How many coordinates moved to get there (0 at the start).
    interior : ndarray of int
        How many coordinates lie strictly between their bounds.
    time : ndarray
        Seconds since the solve began.
    """

    value: Array
    violation: Array
    moved: NDArray[np.int64]
    interior: NDArray[np.int64]
    time: Array


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback receives after each iteration."""

    n_iter: int
    value: float
    violation: float
    x: Array
    time: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Outcome of a solve. Printed, it is a short table; in a notebook, a card.

    Attributes
    ----------
    x : ndarray
        The point found: within its bounds exactly, and summing to the total within one ulp.
    weights : pandas.Series, polars.DataFrame or ndarray
        The same, with labels if an argument had some (of polars: one row, a column per variable);
        see `pairstep.labels`.
    fun : float
        The objective at x.
    status : Status
        Why the solve ended; `optimal` only if `kkt_violation` holds the tolerance.
    success : bool
        Whether the status is `optimal`.
    message, remark : str
        The same in a sentence, with the numbers, and with a remark where there is one.
    n_iter, nit : int
        Iterations made.
    tolerance : float
        Up to which `kkt_violation` counts as 0.
    kkt_violation : float
        By how much the KKT conditions are violated, recomputed from the problem at x: the largest
        left derivative of a variable that can fall minus the smallest right derivative of one that
        can rise, at least 0.
    suboptimality_bound : float
        The Frank-Wolfe gap: at least ``f(x) - f*`` if f is convex. inf where the feasible set is
        unbounded.
    gradient : ndarray
        The gradient of the smooth part at x.
    multiplier : float or ndarray
        The Lagrange multiplier of the sum; one per group where each has a total of its own.
    multipliers : ndarray
        Those of the bounds, one per variable: the derivative of the optimum by the bound at which
        it is. Not negative at lower bounds, not positive at upper ones, 0 in between.
    setup_time, solve_time : float
        Seconds.
    history : History or None
        If it was asked for.
    group_multiplier : dict or None
        With groups, the multiplier of each label's sum. Under a total of all, what the limits of
        the group add to the multiplier of the total: 0 where its sum is between them, negative at
        the upper one, positive at the lower.
    variables : Axis
        The labels.
    pull, bounds, kinks
        What `multipliers` come from, with the gradient: the multiplier of the sum times the weight
        of each variable in it, the bounds, and the kinks.

    Examples
    --------
    >>> import pandas as pd, pairstep
    >>> risk = pd.DataFrame([[0.04, 0.0], [0.0, 0.04]], index=["a", "b"], columns=["a", "b"])
    >>> result = pairstep.solve_qp(risk, upper=pd.Series({"b": 1.0, "a": 0.25}))
    >>> result.weights
    a    0.25
    b    0.75
    Name: weight, dtype: float64
    >>> result.success, result.multipliers
    (True, array([-0.02,  0.  ]))
    """

    x: Array
    fun: float
    status: Status
    n_iter: int
    kkt_violation: float
    suboptimality_bound: float
    multiplier: float | Array
    setup_time: float
    solve_time: float
    history: History | None = None
    group_multiplier: dict[Hashable, float] | None = None
    gradient: Array = field(kw_only=True)
    pull: float | Array = field(kw_only=True)
    bounds: tuple[float | Array, float | Array] = field(kw_only=True)
    tolerance: float = field(kw_only=True)
    remark: str = ""
    kinks: tuple[Array, Array] | None = None
    variables: Axis = field(default_factory=Axis)

    @property
    def success(self) -> bool:
        """Whether the status is `optimal`."""
        return self.status == Status.OPTIMAL

    @kept
    def message(self) -> str:
        """Why the solve ended, with the numbers."""
        sentence = MESSAGES[self.status].format(
            violation=self.kkt_violation, tolerance=self.tolerance, n_iter=self.n_iter
        )
        return f"{sentence}: {self.remark}" if self.remark else sentence

    @property
    def nit(self) -> int:
        """Iterations made, as SciPy calls them."""
        return self.n_iter

    @property
    def weights(self) -> Any:
        """The point with its labels."""
        return labelled(self.x, self.variables)

    @kept
    def multipliers(self) -> Array:
        """The multipliers of the bounds, from the gradient and the multiplier of the sum."""
        slope = self.gradient - self.pull
        kink, place = (0.0, 0.0) if self.kinks is None else self.kinks
        rising = slope + np.where(self.x < place, -kink, kink)
        falling = slope + np.where(self.x > place, kink, -kink)
        lower, upper = self.bounds
        at_lower = np.where(self.x == lower, np.maximum(rising, 0.0), 0.0)
        return at_lower + np.where(self.x == upper, np.minimum(falling, 0.0), 0.0)

    def plot(self) -> list[Any]:
        """Draw the largest weights, and the convergence where there is a history.

        Returns
        -------
        list of matplotlib.axes.Axes
            matplotlib is in the extra ``pairstep[plots]``.
        """
        return show.plot(self)

    def __repr__(self) -> str:
        return show.table(f"Result: {self.status}", show.rows_of(self))

    def _repr_html_(self) -> str:
        return show.card(self)


@dataclass(frozen=True, eq=False, repr=False)
class BatchResult:
    """Outcome of many solves; entry k belongs to the k-th right-hand side.

    Attributes
    ----------
    x : ndarray of shape (n, count)
        A column per right-hand side; NaN where its input was not finite.
    weights : pandas.DataFrame, polars.DataFrame or ndarray
        The same, with labels if A or the bounds had some: as x in pandas, and with a row per
        right-hand side and a column per variable in polars, which has no labels for rows.
    fun, kkt_violation, suboptimality_bound : ndarray of shape (count,)
        As in `Result`, recomputed from the problem.
    status : ndarray of str
        The `Status` of each.
    success : ndarray of bool
        Whether it is `optimal`.
    n_iter, nit : ndarray of int
        Iterations of each.
    setup_time, solve_time : float
        Seconds, for all together.
    variables, columns : Axis
        The labels of the variables, and of the right-hand sides.
    """

    x: Array
    fun: Array
    status: NDArray[np.str_]
    n_iter: NDArray[np.int64]
    kkt_violation: Array
    suboptimality_bound: Array
    setup_time: float
    solve_time: float
    variables: Axis = field(default_factory=Axis)
    columns: Axis = field(default_factory=Axis)

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether the status of each is `optimal`."""
        return np.asarray(self.status == Status.OPTIMAL)

    @property
    def nit(self) -> NDArray[np.int64]:
        """Iterations of each, as SciPy calls them."""
        return self.n_iter

    @property
    def weights(self) -> Any:
        """The points with their labels."""
        return labelled(self.x, self.variables, self.columns)

    def __repr__(self) -> str:
        n, count = self.x.shape
        title = f"BatchResult: {count} problems of {n} variables"
        return show.table(title, show.rows_of_batch(self))
