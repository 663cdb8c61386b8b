"""The variables as rules and oracles see them (`Coordinates`), and a change of some (`Step`).

`Coordinates` hides bounds and L1 terms: it only has one-sided derivatives and distances. The C++
form is `cpp/paper/views.hpp`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int_]


@dataclass(frozen=True)
class Coordinates:
    """One-sided derivatives of the variables that share one sum, and how far each can change.

    An amount that is taken from a variable i and given to a variable j leaves the sum unchanged. It
    decreases the objective to first order if the left derivative of i exceeds the right derivative
    of j. The difference of the two is called the gap of the pair.

    Attributes
    ----------
    left_derivative, right_derivative : ndarray
        One-sided derivatives of the objective. They differ at the breakpoint of an L1 term. The
        left derivative is -inf if a variable cannot decrease, and the right derivative is +inf if
        it cannot increase.
    left, right : ndarray
        The same derivatives, but finite for all variables.
    max_decrease, max_increase : ndarray
        Distance to the nearest bound or breakpoint below and above; 0 for a variable that cannot
        decrease or increase.
    lipschitz : ndarray
        Coordinate-wise Lipschitz constants of the gradient; 1 where none are given.
    """

    left: Array
    right: Array
    max_decrease: Array
    max_increase: Array
    lipschitz: Array

    def some(self, which: Indices) -> Coordinates:
        """Return the coordinates with these indices."""
        return Coordinates(
            self.left[which],
            self.right[which],
            self.max_decrease[which],
            self.max_increase[which],
            self.lipschitz[which],
        )

    def capped(self, down: Array, up: Array) -> Coordinates:
        """Return the same coordinates with smaller limits on their changes."""
        return Coordinates(
            self.left,
            self.right,
            np.minimum(self.max_decrease, down),
            np.minimum(self.max_increase, up),
            self.lipschitz,
        )

    @property
    def left_derivative(self) -> Array:
        """Left derivatives; -inf where a variable cannot decrease."""
        return np.where(self.max_decrease > 0, self.left, -np.inf)

    @property
    def right_derivative(self) -> Array:
        """Right derivatives; +inf where a variable cannot increase."""
        return np.where(self.max_increase > 0, self.right, np.inf)

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Whether a variable lies strictly between its bounds and not at a breakpoint."""
        can_change = np.minimum(self.max_decrease, self.max_increase) > 0
        return np.asarray(can_change & (self.left == self.right))


L1Terms = tuple[Array, Array]  # weights and breakpoints: sum_i weight_i |z_i - breakpoint_i|


def ends_at(z: Array, lower: Array, upper: Array, l1_terms: L1Terms | None) -> tuple[Array, Array]:
    """Return the nearest bound or breakpoint below and above each variable."""
    if l1_terms is None:
        return lower, upper
    breakpoint = l1_terms[1]
    below = np.where(z > breakpoint, np.maximum(lower, breakpoint), lower)
    return below, np.where(z < breakpoint, np.minimum(upper, breakpoint), upper)


def coordinates_at(
    gradient: Array,
    z: Array,
    lower: Array,
    upper: Array,
    l1_terms: L1Terms | None,
    lipschitz: Array | None = None,
) -> Coordinates:
    """Return the coordinates at z: one-sided derivatives with L1 terms, and distances."""
    below, above = ends_at(z, lower, upper, l1_terms)
    left = right = gradient
    if l1_terms is not None:
        weight, breakpoint = l1_terms
        left = gradient + np.where(z > breakpoint, weight, -weight)
        right = gradient + np.where(z >= breakpoint, weight, -weight)
    constants = np.ones_like(z) if lipschitz is None else lipschitz
    return Coordinates(left, right, z - below, above - z, constants)


@dataclass(frozen=True, eq=False)
class Step:
    """A change of some variables that leaves their sum unchanged.

    Attributes
    ----------
    indices : ndarray of int
        The variables that change.
    delta : ndarray of float
        The change of each of them. The changes sum to 0.
    decrease : float
        The decrease of the rule's model of the objective, i.e. minus the model at this step. 0 for
        an empty step.
    """

    indices: NDArray[np.int64]
    delta: Array
    decrease: float
