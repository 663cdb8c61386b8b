"""GS-s: the pair with the most negative directional derivative.

Section 3.1 of the paper; eq. (ik) if there are no bounds. The C++ form is
`cpp/paper/rules/gs_s.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Coordinates, Step
from .pairs import best_pair_step


def gs_s(coordinates: Coordinates, alpha: float) -> Step:
    """Decrease the largest left derivative and increase the smallest right derivative.

    Without bounds this is the greedy rule. It is then also steepest descent in the 1-norm and GS-q
    (Lemma (sd) and appendix A). With bounds, only coordinates that can change are considered. The
    bounds limit the amount, so the decrease can be arbitrarily small.

    The model of a pair is ``-gap d + |(-d, d)|^2 / (2 alpha) = -gap d + d^2 / alpha``.
    """
    i = int(np.argmax(coordinates.left_derivative))
    j = int(np.argmin(coordinates.right_derivative))
    return best_pair_step(coordinates, i, j, 2 / alpha)
