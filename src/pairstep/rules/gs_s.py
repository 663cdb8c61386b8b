"""GS-s: the pair with the steepest slope (section 3.1 of the paper; eq. (ik) without bounds)."""

from __future__ import annotations

import numpy as np

from .accounts import Accounts, Move, best_pair_move


def gs_s(accounts: Accounts, alpha: float) -> Move:
    """Take from the dearest account, put into the cheapest.

    Without bounds this is the greedy rule, steepest descent in the 1-norm and GS-q at once
    (lemma:sd and appendix A). With bounds only accounts with room take part, but the amount is cut
    at their rooms and the decrease can be arbitrarily small.

    The model of a pair is ``-gap d + |(-d, d)|^2 / (2 alpha) = -gap d + d^2 / alpha``.
    """
    i = int(np.argmax(accounts.sellers))
    j = int(np.argmin(accounts.buyers))
    return best_pair_move(accounts, i, j, 2 / alpha)
