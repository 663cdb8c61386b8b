"""Tests whether a function that is not quadratic falls without bound on an unbounded feasible set.

A small gradient proves nothing: the gradient of ``-log`` vanishes at infinity, and the function has
no minimum. So `unbounded` requires a feasible ray along which the function falls without bound, and
`optimal` requires a point near which little can be gained.

Objectives that know their behavior at infinity report it exactly (`falls_along`). For others only
values are known. They must decrease along the ray up to the largest numbers, and each
multiplication of the distance by the same factor must decrease them about as much as the previous
one did.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import scipy

from .. import _core
from .._validation import Array
from ..constraints import Layout
from ..objectives import falls_along
from ..objectives.objective import lower_bound, recession_rows
from ..result import Status
from .task import GAIN_PER_TOL, Evaluation, Task

# Inner products, sums and entries of a direction that are smaller than this, relative to their
# terms, count as 0. It must exceed the feasibility tolerance of `scipy.optimize.linprog`, which is
# 1e-7.
NEARLY_ZERO = 1e-6
# Entries of a direction are rounded to multiples of 1 / GRID_POINTS_PER_UNIT. Sums of up to 2^16 of
# them, each at most 1, are exact.
GRID_POINTS_PER_UNIT = 2.0**36
# Number of nonzero entries up to which equations are solved in fractions. The time grows at least
# with its cube.
MAX_EXACT_VARIABLES = 40
# Binary digits after the point to try for the entries that the equations leave free. Fewer digits
# keep the integers small; more come closer to the direction.
FREE_ENTRY_BITS = (6, 12, 20)
MAX_EXACT_INTEGER = 2**53  # float64 represents all integers up to here
# Ratio of the distances of two consecutive points along a direction. A smaller ratio tests more
# points, and a larger one could miss where the values stop decreasing.
DISTANCE_FACTOR = 2.0**10
MAX_DISTANCE = 1e300  # close to the largest float64
MIN_RANGE = 1e100  # values must be finite up to this multiple of the first distance
# The value must decrease from the second to last to the last point by at least this fraction of the
# decrease halfway. The fraction is 1 for -log, 1/2 for -log(log), and much less for functions with
# a lower bound such as -x^-0.01.
MIN_GAIN_RATIO = 0.4
# Relative decrease of the value that counts as rounding. A larger value finds fewer rays of
# descent; a smaller one may mistake rounding errors for a decrease.
VALUE_ROUNDING = 1e-12
# Largest tolerance that decides whether the remaining gain calls for the thorough search, the
# default of `minimize`. With a looser one, a function that falls without bound could pass as
# optimal.
MAX_TOL_FOR_GAIN = 1e-8

UNDECIDED = (
    "the feasible set is unbounded and the objective still decreases far from the start, but no "
    "direction was found along which it falls without bound: add finite bounds if it has a minimum"
)


def review(
    task: Task, status: Status, remark: str, current: Evaluation
) -> tuple[Status, str, Array | None]:
    """Return status and remark after a test for unboundedness, and a ray of descent or None."""
    doubtful = status in (Status.OPTIMAL, Status.STALLED) and current.violation > 0
    cone = _cone(task.layout) if doubtful or status == Status.UNBOUNDED else None
    if cone is None:
        return status, remark, None
    much = current.nearby > GAIN_PER_TOL * min(task.tol, MAX_TOL_FOR_GAIN) * _size(task, current)
    direction = direction_of_fall(task, task.z, cone, thorough=much or status != Status.OPTIMAL)
    if direction is None and (much or status == Status.UNBOUNDED):
        direction = _by_values(task, cone)
    if direction is not None:
        return Status.UNBOUNDED, "", direction
    if status == Status.UNBOUNDED and math.isfinite(current.value):
        return Status.STALLED, UNDECIDED, None
    if status == Status.OPTIMAL and current.nearby > GAIN_PER_TOL * task.tol * _size(task, current):
        return Status.STALLED, UNDECIDED, None
    return status, remark, None


def direction_of_fall(
    task: Task, toward: Array, cone: Layout | None = None, *, thorough: bool = False
) -> Array | None:
    """Return a direction near the given one along which the objective falls without bound, or None.

    The thorough search also solves a linear program for such a direction, if the objective has
    linear conditions for it.
    """
    cone = cone or _cone(task.layout)
    if cone is None:
        return None
    direction = _within(cone, toward)
    if direction is not None and falls_along(task.objective, direction):
        return direction
    rows = recession_rows(task.objective) if thorough else None
    if rows is None:
        return None
    if task.objective.l1_terms is not None:  # variables with a cost must not change
        free = task.objective.l1_terms[0] == 0
        cone = dataclasses.replace(
            cone, lower=np.where(free, cone.lower, 0.0), upper=np.where(free, cone.upper, 0.0)
        )
    found = _by_linear_programming(cone, rows, task.time_left)
    if found is None:
        return None
    for candidate in (found, *_in_whole_numbers(cone, rows, found)):
        if falls_along(task.objective, candidate):
            return candidate
    return None


def _cone(layout: Layout) -> Layout | None:
    """Return the recession cone of sums and bounds as a layout, or None if it is {0}."""
    if math.isfinite(_core.largest_size(layout.lower)):  # no variable can decrease forever
        return None
    down, up = np.isinf(layout.lower), np.isinf(layout.upper)
    fall, rise, either = (
        np.add.reduceat(some, layout.sharing[:-1], dtype=np.int64) for some in (down, up, down | up)
    )
    if not ((fall > 0) & (rise > 0) & (either > 1)).any():  # one decreases, another increases
        return None

    def free_or_zero(limit: Array) -> Array:
        return np.where(np.isinf(limit), limit, 0.0)

    return dataclasses.replace(
        layout,
        lower=free_or_zero(layout.lower),
        upper=free_or_zero(layout.upper),
        totals=np.zeros_like(layout.totals),
        low=None if layout.low is None else free_or_zero(layout.low),
        high=None if layout.high is None else free_or_zero(layout.high),
    )


def _within(cone: Layout, toward: Array) -> Array | None:
    """Return a direction in the cone near the given one, with its largest entry about 1.

    Its entries are multiples of 1 / `GRID_POINTS_PER_UNIT`, so its sums are exact.
    """
    size = float(np.abs(toward).max())
    if not 0 < size < math.inf:
        return None
    direction = cone.project(toward / size)
    size = float(np.abs(direction).max())
    if not size > math.sqrt(np.finfo(float).eps):  # only rounding errors
        return None
    direction = np.rint(direction / size * GRID_POINTS_PER_UNIT) / GRID_POINTS_PER_UNIT
    sums = np.add.reduceat(direction, cone.starts[:-1])
    wanted = np.zeros_like(sums)
    if cone.nested:
        wanted = np.where(np.abs(sums) > NEARLY_ZERO, sums, 0.0)
        wanted[np.argmax(np.abs(wanted))] -= wanted.sum()
    for k in np.flatnonzero(sums != wanted):
        members = slice(cone.starts[k], cone.starts[k + 1])
        largest = cone.starts[k] + np.argmax(np.abs(direction[members]))
        direction[largest] += wanted[k] - sums[k]
    return direction if _contains(cone, direction) else None


def _by_linear_programming(cone: Layout, rows: Array, seconds: float) -> Array | None:
    """Return the direction in the cone with the largest ``sum(rows d)`` and ``rows d >= 0``."""
    size = np.abs(rows).sum(axis=1)
    rows = rows[size > 0] / size[size > 0, None]
    if not len(rows):
        return None
    sums = np.add.reduceat(np.eye(cone.n), cone.sharing[:-1], axis=0)
    limits = np.zeros((0, cone.n))
    if cone.low is not None and cone.high is not None:
        groups = np.add.reduceat(np.eye(cone.n), cone.starts[:-1], axis=0)
        limits = np.vstack([groups[cone.low == 0], -groups[cone.high == 0]])
    found = scipy.optimize.linprog(
        -rows.sum(axis=0),
        A_ub=-np.vstack([rows, limits]),
        b_ub=np.zeros(len(rows) + len(limits)),
        A_eq=sums,
        b_eq=np.zeros(len(sums)),
        bounds=np.column_stack([np.maximum(cone.lower, -1.0), np.minimum(cone.upper, 1.0)]),
        options={"time_limit": seconds} if math.isfinite(seconds) else {},
    )
    if found.status != 0 or not found.fun < -NEARLY_ZERO:
        return None
    return _within(cone, found.x)


def _in_whole_numbers(cone: Layout, rows: Array, direction: Array) -> Iterator[Array]:
    """Yield directions with integer entries near one whose inner products are 0 up to rounding.

    The equations that nearly hold are solved exactly for the entries that they determine.
    """
    some = np.flatnonzero(np.abs(direction) > NEARLY_ZERO)
    if not 0 < len(some) <= MAX_EXACT_VARIABLES:
        return
    size = np.abs(rows) @ np.abs(direction)
    zero = np.abs(rows @ direction) <= NEARLY_ZERO * size
    sums = np.add.reduceat(np.eye(cone.n), cone.sharing[:-1], axis=0)
    equations = np.vstack([sums, rows[zero]])[:, some]
    solved = _reduced([[Fraction(float(a)) for a in row] for row in equations])
    for bits in FREE_ENTRY_BITS:
        entries = [Fraction(round(float(d) * 2**bits), 2**bits) for d in direction[some]]
        for pivot, row in solved.items():
            entries[pivot] = -sum(
                (row[k] * entries[k] for k in range(len(some)) if k not in solved), Fraction(0)
            )
        common = math.lcm(*(entry.denominator for entry in entries))
        if max(abs(entry * common) for entry in entries) > MAX_EXACT_INTEGER:
            continue
        whole = np.zeros(cone.n)
        whole[some] = [int(entry * common) for entry in entries]
        if _contains(cone, whole):
            yield whole


def _reduced(equations: list[list[Fraction]]) -> dict[int, list[Fraction]]:
    """Solve equations ``row'd = 0`` for one entry each; return the coefficients by entry."""
    solved: dict[int, list[Fraction]] = {}
    for row in equations:
        for pivot, other in solved.items():
            if row[pivot]:
                row = [a - row[pivot] * b for a, b in zip(row, other, strict=True)]
        pivot = next((k for k, a in enumerate(row) if a), -1)
        if pivot < 0:
            continue
        row = [a / row[pivot] for a in row]
        for k, other in solved.items():
            if other[pivot]:
                solved[k] = [a - other[pivot] * b for a, b in zip(other, row, strict=True)]
        solved[pivot] = row
    return solved


def _contains(cone: Layout, direction: Array) -> bool:
    """Return whether a direction with integer or grid entries is in the cone exactly."""
    if not ((direction >= cone.lower).all() and (direction <= cone.upper).all()):
        return False
    if np.add.reduceat(direction, cone.sharing[:-1]).any():
        return False
    if cone.low is None or cone.high is None:
        return True
    sums = np.add.reduceat(direction, cone.starts[:-1])
    return bool((sums >= cone.low).all() and (sums <= cone.high).all())


def _by_values(task: Task, cone: Layout) -> Array | None:
    """Return the direction of z, if values decrease along it up to the largest numbers."""
    if lower_bound(task.objective) > -math.inf:
        return None
    direction = _within(cone, task.z)
    if direction is None or falls_along(task.objective, direction) is False:
        return None
    distance = first = max(float(np.abs(task.z).max()), 1.0)
    values = [task.objective.value(task.z)]
    with np.errstate(all="ignore"):
        while distance < MAX_DISTANCE and values[-1] > -math.inf:
            value = task.objective.value(task.z + distance * direction)
            if not value < math.inf and distance > MIN_RANGE * first:
                break
            if not value < values[-1] - VALUE_ROUNDING * abs(values[-1]):
                return None
            values.append(value)
            distance *= DISTANCE_FACTOR
    if values[-1] == -math.inf:
        return direction
    falls = -np.diff(values)
    return direction if falls[-1] >= MIN_GAIN_RATIO * falls[len(falls) // 2] else None


def _size(task: Task, current: Evaluation) -> float:
    return max(current.size, abs(current.value), abs(task.first_value - current.value))
