"""The one entry point: validate, choose a gear, return a Result."""

from __future__ import annotations

import math
import time
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, log
from .._validation import LARGE, Array, choice, finite_number, vector
from ..constraints import Layout, SumBox
from ..labels import Axis, aligned
from ..objectives import Objective, Quadratic, value_and_gradient
from ..result import Result, Status
from ..rules import RULES, PythonRule, rule_of
from . import block, greedy, loop, smooth
from .small import solve_small
from .steps import BACKTRACKING, Length, Step, plan
from .task import NOT_CONVEX, Callback, Outcome, Task


def minimize(
    objective: Objective,
    constraint: SumBox,
    *,
    rule: str | PythonRule = "auto",
    step: Step = "auto",
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    seed: int | np.random.Generator | None = None,
    history: bool = False,
    verbose: bool = False,
) -> Result:
    """Minimise a smooth function of variables that add up to a total within bounds.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth, or any object with their members
        What to minimise.
    constraint : SumBox or Simplex
        The sum and the bounds. Its labels are aligned with the objective's; see `pairstep.labels`.
    rule : str or callable
        Which coordinates to move: a name in `pairstep.rules.RULES`. "auto" is libsvm's
        second-order choice for quadratics; other functions are replaced by quadratic models, one
        after the other, that are solved so (gs-1 runs instead if a step is asked for). A function
        ``rule(accounts, alpha) -> Move`` is asked in each iteration about the coordinates that
        share a sum (`pairstep.rules.Accounts`: derivatives and distances to the next bound or
        kink; of several groups the move with the largest `decrease` counts, and groups under one
        total are asked about together as well) and the step size alpha. Its move must keep the
        sum and stay within the distances. No move, or one along which the objective does not
        fall, ends the solve. The functions in `pairstep.rules` that specify the named rules can
        be given too.
    step : str, float or callable
        How far to move: "1/L2", "lipschitz", "exact", "backtracking", a step size, or a function
        from the progress so far to a step size. "auto" is exact for quadratics and backtracking
        for other functions.
    x0 : array_like or Series, optional
        A feasible point to start from. By default the total is spread evenly within the bounds.
    tol : float
        Stop when the KKT violation is at most `tol` times the size of the terms that cancel in the
        gradient, ``max(|Qx|, |c|, l1)`` for a quadratic, and what can still be gained nearby is
        small against the objective. Multiplying the objective or the variables by a number changes
        nothing.
    max_iter : int, optional
        At most so many iterations; by default a million in the native gear, 100 000 elsewhere.
    time_limit : float, optional
        Stop after so many seconds.
    callback : callable, optional
        Called with a `Progress` after each iteration; a true answer stops the solve.
    seed : int or numpy.random.Generator, optional
        For the random rules.
    history : bool
        Record value, violation, coordinates moved, interior coordinates and time per iteration.
    verbose : bool
        Print a line every second, and one at the end. The logger "pairstep" is told the same at the
        level INFO, verbose or not.

    Returns
    -------
    Result
        The point and what is known of it, recomputed from the problem.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk = pairstep.Quadratic(np.diag([1.0, 2.0, 4.0]))
    >>> result = pairstep.minimize(risk, pairstep.Simplex())
    >>> str(result.status), result.x.round(6)
    ('optimal', array([0.571429, 0.285714, 0.142857]))

    A rule of one's own: from the largest derivative to the smallest.

    >>> def steepest(accounts, alpha):
    ...     i, j = np.argmax(accounts.sellers), np.argmin(accounts.buyers)
    ...     gap = accounts.sellers[i] - accounts.buyers[j]
    ...     amount = min(alpha * gap / 2, accounts.down_room[i], accounts.up_room[j])
    ...     return pairstep.Move(np.array([i, j]), np.array([-amount, amount]), amount * gap)
    >>> pairstep.minimize(risk, pairstep.Simplex(), rule=steepest).x.round(6)
    array([0.571429, 0.285714, 0.142857])
    """
    _require_members(objective, constraint)
    unusual = (x0, max_iter, time_limit, callback, seed)
    if rule == step == "auto" and all(option is None for option in unusual) and not history:
        result = _at_once(objective, constraint, tol, verbose)
        if result:
            return result
    began = time.perf_counter()
    variables = Axis.of(objective, constraint)
    constraint = constraint.along(variables)
    x0 = aligned("x0", x0, variables)
    layout = constraint.layout(_size(objective, constraint, x0))
    problem = objective.in_accounts(layout)
    if problem.n is None:
        problem.n = layout.n  # type: ignore[misc]
    automatic = isinstance(rule, str) and rule == "auto"
    blocks = automatic and step in ("auto", "exact") and block.suits(problem, layout)
    if automatic:
        rule = "libsvm" if blocks or problem.hessian is not None else "gs-1"
    if not callable(rule):
        choice("rule", rule, ("auto", *RULES))
    chosen = rule_of(rule)
    step_plan = plan(chosen, step, problem)
    native = blocks or (
        chosen.native
        and step_plan.length is not BACKTRACKING
        and step_plan.next_alpha is None
        and problem.hessian is not None
    )
    bent = automatic and step == "auto" and not problem.is_quadratic
    tol, most = not_negative("tol", tol), iterations(max_iter, MOST if native else 100_000)
    z = None
    if x0 is not None or not automatic:
        z = _start(layout, x0)
    elif not history and most >= MOST:  # steps that are limited or recorded are wanted as steps
        z = _small_start(problem, layout, tol)
    gear = block if blocks else greedy if native else smooth if bent else loop
    task = Task(
        objective=problem,
        layout=layout,
        rule=chosen,
        plan=step_plan,
        z=_sparse_start(problem, layout) if z is None else z,
        tol=tol,
        max_iter=most,
        time_limit=math.inf if time_limit is None else not_negative("time_limit", time_limit),
        callback=callback,
        rng=np.random.default_rng(seed) if chosen.draws else _UNUSED,
        record=bool(history),
        # A rule asked for by name is run as the paper has it; left to us, Newton may finish.
        finish=automatic and step_plan.length == Length.exact,
        verbose=verbose,
    )
    setup_time = time.perf_counter() - began
    result = _report(objective, task, gear.run(task), setup_time, variables)
    if task.heard:
        log.tell(f"{result.status} after {task.elapsed:.3g} s: {result.message}", verbose)
    return result


def _at_once(
    objective: Objective, constraint: SumBox, tol: float, verbose: bool
) -> Result | Literal[False] | None:
    """A small dense quadratic with one sum and no labels, if nobody wants to hear of it."""
    if type(objective) is not Quadratic or log.heard(verbose):
        return None
    labels = objective.variables.labels, constraint.variables.labels
    sums = constraint.weights, constraint.groups
    if any(part is not None for part in (*labels, *sums)):
        return None
    return solve_small(
        objective.Q, objective.c, constraint.total, constraint.lower, constraint.upper, tol
    )


MOST = 1_000_000  # iterations of native gears
_UNUSED: Any = None  # the generator of rules that draw nothing


def _report(
    objective: Objective, task: Task, outcome: Outcome, setup_time: float, variables: Axis
) -> Result:
    """Derive everything that is reported from the problem at the final point."""
    layout, status, remark = task.layout, outcome.status, outcome.remark
    if outcome.seen is not None and task.objective is objective:
        x = layout.to_coordinates(task.z)
        seen = outcome.seen
        gradient = seen.gradient
    elif not objective.is_quadratic:
        x = _coordinates(objective, task)
        seen = outcome.seen or task.look()  # asked in coordinates, and within their bounds
        gradient = layout.gradient(seen.gradient)
    else:
        x = _coordinates(objective, task)
        value, gradient = value_and_gradient(objective, x)
        prices = layout.prices(gradient)
        seen = task.seen_at(value, prices)
    tolerance = task.tolerance_at(seen)
    if status == Status.STALLED and not remark.startswith(NOT_CONVEX):
        rounded = task.is_rounded(seen)
        if rounded or task.is_optimal(seen):
            status, remark = Status.OPTIMAL, ""
        if rounded:
            tolerance = max(tolerance, task.rounding_at(seen))
    multiplier, by_label = layout.multipliers(seen.multiplier)
    return Result(
        x=x,
        fun=seen.value,
        status=status,
        n_iter=task.n_iter,
        kkt_violation=seen.violation,
        suboptimality_bound=seen.bound,
        multiplier=multiplier,
        setup_time=setup_time,
        solve_time=task.elapsed,
        history=task.history(),
        group_multiplier=by_label,
        gradient=gradient,
        pull=layout.pull(seen.multiplier),
        bounds=layout.bounds,
        tolerance=tolerance,
        remark=remark,
        kinks=objective.kinks,
        variables=variables,
    )


def _coordinates(objective: Objective, task: Task) -> Array:
    """The point in coordinates, its sums made exact."""
    task.settle()
    x = task.layout.to_coordinates(task.z)
    if objective.kinks is None or task.objective.kinks is None:
        return x
    # With weights, (w p) / w need not be p: what is on its kink is there exactly.
    on_kink = task.layout.gather(task.z == task.objective.kinks[1])
    return np.where(on_kink, np.clip(objective.kinks[1], *task.layout.bounds), x)


def _require_members(objective: object, constraint: object) -> None:
    if not isinstance(constraint, SumBox):
        raise TypeError(f"constraint must be a SumBox or a Simplex, got {constraint!r}")
    for member in ("value", "gradient", "in_accounts"):
        if not hasattr(objective, member):
            raise TypeError(
                f"objective must be a Quadratic, LeastSquares or Smooth, or have their members; "
                f"{objective!r} has no {member!r}"
            )


def _size(objective: Objective, constraint: SumBox, x0: ArrayLike | None) -> int:
    n = objective.n
    if n is None:
        n = constraint.size if constraint.size is not None or x0 is None else np.size(x0)
    if n is None:
        raise ValueError(
            "the number of variables is unknown: give x0, or the bounds as arrays, "
            "or Smooth its n or lipschitz as an array"
        )
    if n == 0:
        raise ValueError("there are no variables: n = 0")
    return n


def _start(layout: Layout, x0: ArrayLike | None) -> Array:
    if x0 is None:
        return layout.project(np.zeros(layout.n))
    low, high = layout.bounds
    x = vector("x0", x0, len(low), limit=LARGE)
    inside = np.minimum(np.maximum(x, low), high)
    outside = np.abs(x - inside)
    size = max(float(np.abs(x).max()), float(np.abs(layout.totals).max()))
    if outside.max() > 1e-9 * size:
        i = int(np.argmax(outside))
        raise ValueError(
            f"x0 is infeasible: x0[{i}] = {x[i]:g} is outside its bounds [{low[i]:g}, {high[i]:g}]"
        )
    z = layout.to_accounts(inside)
    layout.require_sums("x0", z)
    layout.settle(z)
    return z


def _sparse_start(problem: Objective, layout: Layout) -> Array:
    """A start with few free accounts, for solutions are sparse; spread where there is none."""
    quadratic = problem.prefers_blocks or problem.hessian is not None
    curvature = problem.lipschitz
    if not quadratic or curvature is None or not np.isfinite(layout.lower).all():
        return _start(layout, None)
    return layout.fill(problem.gradient(layout.lower), np.maximum(curvature, 0.0))


def _small_start(problem: Objective, layout: Layout, tol: float) -> Array | None:
    """Where the short cut for small problems begins, which may be the minimum itself."""
    several = len(layout.totals) > 1 or layout.nested or problem.kinks is not None
    if several or layout.n > _core.SMALL or problem.prefers_blocks:
        return None
    hessian, linear = problem.hessian, problem.linear
    if hessian is None or linear is None or not np.isfinite(layout.lower).all():
        return None
    low, high = layout.lower, layout.upper
    z = _core.small_start(hessian, linear, low, high, layout.totals[0], tol)
    if z is not None:
        layout.settle(z)
    return z


def not_negative(name: str, value: float) -> float:
    """`value` as a float if it is at least 0."""
    number = finite_number(name, value, infinite=True)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number:g}")
    return number


def iterations(max_iter: int | None, default: int) -> int:
    """`max_iter` as an int of at least 0 that the native code can count to, or the default."""
    if max_iter is None:
        return default
    if isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 0:
        raise ValueError(f"max_iter must be a whole number of at least 0, got {max_iter!r}")
    return min(int(max_iter), 2**62)
