"""Small dense quadratics in one native call.

A solve of a few variables takes microseconds, less than the Python code around a general solve.
"""

from __future__ import annotations

import math
from enum import Enum
from time import perf_counter
from typing import Any

from numpy import flatnonzero, ndarray

from .. import _core
from .._validation import Array
from ..constraints import Layout
from ..labels import Axis
from ..result import Result, Status

OPTIMAL = Status.OPTIMAL
UNLABELED = Axis()
# Number of free variables up to which solving a model from scratch takes less time than starting
# the general solver from the previous minimum.
MAX_FREE_AT_ONCE = 64
new, set_attribute = object.__new__, object.__setattr__  # avoids a lookup per solve


class Declined(Enum):
    """Why the small-problem solver returned no result."""

    NOT_SMALL_ARRAYS = (
        "the arguments are not float64 arrays and numbers, or there are too many variables"
    )
    NOT_SIMPLE = "the problem needs the general solver, or an argument is invalid"


def solve_small(Q: Any, c: Any, total: Any, lower: Any, upper: Any, tol: Any) -> Result | Declined:
    """Solve a quadratic with one sum and bounds, or return why it was declined."""
    began = perf_counter()
    if upper is None:
        upper = math.inf
    found = _core.small(Q, 0.0 if c is None else c, total, lower, upper, tol)
    if not found:  # None: not small arrays; False: not simple
        return Declined.NOT_SMALL_ARRAYS if found is None else Declined.NOT_SIMPLE
    x, gradient, value, n_iter, violation, tolerance, bound, multiplier = found
    # The bounds belong to the caller, who may change them later.
    bounds = (
        lower.copy() if isinstance(lower, ndarray) else lower,
        upper.copy() if isinstance(upper, ndarray) else upper,
    )
    # The constructor of a frozen dataclass sets the fields one by one, which takes as long as the
    # solve.
    result = new(Result)
    fields = {
        "x": x, "fun": value, "status": OPTIMAL, "n_iter": n_iter, "kkt_violation": violation,
        "suboptimality_bound": bound, "sum_multiplier": multiplier, "setup_time": 0.0,
        "solve_time": perf_counter() - began, "gradient": gradient, "pull": multiplier,
        "bounds": bounds, "tolerance": tolerance, "variables": UNLABELED,
        "_problem": (Q, c, total, *bounds),
    }  # fmt: skip
    set_attribute(result, "__dict__", fields)
    return result


def minimum_at_once(model: Any, layout: Layout, z: Array, tol: float) -> Array | None:
    """Return the minimum of a quadratic model; variables with equal bounds keep their value in z.

    Returns None if too many variables are free, if there are several groups, or if the
    small-problem solver declines.
    """
    free = flatnonzero(layout.lower < layout.upper)
    if len(free) > MAX_FREE_AT_ONCE or len(layout.starts) > 2:
        return None
    minimum = z.copy()
    minimum[free] = 0.0
    found = _core.small(
        model.block(free), model.gradient(minimum)[free], float(layout.totals[0] - minimum.sum()),
        layout.lower[free], layout.upper[free], tol,
    )  # fmt: skip
    if not found:
        return None
    minimum[free] = found[0]
    return minimum
