"""Small dense problems in one native call: all that Python does about a solve would take longer."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, Literal

from numpy import flatnonzero, ndarray

from .. import _core
from .._validation import Array
from ..constraints import Layout
from ..labels import Axis
from ..result import Result, Status

OPTIMAL = Status.OPTIMAL
UNLABELLED = Axis()
# Up to so many variables to begin anew takes less time than to hand the last minimum on.
AT_ONCE = 64
new, set_attribute = object.__new__, object.__setattr__  # to look them up takes time, too


def solve_small(
    Q: Any, c: Any, total: Any, lower: Any, upper: Any, tol: Any
) -> Result | Literal[False] | None:
    """The optimum, if it is plain.

    None where the numbers are in another form than arrays of floats or there are too many of them,
    False where the problem needs a closer look or has an error.
    """
    began = perf_counter()
    if upper is None:
        upper = math.inf
    found = _core.small(Q, 0.0 if c is None else c, total, lower, upper, tol)
    if not found:
        return found
    x, gradient, value, n_iter, violation, tolerance, bound, multiplier = found
    # The bounds stay the caller's, who may change them.
    bounds = (
        lower.copy() if isinstance(lower, ndarray) else lower,
        upper.copy() if isinstance(upper, ndarray) else upper,
    )
    # Not through the constructor: a frozen dataclass sets its fields one by one, which takes as
    # long as the solve.
    result = new(Result)
    fields = {
        "x": x, "fun": value, "status": OPTIMAL, "n_iter": n_iter, "kkt_violation": violation,
        "suboptimality_bound": bound, "multiplier": multiplier, "setup_time": 0.0,
        "solve_time": perf_counter() - began, "gradient": gradient, "pull": multiplier,
        "bounds": bounds, "tolerance": tolerance, "variables": UNLABELLED,
    }  # fmt: skip
    set_attribute(result, "__dict__", fields)
    return result


def minimum_at_once(model: Any, layout: Layout, z: Array, tol: float) -> Array | None:
    """The minimum of a quadratic whose fixed variables are those of z, if few others are plain."""
    free = flatnonzero(layout.lower < layout.upper)
    if len(free) > AT_ONCE or len(layout.starts) > 2:
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
