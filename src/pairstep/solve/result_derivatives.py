"""`vjp` and `jvp` of results: from a result and its problem to the names of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._validation import Array
from ..constraints import Layout, SumBox
from ..constraints.layout import SUM_ROUNDING
from ..objectives import L1Penalized, Quadratic
from ..objectives.objective import argument_derivatives, gradient_change, second_order
from ..result import BatchResult, Result, Status
from .derivatives import (
    DenseHessians,
    Derivatives,
    Kind,
    KktPoint,
    ModelHessian,
    loss_derivative,
)

ROW_LIMITS = "rows_lower", "rows_upper"


def vjp(result: Result, v: Any, kind: Kind) -> Derivatives:
    """Return the derivatives of a loss whose derivative with respect to x is v."""
    one = _Solved(result, kind)
    adjoint = one.point.adjoint(loss_derivative(v, result.x.shape)[None])
    w = adjoint.w[0]
    entries = argument_derivatives(one.objective, result.x, w) | one.total_entries(adjoint.m[0])
    entries |= {"lower": lambda: adjoint.lower()[0], "upper": lambda: adjoint.upper()[0]}
    if result.l1_terms is not None:
        entries |= {"l1": lambda: -w * one.l1_signs, "center": lambda: adjoint.center()[0]}
    return Derivatives(entries, bool(one.point.degenerate[0]))


def jvp(result: Result, changes: dict[str, Any], kind: Kind) -> Array:
    """Return the derivative of x along changes of the arguments."""
    one = _Solved(result, kind)
    n = len(result.x)
    bounds: dict[str, Any] = {}
    gradient, totals = np.zeros(n), np.zeros(len(one.sums))
    for name, change in changes.items():
        if name in ("lower", "upper") or (name == "center" and result.l1_terms is not None):
            bounds[name] = np.broadcast_to(np.asarray(change, float), n)[None]
        elif name == "l1" and result.l1_terms is not None:
            gradient = gradient + one.l1_signs * np.asarray(change, float)
        elif name in ("total", "group_total", *ROW_LIMITS):
            totals += one.change_of_totals(name, change)
        else:
            gradient = gradient + one.change_of_gradient(name, change)
    return np.asarray(one.point.change(gradient[None], totals[None], **bounds)[0])


class _Solved:
    """The linear system at the solution of one problem."""

    def __init__(self, result: Result, kind: Kind):
        if result._problem is None:
            raise ValueError(
                "this result does not know its problem, as after pickling: solve it again"
            )
        if result.status != Status.OPTIMAL:
            raise ValueError(
                f"derivatives need an optimal solution, and the status is {result.status}"
            )
        self.objective, self.constraint, active, self.n_rows = _problem(result)
        self.x = x = result.x
        n = len(x)
        self.sums = [*_active_sums(self.constraint._layout(n), x), *active]
        rows = np.array([row for _, row in self.sums]).reshape(1, -1, n)
        slope = result.gradient - result.pull
        lower, upper = (np.broadcast_to(np.asarray(b, float), n)[None] for b in result.bounds)
        at_center = None
        if result.l1_terms is not None:
            weight, center = result.l1_terms
            self.l1_signs = np.sign(x - center)
            slope = slope + self.l1_signs * weight
            # A variable that is at a bound and at a center counts as at the bound.
            at_center = (x == center) & (weight > 0) & (x != lower) & (x != upper)
        self.point = KktPoint(
            x[None], slope[None], lower, upper, self._hessian(), rows,
            np.array([result.tolerance]), kind, at_center,
        )  # fmt: skip

    def _hessian(self) -> ModelHessian:
        smooth: Any = self.objective
        if not smooth.is_quadratic:
            smooth = second_order(smooth, self.x, np.arange(len(self.x)))
            if smooth is None:
                raise ValueError("derivatives need a Hessian, and this objective has none")
        return ModelHessian(smooth)

    def change_of_gradient(self, name: str, change: Any) -> Array:
        """Return the change of the gradient at x if an argument of the objective changes."""
        found = gradient_change(self.objective, self.x, name, change)
        if found is None:
            of_objective = argument_derivatives(self.objective, self.x, self.x)
            known = ", ".join([*of_objective, "total", "lower", "upper"])
            raise ValueError(f"{name} is not an argument of this problem; it has {known}")
        return found

    def total_entries(self, m: Array) -> dict[str, Callable[[], Any]]:
        """The derivatives with respect to the totals and to the limits of groups."""
        by_name = dict(zip([name for name, _ in self.sums], m.tolist(), strict=True))
        total = self.constraint.total

        def of_total() -> Any:
            if not isinstance(total, np.ndarray) and not isinstance(total, tuple):
                return by_name.get(("total", 0), 0.0)
            ends = (total,) if isinstance(total, np.ndarray) else total
            count = max(np.size(end) for end in ends)
            values = np.array([by_name.get(("total", k), 0.0) for k in range(count)])
            return values if np.ndim(ends[0]) else float(values[0])

        entries: dict[str, Callable[[], Any]] = {"total": of_total}
        if self.constraint.group_total is not None:
            groups = {name[1]: value for name, value in by_name.items() if name[0] == "group"}
            entries["group_total"] = partial(dict, groups)
        for name in ROW_LIMITS if self.n_rows else ():
            entries[name] = partial(self._row_entries, name, by_name)
        return entries

    def _row_entries(self, name: str, by_name: dict[Any, float]) -> Array:
        return np.array([by_name.get((name, r), 0.0) for r in range(self.n_rows)])

    def change_of_totals(self, name: str, change: Any) -> Array:
        """Return the change of each active sum."""
        if name in ROW_LIMITS:
            moved = np.broadcast_to(np.asarray(change, float), self.n_rows)
            return np.array([moved[k] if of == name else 0.0 for (of, k), _ in self.sums])
        if name == "total":
            given = np.atleast_1d(np.asarray(change, float))
            return np.array([given[k] if of == "total" else 0.0 for (of, k), _ in self.sums])
        return np.array(
            [float(change.get(k, 0.0)) if of == "group" else 0.0 for (of, k), _ in self.sums]
        )


def _problem(result: Result) -> tuple[Any, SumBox, list[tuple[Any, Array]], int]:
    """Return the objective, without L1 terms, the constraint, the active rows, and their number."""
    given: Any = result._problem
    if len(given) == 5:  # the arguments of the small-problem solver
        Q, c, total, lower, upper = given
        return Quadratic(Q, c), SumBox(total, lower, upper), [], 0
    objective, constraint, *rows = given
    while isinstance(objective, L1Penalized):
        objective = objective.objective
    return objective, constraint, *(rows or ([], 0))


def _active_sums(layout: Layout, x: Array) -> list[tuple[Any, Array]]:
    """Return the sums that are fixed at x: ("total", number) or ("group", label), and the row."""
    z = layout.to_layout(x)
    source = np.arange(layout.n) if layout.source is None else layout.source
    weights = np.ones(layout.n) if layout.coefficients is None else layout.coefficients
    size = max(float(np.abs(z).max()), float(np.abs(layout.totals).max()))

    def row(members: slice) -> Array:
        found = np.zeros(len(x))
        own = source[members] >= 0
        found[source[members][own]] = weights[members][own]
        return found

    def is_fixed(members: slice) -> bool:
        """Whether the sum has no slack variable, or a slack variable at the end of its range."""
        slack = np.flatnonzero(source[members] < 0) + (members.start or 0)
        apart = np.minimum(z[slack] - layout.lower[slack], layout.upper[slack] - z[slack])
        return not len(slack) or bool((apart <= SUM_ROUNDING * size).all())

    ends = list(zip(layout.starts[:-1].tolist(), layout.starts[1:].tolist(), strict=True))
    if not layout.nested or layout.low is None or layout.high is None:
        groups = [slice(*pair) for pair in ends]
        return [(("total", k), row(own)) for k, own in enumerate(groups) if is_fixed(own)]
    everything = slice(0, layout.n)
    sums: list[tuple[Any, Array]] = []
    if is_fixed(everything):
        sums.append((("total", 0), row(everything)))
    for k, label in enumerate(layout.labels):
        own = slice(*ends[k])
        found = float(z[own].sum())
        apart = min(found - layout.low[k], layout.high[k] - found)
        if apart <= SUM_ROUNDING * size:
            sums.append((("group", label), row(own)))
    return sums


# ------------------------------------------------------------------------------------------ batches


def batch_vjp(result: BatchResult, v: Any, kind: Kind) -> Derivatives:
    """Return the derivatives of a loss with respect to the arguments of a batch.

    An argument that all problems share has the sum of the derivatives of all problems.
    """
    _require_optimal(result)
    found = (_vjp_stacked if _is_stacked(result) else _vjp_one_by_one)(result, v, kind)
    by_name: Derivatives = result._problems.derivatives(found, result.x)
    return by_name


def _vjp_stacked(result: BatchResult, v: Any, kind: Kind) -> Derivatives:
    problems, point = result._problems, _stacked_point(result, kind)
    adjoint = point.adjoint(loss_derivative(v, point.x.shape))

    def shaped(name: str, values: Array) -> Array:
        return values if problems.is_per_problem(name) else np.asarray(values.sum(axis=0))

    of_shared_matrix = partial(_of_shared_matrix, adjoint.w, point.x)

    entries: dict[str, Callable[[], Any]] = {
        "Q": adjoint.Q if problems.is_per_problem("Q") else of_shared_matrix,
        "c": lambda: shaped("c", -adjoint.w),
        "total": lambda: shaped("total", adjoint.m[:, 0]),
        "lower": lambda: shaped("lower", adjoint.lower()),
        "upper": lambda: shaped("upper", adjoint.upper()),
    }
    return Derivatives(entries, point.degenerate)


def _of_shared_matrix(w: Array, x: Array) -> Array:
    """Return the sum of the derivatives with respect to one matrix that all problems share."""
    outer = -0.5 * (w.T @ x)
    return np.asarray(outer + outer.T)


def batch_jvp(result: BatchResult, changes: dict[str, Any], kind: Kind) -> Any:
    """Return the derivatives of the solutions of a batch along changes of the arguments."""
    _require_optimal(result)
    changes = result._problems.changes(changes, result.x)
    return (_jvp_stacked if _is_stacked(result) else _jvp_one_by_one)(result, changes, kind)


def _jvp_stacked(result: BatchResult, changes: dict[str, Any], kind: Kind) -> Array:
    point = _stacked_point(result, kind)
    count, n = point.x.shape
    gradient, totals = np.zeros((count, n)), np.zeros((count, 1))
    bounds: dict[str, Any] = {}
    for name, change in changes.items():
        given = np.asarray(change, float)
        if name == "c":
            gradient = gradient + given
        elif name == "Q":
            gradient = gradient + np.matmul(given, point.x[:, :, None])[:, :, 0]
        elif name == "total":
            totals = totals + given.reshape(-1, 1)
        elif name in ("lower", "upper"):
            bounds[name] = given
        else:
            raise ValueError(
                f"{name} is not an argument with derivatives: Q, c, total, lower, upper"
            )
    return point.change(gradient, totals, **bounds)


def _require_optimal(result: BatchResult) -> None:
    if result._problems is None:
        raise ValueError("this result does not know its problems, as after pickling: solve again")
    failed = np.flatnonzero(~result.success)
    if len(failed):
        k = int(failed[0])
        raise ValueError(
            f"derivatives need optimal solutions, and the status of problem {k} is "
            f"{result.status[k]}"
        )


def _is_stacked(result: BatchResult) -> bool:
    """Return whether all problems have dense matrices of one size, one sum and no L1 terms."""
    return result._problems.are_plain and isinstance(result.x, np.ndarray)


def _stacked_point(result: BatchResult, kind: Kind) -> KktPoint:
    problems = result._problems
    count, n = result.x.shape
    everything = np.arange(count)
    lower, upper = (problems.numbers(name, everything, (n,)) for name in ("lower", "upper"))
    hessians = DenseHessians(problems.numbers("Q", everything, (n, n)))
    return KktPoint(
        result.x, result.gradient - result.sum_multiplier[:, None], lower, upper, hessians,
        np.ones((1, 1, n)), result.tolerance, kind,
    )  # fmt: skip


def _single_results(result: BatchResult) -> list[Result]:
    """Return the result of each problem; small ones are solved again, which takes microseconds."""
    kept = result._results
    return [kept[k] if k in kept else result._problems.solve(k) for k in range(len(result.x))]


def _vjp_one_by_one(result: BatchResult, v: Any, kind: Kind) -> Derivatives:
    if len(v) != len(result.x):
        raise ValueError(f"v must have {len(result.x)} items, one per problem, got {len(v)}")
    singles = [
        vjp(single, own, kind) for single, own in zip(_single_results(result), v, strict=True)
    ]

    def together(name: str) -> Any:
        found = [single[name] for single in singles]
        same = len({np.shape(value) for value in found}) == 1
        # A bound that is one number for problems of different sizes has no common derivative.
        if result._problems.is_per_problem(name) or not same:
            return np.array(found) if same else found
        if isinstance(found[0], dict):  # derivatives with respect to the limits of groups
            active = dict.fromkeys(key for value in found for key in value)
            return {key: sum(value.get(key, 0.0) for value in found) for key in active}
        return np.sum(found, axis=0)

    degenerate = np.array([single.degenerate for single in singles])
    return Derivatives({name: partial(together, name) for name in singles[0]}, degenerate)


def _jvp_one_by_one(result: BatchResult, changes: dict[str, Any], kind: Kind) -> Any:
    is_per_problem = result._problems.is_per_problem

    def own(name: str, k: int) -> Any:
        return changes[name][k] if is_per_problem(name) else changes[name]

    found = [
        jvp(single, {name: own(name, k) for name in changes}, kind)
        for k, single in enumerate(_single_results(result))
    ]
    return found if isinstance(result.x, list) else np.array(found)
