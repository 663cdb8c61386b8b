"""GS-q with coordinate-wise Lipschitz constants, within the bounds.

Section 4 of the paper, eq. (GSL), and appendix E.1; here also within bounds. The C++ form is
`cpp/paper/rules/gs_q_lipschitz.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Array, Coordinates, Indices, Step
from .pairs import best_pair_step, no_step

# Coordinates are dropped below this multiple of the known decrease. It is slightly less than 1, so
# that rounding errors never drop the best pair; a smaller value would keep more coordinates.
PRUNING_FACTOR = 1 - 1e-12


def gs_q_lipschitz(coordinates: Coordinates, alpha: float) -> Step:
    """Return the pair with the largest ``max_d  d gap - (L_i + L_j) d^2 / (2 alpha)``.

    Without bounds this is ``alpha (g_i - g_j)^2 / (2 (L_i + L_j))``. The paper gives no algorithm
    faster than O(n^2).

    *First*, drop every coordinate that cannot be in the best pair. Let b be the decrease of the
    model for some known pair. Take a coordinate with an ideal partner, which has the best
    derivative, the smallest Lipschitz constant and no limit. If the decrease of this pair is below
    b, no pair with this coordinate reaches b. Few coordinates remain, and here all their pairs are
    tried.

    *Second*, to guarantee O(n log n), the C++ form tries far fewer pairs. It exchanges the maxima:
    ``max_d d (U(d) + V(d))``, where ``U(d) = max{g_i - L_i d / (2 alpha) : max_decrease_i >= d}``
    and ``V(d) = max{-g_j - L_j d / (2 alpha) : max_increase_j >= d}``. Both are upper envelopes of
    line segments that begin at d = 0 and end at `max_decrease` or `max_increase`.

    *Proof that the envelopes suffice.* At the optimal d, the best i attains U(d) and the best j
    attains V(d), because d is feasible exactly for the segments that reach it. So the best pair
    lies on both envelopes at the same d. Merging the envelopes gives O(n) pairs, and the best
    amount of each is the maximum of a parabola on an interval.
    """
    left_derivative, right_derivative, constants = (
        coordinates.left_derivative,
        coordinates.right_derivative,
        coordinates.lipschitz,
    )
    min_right, max_left = right_derivative.min(), left_derivative.max()
    if not max_left > min_right:
        return no_step()
    smallest_up = constants[coordinates.max_increase > 0].min()
    smallest_down = constants[coordinates.max_decrease > 0].min()
    # Bounds on the decrease of the model for each coordinate with an ideal partner.
    down_bound = model_decrease(
        left_derivative - min_right, coordinates.max_decrease, (constants + smallest_up) / alpha
    )
    up_bound = model_decrease(
        max_left - right_derivative, coordinates.max_increase, (constants + smallest_down) / alpha
    )
    first = np.array([np.argmax(left_derivative), np.argmax(down_bound)])
    second = np.array([np.argmin(right_derivative), np.argmax(up_bound)])
    known = all_pairs(coordinates, first, second, alpha).max() * PRUNING_FACTOR
    i, j = np.flatnonzero(down_bound >= known), np.flatnonzero(up_bound >= known)
    decreases = all_pairs(coordinates, i, j, alpha)
    best_i, best_j = np.unravel_index(int(np.argmax(decreases)), decreases.shape)
    best = int(i[best_i]), int(j[best_j])
    return best_pair_step(
        coordinates, *best, float(constants[best[0]] + constants[best[1]]) / alpha
    )


def model_decrease(gap: Array, max_amount: Array, curvature: Array) -> Array:
    """Return ``max_{0 <= d <= max_amount} d gap - curvature d^2 / 2``; 0 if no d > 0 helps."""
    gap = np.maximum(gap, 0)
    amount = np.minimum(np.maximum(max_amount, 0), gap / curvature)
    return amount * (gap - 0.5 * curvature * amount)


def all_pairs(coordinates: Coordinates, i: Indices, j: Indices, alpha: float) -> Array:
    """Return the decrease of the model for every coordinate in i paired with every one in j."""
    return model_decrease(
        coordinates.left_derivative[i][:, None] - coordinates.right_derivative[j],
        np.minimum(coordinates.max_decrease[i][:, None], coordinates.max_increase[j]),
        (coordinates.lipschitz[i][:, None] + coordinates.lipschitz[j]) / alpha,
    )
