"""The readable loop: any objective, rule and step, from Python, with the native rules."""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._validation import Array, finite_number, positive_number
from ..result import Progress, Status
from ..rules import Move
from ..rules.accounts import accounts_at, ends_at, no_move
from .ask import ask
from .steps import BACKTRACKING, Length
from .task import NO_PROGRESS, Outcome, Task


def run(task: Task) -> Outcome:
    """Choose, step, repeat."""
    with np.errstate(over="ignore", invalid="ignore"):  # far out on an unbounded problem
        return _run(task)


def _run(task: Task) -> Outcome:
    objective, layout, z = task.objective, task.layout, task.z
    alpha = task.plan.alpha
    gradient, value = objective.gradient(z), objective.value(z)
    task.start_at(value, gradient)
    if math.isnan(alpha):
        alpha = first_guess(task, gradient)
    moved, idle, best = 0, 0, math.inf
    # No minimum is that far from where it is looked for: only a function without one leads there.
    far = 1e100 * (max(np.abs(z).max(), np.abs(layout.totals).max()) or 1.0)
    while True:
        seen = task.seen_at(value, gradient)
        violation = seen.violation
        if task.record:
            interior = int(((z > layout.lower) & (z < layout.upper)).sum())
            task.rows.append(np.array([[value, violation, moved, interior, task.elapsed]]))
        if task.line_is_due:
            task.tell(value, violation)
        if task.n_iter and task.stopped_by_callback(value, violation):
            return Outcome(Status.STOPPED)
        if violation <= task.threshold_at(seen):
            task.settle()
            seen = task.look()
            value, gradient = seen.value, seen.gradient
            if task.is_optimal(seen):
                return task.stationary(seen=seen)
            if not task.aim_lower(seen):
                return Outcome(Status.STALLED, NO_PROGRESS)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER)
        if task.elapsed >= task.time_limit:
            return Outcome(Status.TIME_LIMIT)

        if task.plan.next_alpha is not None:
            progress = Progress(
                task.n_iter, value, violation, layout.to_coordinates(z), task.elapsed
            )
            alpha = positive_number("step", finite_number("step", task.plan.next_alpha(progress)))
        move = propose(task, gradient, alpha)
        task.n_iter += 1
        before = value, z.copy()
        if task.plan.length is BACKTRACKING:
            value, gradient, alpha = backtrack(task, move, gradient, value, alpha)
        else:
            length = length_of(task, move, gradient, alpha)
            if not math.isfinite(length):
                return task.endless("")
            apply(task, move, length)
            gradient, value = objective.gradient(z), objective.value(z)
        moved = len(move.indices)
        if not (math.isfinite(value) and np.abs(z).max() < far):
            z[:] = before[1]
            return task.endless("")

        changed = bool(len(move.indices)) and bool((before[1] != z)[move.indices].any())
        if not changed and task.rule.guided:
            return Outcome(Status.STALLED, NO_PROGRESS)
        progress_made = before[0] - value > 1e-16 * abs(value) or violation < 0.999 * best
        best = min(best, violation)
        idle = 0 if progress_made else idle + 1
        if idle > task.patience:
            return Outcome(Status.STALLED, "neither the objective nor the violation falls any more")


def first_guess(task: Task, gradient: Array) -> float:
    """A step size in the units of the problem: one that moves about as much as there is."""
    guess = float(np.abs(task.z).max()) / (task.violation_of(gradient) or 1.0)
    return guess if 0 < guess < math.inf else 1.0


def propose(task: Task, gradient: Array, alpha: float) -> Move:
    """Ask the rule for its move."""
    if not task.rule.native:
        move = ask(task, gradient, alpha)
        # Up is no way to go: the steps below count on a slope.
        return move if slope_of(task, move, gradient) > 0 else no_move()
    choice = task.choice if alpha == task.plan.alpha else task.choice_with(alpha)
    indices, delta, decrease, _ = _core.propose(task.point, gradient, choice, task.n_iter)
    return Move(indices, delta, decrease)


def ends_of(task: Task, move: Move) -> Array:
    """Where each coordinate of the move would stop: at its next kink or bound."""
    at, falls = move.indices, move.delta < 0
    floor, ceiling = ends_at(task.z, task.layout.lower, task.layout.upper, task.objective.kinks)
    return np.where(falls, floor[at], ceiling[at])


def rooms(task: Task, move: Move) -> Array:
    """How far each coordinate of the move may go, as a multiple of its delta."""
    return np.abs(ends_of(task, move) - task.z[move.indices]) / np.abs(move.delta)


def slope_of(task: Task, move: Move, gradient: Array) -> float:
    """How fast the objective falls along the move, kinks included."""
    layout = task.layout
    accounts = accounts_at(gradient, task.z, layout.lower, layout.upper, task.objective.kinks)
    at = move.indices
    price = np.where(move.delta < 0, accounts.down_price[at], accounts.up_price[at])
    return -float(price @ move.delta)


def apply(task: Task, move: Move, length: float) -> None:
    """Go along the move; a coordinate whose room is used up ends exactly on its bound or kink.

    So does one that comes closer to it than the sums are exact: it would creep towards its bound
    for ever, a part of the way at a time.
    """
    at = move.indices
    end = ends_of(task, move)
    inside = task.z[at] + length * move.delta
    inside = np.where(move.delta < 0, np.maximum(inside, end), np.minimum(inside, end))
    grain = np.finfo(float).eps * float(np.abs(task.z).max())
    task.z[at] = np.where(
        (length >= rooms(task, move)) | (np.abs(end - inside) <= grain), end, inside
    )


def length_of(task: Task, move: Move, gradient: Array, alpha: float) -> float:
    """Minimise the parabola with the curvature that the step assumes, within the rooms."""
    if task.plan.length == Length.model or not len(move.indices):
        return 1.0
    slope = slope_of(task, move, gradient)
    limit = float(rooms(task, move).min())
    if task.layout.nested:
        groups = task.layout.group_rooms(task.z)
        limit = min(limit, task.layout.times(groups, move.indices, move.delta))
    curvature = assumed_curvature(task, move, alpha)
    return min(slope / curvature, limit) if curvature > 0 else limit


def assumed_curvature(task: Task, move: Move, alpha: float) -> float:
    """Give the curvature along the move; `cpp/isa/greedy.hpp` has the same cases, with reasons."""
    plan, size = task.plan, np.abs(move.delta)
    if plan.length == Length.norm:
        constant = 1 / (2 * alpha) if plan.next_alpha else plan.one_norm_constant
        return constant * float(size.sum()) ** 2
    if plan.length == Length.lipschitz:
        assert plan.lipschitz is not None
        constants = plan.lipschitz[move.indices]
        most = float(np.sqrt(constants) @ size) ** 2
        assumed = max(float(constants @ size**2), 0.5 * most)
        true = task.objective.curvature(move.indices, move.delta)
        return most if true is not None and true > 1.999999 * assumed else assumed
    curvature = task.objective.curvature(move.indices, move.delta)
    assert curvature is not None
    return curvature


def backtrack(
    task: Task, move: Move, gradient: Array, value: float, alpha: float
) -> tuple[float, Array, float]:
    """Halve the move until the objective falls by a quarter of what its slope promises.

    Where the fall drowns in the rounding of the objective, the slope at the new point decides
    instead (the approximate Wolfe condition of Hager and Zhang). The step size of the next
    iteration follows what was accepted.
    """
    if not len(move.indices):
        return value, gradient, alpha
    z = task.z
    start = z[move.indices].copy()
    slope = slope_of(task, move, gradient)
    noise = 1e-14 * abs(value)
    for halvings in range(100):
        length = 0.5**halvings
        apply(task, move, length)
        new_value = task.objective.value(z)
        fall = value - new_value
        if fall >= 0.25 * length * slope or abs(fall) <= noise:
            new_gradient = task.objective.gradient(z)
            new_slope = slope - float((gradient - new_gradient)[move.indices] @ -move.delta)
            if fall >= 0.25 * length * slope or new_slope >= -0.5 * slope:
                return new_value, new_gradient, alpha * (2.0 if halvings == 0 else length)
        z[move.indices] = start
    return value, gradient, alpha
