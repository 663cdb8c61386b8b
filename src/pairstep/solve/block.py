"""Drives the block gear: for Hessians that are not at hand as a whole.

The native gear picks working sets, solves them by the greedy gear and advances the prices; what it
needs of the problem it asks an oracle, see `pairstep.solve.oracle`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from ..constraints import Layout
from ..objectives import Objective, value_and_gradient
from ..result import Status
from .oracle import ObjectiveOracle
from .task import NO_PROGRESS, NOT_CONVEX, Outcome, Seen, Task

Stop = _core.BlockStop
WITHOUT_END = 2**62  # rounds


def run(task: Task) -> Outcome:
    """Run the block gear to its end."""
    layout = task.layout
    solve = _core.BlockSolve(oracle_of(task), task.point, layout.totals, task.rule.code, True)
    task.start_at(*value_and_gradient(task.objective, task.z))
    watched = task.callback is not None or task.record or task.heard
    best, fruitless = math.inf, 0
    if task.record:
        record(task, solve, task.look())
    while True:
        stop = solve.run(
            task.strictness * task.tol, task.max_iter, 1 if watched else WITHOUT_END, task.time_left
        )
        task.n_iter = solve.iterations
        if task.record and stop in (Stop.paused, Stop.leapt):
            record(task, solve, task.look())
        if task.line_is_due:
            seen = task.look()
            task.tell(seen.value, seen.violation)
        # Cheap and partial: a block of the Hessian may show more.
        constants = task.objective.lipschitz
        bent = solve.least_curvature < 0 or (constants is not None and constants.min() < 0)
        remark = NOT_CONVEX if bent else ""
        if task.callback is not None:
            seen = task.look()
            if task.stopped_by_callback(seen.value, seen.violation):
                return Outcome(Status.STOPPED, remark)
        if stop == Stop.unbounded:
            return task.endless(remark)
        if stop == Stop.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if stop == Stop.stopped:
            return Outcome(Status.TIME_LIMIT, remark)
        if stop in (Stop.optimal, Stop.imprecise, Stop.leapt):
            task.settle()
            seen = task.look()
            if task.is_optimal(seen):
                return Outcome(Status.STALLED if remark else Status.OPTIMAL, remark, seen)
            if stop == Stop.leapt:
                if task.is_rounded(seen):
                    return Outcome(Status.STALLED, remark or NO_PROGRESS, seen)
                continue
            fruitless = fruitless + 1 if seen.violation > 0.5 * best else 0
            best = min(best, seen.violation)
            if stop == Stop.imprecise or fruitless > 3 or not task.aim_lower(seen):
                return Outcome(Status.STALLED, remark or NO_PROGRESS)


def suits(objective: Objective, layout: Layout) -> bool:
    """Whether blocks of the Hessian are a better way than the whole.

    Without lower bounds most variables are free, and working sets of a few will not do: it takes
    leaps then, of which groups under one total know nothing.
    """
    if not objective.prefers_blocks:
        return False
    leaps = getattr(objective, "leaps", False) and not layout.nested
    return leaps or bool(np.isfinite(layout.lower).all()) or objective.hessian is None


def oracle_of(task: Task) -> Any:
    """The objective's native oracle or, where it has none, one in NumPy."""
    native = getattr(task.objective, "oracle", None)
    found = None if native is None else native(task.point)
    if found is not None:
        return found
    layout = task.layout
    return ObjectiveOracle(task.objective, task.z, layout.lower, layout.upper, layout.starts)


def record(task: Task, solve: Any, seen: Seen) -> None:
    """Add a row to the history."""
    interior = int(((task.z > task.layout.lower) & (task.z < task.layout.upper)).sum())
    row = seen.value, seen.violation, solve.moved, interior, task.elapsed
    task.rows.append(np.array([row]))
