"""The SQP solver for smooth functions: a sequence of quadratic models under the same constraint.

In each iteration the function is replaced by its second-order model around the current point. The
solvers for quadratics minimize the model within the sums and bounds, starting from the minimum of
the previous model. A line search on the function itself then decides how far to go. If the
objective has a Hessian this is Newton's method with constraints, which needs few iterations.
Otherwise curvature is estimated from gradients (`GradientHistory`), and the minimum has a closed
form if no bound is active.

- Variables that stay at a bound or breakpoint according to their derivatives are left out of the
  model, so only the Hessian of the others is needed.
- If the model is not convex, or no step towards its minimum makes progress, it is damped: a
  multiple of the squared distance from the current point is added.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .. import _core
from .._validation import LARGE, Array
from ..constraints import Layout
from ..constraints.layout import SUM_ROUNDING
from ..objectives import L1Penalized, value_and_gradient
from ..objectives.objective import Indices, sample, second_order
from ..result import Status
from . import block, greedy
from .bfgs import GradientHistory
from .recession import direction_of_fall
from .small import minimum_at_once
from .task import NO_PROGRESS, NOT_CONVEX, Evaluation, Outcome, Task

# Line search.
SUFFICIENT_DECREASE = 1e-4  # fraction of the decrease predicted by the slope; the usual value
# If the objective rises more steeply at the end of a step than it fell at the start, as near the
# edge of its domain, the step is multiplied by this factor, down to half its length. Otherwise
# later iterations would have to undo a part of it.
OVERSHOOT_FACTOR = 0.9
MIN_STEP_FRACTION = 2.0**-40  # of the step to the model's minimum; a shorter one hardly changes z
VALUE_ROUNDING = 1e-14  # relative rounding error of a value, 45 machine epsilons

# Damping, relative to the largest curvature of the model. It grows tenfold from the first to the
# last value while a model fails. A smaller first value needs more models; the last one allows only
# steps close to rounding errors.
FIRST_DAMPING = 1e-3
LAST_DAMPING = 1e12

# Accuracy of the model problems.
# Violation of a model's solution relative to that of the current point. A larger value needs more
# models; a smaller one spends time on models that are inaccurate anyway.
MODEL_ACCURACY = 0.01
MIN_TOL = 1e-13  # smallest tolerance that a model's solver can reach despite rounding errors
SAMPLE_TOL = 1e-6  # accurate enough to identify the variables at a bound
MODEL_ITERATIONS = 1_000_000  # limit per model, the same as `minimize` uses for a quadratic

# Stopping. The solve stops after this many consecutive iterations in which neither the objective
# decreases beyond rounding nor the violation is halved. A larger number repeats useless iterations;
# a smaller one may stop a slow solve too early.
PATIENCE = 5
# The same if curvature is estimated from gradients: violations then decrease slowly and
# irregularly.
PATIENCE_WITHOUT_HESSIAN = 100
# A step whose largest entry is at least this fraction of the largest variable is tested for a ray
# of descent. A smaller fraction tests more often; a larger one finds unbounded problems later.
LONG_STEP = 0.5
# After this many iterations, twice as many, and so on, there is a thorough test. With a Hessian,
# the solve also stops there unless the value has decreased by `tol` or the violation has been
# halved since the last test, because Newton's method makes only tiny steps if rounding hides the
# curvature.
FIRST_THOROUGH_TEST = 32
# Distance, relative to the start and the totals, beyond which a problem counts as unbounded.
UNBOUNDED_DISTANCE = 1e100
ALL = slice(None)


def run(task: Task) -> Outcome:
    """Build a model, minimize it, search along the line, repeat."""
    with np.errstate(all="ignore"):  # points outside the domain and unbounded problems overflow
        return _run(task)


def _run(task: Task) -> Outcome:
    objective, z = task.objective, task.z
    value, gradient = value_and_gradient(objective, z)
    if value == math.inf and math.isfinite(objective.value(z)):
        objective.gradient(z)  # raises an error that names the entry that is not finite
    task.start_at(value, gradient)
    spread = task.layout.project(np.zeros(task.layout.n))
    if np.array_equal(z, spread):
        value, gradient = _from_sample(task, value, gradient)
    # The minimum of the previous model; at first z, unless z is only the even spread.
    target = None if np.array_equal(z, spread) else z.copy()
    steps = GradientHistory(len(z))
    damping, moved, idle, best, lowest = 0.0, 0, 0, math.inf, value
    last_test = math.inf, math.inf  # value and violation at the last test
    undamped = False  # whether the last model was convex without damping
    # No minimum is that far away: only a function without a minimum leads there.
    far = UNBOUNDED_DISTANCE * (max(np.abs(z).max(), np.abs(task.layout.totals).max()) or 1.0)
    while True:
        current = task.evaluation_from(value, gradient)
        if task.record:
            interior = int(((z > task.layout.lower) & (z < task.layout.upper)).sum())
            task.rows.append(np.array([[value, current.violation, moved, interior, task.elapsed]]))
        if task.line_is_due:
            task.log_line(value, current.violation)
        if task.n_iter and task.stopped_by_callback(value, current.violation):
            return Outcome(Status.STOPPED, evaluation=current)
        if current.violation <= task.threshold_at(current):
            if task.is_optimal(current):
                return (
                    Outcome(Status.OPTIMAL, evaluation=current)
                    if undamped
                    else _stationary(task, current)
                )
            if not task.aim_lower(current):
                return Outcome(Status.STALLED, NO_PROGRESS, current)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, evaluation=current)
        idle = 0 if current.violation < 0.5 * best else idle + 1
        best = min(best, current.violation)

        moving = _moving(task, current)
        layout = _with_the_others_fixed(task.layout, moving, z)
        exact = second_order(objective, z, moving)
        patience = PATIENCE_WITHOUT_HESSIAN if exact is None else PATIENCE
        while True:
            if task.elapsed >= task.time_limit:
                return Outcome(Status.TIME_LIMIT, evaluation=current)
            if exact is None:
                target, convex = _bfgs_minimum(task, steps, moving, damping, current, target)
            else:
                amount = _amount(damping, exact.lipschitz[moving], current, z)
                model = exact.plus(gradient, amount, z)
                target, convex = _minimum(task, model, layout, ALL, current, target)
            found = _search(task, current, target) if convex else None
            if found is not None:
                break
            if exact is None and steps:
                steps.forget()
            elif damping < LAST_DAMPING and not (convex and idle > patience):
                damping = max(10 * damping, FIRST_DAMPING)
            else:
                return Outcome(Status.STALLED, NO_PROGRESS, current)
            target = z.copy()
        point, new_value, new_gradient = found
        if not (new_value > -math.inf and np.abs(point).max() < far):
            return Outcome(Status.UNBOUNDED, evaluation=current)
        test_due = task.n_iter >= FIRST_THOROUGH_TEST and task.n_iter.bit_count() == 1
        if test_due or np.abs(point - z).max() >= LONG_STEP * np.abs(z).max():
            falling = direction_of_fall(task, point - z, thorough=test_due)
            if falling is not None:
                return Outcome(Status.UNBOUNDED, evaluation=current, direction=falling)
        if test_due:
            gained = last_test[0] - new_value > task.tol * _size(task, current)
            if exact is not None and not gained and current.violation > 0.5 * last_test[1]:
                return Outcome(Status.STALLED, NO_PROGRESS, current)
            last_test = new_value, current.violation
        if lowest - new_value > VALUE_ROUNDING * _size(
            task, current
        ):  # the value may go up and down by noise
            idle, lowest = 0, new_value
        elif idle > patience:
            return Outcome(Status.STALLED, NO_PROGRESS, current)
        steps.append(point - z, new_gradient - gradient)
        task.n_iter += 1
        moved = int((point != z).sum())
        z[:], value, gradient = point, new_value, new_gradient
        undamped = damping == 0.0
        damping = damping / 10 if damping > FIRST_DAMPING else 0.0


def _from_sample(task: Task, value: float, gradient: Array) -> tuple[float, Array]:
    """Start from the minimum of a similar function that is cheaper, if there is one."""
    part = sample(task.objective, task.z)
    if part is None:
        return value, gradient
    l1_terms = task.objective.l1_terms
    similar = dataclasses.replace(
        task,
        objective=part if l1_terms is None else L1Penalized(part, *l1_terms),
        z=task.z.copy(),
        tol=max(task.tol, SAMPLE_TOL),
        callback=None,
        record=False,
        next_line=math.inf,
    )
    _run(similar)
    new_value, new_gradient = value_and_gradient(task.objective, similar.z)
    if not new_value < value:  # outside the domain, perhaps
        return value, gradient
    task.z[:] = similar.z
    return new_value, new_gradient


def _stationary(task: Task, current: Evaluation) -> Outcome:
    """Return the outcome at a stationary point: optimal if the Hessian is positive semidefinite."""
    model = second_order(task.objective, task.z, np.arange(task.layout.n))
    if model is None or model.prefers_blocks:
        return Outcome(Status.OPTIMAL, evaluation=current)
    return _quadratic_task(task, model, task.layout).stationary(current=current)


def _moving(task: Task, current: Evaluation) -> Indices:
    """Return the variables that may change in this iteration, judging by their derivatives."""
    layout = task.layout
    if layout.nested:  # exchanges between groups depend on several multipliers
        return np.flatnonzero(layout.lower < layout.upper)
    return _core.moving(task.point, current.gradient, current.multiplier, current.violation)


def _with_the_others_fixed(layout: Layout, moving: Indices, z: Array) -> Layout:
    if len(moving) == layout.n:
        return layout
    lower, upper = z.copy(), z.copy()
    lower[moving], upper[moving] = layout.lower[moving], layout.upper[moving]
    return dataclasses.replace(layout, lower=lower, upper=upper)


def _amount(damping: float, curvature: Array, current: Evaluation, z: Array) -> float:
    """Return the number to add to the diagonal of a Hessian."""
    return damping * (float(np.abs(curvature).max()) or _guess(current, z)) if damping else 0.0


def _guess(current: Evaluation, z: Array) -> float:
    """Return a first estimate of the curvature."""
    # Variables may be tiny; limit the curvature to the largest number that products allow.
    return min(current.violation / (float(np.abs(z).max()) or 1.0), LARGE)


def _bfgs_minimum(
    task: Task,
    steps: GradientHistory,
    moving: Indices,
    damping: float,
    current: Evaluation,
    last: Array | None,
) -> tuple[Array, bool]:
    """Return the minimum of the model with estimated curvature, and whether the model is convex.

    In late iterations usually no bound is in the way, and the minimum has a closed form.
    """
    layout, z, gradient = task.layout, task.z[moving], current.gradient[moving]
    hessian = steps.hessian(moving, layout, _guess(current, task.z))
    if not (damping or layout.nested or task.objective.l1_terms):
        point = z + hessian.step(gradient)
        if (point >= layout.lower[moving]).all() and (point <= layout.upper[moving]).all():
            target = task.z.copy()
            target[moving] = point
            return target, True
    model = hessian.around(z)
    model = model.plus(gradient, _amount(damping, model.lipschitz, current, task.z), z)
    return _minimum(task, model, layout.among(moving, task.z), moving, current, last)


def _minimum(
    task: Task, model: Any, layout: Layout, members: Any, current: Evaluation, last: Array | None
) -> tuple[Array, bool]:
    """Return the minimum of the model, and whether the model is convex.

    The start is the previous model's minimum, which often has the right variables at their bounds.
    The first start is a point with few free variables.
    """
    part = _quadratic_task(task, model, layout, members)
    wanted = current.violation * min(MODEL_ACCURACY, current.violation / current.scale)
    part.tol = max(
        wanted / _core.scale(part.point, current.gradient[members], model.linear), MIN_TOL
    )
    target = task.z.copy()
    if task.objective.l1_terms is None:
        plain = minimum_at_once(model, layout, part.z, part.tol)
        if plain is not None:
            target[members] = plain
            return target, True
    bounded = bool(np.isfinite(layout.lower).all())
    if last is not None:
        part.z[:] = layout.project(np.where(layout.lower < layout.upper, last[members], part.z))
    elif bounded:
        constants = np.maximum(model.lipschitz, 0.0)
        part.z[:] = layout.fill(model.gradient(layout.lower), constants)
    outcome = (block if block.preferred(model, layout) else greedy).run(part)
    convex = outcome.status != Status.UNBOUNDED and not outcome.remark.startswith(NOT_CONVEX)
    target[members] = part.z
    return target, convex


def _quadratic_task(task: Task, model: Any, layout: Layout, members: Any = ALL) -> Task:
    l1_terms = task.objective.l1_terms
    return Task(
        objective=model
        if l1_terms is None
        else L1Penalized(model, l1_terms[0][members], l1_terms[1][members]),
        layout=layout,
        z=task.z[members].copy(),
        tol=task.tol,
        max_iter=MODEL_ITERATIONS,
        time_limit=task.time_left,
        callback=None,
        record=False,
        next_line=math.inf,  # no log lines from the model problems
    )


def _search(task: Task, current: Evaluation, target: Array) -> tuple[Array, float, Array] | None:
    """Return a point towards the target with a smaller value, its value and gradient; or None.

    If the decrease is within the rounding error of the objective, the slope at the new point
    decides instead (the approximate Wolfe condition of Hager and Zhang). Points outside the domain
    are rejected. Slopes are computed with the gradient minus the multipliers. This does not change
    the slope along a direction that keeps the sums, but otherwise rounding errors of the sums would
    enter the slope.
    """
    layout, l1_terms = task.layout, task.objective.l1_terms
    direction = target - task.z
    level = _level(layout, current.multiplier, task.z, direction)[layout.group]
    l1_change = 0.0
    if l1_terms is not None:
        weight, breakpoint = l1_terms
        l1_change = _core.dot(weight, np.abs(target - breakpoint) - np.abs(task.z - breakpoint))
    slope = _core.dot(current.gradient - level, direction) + l1_change
    if not slope < 0:
        return None
    noise = VALUE_ROUNDING * _size(task, current)
    length = 1.0
    while length > MIN_STEP_FRACTION:
        point = target.copy()
        if length < 1:
            point = np.clip(task.z + length * direction, layout.lower, layout.upper)
        layout.restore_sums(point, None if l1_terms is None else l1_terms[1])
        value, gradient = value_and_gradient(task.objective, point)
        fall = current.value - value
        new_slope = _core.dot(gradient - level, direction) + l1_change
        if fall >= -SUFFICIENT_DECREASE * length * slope:
            if new_slope <= -slope or length < 0.5:
                return point, value, gradient
            length *= OVERSHOOT_FACTOR
            continue
        if abs(fall) <= noise and new_slope <= (2 * SUFFICIENT_DECREASE - 1) * slope:
            return point, value, gradient
        length *= _shorter(fall, length * slope)
    return None


def _level(layout: Layout, multiplier: Array, z: Array, direction: Array) -> Array:
    """Return each group's multiplier, without that of its limits if the step changes its sum."""
    if not layout.nested:
        return multiplier
    change = np.add.reduceat(direction, layout.starts[:-1])
    stays = np.abs(change) <= SUM_ROUNDING * np.maximum.reduceat(np.abs(z), layout.starts[:-1])
    return np.asarray(multiplier[0] + np.where(stays, multiplier[1:], 0.0))


def _size(task: Task, current: Evaluation) -> float:
    """Return the size of the terms that cancel in the objective, as far as known."""
    products = _core.dot(np.abs(current.gradient), np.abs(task.z))
    return max(abs(current.value), current.size, products)


def _shorter(fall: float, slope: float) -> float:
    """Return the factor to shorten a step by: the minimum of a parabola, clipped to [0.1, 0.5]."""
    if not math.isfinite(fall):
        return 0.5
    return float(np.clip(0.5 * slope / (fall + slope), 0.1, 0.5))
