"""GS-q: the pair with the largest model decrease, bounds included (section 3.2 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .accounts import Accounts, Array, Move, best_pair_move, no_move


def gs_q(accounts: Accounts, alpha: float) -> Move:
    """Find the best pair of eq. (GS-q) in O(n log n).

    The paper knows no algorithm faster than O(n^2). This one swaps the order of the maxima. For a
    fixed *limit* e, the best pair among those with rooms of at least e is independent on both
    sides: the dearest seller and the cheapest buyer with that much room. So try, for every room
    e that occurs, that pair with the amount ``min(e, alpha gap / 2)``.

    *Proof that this is exact.* Every pair tried is feasible, so none beats the optimum. Let
    (i, j, d) be optimal and e the smaller of its two rooms. The pair tried at e has at least the
    gap of (i, j) and may move the amount d <= e, so it gains as much.

    Sorting the rooms once and taking running extremes of the prices gives all pairs tried. The
    C++ form first drops every account whose gain with the best conceivable partner (the best
    price, and the most that any room there is worth) is below the gain of a pair at hand, which
    leaves a handful to sort.

    The paper says that GS-q "is equivalent to maximising the distance moved". It is not: the
    decrease also depends on the gap.
    """
    sellers = staircase(accounts.down_room, accounts.down_price)
    buyers = staircase(accounts.up_room, -accounts.up_price)
    if not (len(sellers[0]) and len(buyers[0])):
        return no_move()
    limit = np.union1d(sellers[0], buyers[0])
    limit = limit[limit <= min(sellers[0].max(), buyers[0].max())]
    i = dearest(sellers, limit)
    j = dearest(buyers, limit)
    gap = np.maximum(accounts.down_price[i] - accounts.up_price[j], 0)
    amount = np.minimum(limit, alpha * gap / 2)
    best = int(np.argmax(amount * (gap - amount / alpha)))
    return best_pair_move(accounts, int(i[best]), int(j[best]), 2 / alpha)


Staircase = tuple[Array, NDArray[np.int64]]


def staircase(room: Array, price: Array) -> Staircase:
    """Rooms in falling order, and for each the index of the best price with at least that room."""
    order = np.lexsort((np.arange(len(room)), -room))
    order = order[room[order] > 0]
    best = np.maximum.accumulate(price[order]) if len(order) else price[order]
    is_new = np.append(True, best[1:] > best[:-1])[: len(order)]
    return room[order], order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]


def dearest(stairs: Staircase, limit: Array) -> NDArray[np.int64]:
    """The index of the best price among accounts with room of at least each limit."""
    rooms, best = stairs
    return best[np.searchsorted(-rooms, -limit, side="right") - 1]
