"""Many different objectives in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import threads
from ..constraints import SumBox
from ..labels import Axis
from ..objectives import Objective
from ..result import BatchResult, Result
from .collected import Collected, unknown_points
from .derivatives import Derivatives
from .minimize import SIMPLEX, minimize, not_negative
from .near_solution import near_solution


def minimize_batch(
    objectives: Sequence[Objective],
    constraint: SumBox | Sequence[SumBox] | None = None,
    *,
    x0: Sequence[ArrayLike] | Literal["previous"] | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> BatchResult:
    """Minimize many objectives, each as `minimize` does.

    The problems are solved one after the other, because a small solve spends most of its time in
    Python; large ones use all threads. A problem that is invalid has the status "invalid" and an
    entry in `errors`; the others are solved.

    Parameters
    ----------
    objectives : sequence of objectives
        The functions to minimize. They may be of different types and sizes.
    constraint : SumBox or Simplex, or a sequence of them, optional
        The sum and the bounds: shared, or one for each objective. The probability simplex by
        default.
    x0 : sequence of array_like, or "previous", optional
        Feasible starting points. With "previous", each problem starts near the previous solution,
        as in `path`.
    tol, max_iter
        As in `minimize`, for each problem.
    time_limit : float, optional
        Maximum number of seconds for all problems.
    n_jobs : int, optional
        Number of threads, as in `simplex_lstsq`.
    verbose : bool
        Whether to print how many problems are solved, every second and at the end.

    Returns
    -------
    BatchResult
        Row k of `x` belongs to objective k. If the objectives have different numbers of variables,
        `x` is a list.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> odds = [np.diag([2.0, 3.0]), np.diag([2.0, 2.0])]
    >>> pairstep.minimize_batch([pairstep.LogGrowth(table) for table in odds]).x
    array([[0.41666667, 0.58333333],
           [0.5       , 0.5       ]])
    """
    began = time.perf_counter()
    not_negative("tol", tol)
    deadline = None if time_limit is None else began + not_negative("time_limit", time_limit)
    problems = Objectives.of(objectives, constraint, {"tol": tol, "max_iter": max_iter})
    count = len(problems.objectives)
    if isinstance(x0, str):
        if x0 != "previous":
            raise ValueError(f'x0 must be "previous" or one point per objective, got {x0!r}')
    elif x0 is not None and len(x0) != count:
        raise ValueError(f"x0 must have {count} points, one per objective, got {len(x0)}")
    collected = Collected(count, problems.unknown_points, (Axis(), Axis()), deadline, verbose)

    def start(k: int) -> Any:
        if x0 is None or not isinstance(x0, str):
            return None if x0 is None else x0[k]
        before = collected.results.get(k - 1)
        if before is None or len(before.x) != problems.size(k):
            return None
        here = problems.constraint(k).along(Axis.of(problems.objectives[k]))
        return near_solution(before, here, Axis.of(problems.objectives[k], here))

    with threads.at_most(n_jobs):
        for k in range(count):
            if collected.seconds_left <= 0:
                break

            def single_solve(time_limit: float | None, k: int = k) -> Result:
                return problems.solve(k, x0=start(k), time_limit=time_limit)

            collected.solve(k, single_solve)
    collected.labels = Axis(), _shared_labels(list(collected.results.values()))
    return collected.batch_result(began, problems)


def _shared_labels(results: list[Result]) -> Axis:
    """Return the labels of the variables if all results have the same."""
    every = [result.variables for result in results]
    first = every[0] if every else Axis()
    same = all(
        axis.labels is not None and np.array_equal(axis.labels, first.labels) for axis in every
    )
    return first if same else Axis()


@dataclass(frozen=True)
class Objectives:
    """The problems of a batch of objectives."""

    objectives: list[Any]
    constraints: SumBox | list[SumBox]
    options: dict[str, Any]

    are_plain = False  # see `Problems`

    @classmethod
    def of(cls, objectives: Any, constraint: Any, options: dict[str, Any]) -> Objectives:
        """Check the numbers of objectives and constraints."""
        listed = list(objectives)
        if not listed:
            raise ValueError("objectives is empty")
        if constraint is None or isinstance(constraint, SumBox):
            return cls(listed, SIMPLEX if constraint is None else constraint, options)
        constraints = list(constraint)
        if len(constraints) != len(listed):
            raise ValueError(
                f"there are {len(listed)} objectives and {len(constraints)} constraints: pass one "
                f"constraint, or one for each objective"
            )
        return cls(listed, constraints, options)

    def constraint(self, k: int) -> SumBox:
        """Return the constraint of objective k."""
        return self.constraints[k] if isinstance(self.constraints, list) else self.constraints

    def solve(self, k: int, **options: Any) -> Result:
        """Minimize objective k."""
        return minimize(self.objectives[k], self.constraint(k), **self.options, **options)

    def is_per_problem(self, name: str) -> bool:
        """Return whether an argument has an item per problem: those of the objectives have."""
        of_constraint = name in ("total", "lower", "upper", "group_total")
        return isinstance(self.constraints, list) or not of_constraint

    def derivatives(self, found: Derivatives, x: Any) -> Derivatives:
        """Return the derivatives as they are."""
        return found

    def changes(self, given: dict[str, Any], x: Any) -> dict[str, Any]:
        """Return the changes as they are."""
        return given

    def unknown_points(self) -> Any:
        """Return NaN for each variable."""
        return unknown_points([self.size(k) for k in range(len(self.objectives))])

    def size(self, k: int) -> int:
        """Return the number of variables of problem k, 0 if it is not known."""
        return int(getattr(self.objectives[k], "n", None) or 0)
