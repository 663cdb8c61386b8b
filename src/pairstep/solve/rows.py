"""Objectives under sums, bounds and general linear rows.

For a quadratic objective, the solution without rows is followed to the solution with rows by the
parametric solver. Other smooth objectives are replaced by a sequence of quadratic models with the
same rows (`smooth_rows`). With the multipliers v of the rows, the solution also minimizes the
Lagrangian ``f(x) - v'Gx`` under the sum and the bounds alone. That is how it is verified,
independently of the method that found it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from .. import log
from .._validation import Array
from ..constraints import SumBox
from ..constraints.rows import Rows
from ..labels import Axis, aligned
from ..objectives import L1Penalized, Objective, Quadratic, value_and_gradient
from ..objectives.with_linear import WithLinear
from ..result import Result, Status
from .parametric import Curvature, ParametricProblem, rows_of

# Distance of a row from its limit, relative to its terms, that is rounding error; documented.
ROW_ROUNDING = 1e-12
# Largest effect, relative to the objective, of rows with multipliers that miss their limits.
MAX_GAP = 1e-10
# Distance from the center of an L1 term, relative to the largest variable, that is rounding error.
AT_CENTER = 1e-13
NOT_FOUND = "no point that satisfies the rows was found; x is the solution without rows"


def minimize_with_rows(objective: Objective, constraint: SumBox, options: Any) -> Result:
    """Minimize under a constraint with rows; `options` are those of `minimize`."""
    if options.history:
        raise ValueError(
            "history = True cannot be used with rows: rows need the active-set solver, which "
            "records no history"
        )
    variables = Axis.of(objective, constraint)
    constraint = constraint.along(variables)
    if objective.is_quadratic:
        result = _minimize_quadratic(objective, constraint, variables, options)
    else:
        from .smooth_rows import minimize_smooth

        result = minimize_smooth(objective, constraint, variables, options)
    if log.is_enabled(options.verbose):
        done = f"{result.status} after {result.solve_time:.3g} s: {result.message}"
        log.write(done, options.verbose)
    return result


def _minimize_quadratic(
    objective: Objective, constraint: SumBox, variables: Axis, options: Any
) -> Result:
    from .minimize import minimize

    began = time.perf_counter()
    if objective.n is not None:
        rows_of(constraint, objective.n)  # checks the number of columns
    plain = constraint.without_rows()
    time_limit = options.time_limit
    relaxed = minimize(
        objective, plain, x0=options.x0, tol=options.tol, max_iter=options.max_iter,
        time_limit=time_limit, callback=options.callback,
    )  # fmt: skip
    n = len(relaxed.x)
    rows = rows_of(constraint, n)
    if relaxed.status in (Status.TIME_LIMIT, Status.STOPPED, Status.MAX_ITER):
        return _without_solution(relaxed, rows, relaxed.status, relaxed.solve_time)
    linear = objective.linear
    assert linear is not None
    problem = ParametricProblem(
        Curvature.of(smooth_part(objective)), linear, objective.l1_terms, constraint
    )
    seconds = math.inf if time_limit is None else max(time_limit - relaxed.solve_time, 0.0)
    found = problem.solve(relaxed.x, seconds)
    if found is None:
        elapsed = time.perf_counter() - began
        over = time_limit is not None and elapsed >= time_limit
        return _without_solution(
            relaxed, rows, Status.TIME_LIMIT if over else Status.STALLED, elapsed
        )
    checked = verified(objective, constraint, found.x, found.multipliers, options.tol)
    return changed(
        checked, n_iter=relaxed.n_iter + found.solver.changes, variables=variables,
        solve_time=time.perf_counter() - began,
    )  # fmt: skip


def smooth_part(objective: Any) -> Any:
    """Return the objective without its L1 terms."""
    while isinstance(objective, L1Penalized):
        objective = objective.objective
    return objective


def _without_solution(relaxed: Result, rows: Rows, status: Status, elapsed: float) -> Result:
    """Return the solution without rows, with a status that says so."""
    return replace(
        relaxed, status=status, kkt_violation=math.inf, suboptimality_bound=math.inf,
        remark=NOT_FOUND, solve_time=elapsed,
        row_multipliers={rows.label(r): math.nan for r in range(len(rows.matrix))},
    )  # fmt: skip


def changed(result: Result, **fields: Any) -> Result:
    """Return a result with other fields and the same problem, for its derivatives."""
    other = replace(result, **fields)
    object.__setattr__(other, "_problem", result._problem)
    return other


def verified(
    objective: Objective, constraint: SumBox, x: Array, multipliers: Array, tol: float
) -> Result:
    """Return the result at x, given the multipliers of the rows.

    Its certificates are those of the Lagrangian under the sum and the bounds.
    """
    from .minimize import minimize

    rows = rows_of(constraint, len(x))
    if objective.l1_terms is not None:  # a variable that is at its center up to rounding is there
        center = objective.l1_terms[1]
        x = np.where(np.abs(x - center) <= AT_CENTER * np.abs(x).max(), center, x)
    pull = rows.matrix.T @ multipliers
    lagrangian = with_linear(objective, -pull)
    checked = minimize(lagrangian, constraint.without_rows(), x0=x, tol=tol, max_iter=0)
    x = checked.x
    value, gradient = value_and_gradient(objective, x)
    # What the multipliers promise if a limit is not reached exactly.
    limit = np.where(multipliers > 0, rows.low, rows.high)
    active = multipliers != 0
    gaps = np.zeros(len(multipliers))
    gaps[active] = np.abs(multipliers[active] * (rows.matrix[active] @ x - limit[active]))
    status, remark = checked.status, checked.remark
    if status == Status.MAX_ITER:
        status, remark = Status.STALLED, "the multipliers of the rows do not satisfy the tolerance"
    violated = violated_row(rows, x)
    if status == Status.OPTIMAL and violated is not None:
        status, remark = Status.STALLED, violated
    size = max(abs(float(value)), abs(float(gradient @ x)), abs(float(pull @ x)))
    if status == Status.OPTIMAL and gaps.sum() > MAX_GAP * size:
        status, remark = Status.STALLED, "rows with multipliers are not at their limits"
    result = replace(
        checked, fun=float(value), gradient=gradient, pull=checked.pull + pull, status=status,
        remark=remark, suboptimality_bound=checked.suboptimality_bound + float(gaps.sum()),
        row_multipliers={rows.label(r): float(v) for r, v in enumerate(multipliers)},
    )  # fmt: skip
    held = [
        (("rows_upper" if multipliers[r] < 0 else "rows_lower", r), rows.matrix[r])
        for r in np.flatnonzero(active | (rows.low == rows.high)).tolist()
    ]
    problem = (objective, constraint.without_rows(), held, len(rows.matrix))
    object.__setattr__(result, "_problem", problem)
    return result


def violated_row(rows: Rows, x: Array) -> str | None:
    """Return which row does not hold up to rounding errors, or None."""
    activity, terms = rows.matrix @ x, np.abs(rows.matrix) @ np.abs(x)
    for end, sign in ((rows.low, 1.0), (rows.high, -1.0)):
        limited = np.isfinite(end)
        limit = np.where(limited, end, 0.0)
        missing = sign * (limit - activity) - ROW_ROUNDING * np.maximum(terms, np.abs(limit))
        for r in np.flatnonzero(limited & (missing > 0)).tolist():
            exact = math.fsum(rows.matrix[r] * x)
            if sign * (end[r] - exact) <= ROW_ROUNDING * max(terms[r], abs(end[r])):
                continue
            return f"{rows.name(r)} is {activity[r]:.17g}, but its limit is {end[r]:.17g}"
    return None


def with_linear(objective: Any, added: Array) -> Any:
    """Return the objective plus a linear term."""
    if isinstance(objective, L1Penalized):
        inner = with_linear(objective.objective, added)
        return L1Penalized(inner, (objective._down, objective._up), objective._pivot)
    if hasattr(objective, "with_linear"):
        return objective.with_linear(np.asarray(objective.c) + added)
    return WithLinear(objective, added)


def nearest(constraint: SumBox, y: Array) -> Array:
    """Return the point of a constraint with rows that is nearest to y.

    With coefficients a, distances are measured in the variables ``a * x``.
    """
    from .minimize import minimize

    a = constraint.coefficients
    weight = np.ones(len(y)) if a is None else np.asarray(a) ** 2
    result = minimize(Quadratic(np.diag(weight), -weight * y), constraint)
    if not result.success:
        raise ValueError(f"no feasible point was found: {result.message}")
    return result.x


def start(constraint: SumBox, n: int, x0: Any, variables: Axis) -> Array:
    """Return x0 if it is feasible, or else the feasible point nearest to it (or to 0)."""
    from .minimize import X0_SLACK

    if x0 is None:
        return constraint.start(n)
    x = np.array(aligned("x0", x0, variables), float)
    rows = rows_of(constraint, len(x))
    activity, size = rows.matrix @ x, np.abs(rows.matrix) @ np.abs(x)
    slack = X0_SLACK * size
    inside = ((activity >= rows.low - slack) & (activity <= rows.high + slack)).all()
    return x if inside else constraint.project(x)
