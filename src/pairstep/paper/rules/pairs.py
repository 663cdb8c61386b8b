"""What the NumPy forms of the rules share: steps of a pair, and coordinates without L1 terms."""

from __future__ import annotations

import numpy as np

from ...coordinates import Array, Coordinates, Step


def box_coordinates(
    gradient: Array, x: Array, lower: Array, upper: Array, lipschitz: Array | None = None
) -> Coordinates:
    """Return the coordinates of a smooth function within bounds."""
    constants = np.ones_like(x) if lipschitz is None else lipschitz
    return Coordinates(gradient, gradient, x - lower, upper - x, constants)


def no_step() -> Step:
    """Return an empty step, for a point at which a rule finds no step that decreases its model."""
    return Step(np.empty(0, np.int64), np.empty(0), 0.0)


def pair_step(i: int, j: int, amount: float, decrease: float) -> Step:
    """Return the step that decreases i and increases j by `amount`."""
    return Step(np.array([i, j], np.int64), np.array([-amount, amount]), float(decrease))


def pair_amount(coordinates: Coordinates, i: int, j: int, curvature: float) -> float:
    """Return the best amount d for the model ``-gap d + curvature d^2 / 2``, eq. (deltaBound)."""
    gap = coordinates.left[i] - coordinates.right[j]
    return float(min(gap / curvature, coordinates.max_decrease[i], coordinates.max_increase[j]))


def best_pair_step(coordinates: Coordinates, i: int, j: int, curvature: float) -> Step:
    """Return the best step from i to j; it is empty if no step decreases the model."""
    gap = coordinates.left[i] - coordinates.right[j]
    amount = pair_amount(coordinates, i, j, curvature)
    if i == j or not (gap > 0 and amount > 0):
        return no_step()
    return pair_step(i, j, amount, amount * (gap - 0.5 * curvature * amount))
