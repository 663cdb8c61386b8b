"""What a rule may see, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int_]


@dataclass(frozen=True)
class Accounts:
    """Prices and rooms of the coordinates that share one sum.

    Every coordinate is an account. A unit taken out of account i saves its *down-price*, the left
    derivative of the objective; a unit put in costs its *up-price*, the right derivative. The
    *rooms* say how much can be taken out or put in before a bound or a kink is met.
    """

    down_price: Array
    up_price: Array
    down_room: Array
    up_room: Array
    lipschitz: Array

    def some(self, which: Indices) -> Accounts:
        """A few of the accounts."""
        return Accounts(
            self.down_price[which],
            self.up_price[which],
            self.down_room[which],
            self.up_room[which],
            self.lipschitz[which],
        )

    def capped(self, down: Array, up: Array) -> Accounts:
        """The same accounts with no room beyond these."""
        return Accounts(
            self.down_price,
            self.up_price,
            np.minimum(self.down_room, down),
            np.minimum(self.up_room, up),
            self.lipschitz,
        )

    @property
    def sellers(self) -> Array:
        """Down-prices, -inf where nothing can be taken out."""
        return np.where(self.down_room > 0, self.down_price, -np.inf)

    @property
    def buyers(self) -> Array:
        """Up-prices, +inf where nothing can be put in."""
        return np.where(self.up_room > 0, self.up_price, np.inf)

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Where both prices are one, with room both ways."""
        moves = np.minimum(self.down_room, self.up_room) > 0
        return np.asarray(moves & (self.down_price == self.up_price))


Kinks = tuple[Array, Array]  # weights and places


def ends_at(z: Array, lower: Array, upper: Array, kinks: Kinks | None) -> tuple[Array, Array]:
    """Where each account ends up if it is emptied, and if it is filled: the next kink or bound."""
    if kinks is None:
        return lower, upper
    pivot = kinks[1]
    floor = np.where(z > pivot, np.maximum(lower, pivot), lower)
    return floor, np.where(z < pivot, np.minimum(upper, pivot), upper)


def accounts_at(
    gradient: Array,
    z: Array,
    lower: Array,
    upper: Array,
    kinks: Kinks | None,
    lipschitz: Array | None = None,
) -> Accounts:
    """Prices and rooms at a point: what kinks add to the gradient, and how far each may go."""
    floor, ceiling = ends_at(z, lower, upper, kinks)
    down = up = gradient
    if kinks is not None:
        weight, pivot = kinks
        down = gradient + np.where(z > pivot, weight, -weight)
        up = gradient + np.where(z >= pivot, weight, -weight)
    constants = np.ones_like(z) if lipschitz is None else lipschitz
    return Accounts(down, up, z - floor, ceiling - z, constants)


def box_accounts(
    gradient: Array, x: Array, lower: Array, upper: Array, lipschitz: Array | None = None
) -> Accounts:
    """Prices and rooms of a smooth function within bounds."""
    constants = np.ones_like(x) if lipschitz is None else lipschitz
    return Accounts(gradient, gradient, x - lower, upper - x, constants)


@dataclass(frozen=True, eq=False)
class Move:
    """A change of a few coordinates that leaves their sum as it is.

    Attributes
    ----------
    indices : ndarray of int
        The coordinates that change.
    delta : ndarray of float
        By how much each of them changes; the changes sum to 0.
    decrease : float
        Minus the rule's model at the move: how much the rule expects to gain. 0 for no move.
    """

    indices: NDArray[np.int64]
    delta: Array
    decrease: float


def no_move() -> Move:
    """The answer where no pair has a down-price above an up-price."""
    return Move(np.empty(0, np.int64), np.empty(0), 0.0)


def pair_move(i: int, j: int, amount: float, decrease: float) -> Move:
    """Move `amount` from account i to account j."""
    return Move(np.array([i, j], np.int64), np.array([-amount, amount]), float(decrease))


def pair_amount(accounts: Accounts, i: int, j: int, curvature: float) -> float:
    """The best amount from i to j under the model -gap d + curvature d^2/2, eq. (deltaBound)."""
    gap = accounts.down_price[i] - accounts.up_price[j]
    return float(min(gap / curvature, accounts.down_room[i], accounts.up_room[j]))


def best_pair_move(accounts: Accounts, i: int, j: int, curvature: float) -> Move:
    """Move the best amount from i to j, or nothing where that gains nothing."""
    gap = accounts.down_price[i] - accounts.up_price[j]
    amount = pair_amount(accounts, i, j, curvature)
    if i == j or not (gap > 0 and amount > 0):
        return no_move()
    return pair_move(i, j, amount, amount * (gap - 0.5 * curvature * amount))
