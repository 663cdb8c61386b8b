"""GS-1 with coordinate-wise Lipschitz constants: steepest descent in a weighted 1-norm.

Section 4 of the paper, eq. (GSL-1), and Lemma (Lisd) of appendix E.2; here also within bounds. The
C++ form is `cpp/paper/rules/gs_1_lipschitz.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Array, Coordinates, Step
from .pairs import best_pair_step, no_step

RATIO_ROUNDING = 1e-12  # relative rounding error of a ratio of derivatives and roots, with a margin


def gs_1_lipschitz(coordinates: Coordinates, alpha: float) -> Step:
    """Minimize ``g'd + N^2 / (2 alpha)`` where ``N = sum_i s_i |d_i|`` and ``s_i = sqrt(L_i)``.

    *Without bounds*, Lemma (Lisd) says that one pair suffices: the pair with the largest ratio
    ``(g_i - g_j) / (s_i + s_j)``. The paper gives no algorithm faster than O(n^2). But this
    is a fractional program, so Dinkelbach's iteration solves it: given a ratio r, take
    ``i = argmax g_i - r s_i`` and ``j = argmin g_j + r s_j``, and set r to the ratio of that pair.
    As long as a better pair exists, that pair has ``(g_i - r s_i) - (g_j + r s_j) > 0``, so the
    iteration finds a better one too. It ends at the maximum.

    *With bounds*, let rho be a penalty on each unit of the norm N. For a given rho, the best step
    sorts the coordinates that decrease by ``g_i - rho s_i`` and those that increase by
    ``g_j + rho s_j``. It then pairs the largest with the smallest while the first exceeds the
    second (`match`). The norm N(rho) of this step falls as rho grows, and the step minimizes the
    model if ``N = alpha rho``. This is a monotone equation in one unknown; bisection solves it.

    *Proof.* A subgradient of the model is ``g + (N / alpha) s sign(d)``. So d is optimal exactly if
    it is the best step for the penalty rho = N / alpha. N is a step function of rho. At a jump, the
    steps just below and just above are both optimal for that rho, and so is their convex
    combination with ``N = alpha rho``.

    The optimal rho and the optimal multiplier of the sum minimize a convex function of two
    unknowns, the dual. The C++ form keeps a polygon that contains both and cuts it through its
    center of gravity. A coordinate that changes by its maximum everywhere in the polygon, or
    nowhere in it, needs no further work, so only the remaining coordinates are matched again. For
    large n, it first estimates the solution from a sample and matches only the coordinates that
    could change near this estimate. If the best step of these agrees with the estimate, no other
    coordinate can improve it.
    """
    root = np.sqrt(coordinates.lipschitz)
    ratio, i, j = largest_ratio(coordinates, root)
    if not ratio > 0:
        return no_step()
    if alpha * ratio / (root[i] + root[j]) <= min(
        coordinates.max_decrease[i], coordinates.max_increase[j]
    ):
        return best_pair_step(coordinates, i, j, float(root[i] + root[j]) ** 2 / alpha)
    # The norm of the best step is alpha rho <= alpha ratio, which limits every single change.
    reach = alpha * ratio / root
    below, above = 0.0, ratio * (1 + RATIO_ROUNDING)  # at `above` the best step is empty
    while below < (middle := 0.5 * (below + above)) < above:
        if norm_of(match(coordinates, root, reach, middle), root) > alpha * middle:
            below = middle
        else:
            above = middle
    longer, shorter = match(coordinates, root, reach, below), match(coordinates, root, reach, above)
    norms = norm_of(longer, root), norm_of(shorter, root)
    fraction = (alpha * above - norms[1]) / (norms[0] - norms[1]) if norms[0] > norms[1] else 0.0
    delta = shorter + min(max(fraction, 0.0), 1.0) * (longer - shorter)
    changed = np.flatnonzero(delta)
    if not len(changed):
        return no_step()
    derivative = np.where(delta < 0, coordinates.left, coordinates.right)[changed]
    # No decreasing coordinate has a smaller derivative than the largest among the increasing ones.
    # Measured from that one, all terms have the same sign and nothing cancels.
    reference = derivative[delta[changed] > 0].max(initial=-np.inf)
    linear = -float((derivative - reference) @ delta[changed])
    decrease = max(linear - norm_of(delta, root) ** 2 / (2 * alpha), 0.0)
    return Step(changed, delta[changed], decrease)


def largest_ratio(coordinates: Coordinates, root: Array) -> tuple[float, int, int]:
    """Return ``max (g_i - g_j) / (s_i + s_j)`` and its pair, by Dinkelbach's iteration."""
    best = -np.inf, 0, 0
    ratio = 0.0
    while True:
        i = int(np.argmax(coordinates.left_derivative - ratio * root))
        j = int(np.argmin(coordinates.right_derivative + ratio * root))
        ratio = float(
            (coordinates.left_derivative[i] - coordinates.right_derivative[j]) / (root[i] + root[j])
        )
        if not ratio > best[0]:
            return best
        best = ratio, i, j


def match(coordinates: Coordinates, root: Array, reach: Array, rho: float) -> Array:
    """Return the changes of the best step if each unit of the weighted norm costs `rho`.

    No coordinate changes by more than `reach`.
    """
    down_key = coordinates.left_derivative - rho * root
    up_key = coordinates.right_derivative + rho * root
    down_order, up_order = np.argsort(-down_key, kind="stable"), np.argsort(up_key, kind="stable")
    down = np.minimum(np.maximum(coordinates.max_decrease, 0), reach)[down_order]
    up = np.minimum(np.maximum(coordinates.max_increase, 0), reach)[up_order]
    down_total, up_total = np.cumsum(down), np.cumsum(up)
    # The total decrease is the largest one whose last pair still improves the model.
    amounts = np.union1d(down_total, up_total)
    amounts = amounts[(amounts > 0) & (amounts <= min(down_total[-1], up_total[-1]))]
    i = down_order[np.searchsorted(down_total, amounts)]
    j = up_order[np.searchsorted(up_total, amounts)]
    total = amounts[down_key[i] > up_key[j]].max(initial=0.0)
    delta = np.zeros_like(root)
    delta[down_order] = -np.clip(total - np.append(0.0, down_total[:-1]), 0, down)
    delta[up_order] += np.clip(total - np.append(0.0, up_total[:-1]), 0, up)
    return delta


def norm_of(delta: Array, root: Array) -> float:
    """Return the weighted 1-norm ``sum_i s_i |d_i|``."""
    return float(root @ np.abs(delta))
