"""Gradients by finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import deadline
from .._validation import Array

# Step relative to the size of a variable. At this step the error of the formula, which grows with
# the square of the step, equals the rounding error of the values divided by the step.
RELATIVE_STEP = float(np.cbrt(np.finfo(float).eps))
# A small variable gets a smaller step, but at least this fraction of the largest variable's step. A
# variable that is 0 gets the full step. A larger fraction makes the formula less accurate for
# functions such as log that bend near 0; a smaller one loses digits of the difference.
MIN_STEP_FRACTION = 1e-2


def differences(value: Callable[[Array], float], x: Array, lower: Array, upper: Array) -> Array:
    """Return the gradient at x from values within the bounds.

    One-sided differences away from the nearer bound, over a step and over half of it, are
    extrapolated. The error is that of central differences, which would step over a bound. A
    variable that cannot move has the derivative 0. The time limit of a solve is checked between
    values.
    """
    from scipy.optimize import approx_fprime  # imported late: half of pairstep's import time

    size = float(np.abs(x).max()) or 1.0
    step = RELATIVE_STEP * np.where(x == 0, size, np.maximum(np.abs(x), MIN_STEP_FRACTION * size))
    up, down = upper - x, x - lower
    step = np.where(up >= down, np.minimum(step, up), -np.minimum(step, down))
    moves = step != 0

    def along(part: Array) -> float:
        deadline.check()
        point = x.copy()
        point[moves] = part
        return value(point)

    gradient = np.zeros(len(x))
    if moves.any():
        half, whole = (approx_fprime(x[moves], along, part * step[moves]) for part in (0.5, 1.0))
        gradient[moves] = 2 * half - whole
    return gradient
