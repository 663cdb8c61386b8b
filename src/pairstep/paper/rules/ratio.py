"""The ratio approximation of the rules with Lipschitz constants, and its variants with bounds.

Section 4 of the paper, eq. (ratio). The C++ form is `cpp/paper/rules/ratio.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Array, Coordinates, Step
from .gs_1 import walk
from .pairs import best_pair_step, no_step


def gs_s_ratio(coordinates: Coordinates, alpha: float) -> Step:
    """Decrease the largest ``(derivative - mean) / sqrt(L)`` and increase the smallest: O(n)."""
    if not coordinates.left_derivative.max() > coordinates.right_derivative.min():
        return no_step()
    down_ratio, up_ratio = ratios(coordinates)
    i, j = int(np.argmax(down_ratio)), int(np.argmin(up_ratio))
    return best_pair_step(
        coordinates, i, j, (coordinates.lipschitz[i] + coordinates.lipschitz[j]) / alpha
    )


def gs_1_ratio(coordinates: Coordinates, alpha: float) -> Step:
    """Pair coordinates as GS-1 does, in the order of the ratios, with the weighted 1-norm.

    With equal Lipschitz constants this is GS-1. Otherwise the order is an approximation, so the
    walk stops at the first pair that does not decrease the model.
    """
    if not coordinates.left_derivative.max() > coordinates.right_derivative.min():
        return no_step()
    down_ratio, up_ratio = ratios(coordinates)
    order = np.argsort(-down_ratio, kind="stable"), np.argsort(up_ratio, kind="stable")
    return walk(coordinates, *order, np.sqrt(coordinates.lipschitz), alpha)


def ratios(coordinates: Coordinates) -> tuple[Array, Array]:
    """Return the ratio of every coordinate as one that decreases and as one that increases.

    The paper subtracts the mean of the gradient. This guarantees that the coordinate to decrease
    lies above the mean and the one to increase below it. With bounds, all coordinates that can
    decrease may lie on one side of the mean, and the guarantee is lost. Clipping the mean to the
    interval from the smallest right to the largest left derivative restores it. Without bounds the
    mean lies in this interval already.
    """
    left_derivative, right_derivative = coordinates.left_derivative, coordinates.right_derivative
    mean = np.mean((coordinates.left + coordinates.right) / 2)
    mean = min(max(mean, right_derivative.min()), left_derivative.max())
    root = np.sqrt(coordinates.lipschitz)
    return (left_derivative - mean) / root, (right_derivative - mean) / root
