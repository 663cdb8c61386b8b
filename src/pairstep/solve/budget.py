"""Budget problems in one call: quadratic programmes and least squares under a sum and bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import log, threads
from .._validation import array
from ..constraints import GroupLabels, GroupTotal, SumBox, Total
from ..labels import Axis, aligned
from ..objectives import FactorModel, Kinked, LeastSquares, Objective, Quadratic, Slopes
from ..result import BatchResult, Result
from .batch import is_batch, solve_batch
from .minimize import minimize
from .small import solve_small
from .task import Callback


def solve_qp(
    Q: Any,
    c: ArrayLike | None = None,
    *,
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    l1: Slopes | None = None,
    center: ArrayLike = 0.0,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Result:
    """Minimise ``x'Qx / 2 + c'x + sum_i l1_i |x_i - center_i|`` under sums and bounds.

    Parameters
    ----------
    Q : array_like, DataFrame, scipy.sparse array, or a pair (F, D)
        The matrix; or its factors, for ``Q = F'F + diag(D)`` with F of shape (m, n) and D a
        number or a vector (0 for ``Q = F'F``), which is then never formed.
    c : array_like or Series of shape (n,), optional
        The linear term. It and all that follow are aligned by their labels where they have some;
        see `pairstep.labels`.
    total : float, pair (low, high), array_like or None
        What the sum of all must be, or the range it must lie in; an array: of each group.
    lower, upper : float or array_like
        Bounds; no upper bounds by default.
    weights, groups, group_total
        As in `SumBox`.
    l1 : float or array_like, or a pair of them, optional
        Weights of the kinks: trading costs, turnover, sparsity; a tuple ``(down, up)`` where
        selling and buying differ.
    center : float or array_like
        Where the kinks are, for instance the present holdings.
    x0 : array_like, optional
        A feasible point to start from, for instance the solution of a problem nearby.
    tol, max_iter, time_limit, callback, verbose
        As in `minimize`.

    Returns
    -------
    Result
        Bounds hold exactly, and the sum within one ulp. `weights` has the labels.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk = np.array([[0.04, 0.01], [0.01, 0.09]])
    >>> result = pairstep.solve_qp(risk, c=[-0.02, -0.03])
    >>> str(result.status), result.x.round(6)
    ('optimal', array([0.636364, 0.363636]))

    At most half of it in the first sector:

    >>> sectors = {"groups": ["north", "south"], "group_total": {"north": (0.0, 0.5)}}
    >>> result = pairstep.solve_qp(risk, c=[-0.02, -0.03], **sectors)
    >>> result.x, round(result.group_multiplier["north"], 6)
    (array([0.5, 0.5]), -0.015)

    With labels, in whatever order:

    >>> import pandas as pd
    >>> risk = pd.DataFrame(risk, index=["bonds", "stocks"], columns=["bonds", "stocks"])
    >>> profit = pd.Series({"stocks": 0.03, "bonds": 0.02})
    >>> pairstep.solve_qp(risk, -profit).weights.round(6)
    bonds     0.636364
    stocks    0.363636
    Name: weight, dtype: float64
    """
    one_sum = weights is None and groups is None and group_total is None
    unlimited = max_iter is None and time_limit is None and callback is None
    if one_sum and unlimited and l1 is None and x0 is None and not log.heard(verbose):
        result = solve_small(Q, c, total, lower, upper, tol)
        if result:
            return result
        if result is False:  # not to be tried again: with a limit, `minimize` does not
            time_limit = math.inf
    objective: Objective
    if isinstance(Q, tuple):
        if len(Q) != 2:
            raise ValueError(f"Q as factors must be a pair (F, D), got {len(Q)} items")
        objective = FactorModel(Q[0], Q[1], c)
    else:
        objective = Quadratic(Q, c)
    if l1 is not None:
        objective = Kinked(objective, l1, center)
    constraint = _budget(
        Axis.of(objective), total, group_total,
        lower=lower, upper=upper, weights=weights, groups=groups,
    )  # fmt: skip
    return minimize(
        objective, constraint, x0=x0, tol=tol, max_iter=max_iter, time_limit=time_limit,
        callback=callback, verbose=verbose,
    )  # fmt: skip


def simplex_lstsq(
    A: Any,
    b: ArrayLike,
    *,
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    ridge: float = 0.0,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Result | BatchResult:
    """Minimise ``|Ax - b|^2 / 2 + ridge |x|^2 / 2`` under sums and bounds.

    Parameters
    ----------
    A : array_like, DataFrame or scipy.sparse array of shape (m, n)
        One column per variable.
    b : array_like, Series or DataFrame of shape (m,) or (m, count)
        The right-hand side, or a matrix whose columns are many: those are solved as a batch in
        native threads, with one Gram matrix (n x n, so n up to a few thousand). Labels are
        aligned with those of A's rows; see `pairstep.labels`.
    total, lower, upper
        The sum (or its range) and the bounds; the probability simplex by default.
    groups, group_total
        As in `SumBox`.
    ridge : float
        Weight of the squared norm of x.
    x0 : array_like, optional
        A feasible start; for one right-hand side only, a batch has its own.
    tol, max_iter, time_limit, verbose
        As in `minimize`.
    n_jobs : int, optional
        Threads for a batch. By default all that are available: one inside a worker of joblib, and
        what ``joblib.parallel_config(n_jobs=...)`` says inside it. Never more than the process's
        affinity, its cgroup, OMP_NUM_THREADS and ``threadpoolctl.threadpool_limits`` allow.

    Returns
    -------
    Result or BatchResult
        Bounds hold exactly, and the sum within one ulp. A column of b that is not finite, or
        longer than 1e50, fails alone, with the status "invalid".

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> pairstep.simplex_lstsq([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.5]).x.round(6)
    array([0.7, 0.3])
    >>> batch = pairstep.simplex_lstsq(np.eye(2), [[0.9, 0.0], [0.5, 2.0]])
    >>> batch.x.round(6)
    array([[0.7, 0. ],
           [0.3, 1. ]])
    """
    given = {"lower": lower, "upper": upper, "groups": groups}
    if is_batch(b):
        if x0 is not None:
            raise ValueError("x0 is for one right-hand side; a batch finds its own starts")
        rows, variables, columns = Axis(), Axis(), Axis()
        A = aligned("A", A, rows, variables)
        right = array("b", aligned("b", b, rows, columns), 2)
        if np.ndim(A) != 2:
            raise ValueError(f"A must have 2 dimensions, got {np.ndim(A)}")
        if np.shape(A)[0] != len(right):
            raise ValueError(f"b must have {np.shape(A)[0]} rows, as A has, got {len(right)}")
        constraint = _budget(variables, total, group_total, **given)
        with threads.at_most(n_jobs) as workers:  # products of matrices, too
            batch = solve_batch(A, right, constraint, ridge, tol, max_iter, time_limit, workers)
        if log.heard(verbose):
            solved, seconds = f"{batch.success.sum()} of {right.shape[1]}", batch.solve_time
            log.tell(f"{solved} right-hand sides optimal after {seconds:.3g} s", verbose)
        return replace(batch, variables=variables, columns=columns)
    objective = LeastSquares(A, b, ridge)
    constraint = _budget(Axis.of(objective), total, group_total, **given)
    return minimize(
        objective, constraint, x0=x0, tol=tol, max_iter=max_iter, time_limit=time_limit,
        verbose=verbose,
    )  # fmt: skip


def _budget(variables: Axis, total: Total, group_total: GroupTotal | None, **given: Any) -> SumBox:
    """The constraint on these variables: what has no labels is in their order."""
    own = {name: aligned(name, value, variables) for name, value in given.items()}
    if own["upper"] is None:
        own["upper"] = np.inf
    constraint = SumBox(total, group_total=group_total, **own)
    constraint.variables.adopt(variables)
    return constraint
