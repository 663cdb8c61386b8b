"""Quadratic programs with at most K names, minimum holdings and fixed costs.

The search for the best support is native (cpp/engine/cardinality.hpp). Its support is then solved
as a plain problem, which makes the sums exact and recomputes everything that is reported.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, log
from .._validation import LARGE, Array, full_vector, vector
from ..constraints import SumBox
from ..constraints.rows import implied_bounds
from ..constraints.sum_box import _restored
from ..labels import Axis, aligned
from ..objectives import Objective, value_and_gradient
from ..result import Progress, Result, Status
from .minimize import iterations, minimize, not_negative
from .parametric import Curvature, ParametricProblem
from .rows import changed, smooth_part, verified, violated_row

PROVEN, STOPPED, NODE_LIMIT = 0, 1, 2  # CardinalityState::Status
# The search proves slightly more than was asked for, because its objective is rounded differently.
GAP_MARGIN = 0.99
# Negative eigenvalue of Q, relative to rounding errors, with which the objective is not convex.
NOT_CONVEX = 1e3
# Smallest eigenvalue, relative to rounding errors, of a matrix from which a diagonal is separated.
LEAST_EIGENVALUE = 1e3
# Halvings of the interval in which the multiple of the separated diagonal lies: three digits.
BISECTIONS = 11
# Size of the objective to which gaps are relative, at least, relative to its terms.
LEAST_SIZE = 1e-6
# Nodes after which the separable part is improved, and the number of improvements. Each takes about
# as long as 50 nodes.
FIRST_NODES, MAX_IMPROVEMENTS = 100, 3
# Weight that every variable has when the separable part is improved; the largest is 1 more.
EVEN_WEIGHT = 0.2
# Largest number of variables of a matrix that is formed from its factors: 8 MB.
MAX_FORMED = 1000
NOT_FOUND = "no point with so few names was found; x ignores the limits on names"


class Names(NamedTuple):
    """The arguments that limit names, as the user gave them."""

    max_names: int | None
    min_holding: ArrayLike | None
    fixed_cost: ArrayLike | None
    gap: float

    @property
    def are_given(self) -> bool:
        """Whether there is anything to search for."""
        given = (self.max_names, self.min_holding, self.fixed_cost)
        return any(value is not None for value in given)


class Limits(NamedTuple):
    """The same, checked."""

    max_names: int
    holding: Array
    cost: Array
    gap: float


def minimize_with_names(
    objective: Objective, constraint: SumBox, names: Names, options: Any
) -> Result:
    """Minimize a quadratic objective; `options` are those of `minimize`."""
    began = time.perf_counter()
    variables = Axis.of(objective, constraint)
    constraint = constraint.along(variables)
    n, linear = objective.n, objective.linear
    assert n is not None
    assert linear is not None
    curvature = _formed(Curvature.of(smooth_part(objective)))
    problem = ParametricProblem(curvature, linear, objective.l1_terms, constraint)
    limits = _checked(names, problem, n, variables)
    _require_convex(problem.curvature)
    time_limit = math.inf
    if options.time_limit is not None:
        time_limit = not_negative("time_limit", options.time_limit)
    start = aligned("x0", options.x0, variables)
    if start is not None:
        start = vector("x0", start, n, limit=LARGE)
    relaxed = minimize(objective, constraint, tol=options.tol, time_limit=options.time_limit)
    _require_reachable(problem, limits)
    search = _Search(objective, problem, limits, options, began, relaxed)
    found = search.solved_at_once()
    if found is None:
        found = search.run(relaxed.x if start is None else start, began + time_limit)
    if found.x is not None:
        result = _reported(objective, constraint, search, found, options.tol)
    elif found.status == PROVEN and found.bound == math.inf:
        raise ValueError(_infeasible(limits, names))
    else:
        result = replace(
            relaxed, status=search.status(found, math.inf), kkt_violation=math.inf,
            suboptimality_bound=math.inf, remark=NOT_FOUND, gap=math.inf, bound=found.bound,
        )  # fmt: skip
    result = changed(
        result, nodes=found.nodes, n_iter=found.nodes, variables=variables,
        solve_time=time.perf_counter() - began,
    )  # fmt: skip
    if log.is_enabled(options.verbose):
        done = f"{result.status} after {result.solve_time:.3g} s: {result.message}"
        log.write(done, options.verbose)
    return result


# ------------------------------------------------------------------------------------------ search


class _Found(NamedTuple):
    status: int
    x: Array | None
    value: float
    bound: float
    size: float  # to which the gap is relative
    nodes: int

    @property
    def gap(self) -> float:
        return _relative(self.value, self.bound, self.size)


class _Search:
    def __init__(
        self,
        objective: Objective,
        problem: ParametricProblem,
        limits: Limits,
        options: Any,
        began: float,
        relaxed: Result,
    ):
        self.problem, self.limits, self.options, self.began = problem, limits, options, began
        self.relaxed = relaxed  # without limits on names: its bound holds with them, too
        self.was_stopped = False
        self.written = began  # time of the last line
        self.before = _Found(STOPPED, None, math.inf, math.inf, 0.0, 0)  # of earlier runs
        n = len(problem.linear)
        # The native objective has no constant.
        self.constant = float(value_and_gradient(objective, np.zeros(n))[0])
        if problem.l1_terms is not None:
            weight, center = problem.l1_terms
            self.constant -= float(weight @ np.abs(center))

    def solved_at_once(self) -> _Found | None:
        """Return the solution without limits on names if it satisfies them."""
        relaxed, limits = self.relaxed, self.limits
        x = relaxed.x
        held = x != 0
        if (
            not relaxed.success or held.sum() > limits.max_names or limits.cost[held].any()
            or (np.abs(x[held]) < limits.holding[held]).any()
        ):  # fmt: skip
            return None
        bound = self._least
        found = _Found(PROVEN, x, relaxed.fun, bound, self.size(relaxed.fun, x), 0)
        if found.gap > limits.gap:
            return None
        if self._is_watched:
            self._report(*found._replace(value=found.value - self.constant,
                                         bound=bound - self.constant))  # fmt: skip
        return found

    @property
    def _least(self) -> float:
        return self.relaxed.fun - self.relaxed.suboptimality_bound

    def size(self, value: float, x: Array) -> float:
        """Return the size of the objective, to which gaps are relative."""
        hessian, factors, diagonal = self.problem.curvature
        if hessian is not None:
            variance = np.diagonal(hessian)
        else:
            assert factors is not None
            variance = (factors**2).sum(axis=0) + diagonal
        terms = float(np.sqrt(np.maximum(variance, 0.0)) @ np.abs(x)) ** 2
        terms += float(np.abs(self.problem.linear) @ np.abs(x))
        terms += float(self.limits.cost[x != 0].sum())
        if self.problem.l1_terms is not None:
            weight, center = self.problem.l1_terms
            terms += float(weight @ np.abs(x - center))
        return max(abs(value), LEAST_SIZE * terms)

    def run(self, start: Array, end: float) -> _Found:
        """Search until the gap is proven.

        If that takes more than a few nodes, the separable part is improved for the variables that
        are left, with weights that say how much the bound gains.
        """
        problem = self.problem
        lower, upper = implied_bounds(
            problem.matrix, problem.low, problem.high, problem.lower, problem.upper
        )
        curvature = problem.curvature
        everything = np.ones(len(lower))
        separable = separable_part(curvature, everything, everything, _left(end))
        _require_finite_bounds(lower, upper, separable)
        improvements = 0 if curvature.hessian is None else MAX_IMPROVEMENTS
        most = iterations(self.options.max_iter, 2**62)
        for improvement in range(improvements + 1):
            count = most - self.before.nodes
            if improvement < improvements:
                count = min(count, FIRST_NODES if improvement == 0 else 1)
            state, pruned, live, weights = self._native(
                lower, upper, separable, start, count, _left(end)
            )
            found = self._joined(state)
            done = found.status != NODE_LIMIT or found.nodes >= most
            if done or improvement == improvements or found.gap <= self.limits.gap:
                break
            # What was excluded has the bound `pruned`.
            self.before = found._replace(bound=min(self.before.bound, pruned + self.constant))
            start = start if found.x is None else found.x
            lower, upper = np.where(live > 0, lower, 0.0), np.where(live > 0, upper, 0.0)
            largest = float(weights.max(initial=0.0))
            if largest > 0:
                weights = np.sqrt(weights / largest) + EVEN_WEIGHT
                other = separable_part(curvature, live, weights, _left(end))
                # The bound is concave in the separable part: Frank-Wolfe steps.
                separable = separable + 2 / (improvement + 3) * (other - separable)
        if self._is_watched and found.x is not None:
            self._report(*state)
        return found

    def _native(
        self, lower: Array, upper: Array, separable: Array, start: Array, count: int, seconds: float
    ) -> tuple[Any, float, Array, Array]:
        problem, merged, limits = self.problem, self.problem.merged, self.limits
        l1, center = problem.l1_terms or (None, None)
        return _core.solve_cardinality(
            problem.curvature.hessian, problem.curvature.factors, separable, problem.linear,
            lower, upper, l1, center, merged.matrix, merged.low,
            merged.high, limits.holding, limits.cost, max_names=limits.max_names,
            gap=GAP_MARGIN * limits.gap, max_nodes=count, start=start, seconds=seconds,
            callback=self._report if self._is_watched else None,
        )  # fmt: skip

    @property
    def _is_watched(self) -> bool:
        return self.options.callback is not None or log.is_enabled(self.options.verbose)

    def _joined(self, state: Any) -> _Found:
        """Return the state of the search after earlier runs and this one."""
        status, x, value, bound, size, nodes = state
        value, bound = value + self.constant, bound + self.constant
        if self.before.x is not None and self.before.value < value:
            x, value, size = self.before.x, self.before.value, self.before.size
        bound = min(max(min(bound, self.before.bound), self._least), value)
        return _Found(status, x, value, bound, size, nodes + self.before.nodes)

    def status(self, found: _Found, gap: float) -> Status:
        """Return the status of a search that ended with this gap."""
        if gap <= self.limits.gap:
            return Status.OPTIMAL
        if found.status == PROVEN:
            return Status.IMPRECISE if found.x is not None else Status.STALLED
        if found.status == NODE_LIMIT:
            return Status.MAX_ITER
        return Status.STOPPED if self.was_stopped else Status.TIME_LIMIT

    def _report(self, *state: Any) -> bool:
        found = self._joined(state)
        if found.x is None:
            return False
        now, gap = time.perf_counter(), found.gap
        if now - self.written >= log.SECONDS_BETWEEN_LINES:
            self.written = now
            line = f"{found.nodes} nodes, {found.value:.9g}, bound {found.bound:.9g}, gap {gap:.2e}"
            log.write(line, self.options.verbose)
        callback: Callable[[Progress], object] | None = self.options.callback
        if callback is None:
            return False
        progress = Progress(found.nodes, found.value, gap, found.x.copy(), now - self.began)
        self.was_stopped = bool(callback(progress)) or self.was_stopped
        return self.was_stopped


def _left(end: float) -> float:
    return max(end - time.perf_counter(), 0.0)


def _relative(value: float, bound: float, size: float) -> float:
    """Return the gap between a value and a lower bound, relative to the size of the objective."""
    difference = max(value - bound, 0.0)
    return difference / size if difference > 0 and size > 0 else difference


def _formed(curvature: Curvature) -> Curvature:
    """Return the Hessian as a matrix if there are as many factors as variables.

    A diagonal can be separated from it, even if that of the model is 0.
    """
    factors = curvature.factors
    if factors is None or len(factors) < factors.shape[1] or factors.shape[1] > MAX_FORMED:
        return curvature
    return curvature.formed()


def _correlations(Q: Array, used: Any) -> tuple[Array, Array, float]:
    """Return the used part of Q scaled to a unit diagonal, the scale, and its rounding error."""
    scale = np.sqrt(np.diagonal(Q)[used])
    C = np.ascontiguousarray(Q[np.ix_(used, used)] / np.outer(scale, scale))
    largest = float(np.abs(C).sum(axis=1).max())  # at least the largest eigenvalue
    return C, scale, 4 * len(C) * np.finfo(float).eps * largest


def _require_convex(curvature: Curvature) -> None:
    if curvature.hessian is None:
        return
    Q = curvature.hessian
    used = np.flatnonzero(np.diagonal(Q) > 0)
    unused = np.setdiff1d(np.arange(len(Q)), used)
    if len(used):
        C, _, rounding = _correlations(Q, used)
        if not _core.cholesky(C + NOT_CONVEX * rounding * np.eye(len(C))):
            raise ValueError(
                "max_names, min_holding and fixed_cost need a convex objective, but Q has a "
                f"negative eigenvalue: {np.linalg.eigvalsh(C)[0]:.3g} with its diagonal scaled to 1"
            )
    if (Q[unused] != 0).any():
        i = int(unused[(Q[unused] != 0).any(axis=1)][0])
        raise ValueError(
            "max_names, min_holding and fixed_cost need a convex objective, but Q has the diagonal "
            f"entry {Q[i, i]:.3g} in row {i}, with other entries that are not 0"
        )


def separable_part(curvature: Curvature, live: Array, weights: Array, seconds: float) -> Array:
    """Return d >= 0 such that ``Q - diag(d)`` is positive semidefinite.

    It is the diagonal of a factor model. For a matrix, it has nearly the largest weighted sum,
    relative to the diagonal of Q. Only variables that are live count; others have the entry 0.
    """
    if curvature.factors is not None:
        assert curvature.diagonal is not None
        return curvature.diagonal
    Q = curvature.hessian
    assert Q is not None
    d = np.zeros(len(Q))
    used = np.flatnonzero((np.diagonal(Q) > 0) & (live > 0))
    if len(used) == 0:
        return d
    C, scale, rounding = _correlations(Q, used)
    # `cholesky` overwrites its argument, and unlike LAPACK it starts no threads.
    if not _core.cholesky(C - LEAST_EIGENVALUE * rounding * np.eye(len(C))):
        return d
    root = np.sqrt(weights[used])
    found = _core.largest_diagonal(C * np.outer(root, root), seconds=seconds) / root**2
    # The largest multiple that leaves a semidefinite matrix, with a margin for rounding errors.
    least, most = 0.0, 2.0
    for _ in range(BISECTIONS):
        middle = (least + most) / 2
        definite = _core.cholesky(C - np.diag(middle * found + rounding))
        least, most = (middle, most) if definite else (least, middle)
    found *= least
    d[used] = found * scale**2
    return d


# -------------------------------------------------------------------------------------- the result


def _supported(constraint: SumBox, x: Array, lower: Array, upper: Array, holding: Array) -> SumBox:
    """Return the constraint for the names of x: others are 0, and these have their holdings."""
    least = np.where((x > 0) & (holding > 0), np.maximum(lower, holding), lower)
    most = np.where((x < 0) & (holding > 0), np.minimum(upper, -holding), upper)
    total, _, _, *others = constraint.__getstate__()
    return _restored(total, np.where(x == 0, 0.0, least), np.where(x == 0, 0.0, most), *others)


def _reported(
    objective: Objective, constraint: SumBox, search: _Search, found: _Found, tol: float
) -> Result:
    """Solve the problem with the names that were found, and report from its solution."""
    problem, limits, x = search.problem, search.limits, found.x
    assert x is not None
    support = _supported(constraint, x, problem.lower, problem.upper, limits.holding)
    result = minimize(objective, support, tol=tol)
    if not result.success and support.rows is not None:
        # The bound of the search is a proof too, which needs no multipliers.
        checked = verified(objective, support, x, np.zeros(len(support.rows.matrix)), tol)
        if violated_row(support.rows, checked.x) is None:
            result = changed(checked, status=Status.OPTIMAL)
    fun = result.fun + float(limits.cost[result.x != 0].sum())
    bound = min(found.bound, fun)
    gap = _relative(fun, bound, search.size(fun, result.x))
    status = search.status(found, gap) if result.success else result.status
    remark = f"gap {gap:.2e} proven with {found.nodes} nodes"
    return changed(
        result, fun=fun, status=status, gap=gap, bound=bound,
        suboptimality_bound=max(fun - bound, 0.0),
        remark="; ".join(filter(None, (result.remark, remark))),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ checks


def _checked(names: Names, problem: ParametricProblem, n: int, variables: Axis) -> Limits:
    count = names.max_names
    if count is None:
        count = n
    elif isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(
            f"max_names must be a whole number of at least 1, got {count!r}: it is the largest "
            "number of variables that are not 0"
        )
    gap = not_negative("gap", names.gap)
    if not math.isfinite(gap):
        raise ValueError("gap must be finite: it is the relative optimality gap to prove")
    holding = _not_negative_vector("min_holding", names.min_holding, n, variables)
    cost = _not_negative_vector("fixed_cost", names.fixed_cost, n, variables)
    lower, upper = problem.lower, problem.upper
    reach = np.maximum(np.where(lower <= 0, -lower, 0.0), np.where(upper >= 0, upper, -lower))
    wrong = np.flatnonzero((holding > reach) & ((lower != 0) | (upper != 0)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"min_holding[{i}] = {holding[i]:.9g} is above upper[{i}] = {upper[i]:.9g}: lower "
            f"min_holding, or set upper[{i}] = 0 to leave the variable out"
        )
    always = np.flatnonzero((lower > 0) | (upper < 0))
    if len(always) > count:
        raise ValueError(
            f"max_names = {count}, but {len(always)} variables cannot be 0 within their bounds "
            f"(the first is lower[{always[0]}] = {lower[always[0]]:.9g}, upper[{always[0]}] = "
            f"{upper[always[0]]:.9g}): raise max_names, or let lower <= 0 <= upper"
        )
    return Limits(min(int(count), n), holding, cost, gap)


def _not_negative_vector(name: str, value: ArrayLike | None, n: int, variables: Axis) -> Array:
    if value is None:
        return np.zeros(n)
    found = full_vector(name, aligned(name, value, variables), n, limit=LARGE)
    if (found < 0).any():
        i = int(np.argmax(found < 0))
        raise ValueError(f"{name} must not be negative, but {name}[{i}] = {found[i]:.9g}")
    return np.ascontiguousarray(found, float)


def _require_finite_bounds(lower: Array, upper: Array, separable: Array) -> None:
    wrong = np.flatnonzero((separable == 0) & (np.isinf(lower) | np.isinf(upper)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"max_names, min_holding and fixed_cost need finite bounds where Q is singular, but "
            f"variable {i} has the bounds [{lower[i]:g}, {upper[i]:g}], and the sum implies no "
            "others: give finite lower and upper"
        )


def _require_reachable(problem: ParametricProblem, limits: Limits) -> None:
    """Raise if the largest names together do not reach the limit of a sum or row."""
    lower, upper = problem.lower, problem.upper
    always = (lower > 0) | (upper < 0)
    least = np.where(always & (lower > 0), np.maximum(lower, limits.holding), lower)
    most = np.where(always & (upper < 0), np.minimum(upper, -limits.holding), upper)
    left = limits.max_names - int(always.sum())
    for r, row in enumerate(problem.matrix):
        used = row != 0
        # The largest and smallest value of each term; names that may be left out add 0 otherwise.
        ends = np.zeros((2, len(row)))
        ends[:, used] = row[used] * np.stack([least, most])[:, used]
        for sign, limit in ((1.0, problem.low[r]), (-1.0, problem.high[r])):
            if not math.isfinite(limit):
                continue
            terms = (sign * ends).max(axis=0)
            optional = np.sort(np.maximum(terms[~always], 0.0))[::-1][:left]
            reach = math.fsum(terms[always]) + math.fsum(optional)
            size = float(np.abs(terms[always]).sum() + optional.sum()) + abs(limit)
            if reach < sign * limit - 1e-12 * size:
                which = "the sum" if r < problem.n_sums else problem.rows.name(r - problem.n_sums)
                relation = ("at most", "at least") if sign > 0 else ("at least", "at most")
                raise ValueError(
                    f"max_names = {limits.max_names} is too small: with that limit, {which} is "
                    f"{relation[0]} {sign * reach:.9g}, but it must be {relation[1]} {limit:.9g}; "
                    "raise max_names or widen the bounds"
                )


def _infeasible(limits: Limits, names: Names) -> str:
    parts = [f"at most max_names = {limits.max_names} names"]
    if names.min_holding is not None:
        parts.append(
            f"holdings of at least min_holding = {limits.holding.min():.9g}"
            + (f" to {limits.holding.max():.9g}" if np.ptp(limits.holding) > 0 else "")
        )
    return (
        f"no x with {' and '.join(parts)} satisfies the sums, the bounds and the rows: raise "
        "max_names, lower min_holding, or widen the bounds or the limits of the rows"
    )
