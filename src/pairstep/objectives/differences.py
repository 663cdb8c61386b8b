"""Gradients from values alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._validation import Array

# Of a variable: where the error of the formula, in the square of the step, and the rounding of the
# values, divided by the step, are about equal.
STEP = float(np.cbrt(np.finfo(float).eps))
# A variable that is small against the others has a step of its own, down to this share of theirs.
SMALLEST = 1e-2


def differences(value: Callable[[Array], float], x: Array, lower: Array, upper: Array) -> Array:
    """The gradient at x from values within the bounds.

    Differences to one side, away from the nearer bound, over a step and over half of it,
    extrapolated: the error is that of central differences, which would have to step over a bound.
    A variable that cannot move has the slope 0.
    """
    from scipy.optimize import approx_fprime  # takes half as long to import as all the rest

    size = float(np.abs(x).max()) or 1.0
    step = STEP * np.where(x == 0, size, np.maximum(np.abs(x), SMALLEST * size))
    up, down = upper - x, x - lower
    step = np.where(up >= down, np.minimum(step, up), -np.minimum(step, down))
    moves = step != 0

    def along(part: Array) -> float:
        point = x.copy()
        point[moves] = part
        return value(point)

    gradient = np.zeros(len(x))
    if moves.any():
        half, whole = (approx_fprime(x[moves], along, share * step[moves]) for share in (0.5, 1.0))
        gradient[moves] = 2 * half - whole
    return gradient
