"""Quadratic programs and least squares under a sum and bounds, in one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from .. import log, threads
from .._validation import array, unexpected_keywords
from ..constraints import GroupLabels, GroupLimit, GroupTotal, SumBox, Total
from ..labels import Axis, aligned
from ..objectives import FactorModel, L1Penalized, LeastSquares, Objective, Quadratic, Slopes
from ..result import BatchResult, Result
from .batch import is_batch, solve_batch
from .caps import solve_with_caps
from .cardinality import Names, minimize_with_names
from .constraint_keywords import constraint_from
from .minimize import Options, minimize, solve_general
from .small import Declined, solve_small
from .task import Callback


def solve_qp(
    Q: Any,
    c: ArrayLike | None = None,
    *,
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    group_lower: GroupLimit | None = None,
    group_upper: GroupLimit | None = None,
    constraint: SumBox | None = None,
    rows: Any = None,
    rows_lower: ArrayLike | None = None,
    rows_upper: ArrayLike | None = None,
    turnover: tuple[ArrayLike, float] | None = None,
    tracking_error: tuple[ArrayLike, float] | None = None,
    max_risk: float | None = None,
    min_return: tuple[ArrayLike, float] | None = None,
    covariance: Any = None,
    l1: Slopes | None = None,
    center: ArrayLike = 0.0,
    max_names: int | None = None,
    min_holding: ArrayLike | None = None,
    fixed_cost: ArrayLike | None = None,
    gap: float = 1e-6,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    **unexpected: Never,
) -> Result:
    """Minimize ``x'Qx / 2 + c'x + sum_i l1_i |x_i - center_i|`` under sums and bounds.

    Parameters
    ----------
    Q : array_like, DataFrame, scipy.sparse array, or a pair (F, D)
        The matrix. A pair stands for ``Q = F'F + diag(D)`` with F of shape (m, n) and D a number or
        a vector (0 for ``Q = F'F``); Q is then never formed. None if the objective is linear: then
        give `covariance`, and `max_risk` or `tracking_error`.
    c : array_like or Series of shape (n,), optional
        The linear term. This and the following arguments are aligned by their labels if they have
        any; see `pairstep.labels`.
    total, lower, upper, coefficients, groups, group_total, group_lower, group_upper
        The sum, the bounds and the limits of groups, as in `SumBox`; the probability simplex by
        default. ``coefficients`` are those of the sum, not current holdings, which are `x0` or
        `center`. In `group_total` a pair such as ``{"tech": (0.0, 0.4)}`` is a range and a number
        such as ``{"tech": 0.4}`` is an equality.
    constraint : SumBox, optional
        The constraint as an object, in place of the arguments above.
    rows : array_like, DataFrame or scipy.sparse array of shape (k, n), optional
        Further linear constraints ``rows_lower <= rows @ x <= rows_upper``: factor exposures, beta,
        groups that overlap. At most a few hundred rows.
    rows_lower, rows_upper : float, array_like or Series of shape (k,), optional
        The limits of the rows. Equal limits are equations; an infinite limit is none.
    turnover : pair (x_before, limit), optional
        A cap on the two-way turnover, purchases plus sales: ``sum_i |x_i - x_before_i| <= limit``.
        For a one-way limit, give twice its value.
    tracking_error : pair (benchmark, limit), optional
        A cap ``sqrt((x - benchmark)'Q(x - benchmark)) <= limit``.
    max_risk : float, optional
        A cap ``sqrt(x'Qx) <= max_risk``.
    min_return : pair (mean, limit), optional
        The constraint ``mean'x >= limit``. The multipliers of these four are in the result's
        `cap_multipliers`.
    covariance : array_like, DataFrame, scipy.sparse array, or a pair (F, D), optional
        The matrix of `max_risk` and `tracking_error` if Q is None: with ``c = -mean`` the solution
        has the largest return within the caps.
    l1 : float or array_like, or a pair of them, optional
        Weights of the L1 terms: trading costs, turnover, sparsity. A tuple ``(down, up)`` has
        different costs below and above the center.
    center : float or array_like
        Centers of the L1 terms, for instance the current holdings.
    max_names : int, optional
        The largest number of variables that are not 0. A variable is left out only if its bounds
        contain 0. One whose lower bound is positive is always held, and counts.
    min_holding : float, array_like or Series, optional
        Every variable is 0 or at least this large. If its lower bound is negative, it is 0, at
        least `min_holding`, or at most ``-min_holding``.
    fixed_cost : float, array_like or Series, optional
        The cost of every variable that is not 0. It is part of `fun`.
    gap : float
        With `max_names`, `min_holding` or `fixed_cost`: the relative gap between the objective and
        its lower bound that is proven by branch and bound. The result has the attributes `gap`,
        `bound` and `nodes`; its multipliers are those of the problem with the same names.
        `time_limit` and `max_iter` (a number of nodes) end the search with the best point so far
        and its proven gap. A callback is called about 20 times a second and at the end, with the
        number of nodes, the best value and point, and the gap as `violation`. The objective must be
        convex.
    x0 : array_like, optional
        A feasible starting point, for instance the solution of a similar problem.
    tol, max_iter, time_limit, callback, verbose
        As in `minimize`.
    **unexpected
        Other keywords raise TypeError.

    Returns
    -------
    Result
        The bounds hold exactly, and the sum holds within one ulp. `weights` has the labels.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk = np.array([[0.04, 0.01], [0.01, 0.09]])
    >>> result = pairstep.solve_qp(risk, c=[-0.02, -0.03])
    >>> str(result.status), result.x.round(6)
    ('optimal', array([0.636364, 0.363636]))

    At most half in the first sector:

    >>> sectors = {"groups": ["north", "south"], "group_upper": {"north": 0.5}}
    >>> result = pairstep.solve_qp(risk, c=[-0.02, -0.03], **sectors)
    >>> result.x, round(result.group_multipliers["north"], 6)
    (array([0.5, 0.5]), -0.015)

    With labels, in any order:

    >>> import pandas as pd
    >>> risk = pd.DataFrame(risk, index=["bonds", "stocks"], columns=["bonds", "stocks"])
    >>> profit = pd.Series({"stocks": 0.03, "bonds": 0.02})
    >>> pairstep.solve_qp(risk, -profit).weights.round(6)
    bonds     0.636364
    stocks    0.363636
    Name: weight, dtype: float64

    At most two names, each with at least a tenth:

    >>> result = pairstep.solve_qp(np.diag([1.0, 2.0, 3.0]), max_names=2, min_holding=0.1)
    >>> result.x.round(6), result.gap <= 1e-6
    (array([0.666667, 0.333333, 0.      ]), True)
    """
    if unexpected:
        raise unexpected_keywords("solve_qp", unexpected)
    plain = (
        constraint is None and coefficients is None and groups is None and group_total is None
        and group_lower is None and group_upper is None and l1 is None and x0 is None
        and max_iter is None and time_limit is None and callback is None and rows is None
        and rows_lower is None and rows_upper is None and turnover is None
        and tracking_error is None and max_risk is None and min_return is None
        and max_names is None and min_holding is None and fixed_cost is None
        and not log.is_enabled(verbose)
    )  # fmt: skip
    small: Result | Declined | None = None
    if plain:
        small = solve_small(Q, c, total, lower, upper, tol)
        if isinstance(small, Result):
            return small
    given = {
        "total": total, "lower": lower, "upper": upper, "coefficients": coefficients,
        "groups": groups, "group_total": group_total, "group_lower": group_lower,
        "group_upper": group_upper, "rows": rows, "rows_lower": rows_lower,
        "rows_upper": rows_upper,
    }  # fmt: skip
    options: dict[str, Any] = {
        "x0": x0, "tol": tol, "max_iter": max_iter, "time_limit": time_limit,
        "callback": callback, "verbose": verbose,
    }  # fmt: skip
    caps = {
        "turnover": turnover, "tracking_error": tracking_error, "max_risk": max_risk,
        "min_return": min_return,
    }  # fmt: skip
    names = Names(max_names, min_holding, fixed_cost, gap)
    for name, cap in caps.items():
        if names.are_given and cap is not None:
            raise ValueError(
                f"{name} cannot be combined with max_names, min_holding or fixed_cost; a limit on "
                "the return is also a row: rows=mean, rows_lower=limit"
            )
    if any(cap is not None for cap in caps.values()):
        return solve_with_caps(
            Q, c, covariance, l1, center,
            lambda variables: constraint_from(variables, constraint, **given),
            caps, options,
        )  # fmt: skip
    if Q is None or covariance is not None:
        raise ValueError("covariance needs max_risk or tracking_error; give Q for other problems")
    objective: Objective
    if isinstance(Q, tuple):
        if len(Q) != 2:
            raise ValueError(f"Q as factors must be a pair (F, D), got {len(Q)} items")
        objective = FactorModel(Q[0], Q[1], c)
    else:
        objective = Quadratic(Q, c)
    if l1 is not None:
        objective = L1Penalized(objective, l1, center)
    constraint = constraint_from(Axis.of(objective), constraint, **given)
    if names.are_given:
        return minimize_with_names(objective, constraint, names, Options(**options))
    if small is Declined.NOT_SIMPLE:  # `minimize` would only try the same again
        return solve_general(objective, constraint, Options(tol=tol, verbose=verbose))
    return minimize(objective, constraint, **options)


def simplex_lstsq(
    A: Any,
    b: ArrayLike,
    *,
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    group_lower: GroupLimit | None = None,
    group_upper: GroupLimit | None = None,
    constraint: SumBox | None = None,
    rows: Any = None,
    rows_lower: ArrayLike | None = None,
    rows_upper: ArrayLike | None = None,
    ridge: float = 0.0,
    l1: Slopes | None = None,
    center: ArrayLike = 0.0,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    **unexpected: Never,
) -> Result | BatchResult:
    """Minimize ``|Ax - b|^2 / 2 + ridge |x|^2 / 2 + sum_i l1_i |x_i - center_i|``.

    Parameters
    ----------
    A : array_like, DataFrame or scipy.sparse array of shape (m, n), or array_like (count, m, n)
        One column per variable. Matrices that differ from problem to problem are solved as a batch,
        in the form of `solve_qps`.
    b : array_like, Series or DataFrame of shape (m,) or (m, count); (count, m) if A has 3 axes
        The right-hand side, or a matrix with one right-hand side per column. The columns of a
        matrix are solved as a batch in native threads, with one Gram matrix (n x n, so n is limited
        to a few thousand). Labels are aligned with those of A's rows; see `pairstep.labels`.
    total, lower, upper, coefficients, groups, group_total, group_lower, group_upper
        The sum, the bounds and the limits of groups, as in `SumBox`; the probability simplex by
        default. ``coefficients`` are those of the sum, not current holdings, which are `x0` or
        `center`. In `group_total` a pair such as ``{"tech": (0.0, 0.4)}`` is a range and a number
        such as ``{"tech": 0.4}`` is an equality.
    constraint : SumBox, optional
        The constraint as an object, in place of the arguments above.
    rows, rows_lower, rows_upper
        Further linear constraints, as in `solve_qp`; for one right-hand side only.
    ridge : float
        Weight of the squared norm of x.
    l1, center
        Weights and centers of the L1 terms, as in `solve_qp`; for one right-hand side only.
    x0 : array_like, optional
        A feasible starting point; for one right-hand side only.
    tol, max_iter, time_limit, verbose
        As in `minimize`.
    callback : callable, optional
        As in `minimize`; for one right-hand side only.
    n_jobs : int, optional
        Number of threads for a batch. The default is all available threads: one inside a joblib
        worker, otherwise the number set by ``joblib.parallel_config(n_jobs=...)``. It never exceeds
        the limits of the process's CPU affinity, cgroup, OMP_NUM_THREADS and
        ``threadpoolctl.threadpool_limits``.
    **unexpected
        Other keywords raise TypeError.

    Returns
    -------
    Result or BatchResult
        The bounds hold exactly, and the sum holds within one ulp. In a batch, row k of `x` belongs
        to column k of b. A column that is not finite, or whose norm exceeds 1e50, has the
        status "invalid"; the others are solved.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> pairstep.simplex_lstsq([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.5]).x.round(6)
    array([0.7, 0.3])
    >>> batch = pairstep.simplex_lstsq(np.eye(2), [[0.9, 0.0], [0.5, 2.0]])
    >>> batch.x.round(6)
    array([[0.7, 0.3],
           [0. , 1. ]])
    """
    if unexpected:
        raise unexpected_keywords("simplex_lstsq", unexpected)
    given = {
        "total": total, "lower": lower, "upper": upper, "coefficients": coefficients,
        "groups": groups, "group_total": group_total, "group_lower": group_lower,
        "group_upper": group_upper,
    }  # fmt: skip
    if np.ndim(A) == 3:
        from .least_squares_batch import solve_different  # it uses `solve_qp`

        for name, value in (("callback", callback), ("rows", rows)):
            if value is not None:
                raise ValueError(f"{name} needs one problem, but A has {len(A)} matrices")
        return solve_different(
            A, b, ridge, constraint=constraint, **given, l1=l1, center=center, x0=x0, tol=tol,
            max_iter=max_iter, time_limit=time_limit, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
    if not is_batch(b):
        objective: Objective = LeastSquares(A, b, ridge)
        if l1 is not None:
            objective = L1Penalized(objective, l1, center)
        constraint = constraint_from(
            Axis.of(objective), constraint, **given, rows=rows, rows_lower=rows_lower,
            rows_upper=rows_upper,
        )  # fmt: skip
        options: dict[str, Any] = {
            "x0": x0, "tol": tol, "max_iter": max_iter, "time_limit": time_limit,
            "callback": callback, "verbose": verbose,
        }  # fmt: skip
        return minimize(objective, constraint, **options)
    for name, value in (("x0", x0), ("l1", l1), ("callback", callback), ("rows", rows)):
        if value is not None:
            raise ValueError(
                f"{name} needs one right-hand side, but b has {np.shape(b)[1]} columns"
            )
    rows, variables, columns = Axis(), Axis(), Axis()
    A = aligned("A", A, rows, variables)
    right = array("b", aligned("b", b, rows, columns), 2)
    if np.ndim(A) != 2:
        raise ValueError(f"A must have 2 dimensions, got {np.ndim(A)}")
    if np.shape(A)[0] != len(right):
        raise ValueError(f"b must have {np.shape(A)[0]} rows, as A has, got {len(right)}")
    constraint = constraint_from(variables, constraint, **given)
    with threads.at_most(n_jobs) as workers:  # limits the threads of matrix products too
        batch = solve_batch(A, right, constraint, ridge, tol, max_iter, time_limit, workers)
    if log.is_enabled(verbose):
        solved, seconds = f"{batch.success.sum()} of {right.shape[1]}", batch.solve_time
        log.write(f"{solved} right-hand sides optimal after {seconds:.3g} s", verbose)
    return replace(batch, variables=variables, items=columns)
