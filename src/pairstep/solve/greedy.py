"""Drives the greedy gear: the native loop for objectives whose Hessian is at hand.

The native loop runs in slices of time. Between slices Python answers signals and callbacks, and
before anything is reported the gradient is computed afresh from the problem.
"""

from __future__ import annotations

import math

from .. import _core
from ..objectives import value_and_gradient
from ..result import Status
from .task import NOT_CONVEX, Outcome, Task

SLICE = 0.1  # seconds: how long Ctrl-C may have to wait

CONVERGED, OUT_OF_ITERATIONS, OUT_OF_TIME, NO_PROGRESS, UNBOUNDED = range(5)


def run(task: Task) -> Outcome:
    """Run the greedy gear to its end."""
    objective, plan = task.objective, task.plan
    hessian = objective.hessian
    assert hessian is not None
    value, gradient = value_and_gradient(objective, task.z)
    threshold = task.threshold_of(gradient)
    generator = task.rng.bit_generator.capsule if task.rule.draws else None
    remark = ""
    refreshed_at, best, fruitless = -1, math.inf, 0
    while True:
        began = task.elapsed
        each = task.n_iter + 1 if task.callback else task.max_iter
        stop, task.n_iter, value, violation, bend, at, rows = _core.greedy(
            hessian,
            gradient,
            *task.place(),
            task.rule.code,
            plan.alpha,
            plan.lipschitz,
            generator,
            int(plan.length),
            plan.one_norm_constant,
            threshold,
            task.n_iter,
            min(each, task.max_iter),
            min(SLICE, max(task.time_limit - began, 0.0)),
            value,
            task.patience,
            task.finish,
            task.record,
        )
        if task.record:
            rows[:, 4] += began
            task.rows.append(rows[1:] if task.rows else rows)
        if bend < 0:
            remark = f"{NOT_CONVEX} (relative curvature {bend:.1e} at accounts {at[0]}, {at[1]})"
        if stop == UNBOUNDED:
            return Outcome(Status.UNBOUNDED, remark)
        if task.callback and task.stopped_by_callback(value, violation):
            return Outcome(Status.STOPPED, remark)
        if stop in (CONVERGED, NO_PROGRESS):
            # Never trust the running gradient: settle the sums and look again.
            task.settle()
            seen = task.look()
            value, gradient, (violation, _, _) = seen
            threshold = task.threshold_of(gradient)
            if violation <= threshold:
                return task.stationary(remark, seen)
            fruitless = fruitless + 1 if violation > 0.5 * best else 0
            if task.n_iter == refreshed_at or fruitless > (1 if stop == NO_PROGRESS else 3):
                return Outcome(Status.STALLED, remark or "nothing falls any more but by rounding")
            refreshed_at, best = task.n_iter, min(best, violation)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if task.elapsed >= task.time_limit:
            return Outcome(Status.TIME_LIMIT, remark)
