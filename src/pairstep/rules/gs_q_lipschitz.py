"""GS-q with coordinate-wise Lipschitz constants, eq. (GSL), bounds included."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Array, Indices, Move, best_pair_move, no_move


def gs_q_lipschitz(accounts: Accounts, alpha: float) -> Move:
    """Find the pair with the largest ``max_d  d gap - (L_i + L_j) d^2 / (2 alpha)``.

    Without bounds that is ``alpha (g_i - g_j)^2 / (2 (L_i + L_j))``. The paper sees no way faster
    than O(n^2).

    *First*, drop every account that cannot be in the best pair: let b be the gain of a pair at
    hand. An account whose gain with the best conceivable partner (the best price, the smallest
    constant, unlimited room) is below b is in no pair that gains b. A handful stay, and here all
    pairs of those are tried.

    *Second*, for a guarantee of O(n log n), the C++ form tries far fewer pairs. Swap the maxima:
    ``max_d d (U(d) + V(d))`` where ``U(d) = max{g_i - L_i d / (2 alpha) : a_i >= d}`` and
    ``V(d) = max{-g_j - L_j d / (2 alpha) : b_j >= d}`` are upper envelopes of line segments that
    begin at d = 0 and end at the rooms. *Proof that the envelopes suffice:* at the optimal d, the
    best i maximises U(d) and the best j maximises V(d), for d is feasible for exactly the segments
    that reach it. So the best pair is the pair of segments that the two envelopes show at the same
    d; merging them gives O(n) such pairs, and the best amount of each is a clipped parabola.
    """
    sellers, buyers, constants = accounts.sellers, accounts.buyers, accounts.lipschitz
    cheapest, dearest = buyers.min(), sellers.max()
    if not dearest > cheapest:
        return no_move()
    easiest_buyer = constants[accounts.up_room > 0].min()
    easiest_seller = constants[accounts.down_room > 0].min()
    sale = gain(sellers - cheapest, accounts.down_room, (constants + easiest_buyer) / alpha)
    purchase = gain(dearest - buyers, accounts.up_room, (constants + easiest_seller) / alpha)
    first = np.array([np.argmax(sellers), np.argmax(sale)])
    second = np.array([np.argmin(buyers), np.argmax(purchase)])
    at_hand = all_pairs(accounts, first, second, alpha).max() * (1 - 1e-12)
    i, j = np.flatnonzero(sale >= at_hand), np.flatnonzero(purchase >= at_hand)
    gains = all_pairs(accounts, i, j, alpha)
    best_i, best_j = np.unravel_index(int(np.argmax(gains)), gains.shape)
    best = int(i[best_i]), int(j[best_j])
    return best_pair_move(accounts, *best, float(constants[best[0]] + constants[best[1]]) / alpha)


def gain(gap: Array, room: Array, curvature: Array) -> Array:
    """``max_{d <= room} d gap - curvature d^2 / 2``, 0 where there is no gap or no room."""
    gap = np.maximum(gap, 0)
    amount = np.minimum(np.maximum(room, 0), gap / curvature)
    return amount * (gap - 0.5 * curvature * amount)


def all_pairs(accounts: Accounts, i: Indices, j: Indices, alpha: float) -> Array:
    """The gain of every seller in i with every buyer in j."""
    return gain(
        accounts.sellers[i][:, None] - accounts.buyers[j],
        np.minimum(accounts.down_room[i][:, None], accounts.up_room[j]),
        (accounts.lipschitz[i][:, None] + accounts.lipschitz[j]) / alpha,
    )
