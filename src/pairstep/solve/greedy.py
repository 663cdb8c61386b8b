"""Drives the greedy gear: the native loop for objectives whose Hessian is at hand.

The native run answers signals and keeps the time by itself, and pauses only for a callback. Before
anything is reported the gradient is computed afresh from the problem.
"""

from __future__ import annotations

import math

from .. import _core
from ..objectives import value_and_gradient
from ..result import Status
from .task import NO_PROGRESS, NOT_CONVEX, Outcome, Task

Stop = _core.Stop
STRIDE = 1024  # iterations to the first look at the clock, where there is a log


def run(task: Task) -> Outcome:
    """Run the greedy gear to its end."""
    objective, plan = task.objective, task.plan
    value, gradient = value_and_gradient(objective, task.z)
    threshold = task.start_at(value, gradient)
    solve = _core.GreedySolve(
        objective.hessian, task.point, gradient, value, task.choice,
        step=plan.length, one_norm_constant=plan.one_norm_constant, patience=task.patience,
        finish=task.finish, record=task.record,
    )  # fmt: skip
    stride = 1 if task.callback else STRIDE if task.heard else task.max_iter
    best, refreshed_at, fruitless, remark = math.inf, -1, 0, ""
    while True:
        began = task.elapsed
        stop = solve.run(threshold, min(task.n_iter + stride, task.max_iter), task.time_left)
        task.n_iter = solve.iterations
        if task.line_is_due:
            task.tell(solve.value, solve.violation)
        elif task.callback is None:
            stride *= 2
        if task.record:
            rows = solve.take_history()
            rows[:, 4] += began
            task.rows.append(rows)
        if solve.least_curvature < 0:
            bend, (i, j) = solve.least_curvature, solve.curved
            remark = f"{NOT_CONVEX} (relative curvature {bend:.1e} at accounts {i}, {j})"
        if stop == Stop.unbounded:
            return task.endless(remark)
        if task.callback and task.stopped_by_callback(solve.value, solve.violation):
            return Outcome(Status.STOPPED, remark)
        if stop in (Stop.converged, Stop.no_progress):
            # Never trust the running gradient: settle the sums and look again.
            task.settle()
            seen = task.look()
            if task.is_optimal(seen):
                return task.stationary(remark, seen)
            fruitless = fruitless + 1 if seen.violation > 0.5 * best else 0
            stuck = task.n_iter == refreshed_at and stop == Stop.no_progress
            if stuck or fruitless > (1 if stop == Stop.no_progress else 3):
                return Outcome(Status.STALLED, remark or NO_PROGRESS)
            if stop == Stop.converged and not task.aim_lower(seen):
                return Outcome(Status.STALLED, remark or NO_PROGRESS)
            refreshed_at, best = task.n_iter, min(best, seen.violation)
            threshold = task.threshold_at(seen)
            solve.renew(seen.gradient, seen.value)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if stop == Stop.out_of_time:
            return Outcome(Status.TIME_LIMIT, remark)
