"""Solutions along a parameter, each started from the previous one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import GroupLabels, GroupLimit, GroupTotal, SumBox, Total
from ..labels import Axis
from ..objectives import Objective
from ..result import Result
from .constraint_keywords import constraint_from, require_defaults
from .minimize import minimize
from .near_solution import near_solution


def path(
    objective: Objective | Callable[[Any], Objective],
    constraint: SumBox | Callable[[Any], SumBox] | None = None,
    *,
    over: Iterable[Any],
    total: Total = 1.0,
    lower: ArrayLike = 0.0,
    upper: ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    group_lower: GroupLimit | None = None,
    group_upper: GroupLimit | None = None,
    rows: Any = None,
    rows_lower: ArrayLike | None = None,
    rows_upper: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Minimize along a parameter: a frontier, a regularization path, a growing total.

    Parameters
    ----------
    objective : objective, or function from a parameter to an objective
        The function to minimize.
    constraint : SumBox or Simplex, or function from a parameter to one, optional
        The sum and the bounds; the probability simplex by default.
    over : iterable
        The parameters. Solves are fastest if solutions change little from one to the next.
    total, lower, upper, coefficients, groups, group_total, group_lower, group_upper, rows, \
rows_lower, rows_upper
        The constraint by keywords, as in `SumBox`, in place of `constraint`.
    x0 : array_like, optional
        A feasible starting point for the first parameter.
    **options
        The other options of `minimize`, used in every solve: `tol`, `max_iter`, `time_limit`,
        `callback`, `verbose`, ...

    Yields
    ------
    Result
        One per parameter. Each is computed when the iterator reaches it, so `over` may be endless.

    Examples
    --------
    A frontier, from the largest return to the least risk:

    >>> import numpy as np, pairstep
    >>> risk, profit = np.diag([0.04, 0.09]), np.array([0.03, 0.05])
    >>> frontier = pairstep.path(
    ...     lambda aversion: pairstep.Quadratic(aversion * risk, -profit),
    ...     over=[0.0, 1.0, 100.0],
    ... )
    >>> for result in frontier:
    ...     print(result.x.round(4))
    [0. 1.]
    [0.5385 0.4615]
    [0.6908 0.3092]

    A growing total:

    >>> spending = pairstep.path(pairstep.Quadratic(risk), pairstep.Simplex, over=[1.0, 1.3])
    >>> [result.x.round(4).tolist() for result in spending]
    [[0.6923, 0.3077], [0.9, 0.4]]
    """
    if not callable(objective) and not callable(constraint):
        raise ValueError(
            "objective or constraint must be a function of the parameter, but neither is callable"
        )
    given = {
        "total": total, "lower": lower, "upper": upper, "coefficients": coefficients,
        "groups": groups, "group_total": group_total, "group_lower": group_lower,
        "group_upper": group_upper, "rows": rows, "rows_lower": rows_lower,
        "rows_upper": rows_upper,
    }  # fmt: skip
    if callable(constraint):
        require_defaults(given)
    else:
        constraint = constraint_from(Axis(), constraint, **given)
    return _results(objective, constraint, over, x0, options)


def _results(
    objective: Objective | Callable[[Any], Objective],
    constraint: SumBox | Callable[[Any], SumBox],
    over: Iterable[Any],
    x: ArrayLike | None,
    options: dict[str, Any],
) -> Iterator[Result]:
    last: tuple[Result, SumBox] | None = None
    for parameter in over:
        here = constraint(parameter) if callable(constraint) else constraint
        function = objective(parameter) if callable(objective) else objective
        variables = Axis.of(function, here)
        here = here.along(variables)
        if last is not None:
            before, there = last
            x = before.weights if here is there else near_solution(before, here, variables)
        result = minimize(function, here, x0=x, **options)
        last = _own(result), here
        yield result


def _own(result: Result) -> Result:
    """Return a copy, because the receiver of a result may change its arrays."""
    lower, upper = result.bounds
    return replace(result, x=result.x.copy(), bounds=(np.copy(lower), np.copy(upper)))
