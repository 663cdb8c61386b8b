"""Solutions along a parameter, each started from the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Array
from ..constraints import SumBox
from ..labels import Axis, aligned, labelled
from ..objectives import Objective
from ..result import Result
from .minimize import minimize


def path(
    objective: Objective | Callable[[Any], Objective],
    constraint: SumBox | Callable[[Any], SumBox],
    *,
    over: Iterable[Any],
    x0: ArrayLike | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Minimise along a parameter: a frontier, a regularisation path, a growing budget.

    Parameters
    ----------
    objective : objective, or function from a parameter to one
        What to minimise.
    constraint : SumBox or Simplex, or function from a parameter to one
        The sum and the bounds.
    over : iterable
        The parameters, in an order in which solutions change little from one to the next.
    x0 : array_like, optional
        A feasible point for the first parameter to start from.
    **options
        As in `minimize`, for every solve.

    Yields
    ------
    Result
        One per parameter, when it is asked for; what lies behind may be forgotten, and `over` may
        be endless.

    Examples
    --------
    A frontier: from caring for the return only to caring for the risk only.

    >>> import numpy as np, pairstep
    >>> risk, profit = np.diag([0.04, 0.09]), np.array([0.03, 0.05])
    >>> frontier = pairstep.path(
    ...     lambda aversion: pairstep.Quadratic(aversion * risk, -profit),
    ...     pairstep.Simplex(),
    ...     over=[0.0, 1.0, 100.0],
    ... )
    >>> for result in frontier:
    ...     print(result.x.round(4))
    [0. 1.]
    [0.5385 0.4615]
    [0.6908 0.3092]

    A budget that grows:

    >>> spending = pairstep.path(pairstep.Quadratic(risk), pairstep.Simplex, over=[1.0, 1.3])
    >>> [result.x.round(4).tolist() for result in spending]
    [[0.6923, 0.3077], [0.9, 0.4]]
    """
    if not callable(objective) and not callable(constraint):
        raise ValueError("neither objective nor constraint is a function of the parameter")
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
            x = before.weights if here is there else _carried(before, here, variables)
        result = minimize(function, here, x0=x, **options)
        yield result
        last = result, here


def _carried(before: Result, after: SumBox, variables: Axis) -> Array:
    """The point of another constraint near x that keeps at their bounds the variables that are.

    They are put well beyond their bounds before the projection, so that a change of the sum is
    borne by the others: solutions are sparse, and the nearest point alone would not be.
    """
    x, (lower, upper) = before.x, before.bounds
    side = (x >= upper).astype(float) - (x <= lower)
    beyond = labelled(x + np.abs(x).max() * side, before.variables)
    return after.project(aligned("x0", beyond, variables))
