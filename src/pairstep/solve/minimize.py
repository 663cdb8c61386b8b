"""The general entry point: validate the problem, choose a solver, report its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, deadline, log
from .._validation import LARGE, Array, finite_number, numbers_for_message, read_only, vector
from ..constraints import Layout, Simplex, SumBox
from ..labels import Axis, aligned
from ..objectives import Objective, Quadratic, Smooth, value_and_gradient
from ..result import Result, Status
from . import gradient_check, recession
from .choose_solver import COMMON_MEMBERS, NATIVE_ITERATIONS, choose_solver, require_members
from .rows import minimize_with_rows
from .small import solve_small
from .task import NOT_CONVEX, OUT_OF_RANGE, Callback, Outcome, Task

SIMPLEX = Simplex()
AnyTask = TypeVar("AnyTask", bound=Task)
# Distance from the bounds, relative to the largest variable, up to which x0 counts as feasible. A
# larger value would silently change x0; a smaller one would reject solutions of other solvers.
X0_SLACK = 1e-9


class Options(NamedTuple):
    """The options of `minimize`."""

    x0: ArrayLike | None = None
    tol: float = 1e-8
    max_iter: int | None = None
    time_limit: float | None = None
    callback: Callback | None = None
    history: bool = False
    verbose: bool = False

    @property
    def are_plain(self) -> bool:
        """Whether only `tol` is set, so that the small-problem solver may be used."""
        unset = (self.x0, self.max_iter, self.time_limit, self.callback)
        return (
            all(option is None for option in unset)
            and not self.history
            and not log.is_enabled(self.verbose)
        )


def minimize(
    objective: Objective | Callable[[Array], Any],
    constraint: SumBox | None = None,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    history: bool = False,
    verbose: bool = False,
) -> Result:
    """Minimize a smooth function of variables that sum to a total within bounds.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth, callable, or any object with their members
        The function to minimize. A callable ``f(x) -> float`` is wrapped in `Smooth`, and its
        gradient is computed by finite differences.
    constraint : SumBox or Simplex, optional
        The sum and the bounds; the probability simplex by default. Its labels are aligned with
        those of the objective; see `pairstep.labels`.
    x0 : array_like or Series, optional
        A feasible starting point. By default the total is spread evenly within the bounds, or, for
        a quadratic with finite lower bounds, over few variables.
    tol : float
        Relative tolerance. A quadratic is solved when every variable i that can decrease and every
        variable j that can increase satisfy

            left derivative_i - right derivative_j <= tol (s_i + s_j) / 2,

        where ``s_i = max(|(Qx)_i|, |c_i|, k_i, Q_ii |x_i|)`` is the size of the terms that cancel
        in derivative i: c_i without the part that all entries of a sum share, k_i the weight of the
        L1 term. For other functions s_i is the largest derivative. In addition, the decrease that
        is still possible nearby must be small relative to the objective. This test does not change
        if the objective or the variables are multiplied by a number.
    max_iter : int, optional
        Maximum number of iterations. The default is 1 000 000 for native solvers and 100 000 for
        solvers in Python.
    time_limit : float, optional
        Maximum number of seconds. It is checked between iterations, and between function values
        when the gradient is computed by differences. The result is the last point whose gradient is
        known; if there is none, the start, with an infinite violation.
    callback : callable, optional
        Called with a `Progress` after each iteration. The solve stops if it returns a true value.
    history : bool
        Whether to record value, violation, time and the numbers of changed and free coordinates for
        each iteration.
    verbose : bool
        Whether to print a line every second and at the end. The same lines are always sent to the
        logger "pairstep" at level INFO.

    Returns
    -------
    Result
        The solution, with certificates recomputed from the problem.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> risk = pairstep.Quadratic(np.diag([1.0, 2.0, 4.0]))
    >>> result = pairstep.minimize(risk, pairstep.Simplex())
    >>> str(result.status), result.x.round(6)
    ('optimal', array([0.571429, 0.285714, 0.142857]))

    A function, over the probability simplex:

    >>> target = np.array([0.5, 0.4, 0.3])
    >>> pairstep.minimize(lambda x: float(((x - target) ** 2).sum()), x0=[1, 0, 0]).x.round(4)
    array([0.4333, 0.3333, 0.2333])
    """
    function, constraint = as_problem(objective, constraint, COMMON_MEMBERS, "minimize")
    options = Options(x0, tol, max_iter, time_limit, callback, history, verbose)
    if constraint.rows is not None:
        return minimize_with_rows(function, constraint, options)
    if options.are_plain and _has_one_plain_sum(function, constraint):
        result = solve_small(
            function.Q, function.c, constraint.total, constraint.lower, constraint.upper, tol
        )
        if isinstance(result, Result):
            return result
    return solve_general(function, constraint, options)


def as_problem(
    objective: Any, constraint: SumBox | None, members: tuple[str, ...], user: str
) -> tuple[Any, SumBox]:
    """Return the objective and the constraint of a call, after checking their types.

    `members` are those of the objective that `user`, the function called, needs.
    """
    if callable(objective) and not hasattr(objective, "in_layout"):
        objective = Smooth(objective)
    if constraint is None:
        constraint = SIMPLEX
    elif not isinstance(constraint, SumBox):
        raise TypeError(f"constraint must be a SumBox or a Simplex, got {constraint!r}")
    require_members(objective, members, user)
    return objective, constraint


def _has_one_plain_sum(objective: object, constraint: SumBox) -> bool:
    """Return whether the small-problem solver may apply: no labels, coefficients or groups."""
    return (
        type(objective) is Quadratic
        and objective.variables.labels is None
        and constraint.variables.labels is None
        and constraint.coefficients is None
        and constraint.groups is None
    )


def solve_general(objective: Objective, constraint: SumBox, options: Options) -> Result:
    """Minimize with the solver that `choose_solver` names; never with the small-problem solver."""
    prepared = Prepared.of(objective, constraint, options.x0)
    solver = choose_solver(prepared.problem, prepared.layout)
    fields = prepared.task_fields(options, solver.max_iter)
    z = prepared.given_start()
    if z is None:
        z = _start(prepared, options.history, fields["tol"], fields["max_iter"])
    return solve(prepared, Task(z=z, **fields), solver.run)


class Prepared(NamedTuple):
    """The problem of a call, as given and in the variables of its layout."""

    began: float  # time.perf_counter() when the call began
    objective: Objective
    constraint: SumBox
    variables: Axis
    problem: Objective  # the objective in the variables of the layout
    layout: Layout
    x0: ArrayLike | None

    @classmethod
    def of(cls, objective: Objective, constraint: SumBox, x0: ArrayLike | None) -> Prepared:
        """Align labels, and substitute coefficients, ranges and groups by a layout."""
        began = time.perf_counter()
        variables = Axis.of(objective, constraint)
        constraint = constraint.along(variables)
        x0 = aligned("x0", x0, variables)
        layout = constraint._layout(_size(objective, constraint, x0))
        problem = objective.in_layout(layout)
        if problem.n is None:
            problem.n = layout.n  # type: ignore[misc]
        return cls(began, objective, constraint, variables, problem, layout, x0)

    def task_fields(self, options: Options, max_iter: int) -> dict[str, Any]:
        """Return the fields of a `Task` except its start, after checking the options."""
        limit = math.inf if options.time_limit is None else options.time_limit
        return {
            "objective": self.problem,
            "layout": self.layout,
            "tol": not_negative("tol", options.tol),
            "max_iter": iterations(options.max_iter, max_iter),
            "time_limit": not_negative("time_limit", limit),
            "callback": options.callback,
            "record": bool(options.history),
            "verbose": options.verbose,
        }

    def given_start(self) -> Array | None:
        """Return x0 in the variables of the layout, after checking that it is feasible."""
        if self.x0 is None:
            return None
        layout, l1_terms = self.layout, self.problem.l1_terms
        low, high = layout.bounds
        x = vector("x0", self.x0, len(low), limit=LARGE)
        inside = np.minimum(np.maximum(x, low), high)
        outside = np.abs(x - inside)
        size = max(float(np.abs(x).max()), float(np.abs(layout.totals).max()))
        if outside.max() > X0_SLACK * size:
            i = int(np.argmax(outside))
            at, *ends = numbers_for_message(x[i], low[i], high[i])
            raise ValueError(
                f"x0 is infeasible: x0[{i}] = {at} is outside its bounds [{ends[0]}, {ends[1]}]; "
                "SumBox.project returns the nearest feasible point"
            )
        z = layout.to_layout(inside)
        layout.require_sums("x0", z)
        layout.restore_sums(z, None if l1_terms is None else l1_terms[1])
        return z

    def even_start(self) -> Array:
        """Return the start that spreads the total evenly within the bounds."""
        return self.layout.project(np.zeros(self.layout.n))


def solve(prepared: Prepared, task: AnyTask, run: Callable[[AnyTask], Outcome]) -> Result:
    """Run a solver and report; a time limit may interrupt a gradient computed in Python."""
    setup_time = time.perf_counter() - prepared.began
    if prepared.problem.is_quadratic:
        result = _report(prepared, task, run(task), setup_time)
    else:
        before = deadline.begin(task.began + task.time_limit)
        try:
            result = _report(prepared, task, run(task), setup_time)
        except deadline.OutOfTime:
            result = _report(prepared, task, task.out_of_time(), setup_time)
        finally:
            deadline.end(before)
    if task.logs:
        log.write(f"{result.status} after {task.elapsed:.3g} s: {result.message}", task.verbose)
    return result


def _report(prepared: Prepared, task: Task, outcome: Outcome, setup_time: float) -> Result:
    """Compute everything that is reported from the problem at the final point."""
    objective, layout = prepared.objective, task.layout
    status, remark = outcome.status, outcome.remark
    if not _core.largest_size(task.z) < LARGE:  # or NaN
        task.z[:] = layout.within_range(task.z)
        outcome = Outcome(Status.UNBOUNDED, OUT_OF_RANGE)
        status, remark = outcome.status, outcome.remark
    if outcome.evaluation is not None and task.objective is objective:
        x = layout.from_layout(task.z)
        current = outcome.evaluation
        gradient = current.gradient
    elif not objective.is_quadratic:
        x = _coordinates(objective, task)
        current = outcome.evaluation or task.evaluate()  # evaluated at x, within its bounds
        gradient = layout.gradient(current.gradient)
    else:
        x = _coordinates(objective, task)
        value, gradient = value_and_gradient(objective, x)
        derivatives = layout.derivatives(gradient)
        current = task.evaluation_from(value, derivatives)
    direction = outcome.direction
    if status in (Status.OPTIMAL, Status.STALLED, Status.MAX_ITER):
        direction = task.ray_of_descent(current)
        if direction is not None:
            status, remark = Status.UNBOUNDED, ""
    # A point within the tolerance is optimal, whatever the reason why the solver stopped.
    may_be_optimal = status in (Status.STALLED, Status.MAX_ITER) and not remark.startswith(
        NOT_CONVEX
    )
    rounded = status == Status.STALLED and task.is_rounded(current)
    if may_be_optimal and (rounded or task.is_optimal(current)):
        stationary = task.stationary()
        status, remark = stationary.status, stationary.remark
    bound, doubt = task.with_rounding(current)
    if doubt and status == Status.OPTIMAL:
        status, remark = Status.STALLED, doubt
    if direction is None and not objective.is_quadratic:
        status, remark, direction = recession.review(task, status, remark, current)
    if status == Status.STALLED and not objective.is_quadratic:
        remark = "; ".join(filter(None, (remark, gradient_check.advice(task, current))))
    multiplier, by_label = layout.multipliers(current.multiplier)
    result = Result(
        x=x,
        fun=current.value,
        status=status,
        n_iter=task.n_iter,
        kkt_violation=current.violation,
        suboptimality_bound=bound,
        sum_multiplier=multiplier,
        setup_time=setup_time,
        solve_time=task.elapsed,
        history=task.history(),
        group_multipliers=by_label,
        gradient=gradient,
        pull=layout.pull(current.multiplier),
        bounds=(read_only(layout.bounds[0]), read_only(layout.bounds[1])),
        tolerance=task.tolerance_at(current),
        remark=remark,
        l1_terms=objective.l1_terms,
        variables=prepared.variables,
        direction=None if direction is None else layout.direction(direction),
    )
    object.__setattr__(result, "_problem", (objective, prepared.constraint))
    return result


def _coordinates(objective: Objective, task: Task) -> Array:
    """Restore the sums and return the point in the user's variables."""
    task.restore_sums()
    x = task.layout.from_layout(task.z)
    if objective.l1_terms is None or task.objective.l1_terms is None:
        return x
    # With coefficients a, (a p) / a may differ from p, so set variables on a breakpoint exactly.
    at_breakpoint = task.layout.gather(task.z == task.objective.l1_terms[1])
    return np.where(at_breakpoint, np.clip(objective.l1_terms[1], *task.layout.bounds), x)


def _size(objective: Objective, constraint: SumBox, x0: ArrayLike | None) -> int:
    n = objective.n
    if n is None:
        n = constraint.size if constraint.size is not None or x0 is None else np.size(x0)
    if n is None:
        raise ValueError(
            "the number of variables is unknown: give x0, the bounds as arrays, or n to Smooth"
        )
    if n == 0:
        raise ValueError("there are no variables: n = 0")
    return n


def _start(prepared: Prepared, history: bool, tol: float, max_iter: int) -> Array:
    """Return a starting point that suits the automatic choice of the solver."""
    z = None
    if not history and max_iter >= NATIVE_ITERATIONS:  # otherwise count every step
        z = _small_start(prepared.problem, prepared.layout, tol)
    return _sparse_start(prepared) if z is None else z


def _sparse_start(prepared: Prepared) -> Array:
    """Return a start with few free variables, because solutions are often sparse.

    Without curvatures or lower bounds the total is spread evenly.
    """
    problem, layout = prepared.problem, prepared.layout
    curvature = problem.lipschitz
    if not problem.is_quadratic or curvature is None or not np.isfinite(layout.lower).all():
        return prepared.even_start()
    return layout.fill(problem.gradient(layout.lower), np.maximum(curvature, 0.0))


def _small_start(problem: Objective, layout: Layout, tol: float) -> Array | None:
    """Return the start that the small-problem solver finds; it may be the minimum itself."""
    several = len(layout.totals) > 1 or layout.nested or problem.l1_terms is not None
    if several or layout.n > _core.MAX_SMALL_VARIABLES or problem.prefers_blocks:
        return None
    hessian, linear = problem.hessian, problem.linear
    if hessian is None or linear is None or not np.isfinite(layout.lower).all():
        return None
    low, high = layout.lower, layout.upper
    z = _core.small_start(hessian, linear, low, high, layout.totals[0], tol)
    if z is not None:
        layout.restore_sums(z)
    return z


def not_negative(name: str, value: float) -> float:
    """Return `value` as a float, after checking that it is at least 0."""
    number = finite_number(name, value, infinite=True)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number:g}")
    return number


def iterations(max_iter: int | None, default: int) -> int:
    """Return `max_iter` as an int that fits into 64 bits, or the default."""
    if max_iter is None:
        return default
    if isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 0:
        raise ValueError(f"max_iter must be a whole number of at least 0, got {max_iter!r}")
    return min(int(max_iter), 2**62)
