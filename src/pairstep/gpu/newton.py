"""Newton's method on working sets of many thousands, all of it on the device.

Pair steps balance hundreds of free variables at once, and a processor makes them best. Tens of
thousands are balanced by solving systems, which a device does best. Which variables of a working
set are free in the end is found by exchanging all wrong ones at once (Portugal, Judice and Vicente
1994), under a ridge as in the proximal point method: it keeps the exchanges from cycling, and
shrinks with the violation, so that the last steps are Newton's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import Array
from .device import Device
from .oracle import KernelOracle

# Numbers that the processor may read in pair steps and copy for them before Newton's method is
# tried: it does so in less than a second. So many times more each time that was in vain.
ALLOWANCE = 1e8
DEARER = 2.0

# Violators in a working set, at most, half of them sellers; where more variables are free, as many.
VIOLATORS = 8192

# Of the memory that is free a working set may use so much: its kernel matrix, the part of it that
# is factorised, and the factor.
SHARE = 0.5
MATRICES = 3
SMALLEST = 64  # members, in any case

# Whose price is wrong by so much of the violation is a violator.
SLACK = 0.05

# Exchanges in a working set, and how many may pass without fewer variables being wrong.
EXCHANGES, PATIENCE = 12, 2

# The ridge: so much of what would move a variable across its range at the price that is violated.
RIDGE = 0.1
LEAST_RIDGE = 1e-9  # of the diagonal

# Systems are solved to so much of the violation.
CLOSE = 0.02

# Conjugate gradients may take so many iterations, and so many for each variable: then they have
# cost as much as a factorisation. It is looked every so many whether they are done.
ITERATIONS, ITERATIONS_EACH, LOOK_EVERY = 10, 0.004, 4

# Rounds that may pass without the violation falling by a tenth.
ROUNDS_IN_VAIN = 2

HALVINGS = 100  # of the interval that the price of a projection lies in

ROUNDING = 1e-12  # of changes and of what they sum to, against their size
TINY = 1e-300


@dataclass
class Block:
    """A working set, each variable between two of its bounds and kinks."""

    accounts: Any
    matrix: Any
    z: Any
    price: Any  # the gradient there
    low: Any
    high: Any
    groups: Any  # a column for each: 1.0 for its members
    level: Array  # the price at which each group trades
    whole: bool  # whether no violator was left out


class Newton:
    """Newton's method for one dual, as a help for pair steps: it knows when it is due."""

    def __init__(self, oracle: KernelOracle, goal: float):
        self.oracle, self.goal = oracle, goal
        self.spent, self.allowance = 0.0, ALLOWANCE
        self.done = False

    def is_due(self, steps: int, rounds: int) -> bool:
        """Whether pair steps, so many more in so many rounds, have cost enough.

        Or have found out that the goal, which was reached, was not in float64.
        """
        size = self.oracle.block_size
        self.spent += size * (2.0 * steps + size * rounds)
        return self.done or self.spent > self.allowance

    def descend(self, most: int, goes_on: Callable[[float], bool]) -> int:
        """Rounds for as long as they pay, until the violation is within the goal.

        Returns how many systems, at most `most`, were solved; `goes_on` is told the violation.
        """
        used, in_vain, best = 0, 0, math.inf
        systems = Systems(self.oracle.device)
        first, level = _markets(self.oracle)
        violation = first
        while True:
            in_vain = 0 if violation < 0.9 * best else in_vain + 1
            best = min(best, violation)
            self.done = violation <= self.goal
            if self.done or in_vain > ROUNDS_IN_VAIN or used >= most or not goes_on(violation):
                break
            block = _working_set(self.oracle, level, max(self.goal / 4, SLACK * violation))
            step, count = _step(systems, block, violation, most - used, goes_on)
            used += count
            if step is None:
                break
            _move(self.oracle, block, step)
            violation, level = _markets(self.oracle)
        self.spent = 0.0
        if not (self.done or violation < 0.5 * first):
            self.allowance *= DEARER
        return used


def _markets(oracle: KernelOracle) -> tuple[float, Array]:
    """The violation, and the price at which each group trades."""
    xp = oracle.device.xp
    down, up, free = oracle.standing()
    violation, level = 0.0, []
    for group in oracle.dual.groups:
        dearest, cheapest = float(down[group].max()), float(up[group].min())
        violation = max(violation, dearest - cheapest)
        if count := int(free[group].sum()):
            level.append(float(xp.where(free[group], down[group], 0.0).sum()) / count)
        else:
            level.append(0.5 * (dearest + cheapest))
    return violation, np.array(level)


def _working_set(oracle: KernelOracle, level: Array, least: float) -> Block:
    """The free variables, and those whose prices are furthest on the wrong side of the level."""
    device, xp = oracle.device, oracle.device.xp
    gradient, x, lower, upper, kink, _ = oracle.prices
    down, up, free = oracle.standing()
    groups = xp.zeros((len(x), len(level)))
    for k, group in enumerate(oracle.dual.groups):
        groups[group, k] = 1.0
    price = groups @ xp.asarray(level)
    sells, buys = down - price, price - up
    gain = xp.maximum(sells, buys)
    wanted = free | (gain > least)
    most = max(int(math.sqrt(SHARE * device.free_bytes() / (8 * MATRICES))), SMALLEST)
    count = int(free.sum())
    kept = min(count, most // 2)
    side = min(max(VIOLATORS, count), most - kept) // 2
    whole = int(wanted.sum()) <= kept + 2 * side
    if not whole:
        chosen = xp.zeros(len(x), bool)
        for score, number in (
            (xp.where(free, gain, -math.inf), kept),
            (xp.where(free, -math.inf, sells), side),
            (xp.where(free, -math.inf, buys), side),
        ):
            chosen[xp.argsort(score)[len(score) - number :]] = True
        wanted &= chosen
    accounts = xp.flatnonzero(wanted)
    low, high, price = lower[accounts], upper[accounts], gradient[accounts]
    if kink is not None:
        z = x[accounts]
        above = (z > 0) | ((z == 0) & (buys >= sells)[accounts])
        low = xp.where(above, xp.maximum(low, 0.0), low)
        high = xp.where(above, high, xp.minimum(high, 0.0))
        price = price + xp.where(above, 1.0, -1.0) * kink[accounts]
    members = np.array(device.fetch(accounts), np.int64)
    return Block(
        members, oracle.matrix(members), x[accounts], price, low, high, groups[accounts], level,
        whole,
    )  # fmt: skip


def _step(
    systems: Systems, block: Block, violation: float, most: int, goes_on: Callable[[float], bool]
) -> tuple[Any, int]:
    """Where to move, None if nowhere, and how many systems were solved to find out."""
    xp, matrix = systems.device.xp, block.matrix
    ridge = RIDGE * violation / float((block.high - block.low).max())
    ridge = max(ridge, LEAST_RIDGE * float(matrix.diagonal().mean()))
    close = CLOSE * violation
    free = xp.ones(len(block.z), bool)
    change = xp.zeros(len(block.z))
    fewest, in_vain, solved = len(free) + 1, 0, 0
    while solved < min(EXCHANGES, most):
        solved += 1
        found = systems.balance(block, free, change, ridge, close)
        if found is None:
            return None, solved
        change, slope = found
        z = block.z + change
        below, above = free & (z < block.low), free & (z > block.high)
        back = ~free & xp.where(z <= block.low, slope < -close, slope > close)
        wrong = int((below | above | back).sum())
        in_vain = 0 if wrong < fewest else in_vain + 1
        fewest = min(fewest, wrong)
        if wrong == 0 or in_vain > PATIENCE or not goes_on(violation):
            break
        change = xp.clip(change, block.low - block.z, block.high - block.z)
        free = (free & ~below & ~above) | back
    step = _projected(xp, block, change)
    fall = float((block.groups @ xp.asarray(block.level) - block.price) @ step)
    if not fall > 0:
        return None, solved
    return min(1.0, fall / max(float(step @ (matrix @ step)), TINY)) * step, solved


class Systems:
    """Systems of a device: by conjugate gradients, and by factorisations once these fail."""

    def __init__(self, device: Device):
        self.device = device
        self.stiff = False

    def balance(
        self, block: Block, free: Any, change: Any, ridge: float, close: float
    ) -> tuple[Any, Any] | None:
        """Move the free variables to where their prices are even; others keep their change.

        Returns all changes and slopes, which are the prices less the levels of their groups.
        """
        if not self.stiff:
            found = self._by_conjugate_gradients(block, free, change, ridge, close)
            if found is not None:
                return found
            self.stiff = True
        # Factorisations are dear, and those who were left out will undo what they find.
        return self._by_factorisation(block, free, change, ridge) if block.whole else None

    def _by_conjugate_gradients(
        self, block: Block, free: Any, change: Any, ridge: float, close: float
    ) -> tuple[Any, Any] | None:
        xp, matrix = self.device.xp, block.matrix
        members = block.groups * free[:, None]
        counts = xp.maximum(members.sum(axis=0), 1.0)

        def even(vector: Any) -> Any:
            """Of the free variables, less the mean of each group."""
            return xp.where(free, vector, 0.0) - members @ (members.T @ vector / counts)

        def over(a: Any, b: Any) -> Any:
            """A / b, or 0 where there is no curvature or nothing left to do."""
            return a / xp.where(b > 0, b, math.inf)

        change = change - members @ (block.groups.T @ change / counts)
        bent = matrix @ change
        residual = -even(block.price + bent + ridge * change)
        direction, square = residual, residual @ residual
        for iteration in range(ITERATIONS + int(ITERATIONS_EACH * len(free))):
            if iteration % LOOK_EVERY == 0 and float(xp.abs(residual).max()) <= close:
                price = block.price + bent
                level = members.T @ (price + ridge * change) / counts
                level = xp.where(members.any(axis=0), level, xp.asarray(block.level))
                return change, price - block.groups @ level
            along = matrix @ direction
            length = over(square, direction @ (along + ridge * direction))
            change = change + length * direction
            bent = bent + length * along
            residual = residual - length * even(along + ridge * direction)
            square, before = residual @ residual, square
            direction = residual + over(square, before) * direction
        return None

    def _by_factorisation(
        self, block: Block, free: Any, change: Any, ridge: float
    ) -> tuple[Any, Any] | None:
        xp, matrix = self.device.xp, block.matrix
        change = xp.where(free, 0.0, change)
        price = block.price + matrix @ change
        inside = xp.flatnonzero(free)
        part = matrix[inside[:, None], inside]
        part[xp.arange(len(inside)), xp.arange(len(inside))] += ridge
        members = block.groups[inside]
        solved = self.device.solve(part, xp.concatenate([price[inside, None], members], axis=1))
        if solved is None:
            return None
        sums = np.array(self.device.fetch(members.T @ solved))
        missing = np.array(self.device.fetch(block.groups.T @ change))
        level = block.level.copy()
        some = sums[:, 1:].diagonal() > 0  # of the groups have free variables
        level[some] = np.linalg.solve(sums[:, 1:][np.ix_(some, some)], (sums[:, 0] - missing)[some])
        change[inside] = solved[:, 1:] @ xp.asarray(level) - solved[:, 0]
        return change, block.price + matrix @ change - block.groups @ xp.asarray(level)


def _projected(xp: Any, block: Block, change: Any) -> Any:
    """The nearest change that keeps the bounds and the sums."""
    least, largest = block.low - block.z, block.high - block.z
    size = float(xp.abs(change).sum())
    within = bool(((change >= least) & (change <= largest)).all())
    if within and float(xp.abs(block.groups.T @ change).max()) <= ROUNDING * size:
        return change
    high = xp.abs(change).max() * xp.ones(block.groups.shape[1])
    low = -high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        sums = block.groups.T @ xp.clip(change + block.groups @ middle, least, largest)
        low, high = xp.where(sums < 0, middle, low), xp.where(sums < 0, high, middle)
    return xp.clip(change + block.groups @ low, least, largest)


def _move(oracle: KernelOracle, block: Block, step: Any) -> None:
    xp, device = oracle.device.xp, oracle.device
    z = xp.clip(block.z + step, block.low, block.high)
    # Who is at a bound but for rounding would be a violator without room.
    span = block.high - block.low
    close = xp.where(xp.isfinite(span), ROUNDING * span, 0.0)
    z = xp.where(z - block.low <= close, block.low, z)
    z = np.array(device.fetch(xp.where(block.high - z <= close, block.high, z)))
    delta = z - oracle.dual.z[block.accounts]
    moved = delta != 0
    oracle.dual.z[block.accounts] = z
    oracle.advance(block.accounts[moved], delta[moved])
