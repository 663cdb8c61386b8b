"""Common parts of the objectives that come with their own derivatives, and checks of their data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._validation import LARGE_FACTOR, Array, array, full_vector, require_finite
from ..labels import Axis, aligned
from .objective import Indices
from .smooth import Smooth


class ReadyMade(Smooth):
    """A smooth function that computes its own `value_and_gradient` and `second_order`."""

    n: int
    gradient_is_given = False

    def value(self, x: ArrayLike) -> float:
        """Return f(x), infinite outside the domain."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """Return the gradient at x."""
        return self.value_and_gradient(x)[1]


def embedded(block: Array, where: Indices, n: int) -> Array:
    """Return an n x n matrix that is 0 outside a block."""
    if len(where) == n:
        return block
    whole = np.zeros((n, n))
    whole[where[:, None], where] = block
    return whole


def matrix(name: str, values: ArrayLike, rows: Axis, columns: Axis) -> tuple[Array, float]:
    """Check a matrix and align it with the axes; return it with its largest absolute value."""
    result = array(name, aligned(name, values, rows, columns), 2)
    largest = require_finite(name, result, LARGE_FACTOR)
    if 0 in result.shape:
        raise ValueError(f"{name} is empty: its shape is {result.shape}")
    return result, largest


def row_weights(weights: ArrayLike | None, m: int, rows: Axis) -> Array:
    """Return the weight of each of m rows; by default f is a mean."""
    if weights is None:
        return np.full(m, 1 / m)
    result = full_vector("weights", aligned("weights", weights, rows), m)
    if result.min() < 0:
        i = int(np.argmin(result))
        raise ValueError(f"weights must not be negative, but weights[{i}] = {result[i]:g}")
    if result.max() == 0:
        raise ValueError("weights are all 0: there is nothing to minimize")
    return result


def require_not_negative(name: str, values: Array) -> None:
    """Raise if an entry is negative."""
    if values.min() < 0:
        place = np.unravel_index(int(np.argmin(values)), values.shape)
        at = ", ".join(str(int(k)) for k in place)
        raise ValueError(f"{name} must not be negative, but {name}[{at}] = {values[place]:g}")


def require_some_positive(name: str, values: Array, weight: Array) -> None:
    """Raise if a row with a positive weight has no positive entry: its logarithm is never finite.

    Entries are not negative, so their sum decides; computing it is faster than the maximum.
    """
    empty = (_core.times_vector(values, np.ones(values.shape[1])) == 0) & (weight > 0)
    if empty.any():
        i = int(np.argmax(empty))
        raise ValueError(
            f"row {i} of {name} has no positive entry, so log({name} x)[{i}] is not finite for "
            "any x: leave the row out, or give it the weight 0"
        )
