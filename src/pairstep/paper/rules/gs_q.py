"""GS-q: the pair with the largest decrease of the model within the bounds.

Section 3.2 of the paper, eq. (GS-q). The C++ form is `cpp/paper/rules/gs_q.hpp`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...coordinates import Array, Coordinates, Step
from .pairs import best_pair_step, no_step


def gs_q(coordinates: Coordinates, alpha: float) -> Step:
    """Return the best pair of eq. (GS-q) in O(n log n).

    The paper gives no algorithm faster than O(n^2). This one exchanges the order of the maxima. For
    a fixed *limit* e, consider only coordinates that can change by at least e. Among these, the two
    sides are independent: the best pair is the largest left derivative and the smallest right
    derivative. So for every e among the numbers in `max_decrease` and `max_increase`, try that pair
    with the amount ``min(e, alpha gap / 2)``.

    *Proof that this is exact.* Every pair tried is feasible, so none is better than the optimum.
    Let (i, j, d) be optimal and let e be the smaller of ``max_decrease[i]`` and
    ``max_increase[j]``. The pair tried at e has at least the gap of (i, j), and it may change by d
    <= e. So its decrease of the model is at least as large.

    Sorting the limits once and taking running extremes of the derivatives gives all pairs to try.
    The C++ form first drops every coordinate that cannot be in the best pair. It bounds the
    decrease that a coordinate can reach with an ideal partner, which has the best derivative and
    the largest limit on the other side. If this bound is below the decrease of a known pair, the
    coordinate is dropped. Few coordinates remain to be sorted.

    The paper says that GS-q is equivalent to maximizing the distance moved. It is not: the decrease
    of the model also depends on the gap.
    """
    down = staircase(coordinates.max_decrease, coordinates.left)
    up = staircase(coordinates.max_increase, -coordinates.right)
    if not (len(down[0]) and len(up[0])):
        return no_step()
    limit = np.union1d(down[0], up[0])
    limit = limit[limit <= min(down[0].max(), up[0].max())]
    i, j = best_at(down, limit), best_at(up, limit)
    gap = np.maximum(coordinates.left[i] - coordinates.right[j], 0)
    amount = np.minimum(limit, alpha * gap / 2)
    best = int(np.argmax(amount * (gap - amount / alpha)))
    return best_pair_step(coordinates, int(i[best]), int(j[best]), 2 / alpha)


Staircase = tuple[Array, NDArray[np.int64]]


def staircase(max_change: Array, score: Array) -> Staircase:
    """Return the limits in decreasing order and, for each of them, the best coordinate.

    This is the one with the largest score among the coordinates that can change by at least the
    limit.
    """
    order = np.lexsort((np.arange(len(max_change)), -max_change))
    order = order[max_change[order] > 0]
    best = np.maximum.accumulate(score[order]) if len(order) else score[order]
    is_new = np.append(True, best[1:] > best[:-1])[: len(order)]
    best_index = order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
    return max_change[order], best_index


def best_at(stairs: Staircase, limit: Array) -> NDArray[np.int64]:
    """Return the best index among the coordinates that can change by at least each limit."""
    max_changes, best = stairs
    return best[np.searchsorted(-max_changes, -limit, side="right") - 1]
