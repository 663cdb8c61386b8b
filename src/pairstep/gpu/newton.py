"""Newton's method on working sets of many thousand variables, computed on the GPU.

Pair steps on the CPU are best for hundreds of free variables. For tens of thousands it is better to
solve linear systems, which a GPU does fast. Which variables of a working set are free at the
solution is found by block pivoting: all variables on the wrong side change sides at once
(Portugal, Judice and Vicente 1994). A ridge on the diagonal, as in the proximal point method, keeps
the exchanges from cycling. It shrinks with the violation, so the last steps are Newton steps.

Only matrices are on the GPU. Vectors are NumPy arrays: they are so short that the CPU handles one
faster than the GPU starts a kernel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..constraints import Indices
from .device import Device
from .oracle import KernelOracle, Position

# Numbers that the CPU may read and copy for pair steps before Newton's method is tried: less than a
# second's work. The limit grows by a factor each time that Newton's method did not help.
MAX_PAIR_STEP_READS = 1e8
RETRY_FACTOR = 2.0

# Largest number of violating variables in a working set, half of them for each direction, unless
# more variables than this are free: then the limit is the number of free variables. Larger working
# sets need fewer rounds, but larger systems.
MAX_VIOLATORS = 8192

# Fraction of the free memory that a working set may use. It needs this many matrices of its size:
# its kernel matrix, the submatrix that is factorized, and the factor.
MEMORY_FRACTION = 0.5
MATRICES_PER_WORKING_SET = 3
# Variables that a working set may have even if there is hardly any free memory.
MIN_WORKING_SET = 64

# A variable at a bound joins the working set if its derivative is wrong by more than this fraction
# of the violation. If larger, more rounds are needed; if smaller, working sets are larger.
VIOLATOR_THRESHOLD = 0.05

# Block pivoting ends after MAX_EXCHANGES exchanges, or after more than MAX_IDLE_EXCHANGES in a row
# that did not reduce the number of variables on the wrong side. The step is then projected onto the
# bounds, so more exchanges would give a better step at a higher cost.
MAX_EXCHANGES, MAX_IDLE_EXCHANGES = 12, 2

# The ridge is RIDGE times the violation divided by the largest range (upper minus lower bound) of a
# variable, but at least MIN_RIDGE times the mean of the diagonal. A larger ridge makes steps
# shorter; with a smaller one the exchanges may cycle.
RIDGE = 0.1
MIN_RIDGE = 1e-9

# Linear systems are solved to a residual of this fraction of the violation. If larger, a step
# reduces the violation less; if smaller, it takes more iterations.
SYSTEM_TOLERANCE = 0.02

# Conjugate gradients may take CG_ITERATIONS iterations, plus CG_ITERATIONS_PER_VARIABLE for each
# variable: at that point they have cost as much as a factorization. The residual is only checked
# every CG_CHECK_INTERVAL iterations, because the check waits for the GPU.
CG_ITERATIONS, CG_ITERATIONS_PER_VARIABLE, CG_CHECK_INTERVAL = 10, 0.004, 4

# Newton's method gives up after more than MAX_IDLE_ROUNDS rounds in a row in which the violation
# did not fall below ROUND_PROGRESS times its smallest value so far.
MAX_IDLE_ROUNDS = 2
ROUND_PROGRESS = 0.9

# Newton's method has helped if the violation is below this fraction of its initial value.
TOTAL_PROGRESS = 0.5

# Bisection steps for the multiplier of a projection: enough for all bits of a float64.
BISECTIONS = 100

ROUNDING = 1e-12  # relative rounding error of changes and of their sums
TINY = 1e-300  # avoids a division by 0


Mask = NDArray[np.bool_]


@dataclass
class Block:
    """A working set. A variable with an L1 term stays on the side of 0 to which it moves."""

    coordinates: Indices
    matrix: Any  # on the GPU
    z: Array
    derivative: Array  # gradient, including that of the L1 term on this side
    low: Array
    high: Array
    groups: Array  # one column per group: 1.0 for its members, else 0.0
    level: Array  # estimate of the multiplier of each group
    whole: bool  # whether all violating variables are in the working set


class Newton:
    """The driver's accelerator for one dual: runs when pair steps have become expensive."""

    def __init__(self, oracle: KernelOracle, goal: float):
        self.oracle, self.goal = oracle, goal
        self.spent, self.allowance = 0.0, MAX_PAIR_STEP_READS
        self.done = False

    def is_due(self, iterations: int, rounds: int) -> bool:
        """Add the cost of more pair steps and rounds; return whether they have cost enough.

        Also return True if the last descent reached its goal. The block solver has checked the
        result since then, in float64, and has found that the goal was not quite reached.
        """
        size = self.oracle.block_size
        self.spent += size * (2.0 * iterations + size * rounds)
        return self.done or self.spent > self.allowance

    def descend(self, max_iter: int, keep_going: Callable[[float], bool]) -> int:
        """Take Newton steps until the violation is within the goal or stops falling.

        Returns the number of systems solved, at most `max_iter`. ``keep_going(violation)`` returns
        whether to continue.
        """
        used, idle, best = 0, 0, math.inf
        systems = Systems(self.oracle.device)
        position = self.oracle.position()
        first, level = _intervals(self.oracle, position)
        violation = first
        while True:
            idle = 0 if violation < ROUND_PROGRESS * best else idle + 1
            best = min(best, violation)
            self.done = violation <= self.goal
            if self.done or idle > MAX_IDLE_ROUNDS or used >= max_iter or not keep_going(violation):
                break
            gains = _gains(
                self.oracle, position, level, max(self.goal / 4, VIOLATOR_THRESHOLD * violation)
            )
            with working_memory(self.oracle.device, int(gains.wanted.sum())) as most:
                block = _working_set(self.oracle, position, level, gains, most)
                step, count = _step(systems, block, violation, max_iter - used, keep_going)
                used += count
                if step is None:
                    break
                _apply(self.oracle, block, step)
                del block
            position = self.oracle.position()
            violation, level = _intervals(self.oracle, position)
        self.spent = 0.0
        if not (self.done or violation < TOTAL_PROGRESS * first):
            self.allowance *= RETRY_FACTOR
        return used


def _intervals(oracle: KernelOracle, position: Position) -> tuple[float, Array]:
    """Return the violation, and an estimate of the multiplier of each group."""
    _, down, up, free = position
    violation, level = 0.0, []
    for group in oracle.dual.groups:
        max_left, min_right = float(down[group].max()), float(up[group].min())
        violation = max(violation, max_left - min_right)
        if free[group].any():
            level.append(float(down[group][free[group]].mean()))
        else:
            level.append(0.5 * (max_left + min_right))
    return violation, np.array(level)


class Gains(NamedTuple):
    """How much a step of each variable would improve, per unit."""

    decrease: Array
    increase: Array
    wanted: Mask  # variables that are free or violate the conditions
    groups: Array  # one column per group: 1.0 for its members, else 0.0


def _gains(oracle: KernelOracle, position: Position, level: Array, least: float) -> Gains:
    """Return the gains of all variables; those wrong by more than `least` are wanted."""
    dual = oracle.dual
    groups = np.zeros((len(dual.z), len(level)))
    for k, group in enumerate(dual.groups):
        groups[group, k] = 1.0
    multiplier = groups @ level
    decrease, increase = position.down - multiplier, multiplier - position.up
    wanted = position.free | (np.maximum(decrease, increase) > least)
    return Gains(decrease, increase, wanted, groups)


class Reserved:
    """The GPU memory in bytes that working sets of all threads may still allocate."""

    lock = threading.Lock()
    size = 0.0


@contextmanager
def working_memory(device: Device, wanted: int) -> Iterator[int]:
    """Reserve memory for a working set, and return how many variables it may have.

    Other threads may need memory for theirs at the same time.
    """
    bytes_per_pair = 8.0 * MATRICES_PER_WORKING_SET
    with Reserved.lock:
        free = max(device.free_bytes() - Reserved.size, 0.0)
        most = max(int(math.sqrt(MEMORY_FRACTION * free / bytes_per_pair)), MIN_WORKING_SET)
        size = bytes_per_pair * min(wanted, most) ** 2
        Reserved.size += size
    try:
        yield most
    finally:
        with Reserved.lock:
            Reserved.size -= size


def _working_set(
    oracle: KernelOracle, position: Position, level: Array, gains: Gains, most: int
) -> Block:
    """Return the free variables and the most violating ones, at most `most` in all."""
    dual, (gradient, _, _, free), (decrease, increase, wanted, groups) = (
        oracle.dual, position, gains,
    )  # fmt: skip
    gain = np.maximum(decrease, increase)
    count = int(free.sum())
    kept = min(count, most // 2)
    side = min(max(MAX_VIOLATORS, count), most - kept) // 2
    whole = int(wanted.sum()) <= kept + 2 * side
    if not whole:
        chosen = np.zeros(len(gain), bool)
        for score, number in (
            (np.where(free, gain, -math.inf), kept),
            (np.where(free, -math.inf, decrease), side),
            (np.where(free, -math.inf, increase), side),
        ):
            first = max(len(score) - number, 0)
            if number > 0:
                chosen[np.argpartition(score, first)[first:] if first > 0 else slice(None)] = True
        wanted = wanted & chosen
    coordinates = np.flatnonzero(wanted)
    z, derivative = dual.z[coordinates], gradient[coordinates]
    low, high = dual.lower[coordinates], dual.upper[coordinates]
    if dual.l1 is not None:
        above = (z > 0) | ((z == 0) & (increase >= decrease)[coordinates])
        low = np.where(above, np.maximum(low, 0.0), low)
        high = np.where(above, high, np.minimum(high, 0.0))
        derivative = derivative + np.where(above, 1.0, -1.0) * dual.l1[coordinates]
    return Block(
        coordinates, oracle.matrix(coordinates), z, derivative, low, high, groups[coordinates],
        level, whole,
    )  # fmt: skip


def _step(
    systems: Systems, block: Block, violation: float, most: int, keep_going: Callable[[float], bool]
) -> tuple[Array | None, int]:
    """Return the step (None if there is none) and the number of systems solved to find it."""
    device = systems.device
    ridge = RIDGE * violation / float((block.high - block.low).max())
    ridge = max(ridge, MIN_RIDGE * float(device.diagonal(block.matrix).mean()))
    close = SYSTEM_TOLERANCE * violation
    free = np.ones(len(block.z), bool)
    change = np.zeros(len(block.z))
    fewest, idle, solved = len(free) + 1, 0, 0
    while solved < min(MAX_EXCHANGES, most):
        solved += 1
        found = systems.minimize_free(block, free, change, ridge, close)
        if found is None:
            return None, solved
        change, slope = found
        z = block.z + change
        below, above = free & (z < block.low), free & (z > block.high)
        back = ~free & np.where(z <= block.low, slope < -close, slope > close)
        wrong = int((below | above | back).sum())
        idle = 0 if wrong < fewest else idle + 1
        fewest = min(fewest, wrong)
        if wrong == 0 or idle > MAX_IDLE_EXCHANGES or not keep_going(violation):
            break
        change = np.clip(change, block.low - block.z, block.high - block.z)
        free = (free & ~below & ~above) | back
    step = _projected(block, change)
    fall = float((block.groups @ block.level - block.derivative) @ step)
    if not fall > 0:
        return None, solved
    return min(
        1.0, fall / max(float(step @ device.product(block.matrix, step)), TINY)
    ) * step, solved


class Systems:
    """Solves linear systems by conjugate gradients, or by factorization after these have failed."""

    def __init__(self, device: Device):
        self.device = device
        self.stiff = False

    def minimize_free(
        self, block: Block, free: Mask, change: Array, ridge: float, close: float
    ) -> tuple[Array, Array] | None:
        """Minimize over the free variables, without their bounds; others keep their change.

        Returns the changes of all variables, and their derivatives minus the multipliers of their
        groups. Returns None if the system could not be solved.
        """
        if not self.stiff:
            found = self._by_conjugate_gradients(block, free, change, ridge, close)
            if found is not None:
                return found
            self.stiff = True
        # A factorization is expensive, and variables outside the working set would undo its step.
        return self._by_factorization(block, free, change, ridge) if block.whole else None

    def _by_conjugate_gradients(
        self, block: Block, free: Mask, change: Array, ridge: float, close: float
    ) -> tuple[Array, Array] | None:
        matrix, product_with = block.matrix, self.device.product
        members = block.groups * free[:, None]
        counts = np.maximum(members.sum(axis=0), 1.0)

        def project(vector: Array) -> Array:
            """Project onto vectors that are 0 off the free variables and sum to 0 in each group."""
            mean: Array = members @ (members.T @ vector / counts)
            return np.where(free, vector, 0.0) - mean

        def over(a: float, b: float) -> float:
            """Return a / b, or 0 if there is no curvature or no residual left."""
            return a / b if b > 0 else 0.0

        change = change - members @ (block.groups.T @ change / counts)
        product = product_with(matrix, change)
        residual = -project(block.derivative + product + ridge * change)
        direction, square = residual, float(residual @ residual)
        for iteration in range(CG_ITERATIONS + int(CG_ITERATIONS_PER_VARIABLE * len(free))):
            if iteration % CG_CHECK_INTERVAL == 0 and float(np.abs(residual).max()) <= close:
                derivative = block.derivative + product
                level = members.T @ (derivative + ridge * change) / counts
                level = np.where(members.any(axis=0), level, block.level)
                return change, derivative - block.groups @ level
            along = product_with(matrix, direction)
            length = over(square, float(direction @ (along + ridge * direction)))
            change = change + length * direction
            product = product + length * along
            residual = residual - length * project(along + ridge * direction)
            square, before = float(residual @ residual), square
            direction = residual + over(square, before) * direction
        return None

    def _by_factorization(
        self, block: Block, free: Mask, change: Array, ridge: float
    ) -> tuple[Array, Array] | None:
        device, matrix = self.device, block.matrix
        change = np.where(free, 0.0, change)
        derivative = block.derivative + device.product(matrix, change)
        inside = np.flatnonzero(free)
        members = block.groups[inside]
        solved = device.solve(
            device.submatrix(matrix, inside, ridge), np.c_[derivative[inside], members]
        )
        if solved is None:
            return None
        sums, missing = members.T @ solved, block.groups.T @ change
        level = block.level.copy()
        some = sums[:, 1:].diagonal() > 0  # the groups that have free variables
        level[some] = np.linalg.solve(sums[:, 1:][np.ix_(some, some)], (sums[:, 0] - missing)[some])
        change[inside] = solved[:, 1:] @ level - solved[:, 0]
        slope = block.derivative + device.product(matrix, change) - block.groups @ level
        return change, slope


def _projected(block: Block, change: Array) -> Array:
    """Return the closest change that keeps the bounds and the sums."""
    least, largest = block.low - block.z, block.high - block.z
    size = float(np.abs(change).sum())
    within = bool(((change >= least) & (change <= largest)).all())
    if within and float(np.abs(block.groups.T @ change).max()) <= ROUNDING * size:
        return change
    high = np.abs(change).max() * np.ones(block.groups.shape[1])
    low = -high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        sums = block.groups.T @ np.clip(change + block.groups @ middle, least, largest)
        low, high = np.where(sums < 0, middle, low), np.where(sums < 0, high, middle)
    projected: Array = np.clip(change + block.groups @ low, least, largest)
    return projected


def _apply(oracle: KernelOracle, block: Block, step: Array) -> None:
    z = np.clip(block.z + step, block.low, block.high)
    # A variable that misses its bound only by rounding would count as violating, but cannot move.
    span = block.high - block.low
    close = np.where(np.isfinite(span), ROUNDING * span, 0.0)
    z = np.where(z - block.low <= close, block.low, z)
    z = np.where(block.high - z <= close, block.high, z)
    delta = z - oracle.dual.z[block.coordinates]
    moved = delta != 0
    oracle.dual.z[block.coordinates] = z
    oracle.update_gradient(block.coordinates[moved], delta[moved])
