"""GS-1 with coordinate-wise Lipschitz constants: steepest descent in a weighted 1-norm."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Array, Move, best_pair_move, no_move


def gs_1_lipschitz(accounts: Accounts, alpha: float) -> Move:
    """Minimise ``g'd + N^2 / (2 alpha)`` where ``N = sum_i s_i |d_i|``, ``s_i = sqrt(L_i)``.

    *Without bounds* lemma:Lisd says that one pair suffices, the one with the largest ratio
    ``(g_i - g_j) / (s_i + s_j)``, which the paper leaves at O(n^2). It is a fractional programme:
    Dinkelbach's iteration takes, for the ratio r at hand, ``i = argmax g_i - r s_i`` and
    ``j = argmin g_j + r s_j``, and sets r to that pair's ratio. While a better pair exists it has
    ``(g_i - r s_i) - (g_j + r s_j) > 0``, so the iteration finds one; it ends at the maximum.

    *With bounds* let rho be the price of norm. For a given rho the best move is a matching of
    sellers at ``g_i - rho s_i`` with buyers at ``g_j + rho s_j``, dearest with cheapest, while the
    first exceed the second (`match`). Its norm N(rho) falls as rho grows, and the optimality
    condition of the model is ``N = alpha rho``: a monotone equation in one unknown, solved by
    bisection. *Proof:* a subgradient of the model is ``g + (N/alpha) s sign(d)``, so d is optimal
    exactly if it is the best matching at the price rho = N/alpha. N is a step function; at a step
    both one-sided matchings are optimal for that rho, and so is the convex combination with
    ``N = alpha rho``.

    rho and the level at which sellers and buyers meet minimise a convex function of two unknowns,
    the dual. The C++ form keeps a polygon that holds them and cuts it through its centre of
    gravity; whoever trades, or does not, everywhere in it is settled, and only the rest is matched
    again. Of many accounts it asks those who can trade about where a sample of them does: if the
    best move of these lies there, it is the best of all, for nobody else could add to it.
    """
    root = np.sqrt(accounts.lipschitz)
    ratio, i, j = largest_ratio(accounts, root)
    if not ratio > 0:
        return no_move()
    if alpha * ratio / (root[i] + root[j]) <= min(accounts.down_room[i], accounts.up_room[j]):
        return best_pair_move(accounts, i, j, float(root[i] + root[j]) ** 2 / alpha)
    # The norm of the best move is alpha rho <= alpha ratio: no account moves further than that.
    reach = alpha * ratio / root
    below, above = 0.0, ratio * (1 + 1e-12)  # where nothing trades, rounding included
    while below < (middle := 0.5 * (below + above)) < above:
        if norm_of(match(accounts, root, reach, middle), root) > alpha * middle:
            below = middle
        else:
            above = middle
    more, less = match(accounts, root, reach, below), match(accounts, root, reach, above)
    norms = norm_of(more, root), norm_of(less, root)
    share = (alpha * above - norms[1]) / (norms[0] - norms[1]) if norms[0] > norms[1] else 0.0
    delta = less + min(max(share, 0.0), 1.0) * (more - less)
    moved = np.flatnonzero(delta)
    if not len(moved):
        return no_move()
    price = np.where(delta < 0, accounts.down_price, accounts.up_price)[moved]
    # Counted from the dearest purchase, which no sale is below: nothing cancels.
    saved = -float((price - price[delta[moved] > 0].max(initial=-np.inf)) @ delta[moved])
    decrease = max(saved - norm_of(delta, root) ** 2 / (2 * alpha), 0.0)
    return Move(moved, delta[moved], decrease)


def largest_ratio(accounts: Accounts, root: Array) -> tuple[float, int, int]:
    """Dinkelbach's iteration for ``max (g_i - g_j) / (s_i + s_j)``."""
    best = -np.inf, 0, 0
    ratio = 0.0
    while True:
        i = int(np.argmax(accounts.sellers - ratio * root))
        j = int(np.argmin(accounts.buyers + ratio * root))
        ratio = float((accounts.sellers[i] - accounts.buyers[j]) / (root[i] + root[j]))
        if not ratio > best[0]:
            return best
        best = ratio, i, j


def match(accounts: Accounts, root: Array, reach: Array, rho: float) -> Array:
    """The best move when every unit of weighted norm costs rho."""
    sell, buy = accounts.sellers - rho * root, accounts.buyers + rho * root
    sellers, buyers = np.argsort(-sell, kind="stable"), np.argsort(buy, kind="stable")
    down = np.minimum(np.maximum(accounts.down_room, 0), reach)[sellers]
    up = np.minimum(np.maximum(accounts.up_room, 0), reach)[buyers]
    sold, bought = np.cumsum(down), np.cumsum(up)
    # The amount traded is the largest one at which the marginal seller still beats the buyer.
    amounts = np.union1d(sold, bought)
    amounts = amounts[(amounts > 0) & (amounts <= min(sold[-1], bought[-1]))]
    i = sellers[np.searchsorted(sold, amounts)]
    j = buyers[np.searchsorted(bought, amounts)]
    worth = sell[i] > buy[j]
    traded = amounts[worth].max(initial=0.0)
    delta = np.zeros_like(root)
    delta[sellers] = -np.clip(traded - np.append(0.0, sold[:-1]), 0, down)
    delta[buyers] += np.clip(traded - np.append(0.0, bought[:-1]), 0, up)
    return delta


def norm_of(delta: Array, root: Array) -> float:
    """The weighted 1-norm."""
    return float(root @ np.abs(delta))
