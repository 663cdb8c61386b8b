"""LIBSVM's rule since version 2.8: second-order choice of the partner (Fan, Chen and Lin 2005)."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Move, best_pair_move, no_move


def libsvm(accounts: Accounts, alpha: float) -> Move:
    """Take from the dearest account, put where the model falls most.

    The seller i is that of GS-s. The buyer j maximises ``d (gap - c_ij d / 2)`` with d the best
    amount within both rooms and ``c_ij = (L_i + L_j) / alpha``. The greedy gear, which has the
    Hessian at hand, uses the true curvature ``H_ii + H_jj - 2 H_ij`` instead, as LIBSVM does.
    """
    i = int(np.argmax(accounts.sellers))
    if accounts.down_room[i] <= 0:
        return no_move()
    gap = accounts.down_price[i] - accounts.buyers
    curvature = (accounts.lipschitz[i] + accounts.lipschitz) / alpha
    room = np.minimum(accounts.down_room[i], accounts.up_room)
    amount = np.clip(gap / curvature, 0, np.maximum(room, 0))
    j = int(np.argmax(amount * (np.maximum(gap, 0) - 0.5 * curvature * amount)))
    return best_pair_move(accounts, i, j, float(curvature[j]))
