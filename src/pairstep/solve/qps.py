"""Many different quadratic programs in one call."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core, threads
from .._validation import Array, unexpected_keywords
from ..constraints import GroupLabels, GroupLimit, GroupTotal, SumBox
from ..labels import Axis, aligned
from ..objectives import Slopes
from ..result import BatchResult, Result
from .collected import NUMBERS, Collected, unknown_points
from .derivatives import Derivatives
from .minimize import not_negative
from .near_solution import near_solution
from .qp import solve_qp

# Dimensions of an argument that all problems share. With one more, it has an item per problem.
SHARED_DIMENSIONS = {
    "Q": 2, "F": 2, "D": 1, "c": 1, "total": 0, "lower": 1, "upper": 1, "l1": 1, "center": 1,
    "x0": 1,
}  # fmt: skip
DEFAULTS = {"c": 0.0, "upper": math.inf}
PREVIOUS = "previous"  # value of x0


def solve_qps(
    Q: Any,
    c: Any = None,
    *,
    total: Any = 1.0,
    lower: Any = 0.0,
    upper: Any = None,
    coefficients: ArrayLike | None = None,
    groups: GroupLabels | None = None,
    group_total: GroupTotal | None = None,
    group_lower: GroupLimit | None = None,
    group_upper: GroupLimit | None = None,
    constraint: SumBox | None = None,
    l1: Slopes | None = None,
    center: Any = 0.0,
    x0: Any = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    **unexpected: Never,
) -> BatchResult:
    """Solve many quadratic programs, each as `solve_qp` does, in native threads.

    Every array may have an item per problem, along its first axis, or be shared by all problems.
    A problem gets the same solution, bit for bit, as from `solve_qp`, whatever the other problems
    and the number of threads are. A problem that is invalid or infeasible has the status "invalid"
    and an entry in `errors`; the others are solved.

    Parameters
    ----------
    Q : array_like of shape (count, n, n) or (n, n), a pair (F, D), or a list
        The matrices. In a pair, F has the shape (count, m, n) or (m, n), and D is a number, or has
        the shape (count, n) or (n,). A list has one matrix or pair per problem, which may have
        different numbers of variables.
    c : array_like of shape (count, n) or (n,), or list, optional
        The linear terms. A DataFrame has one row per problem.
    total : float, pair of floats or array_like of shape (count,)
        The sums. A tuple of two numbers is a range, as in `SumBox`. With groups, an array of shape
        (n_groups,) has the totals of the groups, for all problems.
    lower, upper : float or array_like of shape (count, n) or (n,), or list
        The bounds.
    coefficients, groups, group_total, group_lower, group_upper, constraint
        As in `solve_qp`, shared by all problems.
    l1, center : float or array_like of shape (count, n) or (n,), or list, optional
        The L1 terms, as in `solve_qp`. A tuple of two is ``(down, up)``, shared by all problems.
    x0 : array_like of shape (count, n) or (n,), or "previous", optional
        Feasible starting points. With "previous", each problem starts near the previous solution,
        as in `path`, so the problems are solved one after the other. Problems that are small and
        dense are solved directly, which is faster than any start.
    tol, max_iter
        As in `solve_qp`, for each problem.
    time_limit : float, optional
        Maximum number of seconds for all problems. Problems that were not solved by then have the
        status "time_limit" and, if they were not started, NaN as solution.
    n_jobs : int, optional
        Number of threads, as in `simplex_lstsq`.
    verbose : bool
        Whether to print how many problems are solved, every second and at the end.
    **unexpected
        Other keywords raise TypeError.

    Returns
    -------
    BatchResult
        Row k of `x` belongs to problem k. If the problems have different numbers of variables, `x`
        is a list.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risks = np.array([np.diag([1.0, 1.0]), np.diag([1.0, 3.0])])
    >>> pairstep.solve_qps(risks).x
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])

    One matrix, three budgets:

    >>> pairstep.solve_qps(np.eye(2), total=[1.0, 2.0, 3.0]).x.sum(axis=1)
    array([1., 2., 3.])
    """
    if unexpected:
        raise unexpected_keywords("solve_qps", unexpected)
    began = time.perf_counter()
    not_negative("tol", tol)
    deadline = None if time_limit is None else began + not_negative("time_limit", time_limit)
    shared = {
        "coefficients": coefficients, "groups": groups, "group_total": group_total,
        "group_lower": group_lower, "group_upper": group_upper, "constraint": constraint,
        "max_iter": max_iter,
    }  # fmt: skip
    arguments = {
        "Q": Q, "c": c, "total": total, "lower": lower, "upper": upper, "l1": l1,
        "center": center, "x0": x0,
    }  # fmt: skip
    problems = Problems.of(arguments, {k: v for k, v in shared.items() if v is not None}, tol)
    collected = Collected(
        problems.count,
        problems.unknown_points,
        (problems.names, problems.variables),
        deadline,
        verbose,
    )
    with threads.at_most(n_jobs):
        if problems.are_plain:
            _solve_small_ones(problems, collected)
        _solve_others(problems, collected)
    return collected.batch_result(began, problems)


@dataclass(frozen=True)
class Problems:
    """The arguments of a batch, each shared or with an item per problem."""

    count: int
    items: dict[str, Any]  # arguments with an item per problem
    common: dict[str, Any]  # arguments that all problems share
    tol: float
    variables: Axis
    names: Axis  # labels of the problems

    @classmethod
    def of(cls, arguments: dict[str, Any], shared: dict[str, Any], tol: float) -> Problems:
        """Find out which arguments have an item per problem, and how many problems there are."""
        variables, names = Axis(), Axis()
        items: dict[str, Any] = {}
        common = dict(shared)
        # With groups, the total may be an array with an entry per group.
        dimensions = SHARED_DIMENSIONS | {"total": int("groups" in shared)}
        for name, value in arguments.items():
            if name == "Q" and isinstance(value, tuple):
                parts = dict(zip("FD", value, strict=True)) if len(value) == 2 else {"Q": value}
            else:
                parts = {name: value}
            for part, given in parts.items():
                own, per_problem = _own(part, given, dimensions[part], variables, names)
                (items if per_problem else common)[part] = own
        counts = {name: len(value) for name, value in items.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} for {name}" for name, count in counts.items())
            raise ValueError(f"arguments have different numbers of problems: {found}")
        if not items:
            raise ValueError(
                "no argument has an item per problem, such as Q of shape (count, n, n) or c of "
                "shape (count, n): use solve_qp for a single problem"
            )
        return cls(max(counts.values()), items, common, tol, variables, names)

    @property
    def are_plain(self) -> bool:
        """Whether the small-problem solver may apply: matrices, one plain sum, no L1 terms."""
        given = {name for name in (*self.items, *self.common) if self.get(name) is not None}
        total_is_a_range = isinstance(self.common.get("total"), tuple)
        extra = given - {"Q", "c", "total", "lower", "upper", "center", "x0"}
        return not extra and "Q" in given and not total_is_a_range

    def is_per_problem(self, name: str) -> bool:
        """Return whether an argument has an item per problem."""
        return name in self.items

    def derivatives(self, found: Derivatives, x: Any) -> Derivatives:
        """Return derivatives by the names of the arguments that the caller gave."""
        return found

    def changes(self, given: dict[str, Any], x: Any) -> dict[str, Any]:
        """Return changes of the arguments that the caller gave as changes of these."""
        return given

    def get(self, name: str) -> Any:
        """Return an argument, with all its items."""
        return self.items[name] if name in self.items else self.common.get(name)

    def one(self, k: int) -> dict[str, Any]:
        """Return the arguments of `solve_qp` for problem k."""
        given = self.common | {name: values[k] for name, values in self.items.items()}
        if "F" in given:
            given["Q"] = given.pop("F"), given.pop("D")
        return given | {"tol": self.tol}

    def solve(self, k: int, **options: Any) -> Result:
        """Solve problem k."""
        return solve_qp(**(self.one(k) | options))

    def numbers(
        self, name: str, members: NDArray[np.int64], shape: tuple[int, ...]
    ) -> Array | None:
        """Return an argument of these problems as one array, or None if that is not possible.

        Its first axis has an entry for each of the problems, or one for all.
        """
        value = self.get(name)
        if value is None:
            value = DEFAULTS[name]
        per_problem = name in self.items
        if per_problem and not (len(members) == self.count and isinstance(value, np.ndarray)):
            value = [value[k] for k in members]
        try:
            if not per_problem:
                array = np.empty((1, *shape))
                array[0] = value
                return array
            array = np.asarray(value, float)
        except (TypeError, ValueError):
            return None
        return np.ascontiguousarray(array) if array.shape[1:] == shape else None

    def size(self, k: int) -> int:
        """Return the number of variables of problem k."""
        Q = self.one(k)["Q"]
        return int(np.shape(Q[0] if isinstance(Q, tuple) else Q)[-1])

    def unknown_points(self) -> Any:
        """Return NaN for each variable."""
        stacked = self.get("F") if "F" in (*self.items, *self.common) else self.get("Q")
        if isinstance(stacked, list):
            return unknown_points([self.size(k) for k in range(self.count)])
        return np.full((self.count, np.shape(stacked)[-1]), np.nan)

    def by_size(self) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Yield the problems with a dense matrix of float64 numbers, and their size n."""
        Q = self.get("Q")
        if isinstance(Q, np.ndarray):
            if Q.dtype == np.float64 and Q.shape[-1] == Q.shape[-2]:
                yield np.arange(self.count), Q.shape[-1]
            return
        sizes = np.array([len(q) if _is_square(q) else 0 for q in Q])
        for n in np.unique(sizes[sizes > 0]):
            yield np.flatnonzero(sizes == n), int(n)


def _own(part: str, given: Any, shared: int, variables: Axis, names: Axis) -> tuple[Any, bool]:
    """Return an argument without its labels, and whether it has an item per problem.

    `shared` is the number of dimensions if all problems share it.
    """
    if given is None or (isinstance(given, str) and given == PREVIOUS and part == "x0"):
        return given, False
    if isinstance(given, tuple) and part in ("total", "l1"):
        return given, False
    if isinstance(given, list) and _is_ragged(given):
        return given, True
    dimensions = np.ndim(given)
    if dimensions > shared + 1:
        raise ValueError(
            f"{part} must have at most {shared + 1} dimensions, with one item per problem along "
            f"the first, got {dimensions}"
        )
    per_problem = dimensions == shared + 1
    if part in ("Q", "F"):
        axes = (variables, variables) if part == "Q" else (Axis(), variables)
        own = given if per_problem else aligned(part, given, *axes)
    elif part == "total":
        own = aligned(part, given, names) if per_problem else given
    else:
        own = (
            aligned(part, given, names, variables)
            if per_problem
            else aligned(part, given, variables)
        )
    if per_problem and not isinstance(own, np.ndarray):
        own = np.asarray(own)
    return own, per_problem


def _is_ragged(items: list[Any]) -> bool:
    """Return whether a list has items of different shapes, or pairs (F, D)."""
    return any(isinstance(item, tuple) for item in items) or (
        len({np.shape(item) for item in items}) > 1
    )


def _is_square(q: Any) -> bool:
    return (
        isinstance(q, np.ndarray)
        and q.dtype == np.float64
        and q.ndim == 2
        and q.shape[0] == q.shape[1]
    )


def _solve_small_ones(problems: Problems, collected: Collected) -> None:
    """Solve the small dense problems in one native call for each number of variables.

    A solve takes about ``1 + n^2 / 125`` microseconds on a CPU of 2024.
    """
    for members, n in problems.by_size():
        if n > _core.MAX_SMALL_VARIABLES or n < 1:
            continue
        hessian = problems.numbers("Q", members, (n, n))
        linear = problems.numbers("c", members, (n,))
        low, high = (problems.numbers(name, members, (n,)) for name in ("lower", "upper"))
        total = problems.numbers("total", members, ())
        if hessian is None or linear is None or low is None or high is None or total is None:
            continue
        x, gradient, value, n_iter, violation, tolerance, bound, multiplier, state = (
            _core.small_batch(
                hessian, linear, total, low, high, count=len(members), tol=float(problems.tol),
                seconds=collected.seconds_left,
                threads=threads.for_microseconds(len(members) * (1.0 + n**2 / 125)),
            )
        )  # fmt: skip
        numbers = dict(zip(NUMBERS, (value, violation, bound, tolerance, multiplier), strict=True))
        collected.take_batch(members, state == _core.SOLVED, x, gradient, n_iter, numbers)


def _solve_others(problems: Problems, collected: Collected) -> None:
    """Solve the remaining problems one after the other, each with all threads.

    Python threads would not help: a solve of a few hundred variables spends half of its time in
    Python, and larger ones use native threads.
    """
    from_previous = isinstance(problems.get("x0"), str)
    for k in np.flatnonzero(~collected.solved).tolist():
        if collected.seconds_left <= 0:
            return

        def single_solve(time_limit: float | None, k: int = k) -> Result:
            start = {"x0": _near_previous(problems, collected, k)} if from_previous else {}
            return problems.solve(k, time_limit=time_limit, **start)

        collected.solve(k, single_solve)


def _near_previous(problems: Problems, collected: Collected, k: int) -> Array | None:
    """Return a feasible point of problem k near the previous solution."""
    before = collected.results.get(k - 1)
    if before is None or len(before.x) != problems.size(k):
        return None
    given = problems.one(k)
    constraint = given.get("constraint")
    if constraint is None:
        names = ("total", "lower", "upper", "coefficients", "groups", "group_total", "group_lower",
                 "group_upper")  # fmt: skip
        constraint = SumBox(**{name: given[name] for name in names if given.get(name) is not None})
    return near_solution(before, constraint, Axis())
