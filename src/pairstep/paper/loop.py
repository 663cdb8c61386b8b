"""Coordinate descent in Python, for any objective, rule and step.

Native rules are called through `_core.propose`. This loop is the specification of the native
coordinate-descent solver, `cpp/paper/descent.hpp`.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._validation import Array, finite_number, positive_number
from ..coordinates import Step, ends_at
from ..result import Progress, Status
from ..solve.task import NO_PROGRESS, Outcome
from .python_rule import propose_step
from .rule_task import RuleTask
from .rules.pairs import no_step
from .steps import BACKTRACKING, Length

NO_IMPROVING_STEP = "the rule returned no step along which the objective decreases"

# Distance, relative to the start and the totals, beyond which a problem counts as unbounded.
UNBOUNDED_DISTANCE = 1e100
# An iteration makes progress if the value decreases by more than this fraction of it, which is
# below the spacing of float64, so that any decrease counts.
VALUE_PROGRESS = 1e-16
# It also makes progress if the violation falls below this fraction of the smallest one so far. A
# larger fraction would count noise as progress.
VIOLATION_PROGRESS = 0.999
# If the true curvature along a step is twice the assumed one, the step ends at the value where it
# began. Above this ratio a Lipschitz step would hardly decrease the objective.
MAX_CURVATURE_RATIO = 1.999999
# Backtracking. A step must reach this fraction of the decrease that its slope predicts. The minimum
# of a parabola reaches 1/2, so steps up to 1.5 times too long are accepted.
SUFFICIENT_DECREASE = 0.25
MAX_HALVINGS = 100  # the last step is 2^-99 of the first, below the precision of any variable
# Rounding error of a value, relative to it: 45 machine epsilons. If the decrease is smaller, the
# slope decides instead.
VALUE_ROUNDING = 1e-14


@np.errstate(over="ignore", invalid="ignore")  # values overflow on unbounded problems
def run(task: RuleTask) -> Outcome:
    """Choose coordinates, take a step, repeat."""
    objective, layout, z = task.objective, task.layout, task.z
    alpha = task.plan.alpha
    gradient, value = objective.gradient(z), objective.value(z)
    task.start_at(value, gradient)
    if math.isnan(alpha):
        alpha = first_guess(task, gradient)
    moved, idle, best = 0, 0, math.inf
    # No minimum is that far away: only a function without a minimum leads there.
    far = UNBOUNDED_DISTANCE * (max(np.abs(z).max(), np.abs(layout.totals).max()) or 1.0)
    while True:
        current = task.evaluation_from(value, gradient)
        violation = current.violation
        if task.record:
            interior = int(((z > layout.lower) & (z < layout.upper)).sum())
            task.rows.append(np.array([[value, violation, moved, interior, task.elapsed]]))
        if task.line_is_due:
            task.log_line(value, violation)
        if task.n_iter and task.stopped_by_callback(value, violation):
            return Outcome(Status.STOPPED)
        if violation <= task.threshold_at(current):
            task.restore_sums()
            current = task.evaluate()
            value, gradient = current.value, current.gradient
            if task.is_optimal(current):
                return task.stationary(current=current)
            if not task.aim_lower(current):
                return Outcome(Status.STALLED, NO_PROGRESS)
        if idle > task.patience:
            return Outcome(Status.STALLED, "neither the objective nor the KKT violation decreases")
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER)
        if task.elapsed >= task.time_limit:
            return Outcome(Status.TIME_LIMIT, evaluation=current)

        if task.plan.next_alpha is not None:
            progress = Progress(task.n_iter, value, violation, layout.from_layout(z), task.elapsed)
            alpha = positive_number("step", finite_number("step", task.plan.next_alpha(progress)))
        step = propose(task, gradient, alpha)
        before = value, z.copy()
        if task.plan.length is BACKTRACKING:
            value, gradient, alpha = backtrack(task, step, gradient, value, alpha)
        else:
            length = length_of(task, step, gradient, alpha)
            if not math.isfinite(length):
                return task.unbounded("")
            apply(task, step, length)
            gradient, value = objective.gradient(z), objective.value(z)
        moved = len(step.indices)
        if not (math.isfinite(value) and np.abs(z).max() < far):
            z[:] = before[1]
            return task.unbounded("")

        changed = bool(len(step.indices)) and bool((before[1] != z)[step.indices].any())
        if not changed and task.rule.guided:
            return Outcome(Status.STALLED, NO_PROGRESS if task.rule.native else NO_IMPROVING_STEP)
        task.n_iter += 1
        lower = before[0] - value > VALUE_PROGRESS * abs(value)
        progress_made = lower or violation < VIOLATION_PROGRESS * best
        best = min(best, violation)
        idle = 0 if progress_made else idle + 1


def first_guess(task: RuleTask, gradient: Array) -> float:
    """Return a first step size: one that changes variables by about the size of the largest."""
    guess = float(np.abs(task.z).max()) / (task.violation_of(gradient) or 1.0)
    return guess if 0 < guess < math.inf else 1.0


def propose(task: RuleTask, gradient: Array, alpha: float) -> Step:
    """Return the step that the rule chooses."""
    if not task.rule.native:
        step = propose_step(task, gradient, alpha)
        # An uphill step is dropped: the step lengths below assume a descent direction.
        return step if slope_of(task, step, gradient) > 0 else no_step()
    choice = task.choice if alpha == task.plan.alpha else task.choice_with(alpha)
    indices, delta, decrease, _ = _core.propose(task.point, gradient, choice, task.n_iter)
    return Step(indices, delta, decrease)


def ends_of(task: RuleTask, step: Step) -> Array:
    """Return where each coordinate of the step meets its next breakpoint or bound."""
    at, decreases = step.indices, step.delta < 0
    below, above = ends_at(task.z, task.layout.lower, task.layout.upper, task.objective.l1_terms)
    return np.where(decreases, below[at], above[at])


def slacks(task: RuleTask, step: Step) -> Array:
    """Return how far each coordinate may go, as a multiple of its entry of the step."""
    return np.abs(ends_of(task, step) - task.z[step.indices]) / np.abs(step.delta)


def slope_of(task: RuleTask, step: Step, gradient: Array) -> float:
    """Return the rate of decrease of the objective along the step, including L1 terms."""
    at = task.coordinates(gradient).some(step.indices)
    derivative = np.where(step.delta < 0, at.left_derivative, at.right_derivative)
    return -float(derivative @ step.delta)


def apply(task: RuleTask, step: Step, length: float) -> None:
    """Take the step; a coordinate that reaches its bound or breakpoint ends exactly there.

    So does a coordinate that ends closer to it than the precision of the sums. Otherwise it would
    approach its bound in ever smaller steps.
    """
    at = step.indices
    end = ends_of(task, step)
    inside = task.z[at] + length * step.delta
    inside = np.where(step.delta < 0, np.maximum(inside, end), np.minimum(inside, end))
    precision = np.finfo(float).eps * float(np.abs(task.z).max())
    task.z[at] = np.where(
        (length >= slacks(task, step)) | (np.abs(end - inside) <= precision), end, inside
    )


def length_of(task: RuleTask, step: Step, gradient: Array, alpha: float) -> float:
    """Return the step length that minimizes a parabola of the assumed curvature."""
    if task.plan.length == Length.model or not len(step.indices):
        return 1.0
    slope = slope_of(task, step, gradient)
    limit = float(slacks(task, step).min())
    if task.layout.nested:
        groups = task.layout.group_slacks(task.z)
        limit = min(limit, task.layout.times(groups, step.indices, step.delta))
    curvature = assumed_curvature(task, step, alpha)
    return min(slope / curvature, limit) if curvature > 0 else limit


def assumed_curvature(task: RuleTask, step: Step, alpha: float) -> float:
    """Return the curvature assumed along the step; `cpp/paper/descent.hpp` explains the cases."""
    plan, size = task.plan, np.abs(step.delta)
    if plan.length == Length.norm:
        constant = 1 / (2 * alpha) if plan.next_alpha else plan.one_norm_constant
        return constant * float(size.sum()) ** 2
    if plan.length == Length.lipschitz:
        assert plan.lipschitz is not None
        constants = plan.lipschitz[step.indices]
        most = float(np.sqrt(constants) @ size) ** 2
        assumed = max(float(constants @ size**2), 0.5 * most)
        true = task.objective.curvature(step.indices, step.delta)
        return most if true is not None and true > MAX_CURVATURE_RATIO * assumed else assumed
    curvature = task.objective.curvature(step.indices, step.delta)
    assert curvature is not None
    return curvature


def backtrack(
    task: RuleTask, step: Step, gradient: Array, value: float, alpha: float
) -> tuple[float, Array, float]:
    """Halve the step until the objective decreases by a quarter of what its slope predicts.

    If the decrease is within the rounding error of the objective, the slope at the new point
    decides instead (the approximate Wolfe condition of Hager and Zhang). The step size of the next
    iteration is derived from the accepted length.
    """
    if not len(step.indices):
        return value, gradient, alpha
    z = task.z
    start = z[step.indices].copy()
    slope = slope_of(task, step, gradient)
    noise = VALUE_ROUNDING * abs(value)
    for halvings in range(MAX_HALVINGS):
        length = 0.5**halvings
        apply(task, step, length)
        new_value = task.objective.value(z)
        decrease = value - new_value
        if decrease >= SUFFICIENT_DECREASE * length * slope or abs(decrease) <= noise:
            new_gradient = task.objective.gradient(z)
            new_slope = slope - float((gradient - new_gradient)[step.indices] @ -step.delta)
            if decrease >= SUFFICIENT_DECREASE * length * slope or new_slope >= -0.5 * slope:
                return new_value, new_gradient, alpha * (2.0 if halvings == 0 else length)
        z[step.indices] = start
    return value, gradient, alpha
