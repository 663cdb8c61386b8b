"""Runs the native coordinate-descent solver, for objectives with a dense Hessian.

`run` uses LIBSVM's rule, exact steps and Newton steps. `run_until_solved` runs the solver with any
options.

The native code checks signals and the time limit itself, and returns to Python only for a callback
or a log line. Before anything is reported, the gradient is recomputed from the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import _core
from .._validation import Array
from ..objectives import value_and_gradient
from ..result import Status
from .task import NO_PROGRESS, NOT_CONVEX, Outcome, Task

Stop = _core.StopReason
# Iterations until Python first checks whether a log line is due; doubled after each check. That
# many take milliseconds, less than the time between log lines.
FIRST_STRIDE = 1024
# A run of the native solver is unsuccessful if it does not halve the smallest recomputed violation
# so far. The limits on the number of consecutive unsuccessful runs apply after the native solver
# stopped making progress, and after it converged. Smaller limits give up earlier; larger ones
# repeat runs that only change rounding errors.
MAX_UNSUCCESSFUL_STALLS = 1
MAX_UNSUCCESSFUL_RUNS = 3


def run(task: Task) -> Outcome:
    """Run the coordinate-descent solver until it stops."""

    def begin(value: float, gradient: Array) -> _core.GreedySolve:
        hessian = task.objective.hessian
        assert hessian is not None  # see `choose_solver`
        return _core.GreedySolve(hessian, task.point, gradient, value, record=task.record)

    return run_until_solved(task, begin)


def run_until_solved(task: Task, begin: Callable[[float, Array], _core.GreedySolve]) -> Outcome:
    """Run the native solver that `begin` creates from the value and the gradient at the start."""
    value, gradient = value_and_gradient(task.objective, task.z)
    threshold = task.start_at(value, gradient)
    solve = begin(value, gradient)
    stride = 1 if task.callback else FIRST_STRIDE if task.logs else task.max_iter
    best, refreshed_at, unsuccessful, remark = math.inf, -1, 0, ""
    while True:
        began = task.elapsed
        stop = solve.run(threshold, min(task.n_iter + stride, task.max_iter), task.time_left)
        task.n_iter = solve.iterations
        if task.line_is_due:
            task.log_line(solve.value, solve.violation)
        elif task.callback is None:
            stride *= 2
        if task.record:
            rows = solve.take_history()
            rows[:, 4] += began
            if len(rows):
                task.rows.append(rows)
        if solve.least_curvature < 0:
            curvature, (i, j) = solve.least_curvature, solve.curved
            remark = f"{NOT_CONVEX} (relative curvature {curvature:.1e} of variables {i}, {j})"
        if stop == Stop.unbounded:
            return task.unbounded(remark, solve.ray)
        if task.callback and task.stopped_by_callback(solve.value, solve.violation):
            return Outcome(Status.STOPPED, remark)
        if stop in (Stop.optimal, Stop.stalled):
            # The updated gradient has accumulated rounding errors: restore the sums and recompute
            # it.
            task.restore_sums()
            current = task.evaluate()
            if task.is_optimal(current):
                return task.stationary(remark, current)
            unsuccessful = unsuccessful + 1 if current.violation > 0.5 * best else 0
            stuck = task.n_iter == refreshed_at and stop == Stop.stalled
            limit = MAX_UNSUCCESSFUL_STALLS if stop == Stop.stalled else MAX_UNSUCCESSFUL_RUNS
            if stuck or unsuccessful > limit:
                return Outcome(Status.STALLED, remark or NO_PROGRESS)
            if stop == Stop.optimal and not task.aim_lower(current):
                return Outcome(Status.STALLED, remark or NO_PROGRESS)
            refreshed_at, best = task.n_iter, min(best, current.violation)
            threshold = task.threshold_at(current)
            solve.renew(current.gradient, current.value)
            if task.record:  # the last row gets the recomputed value and violation
                task.rows[-1][-1, :2] = current.value, current.violation
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if stop == Stop.stopped:
            return Outcome(Status.TIME_LIMIT, remark)
