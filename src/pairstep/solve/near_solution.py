"""Starting points near the solution of another problem."""

from __future__ import annotations

import numpy as np

from .._validation import Array
from ..constraints import SumBox
from ..labels import Axis, aligned, labeled
from ..result import Result


def near_solution(before: Result, constraint: SumBox, variables: Axis) -> Array:
    """Return a feasible point of a constraint near a solution of another one.

    Variables at their bounds stay there: they are moved far beyond their bounds before the
    projection, so that only the free variables absorb a change of the sum. The nearest point would
    not be sparse, but solutions are.
    """
    x, (lower, upper) = before.x, before.bounds
    side = (x >= upper).astype(float) - (x <= lower)
    beyond = labeled(x + np.abs(x).max() * side, before.variables)
    return constraint.project(aligned("x0", beyond, variables))
