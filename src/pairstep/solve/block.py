"""Runs the native block solver, for objectives whose Hessian is too large to store.

The native solver selects working sets, solves them by coordinate descent and updates the gradient.
It reads the problem through an oracle; see `pairstep.solve.oracle`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from ..constraints import Layout
from ..objectives import Objective, value_and_gradient
from ..objectives.objective import direct_solves, native_oracle
from ..result import Status
from .oracle import ObjectiveOracle
from .task import NO_PROGRESS, NOT_CONVEX, Evaluation, Outcome, Task

Stop = _core.StopReason
NO_LIMIT = 2**62  # as a number of rounds: the native solver never pauses for Python
# A run of the native solver is unsuccessful if it does not halve the smallest recomputed violation
# so far. A smaller limit would give up on solves that still improve slowly; a larger one would
# repeat runs that only change rounding errors.
MAX_UNSUCCESSFUL_RUNS = 3


def run(task: Task) -> Outcome:
    """Run the block solver until it stops."""
    layout = task.layout
    solve = _core.BlockSolve(oracle_of(task), task.point, layout.totals, True)
    task.start_at(*value_and_gradient(task.objective, task.z))
    watched = task.callback is not None or task.record or task.logs
    best, unsuccessful, recorded = math.inf, 0, 0
    if task.record:
        record(task, solve, task.evaluate())
    while True:
        stop = solve.run(
            task.strictness * task.tol, task.max_iter, 1 if watched else NO_LIMIT, task.time_left
        )
        task.n_iter = solve.iterations
        if task.record and task.n_iter > recorded:  # whatever ended the round
            record(task, solve, task.evaluate())
            recorded = task.n_iter
        if task.line_is_due:
            current = task.evaluate()
            task.log_line(current.value, current.violation)
        # A cheap, partial test of convexity: only the blocks computed so far and the diagonal.
        constants = task.objective.lipschitz
        not_convex = solve.least_curvature < 0 or (constants is not None and constants.min() < 0)
        remark = NOT_CONVEX if not_convex else ""
        if task.callback is not None:
            current = task.evaluate()
            if task.stopped_by_callback(current.value, current.violation):
                return Outcome(Status.STOPPED, remark)
        if stop == Stop.unbounded:
            return task.unbounded(remark, solve.ray)
        if stop == Stop.max_iter:
            return Outcome(Status.MAX_ITER, remark)
        if stop == Stop.stopped:
            return Outcome(Status.TIME_LIMIT, remark)
        if stop in (Stop.optimal, Stop.imprecise, Stop.solved_directly):
            task.restore_sums()
            current = task.evaluate()
            if task.is_optimal(current):
                return Outcome(Status.STALLED if remark else Status.OPTIMAL, remark, current)
            if stop == Stop.solved_directly:
                if task.is_rounded(current):
                    return Outcome(Status.STALLED, remark or NO_PROGRESS, current)
                continue
            unsuccessful = unsuccessful + 1 if current.violation > 0.5 * best else 0
            best = min(best, current.violation)
            if (
                stop == Stop.imprecise
                or unsuccessful > MAX_UNSUCCESSFUL_RUNS
                or not task.aim_lower(current)
            ):
                return Outcome(Status.STALLED, remark or NO_PROGRESS)


def preferred(objective: Objective, layout: Layout) -> bool:
    """Return whether to solve with blocks of the Hessian instead of all of it.

    Working sets of a few variables converge slowly if most variables are free, as they are without
    lower bounds. Then blocks are used only if the oracle can solve directly for all free variables,
    which it cannot do for nested groups, or if the Hessian does not fit into memory.
    """
    if not objective.prefers_blocks:
        return objective.hessian is None
    if direct_solves(objective) and not layout.nested:
        return True
    return bool(np.isfinite(layout.lower).all()) or objective.hessian is None


def oracle_of(task: Task) -> Any:
    """Return the objective's native oracle or, if it has none, one in NumPy."""
    found = native_oracle(task.objective, task.point)
    if found is not None:
        return found
    layout = task.layout
    return ObjectiveOracle(task.objective, task.z, layout.lower, layout.upper, layout.starts)


def record(task: Task, solve: Any, current: Evaluation) -> None:
    """Append a row to the history."""
    interior = int(((task.z > task.layout.lower) & (task.z < task.layout.upper)).sum())
    row = current.value, current.violation, solve.moved, interior, task.elapsed
    task.rows.append(np.array([row]))
