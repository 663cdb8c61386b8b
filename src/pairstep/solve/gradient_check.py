"""Checks the user's gradient when a solve stalls: a wrong gradient is the likely cause.

The derivative along the pair of variables with the largest KKT violation is compared with
differences of the objective's value; so is the derivative along a step that changes all variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._validation import Array, numbers_for_message
from ..objectives.differences import RELATIVE_STEP
from ..objectives.objective import gradient_is_given
from .task import Evaluation, Task

REMEDY = "compare it with differences of the value, for instance by scipy.optimize.check_grad"
# Largest relative difference between the two derivatives that counts as agreement. Differences of a
# function computed in float64 have a relative error of about 1e-9; a value close to that would
# blame correct gradients of less accurate functions.
MAX_RELATIVE_DIFFERENCE = 1e-3
# Additional difference that counts as agreement, relative to the terms that cancel in the
# derivative. Near an optimum they are much larger than the derivative. Values with only ten correct
# digits give differences with this error.
MAX_DIFFERENCE_PER_TERM = 1e-4


def advice(task: Task, current: Evaluation) -> str:
    """Return a sentence about the gradient at a point where the solve stalled, or ""."""
    smooth = _smooth_part(task.objective)
    if not gradient_is_given(smooth):
        return ""
    # If an L1 term has two slopes, the gradient of the task includes half their difference.
    gradient = current.gradient if smooth is task.objective else smooth.gradient(task.z)
    length = RELATIVE_STEP * float(np.abs(task.z).max() or 1.0)
    for where, step in _steps(task, current, length):
        given, found = float(gradient @ step), _change(smooth, task.z, step)
        terms = float(np.abs(gradient) @ np.abs(step))
        rounding = _noise(smooth, task.z) + MAX_DIFFERENCE_PER_TERM * terms
        if abs(found - given) > MAX_RELATIVE_DIFFERENCE * max(abs(found), abs(given)) + rounding:
            size = float(np.abs(step).max())
            one, other = numbers_for_message(given / size, found / size)
            return (
                f"the gradient is probably wrong: along a step {where} it gives the derivative "
                f"{one}, and differences of the value give {other}; {REMEDY}"
            )
    return f"if this is unexpected, the gradient may be wrong: {REMEDY}"


def _smooth_part(objective: Any) -> Any:
    """Return the objective without its L1 terms."""
    while objective.l1_terms is not None and hasattr(objective, "objective"):
        objective = objective.objective
    return objective


def _most_violating_pair(task: Task, current: Evaluation) -> tuple[int, int] | None:
    """Return the pair of variables of one sum with the largest KKT violation."""
    layout, z = task.layout, task.z
    own = np.ones(layout.n, bool) if layout.held is None else layout.held
    best, largest = None, 0.0
    for begin, end in zip(layout.sharing[:-1], layout.sharing[1:], strict=True):
        part = slice(begin, end)
        gradient = current.gradient[part]
        falls = np.where((z > layout.lower)[part] & own[part], gradient, -math.inf)
        rises = np.where((z < layout.upper)[part] & own[part], gradient, math.inf)
        i, j = int(np.argmax(falls)), int(np.argmin(rises))
        if falls[i] - rises[j] > largest:
            best, largest = (begin + i, begin + j), float(falls[i] - rises[j])
    return best


def _steps(task: Task, current: Evaluation, length: float) -> Iterator[tuple[str, Array]]:
    """Yield steps along which to compare derivatives, with a description: a pair, all variables."""
    z, layout = task.z, task.layout
    pair = _most_violating_pair(task, current)
    if pair is not None:
        i, j = pair
        step = np.zeros(layout.n)
        step[j] = min(length, float(z[i] - layout.lower[i]), float(layout.upper[j] - z[j]))
        step[i] = -step[j]
        source = np.arange(layout.n) if layout.source is None else layout.source
        yield f"from variable {source[i]} to variable {source[j]}", step
    # Each variable moves away from its nearer bound, by different amounts so errors do not cancel.
    up, down = layout.upper - z, z - layout.lower
    amount = length * np.linspace(0.5, 1.0, layout.n)
    step = np.where(up >= down, np.minimum(amount, up), -np.minimum(amount, down))
    if layout.held is not None:
        step[~layout.held] = 0.0
    if step.any():
        yield "that changes all variables", step


def _change(smooth: Any, z: Array, step: Array) -> float:
    """Return the derivative along a step, from values at its start, middle and end."""
    with np.errstate(all="ignore"):  # perhaps outside the domain
        here, half, whole = (smooth.value(z + part * step) for part in (0.0, 0.5, 1.0))
        return float(4 * half - 3 * here - whole)


def _noise(smooth: Any, z: Array) -> float:
    """Return the effect of the values' rounding errors on the result of `_change`."""
    # `_change` multiplies the three values by 8 in total, and each may be off by some epsilons.
    return 100 * float(np.finfo(float).eps) * abs(float(smooth.value(z)))
