"""Results of a solve, its status and its history."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import show
from ._validation import Array
from .kept import kept
from .labels import Axis, labeled

if TYPE_CHECKING:
    from .solve.derivatives import Derivatives, Kind


class Status(StrEnum):
    """Why a solve ended. Members are equal to their string values.

    Attributes
    ----------
    OPTIMAL : "optimal"
        The KKT violation is within the tolerance.
    MAX_ITER, TIME_LIMIT : "max_iter", "time_limit"
        Stopped by the limit of this name.
    STOPPED : "stopped"
        Stopped by the callback.
    STALLED : "stalled"
        No further progress is possible in floating point, or the function is not convex.
    IMPRECISE : "imprecise"
        The violation does not decrease any further. It is about as large as the rounding error of
        the gradient, which exceeds the tolerance.
    UNBOUNDED : "unbounded"
        The objective is unbounded below on the feasible set.
    INVALID : "invalid"
        In a batch: the right-hand side is not finite, or too large.
    """

    OPTIMAL = "optimal"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    STALLED = "stalled"
    IMPRECISE = "imprecise"
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
    Status.IMPRECISE: "no further progress after {n_iter} iterations at KKT violation "
    "{violation:.2e} (tolerance {tolerance:.2e}): the tolerance is below the rounding error",
    Status.UNBOUNDED: "the objective falls without bound on the feasible set",
}


@dataclass(frozen=True, eq=False)
class History:
    """One entry per iteration, including the start.

    Attributes
    ----------
    value : ndarray
        Objective values.
    violation : ndarray
        KKT violations.
    moved : ndarray of int
        Number of coordinates that the last step changed (0 at the start).
    interior : ndarray of int
        Number of coordinates strictly between their bounds.
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
    """The state that a callback receives after each iteration."""

    n_iter: int
    value: float
    violation: float
    x: Array
    time: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a solve. It prints as a short table, and as a card in a notebook.

    Attributes
    ----------
    x : ndarray
        The solution. The bounds hold exactly, and the sum equals the total within one ulp.
    weights : pandas.Series, polars.DataFrame or ndarray
        The solution with labels, if an argument had labels; see `pairstep.labels`. With polars, one
        row and a column per variable.
    fun : float
        The objective at x.
    status : Status
        Why the solve ended. It is `optimal` only if `kkt_violation` is within the tolerance.
    success : bool
        Whether the status is `optimal`.
    message, remark : str
        The status as a sentence with its numbers, and additional information, which is part of the
        message.
    n_iter, nit : int
        Number of iterations.
    tolerance : float
        Largest `kkt_violation` that counts as optimal.
    kkt_violation : float
        Violation of the KKT conditions, recomputed from the problem at x: the largest left
        derivative of a variable that can decrease minus the smallest right derivative of a variable
        that can increase, or 0 if that is negative.
    suboptimality_bound : float
        The Frank-Wolfe gap, an upper bound on ``f(x) - f*`` if f is convex. It is infinite if the
        feasible set is unbounded, unless f has a known lower bound. For the functions that come
        with pairstep it includes the rounding errors of value and gradient.
    gradient : ndarray
        The gradient of the smooth part at x.
    sum_multiplier : float or ndarray
        Lagrange multiplier of the sum; an array if each group has its own total.
    bound_multipliers : ndarray
        Lagrange multipliers of the bounds: the derivative of the optimal value with respect to the
        bound at which the variable is. At least 0 at lower bounds, at most 0 at upper bounds, and 0
        in between.
    setup_time, solve_time : float
        Seconds.
    history : History or None
        The iterations, if ``history=True``.
    group_multipliers : dict or None
        With groups, the multiplier of each group's sum. If all groups also share a total, it is
        what the group's limits add to `sum_multiplier`: 0 if the sum is between its limits,
        negative at the upper limit, positive at the lower limit.
    row_multipliers : dict or None
        With rows, the multiplier of each row, by its label or number: the derivative of the optimal
        value with respect to the row's limit. It is at least 0 at the lower limit, at most 0 at the
        upper limit, and 0 in between.
    cap_multipliers : dict or None
        With caps, the derivative of the optimal value with respect to the limit of each, by its
        name: at most 0 for `turnover`, `tracking_error` and `max_risk`, at least 0 for
        `min_return`.
    gap, bound : float or None
        With `max_names`, `min_holding` or `fixed_cost`: a proven lower bound of the optimal value,
        less a bound on rounding errors, and its distance from `fun`, relative to `fun` (or to 1e-6
        of the objective's terms, if that is larger). The status is `optimal` only if the gap is
        within the one that was asked for.
    nodes : int or None
        The number of nodes of that search.
    direction : ndarray or None
        If the status is `unbounded`: a direction in which every point is feasible and along which
        the objective falls without bound from x.
    variables : Axis
        The labels of the variables.
    pull, bounds, l1_terms
        The data from which `bound_multipliers` is computed, besides the gradient: the multiplier of
        the sum times the coefficient of each variable, the bounds, and the L1 terms.

    Examples
    --------
    >>> import pandas as pd, pairstep
    >>> risk = pd.DataFrame([[0.04, 0.0], [0.0, 0.04]], index=["a", "b"], columns=["a", "b"])
    >>> result = pairstep.solve_qp(risk, upper=pd.Series({"b": 1.0, "a": 0.25}))
    >>> result.weights
    a    0.25
    b    0.75
    Name: weight, dtype: float64
    >>> result.success, result.bound_multipliers
    (True, array([-0.02,  0.  ]))
    """

    x: Array
    fun: float
    status: Status
    n_iter: int
    kkt_violation: float
    suboptimality_bound: float
    sum_multiplier: float | Array
    setup_time: float
    solve_time: float
    history: History | None = None
    group_multipliers: dict[Hashable, float] | None = None
    gradient: Array = field(kw_only=True)
    pull: float | Array = field(kw_only=True)
    bounds: tuple[float | Array, float | Array] = field(kw_only=True)
    tolerance: float = field(kw_only=True)
    remark: str = ""
    l1_terms: tuple[Array, Array] | None = None
    variables: Axis = field(default_factory=Axis)
    direction: Array | None = None
    row_multipliers: dict[Hashable, float] | None = None
    cap_multipliers: dict[str, float] | None = None
    gap: float | None = None
    bound: float | None = None
    nodes: int | None = None
    # The problem, for `vjp` and `jvp`. It refers to the arrays that were given, so they stay in
    # memory as long as the result does. It is not pickled.
    _problem = None  # type: Any # not annotated, so that it is no field

    @property
    def success(self) -> bool:
        """Whether the status is `optimal`."""
        return self.status == Status.OPTIMAL

    @kept
    def message(self) -> str:
        """The status as a sentence, with its numbers."""
        sentence = MESSAGES[self.status].format(
            violation=self.kkt_violation, tolerance=self.tolerance, n_iter=self.n_iter
        )
        return f"{sentence}: {self.remark}" if self.remark else sentence

    @property
    def nit(self) -> int:
        """Number of iterations, under the name that SciPy uses."""
        return self.n_iter

    @property
    def weights(self) -> Any:
        """The solution with its labels."""
        return labeled(self.x, self.variables)

    @kept
    def bound_multipliers(self) -> Array:
        """The multipliers of the bounds."""
        slope = self.gradient - self.pull
        l1, center = (0.0, 0.0) if self.l1_terms is None else self.l1_terms
        right = slope + np.where(self.x < center, -l1, l1)
        left = slope + np.where(self.x > center, l1, -l1)
        lower, upper = self.bounds
        at_lower = np.where(self.x == lower, np.maximum(right, 0.0), 0.0)
        return at_lower + np.where(self.x == upper, np.minimum(left, 0.0), 0.0)

    def vjp(self, v: ArrayLike, *, derivative: Kind = "one-sided") -> Derivatives:
        """Return the derivatives of a loss with respect to the arguments of the problem.

        Parameters
        ----------
        v : array_like of shape (n,)
            The derivative of the loss with respect to x.
        derivative : {"one-sided", "smoothed"}
            What to do at a bound. "one-sided": variables at a bound move with it and do not leave
            it. That is the derivative, unless the multiplier of the bound is 0; then it is the
            derivative in the directions that keep the variable at its bound. "smoothed": bounds act
            as logarithmic barriers do, over a distance of a thousandth of the largest variable, so
            that the derivatives change continuously where a variable reaches or leaves its bound.

        Returns
        -------
        Derivatives
            A mapping from the name of an argument to the derivative with respect to it, such as
            ``"c"``, ``"Q"``, ``"total"``, ``"lower"``, ``"upper"``, ``"l1"``, ``"center"``; ``"F"``
            and ``"D"`` of a factor model; ``"A"``, ``"b"`` and ``"ridge"`` of least squares;
            ``"rows_lower"`` and ``"rows_upper"`` with rows. For
            other objectives, ``"c"`` is a linear term that could be added. The derivative with
            respect to a range is that of the end that is reached. Each is computed when it is read.
            Its attribute `degenerate` says whether the derivative is only one-sided.

        Examples
        --------
        >>> import numpy as np, pairstep
        >>> result = pairstep.solve_qp(np.diag([1.0, 1.0, 1.0]), c=[0.0, 0.0, 5.0])
        >>> result.x
        array([0.5, 0.5, 0. ])
        >>> derivatives = result.vjp([1.0, 0.0, 0.0])  # of x[0]
        >>> derivatives["c"].round(3), round(derivatives["total"], 3)
        (array([-0.5,  0.5, -0. ]), 0.5)
        """
        from .solve.result_derivatives import vjp

        return vjp(self, v, derivative)

    def jvp(self, *, derivative: Kind = "one-sided", **changes: ArrayLike) -> Array:
        """Return the derivative of x along changes of the arguments.

        Parameters
        ----------
        derivative : {"one-sided", "smoothed"}
            As in `vjp`.
        **changes
            Changes of arguments, by their names in `vjp`.

        Returns
        -------
        ndarray of shape (n,)
            The derivative of ``x(arguments + t * changes)`` with respect to t, at t = 0.

        Examples
        --------
        >>> import numpy as np, pairstep
        >>> pairstep.solve_qp(np.diag([1.0, 3.0])).jvp(total=1.0)
        array([0.75, 0.25])
        """
        from .solve.result_derivatives import jvp

        return jvp(self, changes, derivative)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_problem"}

    def plot(self) -> list[Any]:
        """Plot the largest weights and, if there is a history, the convergence.

        Returns
        -------
        list of matplotlib.axes.Axes
            The plots. This needs matplotlib: ``pip install 'pairstep[plots]'``.
        """
        return show.plot(self)

    def __repr__(self) -> str:
        return show.table(f"Result: {self.status}", show.rows_of(self))

    def _repr_html_(self) -> str:
        return show.card(self)


@dataclass(frozen=True, eq=False, repr=False)
class BatchResult:
    """The results of a batch; entry or row k belongs to problem (or right-hand side) k.

    Attributes
    ----------
    x : ndarray of shape (count, n)
        One solution per row; NaN if the problem was invalid. A list of arrays if the problems have
        different numbers of variables.
    weights : pandas.DataFrame, polars.DataFrame or ndarray
        The solutions with labels, if A or the bounds had labels: one row per right-hand side, one
        column per variable.
    fun, kkt_violation, suboptimality_bound : ndarray of shape (count,)
        As in `Result`, recomputed from the problem.
    status : ndarray of str
        The `Status` of each solve.
    success : ndarray of bool
        Whether the status of each is `optimal`.
    n_iter, nit : ndarray of int
        Number of iterations of each.
    setup_time, solve_time : float
        Seconds, for all solves together.
    variables, items : Axis
        The labels of the variables, and of the problems.
    errors : dict
        What is wrong with each problem whose status is "invalid", by its number (`solve_qps`).
    gradient : ndarray of shape (count, n)
        The gradients at x (`solve_qps`).
    sum_multiplier, tolerance : ndarray of shape (count,)
        As in `Result` (`solve_qps`). Multipliers have the shape (count, n_groups) if each group has
        its own total.
    """

    x: Any
    fun: Array
    status: NDArray[np.str_]
    n_iter: NDArray[np.int64]
    kkt_violation: Array
    suboptimality_bound: Array
    setup_time: float
    solve_time: float
    variables: Axis = field(default_factory=Axis)
    items: Axis = field(default_factory=Axis)
    errors: dict[int, str] = field(default_factory=dict)
    gradient: Any = None
    sum_multiplier: Any = None
    tolerance: Any = None
    _problems = None  # type: Any # as `Result._problem`
    _results = None  # type: Any # the results of problems that were solved one by one, by number

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether the status of each is `optimal`."""
        return np.asarray(self.status == Status.OPTIMAL)

    @property
    def nit(self) -> NDArray[np.int64]:
        """Number of iterations of each, under the name that SciPy uses."""
        return self.n_iter

    @property
    def weights(self) -> Any:
        """The solutions with their labels."""
        return labeled(self.x, self.variables, self.items)

    def vjp(self, v: Any, *, derivative: Kind = "one-sided") -> Derivatives:
        """Return the derivatives of a loss with respect to the arguments of the batch.

        Parameters
        ----------
        v : array_like of shape (count, n), or list
            The derivative of the loss with respect to x.
        derivative : {"one-sided", "smoothed"}
            As in `Result.vjp`.

        Returns
        -------
        Derivatives
            A mapping, as in `Result.vjp`. A derivative has an item per problem if the argument has;
            if all problems share the argument, it is the sum over the problems.

        Examples
        --------
        >>> import numpy as np, pairstep
        >>> batch = pairstep.solve_qps(np.eye(2), [[0.0, 0.0], [0.0, 0.5]])
        >>> batch.vjp([[1.0, 0.0], [1.0, 0.0]])["c"]
        array([[-0.5,  0.5],
               [-0.5,  0.5]])
        """
        from .solve.result_derivatives import batch_vjp

        return batch_vjp(self, v, derivative)

    def jvp(self, *, derivative: Kind = "one-sided", **changes: Any) -> Any:
        """Return the derivatives of the solutions along changes of the arguments.

        Parameters
        ----------
        derivative : {"one-sided", "smoothed"}
            As in `Result.vjp`.
        **changes
            Changes of the arguments, with an item per problem if the argument has.

        Returns
        -------
        ndarray of shape (count, n), or list
            The derivative of each solution.
        """
        from .solve.result_derivatives import batch_jvp

        return batch_jvp(self, changes, derivative)

    def __getstate__(self) -> dict[str, Any]:
        unpickled = ("_problems", "_results")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def __repr__(self) -> str:
        count = len(self.x)
        sizes = sorted({len(x) for x in self.x}) if isinstance(self.x, list) else self.x.shape[1:]
        n = " to ".join(str(size) for size in (sizes if len(sizes) < 2 else (sizes[0], sizes[-1])))
        title = f"BatchResult: {count} problems of {n} variables"
        return show.table(title, show.rows_of_batch(self))
