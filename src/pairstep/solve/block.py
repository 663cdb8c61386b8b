"""The block gear: for Hessians that are not at hand as a whole.

Pick a working set, take its rows and columns of the Hessian, run the greedy gear on that small
problem, and compute the gradient afresh: one pass over the data per round, never n x n.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from .greedy import SLICE, UNBOUNDED
from .task import NOT_CONVEX, Outcome, Task

LARGEST = 4000  # accounts in a working set: its block of the Hessian takes 128 MB


def run(task: Task) -> Outcome:
    """Run the block gear to its end."""
    objective, layout = task.objective, task.layout
    gradient = objective.gradient(task.z)
    newcomers = 64
    best, since_best = math.inf, 0
    # Cheap and partial: a block of the Hessian may show more, see `bend` below.
    constants = objective.lipschitz
    remark = NOT_CONVEX if constants is not None and constants.min() < 0 else ""
    members = np.empty(0, np.int64)
    while True:
        violation = task.violation_of(gradient)
        value = objective.value(task.z) if task.record or task.callback else math.nan
        if task.record:
            interior = int(((task.z > layout.lower) & (task.z < layout.upper)).sum())
            row = value, violation, len(members), interior, task.elapsed
            task.rows.append(np.array([row]))
        if task.n_iter and task.stopped_by_callback(value, violation):
            return Outcome(Status.STOPPED, remark)
        if violation <= task.threshold_of(gradient):
            task.settle()
            gradient = objective.gradient(task.z)
            if task.violation_of(gradient) <= task.threshold_of(gradient):
                return Outcome(Status.STALLED if remark else Status.OPTIMAL, remark)
        if task.n_iter >= task.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if task.elapsed >= task.time_limit:
            return Outcome(Status.TIME_LIMIT, remark)
        # More newcomers where the violation does not fall; stop where that does not help either.
        if violation < 0.5 * best:
            best, since_best = violation, 0
        else:
            since_best += 1
            newcomers = min(2 * newcomers, LARGEST)
        if since_best > 100:
            return Outcome(Status.STALLED, remark or "nothing falls any more but by rounding")

        members = working_set(task, gradient, newcomers)
        goal = max(0.02 * violation, 0.3 * task.threshold_of(gradient))
        stop, bend = solve_block(task, gradient, members, goal)
        if bend < 0:
            remark = NOT_CONVEX
        if stop == UNBOUNDED:
            return Outcome(Status.UNBOUNDED, remark)
        gradient = objective.gradient(task.z)


def working_set(task: Task, gradient: Array, newcomers: int) -> Indices:
    """The free accounts, and of the others those whose prices are furthest out, per side."""
    z, low, high, weight, pivot, starts = task.place()
    down, up = prices(gradient, z, weight, pivot)
    sell = np.where(z > low, down, -np.inf)
    buy = np.where(z < high, -up, -np.inf)
    free = (z > low) & (z < high)
    if free.sum() > LARGEST:  # keep the free ones that are furthest from balance
        spread = np.abs(gradient - np.median(gradient[free]))
        free &= spread >= np.partition(spread[free], -LARGEST)[-LARGEST]
    chosen = free.copy()
    for begin, end in pairwise(starts):
        count = min(newcomers, end - begin)
        for score in (sell[begin:end], buy[begin:end]):
            best = begin + np.argpartition(score, -count)[-count:]
            chosen[best[np.isfinite(score[best - begin])]] = True
    return np.flatnonzero(chosen)


def prices(
    gradient: Array, z: Array, weight: Array | None, pivot: Array | None
) -> tuple[Array, Array]:
    """Down-prices and up-prices."""
    if weight is None or pivot is None:
        return gradient, gradient
    return (
        gradient + np.where(z > pivot, weight, -weight),
        gradient + np.where(z >= pivot, weight, -weight),
    )


def solve_block(task: Task, gradient: Array, members: Indices, goal: float) -> tuple[int, float]:
    """Run the greedy gear on a working set; z changes in place."""
    z, low, high, weight, pivot, starts = task.place()
    hessian = task.objective.block(members)
    assert hessian is not None
    small_z, small_gradient = z[members], gradient[members]
    small_weight = None if weight is None else weight[members]
    small_pivot = None if pivot is None else pivot[members]
    small_starts = np.searchsorted(members, starts)
    constants = None if task.plan.lipschitz is None else task.plan.lipschitz[members]
    bend, stop = 0.0, -1
    iterations = 0
    most = min(10_000 + 100 * len(members), task.max_iter - task.n_iter)
    while True:
        stop, iterations, _, _, bend, _, _ = _core.greedy(
            hessian, small_gradient, small_z, low[members], high[members], small_weight,
            small_pivot, small_starts,
            task.rule.code, task.plan.alpha, constants, None, int(task.plan.length),
            task.plan.one_norm_constant, goal, iterations, most,
            min(SLICE, max(task.time_limit - task.elapsed, 0.0)), 0.0, 1000 + 10 * len(members),
            task.finish, False,
        )  # fmt: skip
        if stop != 2 or task.elapsed >= task.time_limit:  # 2: out of time, for this slice
            break
    z[members] = small_z
    task.n_iter += max(iterations, 1)
    return stop, bend
