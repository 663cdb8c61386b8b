"""Rules that do not look at the prices to choose: random pairs and pairs in turn."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Move, best_pair_move


def random(accounts: Accounts, alpha: float, rng: np.random.Generator) -> Move:
    """Two different coordinates, uniformly; money flows from the dearer to the cheaper."""
    n = len(accounts.down_price)
    first, second = rng.random(2)
    i = int(first * n)
    j = int(second * (n - 1))
    return towards_cheaper(accounts, i, j + (j >= i), 2 / alpha)


def random_lipschitz(accounts: Accounts, alpha: float, rng: np.random.Generator) -> Move:
    """Two different coordinates, each with a probability proportional to L_i."""
    constants = accounts.lipschitz
    first, second = rng.random(2)
    total = np.cumsum(constants)
    i = min(int(np.searchsorted(total, first * total[-1], side="right")), len(total) - 1)
    others = np.cumsum(np.where(np.arange(len(total)) == i, 0.0, constants))
    j = min(int(np.searchsorted(others, second * others[-1], side="right")), len(total) - 1)
    curvature = (constants[i] + constants[j]) / alpha
    return towards_cheaper(accounts, i, j, float(curvature))


def cyclic(accounts: Accounts, alpha: float, turn: int) -> Move:
    """All pairs in turn: (i, i+1) for every i, then (i, i+2), and so on, indices modulo n.

    Neighbours alone would do without bounds, but can stop short of the optimum with them.
    """
    n = len(accounts.down_price)
    sweep, i = divmod(turn, n)
    j = (i + 1 + sweep % max(n // 2, 1)) % n
    return towards_cheaper(accounts, i, j, 2 / alpha)


def towards_cheaper(accounts: Accounts, i: int, j: int, curvature: float) -> Move:
    """Move the best amount between i and j, in the direction that gains."""
    if accounts.down_price[i] - accounts.up_price[j] <= 0:
        i, j = j, i
    return best_pair_move(accounts, i, j, curvature)
