"""Rescaling: call a rule with numbers that it can multiply without overflow or underflow.

A rule multiplies derivatives, distances, Lipschitz constants and step sizes with each other. The
functions here rescale the coordinates by powers of 2, call the rule, and scale its step back. The
C++ form is `cpp/paper/weighted_units.hpp`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...coordinates import Array, Coordinates, Step
from .pairs import no_step

# In the new units, the numbers that decide are about 1. Distances below NEGLIGIBLE are treated as
# 0, and derivatives, constants and step sizes beyond LARGEST are clipped, so that products with
# numbers about 1 neither underflow nor overflow.
NEGLIGIBLE, LARGEST = 2.0**-900, 2.0**600
MAX_FLOAT = np.finfo(float).max


def guided_in_units(
    rule: Callable[[Coordinates, float], Step], coordinates: Coordinates, alpha: float
) -> Step:
    """Call a rule that uses the derivatives.

    If all decreases that the rule compares underflow to 0, it may return an empty step. Then return
    the step of the pair with the largest gap.
    """
    step = in_units(rule, coordinates, alpha)
    if (
        len(step.indices)
        or not coordinates.left_derivative.max() > coordinates.right_derivative.min()
    ):
        return step
    pair = np.array(
        [np.argmax(coordinates.left_derivative), np.argmin(coordinates.right_derivative)]
    )
    step = in_units(rule, coordinates.some(pair), alpha)
    return Step(pair[step.indices], step.delta, step.decrease)


@np.errstate(over="ignore", under="ignore")
def in_units(
    rule: Callable[[Coordinates, float], Step], coordinates: Coordinates, alpha: float
) -> Step:
    """Call a rule with the same coordinates in units in which neither products nor sums overflow.

    The units make the largest gap, the smallest Lipschitz constant and the largest possible amount
    about 1. They are powers of 2, which do not change a mantissa, so the choice does not depend on
    them. Distances that are 2^900 times smaller are treated as 0.
    """
    max_left, min_right = coordinates.left_derivative.max(), coordinates.right_derivative.min()
    if not max_left > min_right:
        return no_step()
    can_go_down = coordinates.left_derivative > min_right
    can_go_up = coordinates.right_derivative < max_left
    gap = max_left - min_right
    derivative = exponent(gap) if np.isfinite(gap) else 1 + exponent(max_left / 2 - min_right / 2)
    constant = 2 * (exponent(coordinates.lipschitz.min()) // 2)  # even: rules take square roots
    amount = exponent(alpha) + derivative - constant
    max_amount = min(
        coordinates.max_decrease[can_go_down].max(), coordinates.max_increase[can_go_up].max()
    )
    if np.isfinite(max_amount):
        amount = min(amount, exponent(max_amount))
    down, up = np.ldexp([coordinates.max_decrease, coordinates.max_increase], -amount)
    scaled = Coordinates(
        np.clip(np.ldexp(coordinates.left, -derivative), -LARGEST, LARGEST),
        np.clip(np.ldexp(coordinates.right, -derivative), -LARGEST, LARGEST),
        np.where(down >= NEGLIGIBLE, down, 0.0),
        np.where(up >= NEGLIGIBLE, up, 0.0),
        np.minimum(np.ldexp(coordinates.lipschitz, -constant), LARGEST),
    )
    size = np.ldexp(np.frexp(alpha)[0], exponent(alpha) + 1 + derivative - amount - constant)
    step = rule(scaled, min(float(size), LARGEST))
    delta = scaled_back(step, scaled, coordinates, amount)
    if not (delta != 0).all() or not np.isfinite(delta).all():
        return no_step()
    decrease = min(float(np.ldexp(step.decrease, amount + derivative)), MAX_FLOAT)
    return Step(step.indices, delta, decrease)


def exponent(number: float) -> int:
    """Return the exponent of the largest power of 2 that is at most a positive number."""
    return int(np.frexp(number)[1]) - 1


def scaled_back(step: Step, scaled: Coordinates, coordinates: Coordinates, amount: int) -> Array:
    """Return the changes of a step in the original units.

    A change that uses all of `max_decrease` or `max_increase` does so exactly, bit by bit.
    """
    down, size = step.delta < 0, np.abs(step.delta)
    limit = np.where(
        down, coordinates.max_decrease[step.indices], coordinates.max_increase[step.indices]
    )
    scaled_limit = np.where(
        down, scaled.max_decrease[step.indices], scaled.max_increase[step.indices]
    )
    size = np.minimum(np.where(size >= scaled_limit, limit, np.ldexp(size, amount)), limit)
    if len(size) == 2:
        size = np.full(2, min(size.min(), MAX_FLOAT))
    return np.where(down, -size, size)
