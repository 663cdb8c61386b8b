"""Rules that choose a pair without looking at the derivatives: random and cyclic.

Section 2.4 of the paper compares the greedy rules with random pairs. The C++ form is
`cpp/paper/rules/unguided.hpp`.
"""

from __future__ import annotations

import numpy as np

from ...coordinates import Coordinates, Step
from .pairs import best_pair_step


def random(coordinates: Coordinates, alpha: float, rng: np.random.Generator) -> Step:
    """Draw two different coordinates uniformly and take the best step of this pair."""
    n = len(coordinates.left)
    first, second = rng.random(2)
    i = int(first * n)
    j = int(second * (n - 1))
    return downhill_pair_step(coordinates, i, j + (j >= i), 2 / alpha)


def random_lipschitz(coordinates: Coordinates, alpha: float, rng: np.random.Generator) -> Step:
    """Draw two different coordinates, each with a probability proportional to L_i."""
    constants = coordinates.lipschitz
    first, second = rng.random(2)
    total = np.cumsum(constants)
    i = min(int(np.searchsorted(total, first * total[-1], side="right")), len(total) - 1)
    others = np.cumsum(np.where(np.arange(len(total)) == i, 0.0, constants))
    j = min(int(np.searchsorted(others, second * others[-1], side="right")), len(total) - 1)
    curvature = (constants[i] + constants[j]) / alpha
    return downhill_pair_step(coordinates, i, j, float(curvature))


def cyclic(coordinates: Coordinates, alpha: float, turn: int) -> Step:
    """Take the pairs in a fixed order: (i, i+1) for every i, then (i, i+2), and so on, modulo n.

    Without bounds, neighbors alone would suffice. With bounds, they can stop before the optimum.
    """
    n = len(coordinates.left)
    sweep, i = divmod(turn, n)
    j = (i + 1 + sweep % max(n // 2, 1)) % n
    return downhill_pair_step(coordinates, i, j, 2 / alpha)


def downhill_pair_step(coordinates: Coordinates, i: int, j: int, curvature: float) -> Step:
    """Return the best step of the pair in the direction that decreases the model."""
    if coordinates.left[i] - coordinates.right[j] <= 0:
        i, j = j, i
    return best_pair_step(coordinates, i, j, curvature)
