"""The gear for smooth functions: a sequence of quadratics under the same sums and bounds.

Around the present point the function is replaced by its second-order model, which the gears for
quadratics minimise within the sums and bounds, from the last model's minimum; then a line search on
the function itself decides how far to go towards the new one. Where the objective has a
Hessian this is Newton's method with constraints, a handful of iterations to rounding; elsewhere the
model's curvature is learnt (`Learnt`), and its minimum is a formula once no bound is in the way.

- Variables at a bound or kink that the present prices keep there stay out of the model, so that
  only the part of the Hessian is needed between those that move.
- Where the model is not convex, or no step towards its minimum gains, it is damped: a multiple of
  the squared distance from the present point is added, the more the worse.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .. import _core
from .._validation import LARGE, Array
from ..constraints import Layout
from ..constraints.layout import GRAIN
from ..objectives import Kinked, Objective, value_and_gradient
from ..objectives.objective import Indices
from ..result import Status
from ..rules import rule_of
from . import block, greedy
from .learnt import Learnt
from .small import minimum_at_once
from .steps import Length, StepPlan
from .task import NO_PROGRESS, NOT_CONVEX, Outcome, Seen, Task

SUFFICIENT = 1e-4  # of the fall that the slope promises (Armijo)
# Where the objective rises at the end of a step more steeply than it fell at its beginning, as it
# does close to the end of its domain, the next iterations would go into coming back: stop before.
BEFORE_THE_WALL = 0.9
SHORTEST = 2.0**-40  # of the way to the model's minimum
FIRST_DAMPING = 1e-3  # of the curvature that it is added to
LAST_DAMPING = 1e12
# By how much a model is solved better than the point is: the share that the next violation may
# keep of this one, and the least that arithmetic allows.
SHARE = 0.01
FINEST = 1e-13
SAMPLE_TOL = 1e-6  # sharp enough for the variables that end at a bound to be there
QP_ITERATIONS = 1_000_000
NOISE = 1e-14  # of a value, by rounding
PATIENCE = 5  # iterations in which neither the objective nor the violation falls
LEARNING = 100  # the same where curvature is learnt: violations fall slowly, and not each time
EVERYBODY = slice(None)


def run(task: Task) -> Outcome:
    """Model, minimise the model, search along the line, repeat."""
    with np.errstate(all="ignore"):  # outside the domain, and far out on an unbounded problem
        return _run(task)


def _run(task: Task) -> Outcome:
    objective, z = task.objective, task.z
    value, gradient = value_and_gradient(objective, z)
    if value == math.inf and math.isfinite(objective.value(z)):
        objective.gradient(z)  # says what is not finite
    task.start_at(value, gradient)
    spread = task.layout.project(np.zeros(task.layout.n))
    if np.array_equal(z, spread):
        value, gradient = _from_sample(task, value, gradient)
    # The last model's minimum; at first a start that was given, or is better than anyone's.
    target = None if np.array_equal(z, spread) else z.copy()
    learnt = Learnt(len(z))
    damping, moved, idle, best, lowest = 0.0, 0, 0, math.inf, value
    plain = False  # whether the last model was convex as it was, without damping
    # No minimum is that far from where it is looked for: only a function without one leads there.
    far = 1e100 * (max(np.abs(z).max(), np.abs(task.layout.totals).max()) or 1.0)
    while True:
        seen = task.seen_at(value, gradient)
        if task.record:
            interior = int(((z > task.layout.lower) & (z < task.layout.upper)).sum())
            task.rows.append(np.array([[value, seen.violation, moved, interior, task.elapsed]]))
        if task.line_is_due:
            task.tell(value, seen.violation)
        if task.n_iter and task.stopped_by_callback(value, seen.violation):
            return Outcome(Status.STOPPED, seen=seen)
        if seen.violation <= task.threshold_at(seen):
            if task.is_optimal(seen):
                return Outcome(Status.OPTIMAL, seen=seen) if plain else _stationary(task, seen)
            if not task.aim_lower(seen):
                return Outcome(Status.STALLED, NO_PROGRESS, seen)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, seen=seen)
        idle = 0 if seen.violation < 0.5 * best else idle + 1
        best = min(best, seen.violation)

        moving = _moving(task, seen)
        layout = _with_the_others_fixed(task.layout, moving, z)
        exact = _second_order(objective, z, moving)
        patience = LEARNING if exact is None else PATIENCE
        task.n_iter += 1
        while True:
            if task.elapsed >= task.time_limit:
                return Outcome(Status.TIME_LIMIT, seen=seen)
            if exact is None:
                target, convex = _learnt_minimum(task, learnt, moving, damping, seen, target)
            else:
                amount = _amount(damping, exact.lipschitz[moving], seen, z)
                model = exact.plus(gradient, amount, z)
                target, convex = _minimum(task, model, layout, EVERYBODY, seen, target)
            found = _search(task, seen, target) if convex else None
            if found is not None:
                break
            if exact is None and learnt:
                learnt.forget()
            elif damping < LAST_DAMPING and not (convex and idle > patience):
                damping = max(10 * damping, FIRST_DAMPING)
            else:
                return Outcome(Status.STALLED, NO_PROGRESS, seen)
            target = z.copy()
        point, new_value, new_gradient = found
        if not (new_value > -math.inf and np.abs(point).max() < far):
            return Outcome(Status.UNBOUNDED, seen=seen)
        if lowest - new_value > NOISE * _size(task, seen):  # a value may rise by noise, and fall
            idle, lowest = 0, new_value
        elif idle > patience:
            return Outcome(Status.STALLED, NO_PROGRESS, seen)
        learnt.learn(point - z, new_gradient - gradient)
        moved = int((point != z).sum())
        z[:], value, gradient = point, new_value, new_gradient
        plain = damping == 0.0
        damping = damping / 10 if damping > FIRST_DAMPING else 0.0


def _from_sample(task: Task, value: float, gradient: Array) -> tuple[float, Array]:
    """Start from the minimum of a similar function that costs less, if there is one."""
    part = getattr(task.objective, "sample", lambda z: None)(task.z)
    if part is None:
        return value, gradient
    kinks = task.objective.kinks
    similar = dataclasses.replace(
        task,
        objective=part if kinks is None else Kinked(part, *kinks),
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


def _stationary(task: Task, seen: Seen) -> Outcome:
    """What to call a stationary point: the optimum if the function is convex there."""
    model = _second_order(task.objective, task.z, np.arange(task.layout.n))
    if model is None or model.prefers_blocks:
        return Outcome(Status.OPTIMAL, seen=seen)
    return _quadratic_task(task, model, task.layout).stationary(seen=seen)


def _second_order(objective: Objective, z: Array, moving: Indices) -> Any:
    known = getattr(objective, "second_order", None)
    return None if known is None else known(z, moving)


def _moving(task: Task, seen: Seen) -> Indices:
    """Those that would trade at prices near the present ones."""
    layout = task.layout
    if layout.nested:  # groups trade across, at prices of their own
        return np.flatnonzero(layout.lower < layout.upper)
    return _core.moving(task.point, seen.gradient, seen.multiplier, seen.violation)


def _with_the_others_fixed(layout: Layout, moving: Indices, z: Array) -> Layout:
    if len(moving) == layout.n:
        return layout
    lower, upper = z.copy(), z.copy()
    lower[moving], upper[moving] = layout.lower[moving], layout.upper[moving]
    return dataclasses.replace(layout, lower=lower, upper=upper)


def _amount(damping: float, curvature: Array, seen: Seen, z: Array) -> float:
    """What is to be added to the diagonal of a Hessian."""
    return damping * (float(np.abs(curvature).max()) or _guess(seen, z)) if damping else 0.0


def _guess(seen: Seen, z: Array) -> float:
    """A curvature that nothing is known of."""
    # Amounts may be as small as numbers can be, and a curvature no larger than what is allowed.
    return min(seen.violation / (float(np.abs(z).max()) or 1.0), LARGE)


def _learnt_minimum(
    task: Task, learnt: Learnt, moving: Indices, damping: float, seen: Seen, last: Array | None
) -> tuple[Array, bool]:
    """The minimum of the model with the curvature learnt, which is convex.

    Most often, later on, no bound is in the way.
    """
    layout, z, gradient = task.layout, task.z[moving], seen.gradient[moving]
    bend = learnt.bend(moving, layout, _guess(seen, task.z))
    if not (damping or layout.nested or task.objective.kinks):
        point = z + bend.step(gradient)
        if (point >= layout.lower[moving]).all() and (point <= layout.upper[moving]).all():
            target = task.z.copy()
            target[moving] = point
            return target, True
    model = bend.around(z)
    model = model.plus(gradient, _amount(damping, model.lipschitz, seen, task.z), z)
    return _minimum(task, model, layout.among(moving, task.z), moving, seen, last)


def _minimum(
    task: Task, model: Any, layout: Layout, members: Any, seen: Seen, last: Array | None
) -> tuple[Array, bool]:
    """The minimum of the model, and whether the model is convex.

    From the last model's minimum, which has the right variables at their bounds when the point on
    the way there does not; the first time from a point with few variables between their bounds.
    """
    part = _quadratic_task(task, model, layout, members)
    wanted = seen.violation * min(SHARE, seen.violation / seen.scale)
    part.tol = max(wanted / _core.scale(part.point, seen.gradient[members], model.linear), FINEST)
    target = task.z.copy()
    if task.objective.kinks is None:
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
    outcome = (block if block.suits(model, layout) else greedy).run(part)
    convex = outcome.status != Status.UNBOUNDED and not outcome.remark.startswith(NOT_CONVEX)
    target[members] = part.z
    return target, convex


def _quadratic_task(task: Task, model: Any, layout: Layout, members: Any = EVERYBODY) -> Task:
    kinks = task.objective.kinks
    return Task(
        objective=model if kinks is None else Kinked(model, kinks[0][members], kinks[1][members]),
        layout=layout,
        rule=rule_of("libsvm"),
        plan=StepPlan(Length.exact),
        z=task.z[members].copy(),
        tol=task.tol,
        max_iter=QP_ITERATIONS,
        time_limit=task.time_left,
        callback=None,
        rng=task.rng,
        record=False,
        finish=True,
        next_line=math.inf,  # nobody wants to read of the steps of a step
    )


def _search(task: Task, seen: Seen, target: Array) -> tuple[Array, float, Array] | None:
    """A point on the way to the target where the objective falls, with its value and gradient.

    Where the fall drowns in the rounding of the objective, the slope at the new point decides
    instead (the approximate Wolfe condition of Hager and Zhang). Outside the domain nothing falls.
    Slopes are of the gradient less the multipliers, which no direction that keeps the sums feels:
    the rounding of the sums would.
    """
    layout, kinks = task.layout, task.objective.kinks
    direction = target - task.z
    level = _level(layout, seen.multiplier, task.z, direction)[layout.group]
    kinked = 0.0
    if kinks is not None:
        weight, pivot = kinks
        kinked = _core.dot(weight, np.abs(target - pivot) - np.abs(task.z - pivot))
    slope = _core.dot(seen.gradient - level, direction) + kinked
    if not slope < 0:
        return None
    noise = NOISE * _size(task, seen)
    length = 1.0
    while length > SHORTEST:
        point = target.copy()
        if length < 1:
            point = np.clip(task.z + length * direction, layout.lower, layout.upper)
        layout.settle(point, None if kinks is None else kinks[1])
        value, gradient = value_and_gradient(task.objective, point)
        fall = seen.value - value
        new_slope = _core.dot(gradient - level, direction) + kinked
        if fall >= -SUFFICIENT * length * slope:
            if new_slope <= -slope or length < 0.5:
                return point, value, gradient
            length *= BEFORE_THE_WALL
            continue
        if abs(fall) <= noise and new_slope <= (2 * SUFFICIENT - 1) * slope:
            return point, value, gradient
        length *= _shorter(fall, length * slope)
    return None


def _level(layout: Layout, multiplier: Array, z: Array, direction: Array) -> Array:
    """The multiplier of each group whose sum stays; of one that changes under a total, of that."""
    if not layout.nested:
        return multiplier
    change = np.add.reduceat(direction, layout.starts[:-1])
    stays = np.abs(change) <= GRAIN * np.maximum.reduceat(np.abs(z), layout.starts[:-1])
    return np.asarray(multiplier[0] + np.where(stays, multiplier[1:], 0.0))


def _size(task: Task, seen: Seen) -> float:
    """The size of the terms that the objective is a sum of, as far as it can be seen."""
    products = _core.dot(np.abs(seen.gradient), np.abs(task.z))
    return max(abs(seen.value), seen.size, products)


def _shorter(fall: float, slope: float) -> float:
    """The minimum of the parabola with this slope and fall, from a tenth to a half."""
    if not math.isfinite(fall):
        return 0.5
    return float(np.clip(0.5 * slope / (fall + slope), 0.1, 0.5))
