"""GS-1: steepest descent in the 1-norm within the bounds.

Section 3.3 of the paper, eq. (GS-1) and Algorithm 1. The C++ form is `cpp/paper/rules/gs_1.hpp`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...coordinates import Array, Coordinates, Step
from .pairs import no_step


def gs_1(coordinates: Coordinates, alpha: float) -> Step:
    """Return the step of any number of coordinates that minimizes ``g'd + |d|_1^2 / (2 alpha)``.

    Let t be the total decrease of the coordinates that decrease. It equals the total increase of
    the others, so ``|d|_1 = 2 t``. For a given t, the best step decreases the coordinates with the
    largest left derivatives and increases those with the smallest right derivatives, each as far as
    it can. Let G(t) be the left derivative of the coordinate that provides the t-th unit, and H(t)
    the right derivative of the coordinate that receives it. G falls and H rises, so the model
    ``2 t^2 / alpha - integral_0^t (G - H)`` is convex. Its minimum is where
    ``G(t) - H(t) = 4 t / alpha``. To find it, walk along both sorted lists at the same time. This
    is Algorithm 1 of the paper. At most two coordinates end between their bounds.

    If groups share a total, a step may change the sum of a group by more than its limits allow. The
    solver then shortens the step, so the result has the direction of this step but is not
    necessarily the best step.

    The C++ form does not sort all n derivatives. No side changes by more than alpha / 4 times the
    largest gap, so one pass keeps only the first coordinates of each side that can change by that
    much together, and sorts these. This takes O(n) expected time while few coordinates change.
    `pairstep.theory.gs_1_by_selection` takes O(n) time always, without sorting.
    """
    decreasing = np.argsort(-coordinates.left_derivative, kind="stable")
    increasing = np.argsort(coordinates.right_derivative, kind="stable")
    return walk(coordinates, decreasing, increasing, np.ones_like(coordinates.left), alpha)


def walk(
    coordinates: Coordinates,
    decreasing: NDArray[np.int64],
    increasing: NDArray[np.int64],
    norm: Array,
    alpha: float,
) -> Step:
    """Pair coordinates that decrease with coordinates that increase while the model decreases.

    Both lists are processed in the given order. The model is
    ``g'd + (sum_i norm_i |d_i|)^2 / (2 alpha)``. If N is the weighted norm so far, an additional
    amount s from i to j changes the model by
    ``-(gap - (norm_i + norm_j) N / alpha) s + (norm_i + norm_j)^2 s^2 / (2 alpha)``.
    """
    delta: dict[int, float] = {}
    decrease = length = 0.0
    next_down, next_up = iter(decreasing), iter(increasing)
    i, j = int(next(next_down)), int(next(next_up))
    down, up = float(coordinates.max_decrease[i]), float(coordinates.max_increase[j])
    while down > 0 and up > 0:
        width = norm[i] + norm[j]
        slope = coordinates.left[i] - coordinates.right[j] - width * length / alpha

        if not slope > 0:
            break
        full = alpha * slope / width**2
        amount = float(min(full, down, up))
        delta[i] = delta.get(i, 0.0) - amount
        delta[j] = delta.get(j, 0.0) + amount
        decrease += amount * (slope - 0.5 * width**2 * amount / alpha)
        length += width * amount
        if amount == full:
            break
        down, up = down - amount, up - amount
        # In the order of the ratio rules a coordinate can come up on both sides. Stop there.
        if down <= 0:
            delta[i] = -float(coordinates.max_decrease[i])
            i = int(next(next_down, i))
            down = float(coordinates.max_decrease[i]) if i not in delta else 0.0
        if up <= 0:
            delta[j] = float(coordinates.max_increase[j])
            j = int(next(next_up, j))
            up = float(coordinates.max_increase[j]) if j not in delta else 0.0
    if not delta:
        return no_step()
    return Step(np.fromiter(delta, np.int64), np.fromiter(delta.values(), float), float(decrease))
