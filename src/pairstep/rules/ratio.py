"""The ratio approximation of the Lipschitz-weighted rules, eq. (ratio), and its variations."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Array, Move, best_pair_move, no_move
from .gs_1 import walk


def gs_s_ratio(accounts: Accounts, alpha: float) -> Move:
    """Take where ``(price - mean) / sqrt(L)`` is largest, put where it is smallest: O(n)."""
    if not accounts.sellers.max() > accounts.buyers.min():
        return no_move()
    sellers, buyers = ratios(accounts)
    i, j = int(np.argmax(sellers)), int(np.argmin(buyers))
    return best_pair_move(accounts, i, j, (accounts.lipschitz[i] + accounts.lipschitz[j]) / alpha)


def gs_1_ratio(accounts: Accounts, alpha: float) -> Move:
    """Walk as GS-1 does, in the order of the ratios, under the weighted 1-norm.

    With equal constants this is GS-1. Otherwise the order is an approximation, so the walk stops
    at the first pair that gains nothing.
    """
    if not accounts.sellers.max() > accounts.buyers.min():
        return no_move()
    sellers, buyers = ratios(accounts)
    order = np.argsort(-sellers, kind="stable"), np.argsort(buyers, kind="stable")
    return walk(accounts, *order, np.sqrt(accounts.lipschitz), alpha)


def ratios(accounts: Accounts) -> tuple[Array, Array]:
    """Ratio of every seller and every buyer.

    The paper subtracts the mean of the gradient, which guarantees a seller above it and a buyer
    below it. With bounds all sellers may lie on one side of the mean, and the guarantee is lost;
    moving the mean into [cheapest up-price, dearest down-price] keeps it, and changes nothing
    without bounds.
    """
    sellers, buyers = accounts.sellers, accounts.buyers
    mean = np.mean((accounts.down_price + accounts.up_price) / 2)
    mean = min(max(mean, buyers.min()), sellers.max())
    root = np.sqrt(accounts.lipschitz)
    return (sellers - mean) / root, (buyers - mean) / root
