"""GS-1: steepest descent in the 1-norm, bounds included (section 3.3 of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .accounts import Accounts, Array, Move, no_move


def gs_1(accounts: Accounts, alpha: float) -> Move:
    """Solve eq. (GS-1): the best move of any number of coordinates, by a walk from both ends.

    Let t be the amount moved, so ``|d|_1 = 2 t``. For a given t the best move empties the dearest
    accounts and fills the cheapest. With G(t) the down-price of the t-th unit taken, which falls,
    and H(t) the up-price of the t-th unit put in, which rises, the model is
    ``2 t^2 / alpha - integral_0^t (G - H)``: convex, and least where ``G(t) - H(t) = 4 t / alpha``.
    Walk with two pointers from both ends until the curves cross there. Algorithm 1 of the paper is
    this walk; at most two coordinates end between their bounds.

    Across groups that share a total a move may use up a group's room several times; it is then
    shortened, so that what is made is a move along this one, not the best of all.

    The C++ form never sorts n prices: no side trades more than alpha / 4 times the widest gap, so
    one pass keeps the first of each side until their rooms are that much, expected O(n).
    """
    sellers = np.argsort(-accounts.sellers, kind="stable")
    buyers = np.argsort(accounts.buyers, kind="stable")
    return walk(accounts, sellers, buyers, np.ones_like(accounts.down_price), alpha)


def walk(
    accounts: Accounts,
    sellers: NDArray[np.int64],
    buyers: NDArray[np.int64],
    norm: Array,
    alpha: float,
) -> Move:
    """Match sellers with buyers in the given order while the model falls.

    The model is ``g'd + (sum_i norm_i |d_i|)^2 / (2 alpha)``. With N the weighted norm so far, a
    further amount s from i to j changes it by
    ``-(gap - (norm_i + norm_j) N / alpha) s + (norm_i + norm_j)^2 s^2 / (2 alpha)``.
    """
    delta: dict[int, float] = {}
    decrease = length = 0.0
    seller, buyer = iter(sellers), iter(buyers)
    i, j = int(next(seller)), int(next(buyer))
    down, up = float(accounts.down_room[i]), float(accounts.up_room[j])
    while down > 0 and up > 0:
        width = norm[i] + norm[j]
        slope = accounts.down_price[i] - accounts.up_price[j] - width * length / alpha
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
        if down <= 0:
            delta[i] = -float(accounts.down_room[i])
            i = int(next(seller, i))
            down = float(accounts.down_room[i]) if i not in delta else 0.0
        if up <= 0:
            delta[j] = float(accounts.up_room[j])
            j = int(next(buyer, j))
            up = float(accounts.up_room[j]) if j not in delta else 0.0
    if not delta:
        return no_move()
    return Move(np.fromiter(delta, np.int64), np.fromiter(delta.values(), float), float(decrease))
